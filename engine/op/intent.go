package op

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
)

func intents() []*Op {
	type I = control.Intent
	id := arg("ID", "intent")
	return []*Op{
		intentList(),
		show(Op{Name: "dag intent show", Short: "Show an intent: its steps, what they came to, and why it waits"}, id,
			func(ctx context.Context, c *Call, id string) (I, error) { return c.Intents.Get(ctx, c.By, id) }),
		intentWait(),
		changeWhy(Op{
			Name: "dag intent cancel", Short: "Withdraw an intent: what it began is taken back", Effect: Destroys, Confirm: ConfirmAsk, Undo: "dag intent retry", Done: "withdrew",
			Long: "Withdraw an intent. What it is doing is cut off, and the steps that began are taken back, the last one\n" +
				"first. One that is stuck is left as it is, and is over.",
		}, id, withReason(func(c *Call) callerWhy[I] { return c.Intents.Withdraw })),
		change(Op{
			Name: "dag intent retry", Short: "Have an intent tried again, without the pause", Undo: "dag intent cancel", Done: "tries again:",
			Long: "Have an intent tried again. One that waits for its next try has it now, with all tries before it; one that\n" +
				"is stuck is taken back again; of one that failed or was withdrawn a new one is made, which is judged anew.",
		}, id, func(ctx context.Context, c *Call, id string) (I, error) { return c.Intents.Retry(ctx, c.By, id) }),
	}
}

func intentList() *Op {
	var open bool
	return list(Op{
		Name: "dag intents", Short: "List what is wanted of the world, and how far it is: newest first", Statuses: core.Strings(control.Statuses()...),
		Long: "List the intents, newest first: snapshots, restores, forks and other changes of the world that somebody\n" +
			"wants. --open leaves out those that are over. --kind is an action, such as resource.snapshot.",
		Example: "dag intents --open\ndag intents --status stuck",
		Params:  []*Param{flag(&open, "open", "only those that are not over")},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[control.Intent], error) {
		return c.Intents.List(ctx, c.By.Tenant, f, open)
	})
}

func intentWait() *Op {
	var limit time.Duration
	return show(Op{
		Name: "dag intent wait", Short: "Wait until an intent is over", Check: (*Call).look,
		Long:   "Wait until an intent is over, or stuck, and print it; exit 1 unless it is done. It goes on where an engine that ended has left it.",
		Params: []*Param{flag(&limit, "timeout", "give up after this `DURATION` (exit 4)")},
	}, arg("ID", "intent"), func(ctx context.Context, c *Call, id string) (control.Intent, error) {
		now, err := c.Intents.Get(ctx, c.By, id)
		if err == nil && c.Idle && !now.Status.Over() && now.Status != control.Stuck {
			err = core.Errorf(core.Denied, "intent %s is %s, and nothing runs with --read-only", now.IntentID, now.Status).With("field", "read-only")
		}
		if err != nil {
			return now, err
		}
		within, end := limited(ctx, limit)
		defer end()
		now, err = c.Intents.Await(within, c.By.Tenant, id)
		switch cause := context.Cause(within); {
		case err != nil && errors.Is(cause, ErrTimeout):
			err = fmt.Errorf("intent %s is still %s %w", now.IntentID, now.Status, cause)
		case err == nil && now.Status != control.Done:
			err = &Failed{}
		}
		return now, err
	})
}
