package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

func (t *tree) busReact() *cobra.Command {
	var params string
	return t.command(spec{
		use: "react PATTERN SKILL", short: "Invoke a skill for every message of some topics", effect: Writes, args: []string{"topic", "skill"},
		long: "Invoke a skill for every message that is accepted from now on under the topics that a pattern selects, those\n" +
			"of the engine too: sys.task.failed. Its parameters are the message's payload, or --params, in whose texts\n" +
			"${message.payload.FIELD} and ${message.topic} stand for parts of the message. Each message starts one task, the\n" +
			"engine's own, so the gate may ask about it. One that the skill can't take is a dead letter with the reason; so\n" +
			"is the last of 16 reactions to one another. The same reaction again changes nothing.",
		example: `bus react part.complete paint --params '{"part":"${message.payload.part}"}'`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&params, "params", "", "parameters as `JSON`, @file, or - for stdin (default the payload)")
		},
		run: func(c *call, args []string) error {
			r := skill.Reaction{Pattern: args[0], Skill: args[1]}
			if c.flags.Changed("params") {
				var err error
				if r.Params, err = c.document("params", params); err != nil {
					return err
				}
			}
			r, _, err := c.eng.Skills.React(c.ctx, c.by, r)
			if err != nil {
				return err
			}
			return record(c, r, reactionColumns(c))
		},
	})
}

func (t *tree) busReactions() *cobra.Command {
	return lists(t, spec{use: "reactions", short: "List which topics invoke which skills", effect: Reads}, nil, reactionColumns,
		func(c *call, f core.Filter) (core.Page[skill.Reaction], error) {
			return core.Pick(c.eng.Skills.Reactions(c.by.Tenant), nil, f, func(r skill.Reaction) core.Traits {
				return core.Traits{At: r.CreatedAt, Text: r.ReactionID + " " + r.Pattern + " " + r.Skill + " " + r.CreatedBy}
			})
		})
}

func (t *tree) busUnreact() *cobra.Command {
	return t.command(spec{
		use: "unreact ID", short: "End a reaction, with the messages that wait for it", effect: Destroys, confirm: ConfirmAsk, args: []string{"reaction"},
		run: func(c *call, args []string) error {
			r, err := c.eng.Skills.Unreact(c.ctx, c.by, args[0])
			if err != nil {
				return err
			}
			return c.say(map[string]string{"reaction_id": r.ReactionID, "status": "removed"}, "%s no longer invokes %s", r.Pattern, r.Skill)
		},
	})
}

func reactionColumns(c *call) []column[skill.Reaction] {
	type R = skill.Reaction
	return []column[R]{
		{title: "REACTION", text: func(r R) string { return r.ReactionID }},
		{title: "PATTERN", most: 40, text: func(r R) string { return r.Pattern }},
		{title: "SKILL", text: func(r R) string { return r.Skill }},
		{title: "PARAMS", most: 40, text: func(r R) string { return string(r.Params) }},
		{title: "AGE", right: true, text: func(r R) string { return c.age(r.CreatedAt) }},
		{title: "BY", wide: true, text: func(r R) string { return r.CreatedBy }},
	}
}

func liveReactions(eng *engine.Engine, tenant string) []Candidate {
	return candidates(eng.Skills.Reactions(tenant), nil, func(r skill.Reaction) Candidate { return Candidate{r.ReactionID, r.Pattern + " " + r.Skill} })
}
