package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

func busReact() *Op {
	var r skill.Reaction
	return define(Op{
		Name: "bus react", Short: "Invoke a skill for every message of some topics", Undo: "bus unreact", Done: "made reaction",
		Long: "Invoke a skill for every message that is accepted from now on under the topics that a pattern selects, those\n" +
			"of the engine too: sys.task.failed. Its parameters are the message's payload, or --params, in whose texts\n" +
			"${message.payload.FIELD} and ${message.topic} stand for parts of the message. Each message starts one task, the\n" +
			"engine's own, so the gate may ask about it. One that the skill can't take is a dead letter with the reason; so\n" +
			"is the last of 16 reactions to one another. The same reaction again changes nothing.",
		Example: `bus react part.complete paint --params '{"part":"${message.payload.part}"}'`,
		Params: []*Param{
			place(&r.Pattern, "PATTERN", "topic"), place(&r.Skill, "SKILL", "skill"),
			flag(&r.Params, "params", "parameters as `JSON`, @file, or - for stdin (default the payload)"),
		},
	}, func(ctx context.Context, c *Call) (skill.Reaction, error) {
		made, _, err := c.Skills.React(ctx, c.By, r)
		return made, err
	})
}

func busReactions() *Op {
	return list(Op{Name: "bus reactions", Short: "List which topics invoke which skills"},
		func(_ context.Context, c *Call, f core.Filter) (core.Page[skill.Reaction], error) {
			return core.Pick(c.Skills.Reactions(c.By.Tenant), nil, f, func(r skill.Reaction) core.Traits {
				return core.Traits{At: r.CreatedAt, Text: r.ReactionID + " " + r.Pattern + " " + r.Skill + " " + r.CreatedBy}
			})
		})
}

// Unreacted is a reaction that is no more.
type Unreacted struct {
	ReactionID string `json:"reaction_id"`
	Status     string `json:"status"` // removed
	was        skill.Reaction
}

// Tell says it.
func (u Unreacted) String() string { return u.was.Pattern + " no longer invokes " + u.was.Skill }

func busUnreact() *Op {
	return change(Op{
		Name: "bus unreact", Short: "End a reaction, with the messages that wait for it", Effect: Destroys, Confirm: ConfirmAsk, Done: "removed",
	}, arg("ID", "reaction"), func(ctx context.Context, c *Call, id string) (Unreacted, error) {
		r, err := c.Skills.Unreact(ctx, c.By, id)
		return Unreacted{r.ReactionID, "removed", r}, err
	})
}
