package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
)

func agentTell(called string) *Op {
	var name, text, uri string
	var now, after bool
	var attach []string
	return define(Op{
		Name: called, Short: "Say something to an agent, also while it works", Undo: "agent withdraw", Done: "told",
		Long: "Say something to an agent. An idle one takes it as its task at once. For any other it waits, up to 50 messages in\n" +
			"order: each is the agent's next task when it is idle again (--after, the default). With --now it is meant for the task\n" +
			"that the agent works on. A program of yours gets it as a line of its input, {\"type\":\"message\",\"text\":…}; whether it\n" +
			"heeds that is up to it. The Agent Client Protocol has no way to interrupt with words: there it is the very next prompt,\n" +
			"in the same task, when the agent ends its turn. An agent in a Coder workspace hears nothing while it works: it waits, as\n" +
			"the first. Nothing is cancelled; agent cancel does that. What becomes of it is in the answer: state and note.",
		Example: called + " ada 'and update the docs' --now",
		Params: []*Param{
			place(&name, "NAME", "agent"),
			place(&text, "TEXT", "").bounds(1, 100_000),
			flag(&uri, "uri", "what it is about: `URI`").bounds(1, 2048), attaching(&attach),
			flag(&now, "now", "in the task that it works on"),
			flag(&after, "after", "when it is idle again (the default)"),
		},
		Check: func(*Call) error {
			if now && after {
				return usage("after", "%s: --now and --after exclude each other", called)
			}
			return nil
		},
	}, func(ctx context.Context, c *Call) (Told[fleet.Told], error) {
		text, err := c.Fleet.WithFiles(c.By.Tenant, name, text, attach)
		if err != nil {
			return Told[fleet.Told]{}, err
		}
		t, err := c.Fleet.Tell(ctx, c.By, name, text, uri, now)
		said := "agent " + t.Agent + ": " + t.Note
		if t.TaskID != "" {
			said += " (" + t.TaskID + ")"
		}
		return told(t, said+"; next: swarmdeck log "+t.Agent), err
	})
}

// attaching is the files that a message for an agent attaches.
func attaching(into *[]string) *Param {
	return flag(into, "attach", "hand it a file of its directory, by its `PATH` there; as @PATH in the text").names(reach.Inside)
}

func agentQueue() *Op {
	return listOf(Op{
		Name: "agent queue", Short: "List the messages that wait for an agent, the next first", ForAgents: true,
		Example: "agent queue ada",
	}, arg("NAME", "agent"), func(ctx context.Context, c *Call, name string, f core.Filter) (none core.Page[fleet.Message], err error) {
		queue, err := c.Fleet.Queue(ctx, c.By.Tenant, name)
		if err != nil {
			return none, err
		}
		all := core.Map(queue, func(m *fleet.Message) fleet.Message { return *m })
		return core.Pick(all, nil, f, func(m fleet.Message) core.Traits {
			return core.Traits{Agent: m.Agent, At: m.CreatedAt, Text: m.Text + " " + m.URI}
		})
	})
}

func agentWithdraw() *Op {
	var name, id string
	return define(Op{
		Name: "agent withdraw", Short: "Take a message back that waits for an agent", Done: "withdrew",
		Example: "agent withdraw ada qm_1a2b3_0000000004",
		Params:  []*Param{place(&name, "NAME", "agent"), place(&id, "MESSAGE", "")},
	}, func(ctx context.Context, c *Call) (fleet.Message, error) {
		return c.Fleet.Withdraw(ctx, c.By, name, id)
	})
}

func agentMove() *Op {
	var name, id string
	var to int
	return define(Op{
		Name: "agent move", Short: "Give a message that waits for an agent another place", Done: "moved",
		Long:    "Give a message that waits for an agent another place; 1 is given next. One that could not be given is tried again.",
		Example: "agent move ada qm_1a2b3_0000000004 1",
		Params:  []*Param{place(&name, "NAME", "agent"), place(&id, "MESSAGE", ""), place(&to, "PLACE", "").bounds(1, fleet.MaxQueue)},
	}, func(ctx context.Context, c *Call) (fleet.Message, error) {
		return c.Fleet.Reorder(ctx, c.By, name, id, to)
	})
}
