package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/op"
)

func (t *tree) dagIntents() *cobra.Command {
	var open bool
	return lists(t, spec{
		use: "intents", short: "List what is wanted of the world, and how far it is: newest first", effect: Reads,
		long: "List the intents, newest first: snapshots, restores, forks and other changes of the world that somebody\n" +
			"wants. --open leaves out those that are over. --kind is an action, such as resource.snapshot.",
		example: "dag intents --open\ndag intents --status stuck",
		flags:   func(f *pflag.FlagSet) { f.BoolVar(&open, "open", false, "only those that are not over") },
	}, core.Strings(control.Statuses()...), intentColumns,
		func(c *call, f core.Filter) (core.Page[control.Intent], error) {
			return c.eng.Intents.List(c.ctx, c.by.Tenant, f, open)
		})
}

func (t *tree) dagIntent() *cobra.Command {
	return t.group("intent", "One change of the world that somebody wants",
		t.command(spec{
			use: "show ID", short: "Show an intent: its steps, what they came to, and why it waits", effect: Reads, args: []string{"intent"},
			run: func(c *call, args []string) error {
				i, err := c.eng.Intents.Get(c.ctx, c.by, args[0])
				if err != nil {
					return err
				}
				return c.intent(i)
			},
		}),
		t.dagIntentWait(),
		t.command(spec{
			use: "cancel ID", short: "Withdraw an intent: what it began is taken back", effect: Destroys, confirm: ConfirmAsk, args: []string{"intent"},
			long: "Withdraw an intent. What it is doing is cut off, and the steps that began are taken back, the last one\n" +
				"first. One that is stuck is left as it is, and is over.",
			flags: withReason,
			run: changes(intentColumns, func(c *call, id string) (control.Intent, error) {
				return c.eng.Intents.Withdraw(c.ctx, c.by, id, c.reason())
			}),
		}),
		t.command(spec{
			use: "retry ID", short: "Have an intent tried again, without the pause", effect: Writes, args: []string{"intent"},
			long: "Have an intent tried again. One that waits for its next try has it now, with all tries before it; one that\n" +
				"is stuck is taken back again; of one that failed or was withdrawn a new one is made, which is judged anew.",
			run: changes(intentColumns, func(c *call, id string) (control.Intent, error) { return c.eng.Intents.Retry(c.ctx, c.by, id) }),
		}),
	)
}

func (t *tree) dagIntentWait() *cobra.Command {
	var limit time.Duration
	return t.command(spec{
		use: "wait ID", short: "Wait until an intent is over", effect: Reads, args: []string{"intent"},
		long:  "Wait until an intent is over, or stuck, and print it; exit 1 unless it is done. It goes on where an engine that ended has left it.",
		flags: func(f *pflag.FlagSet) { spanVar(f, &limit, "timeout", "give up after this `DURATION` (exit 4)") },
		check: func(c *call, _ []string) error {
			c.active = !c.g.ReadOnly
			return nil
		},
		run: func(c *call, args []string) error {
			now, err := c.eng.Intents.Get(c.ctx, c.by, args[0])
			if err != nil {
				return err
			}
			if c.g.ReadOnly && !now.Status.Over() && now.Status != control.Stuck {
				return core.Errorf(core.Denied, "intent %s is %s, and nothing runs with --read-only", now.IntentID, now.Status).With("field", "read-only")
			}
			ctx, end := c.ctx, context.CancelFunc(func() {})
			if limit > 0 {
				ctx, end = context.WithTimeout(c.ctx, limit)
			}
			defer end()
			now, err = c.eng.Intents.Await(ctx, c.by.Tenant, args[0])
			if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
				return fmt.Errorf("intent %s is still %s after %s: %w", now.IntentID, now.Status, limit, op.ErrTimeout)
			}
			if err != nil {
				return err
			}
			if err := c.intent(now); err != nil {
				return err
			}
			if now.Status != control.Done {
				return &ExitError{Code: ExitFailed}
			}
			return nil
		},
	})
}

// intent prints one intent with its steps.
func (c *call) intent(i control.Intent) error {
	return c.print(i, func(w io.Writer) error {
		data, err := core.Encode(struct {
			control.Intent `json:",embed"`
			Steps          *int `json:"steps,omitzero"` // they follow
		}{Intent: i})
		if err != nil {
			return fmt.Errorf("encode an intent: %w", err)
		}
		if err := details(w, data); err != nil {
			return err
		}
		fmt.Fprintln(w)
		table(w, i.Steps, intentStepColumns(), c.g.Output == "wide")
		return nil
	})
}

func intentStepColumns() []column[control.StepState] {
	type S = control.StepState
	return []column[S]{
		{title: "ACTION", text: func(s S) string { return s.Action }},
		{title: "STATUS", text: func(s S) string { return string(s.Status) }},
		{title: "TRIES", right: true, text: func(s S) string { return strconv.Itoa(s.Tries) }},
		{title: "CALL", most: briefID, text: func(s S) string { return s.Call }},
		{title: "SEEN", most: briefID, text: func(s S) string { return s.End }},
		{title: "UNDO", wide: true, most: briefID, text: func(s S) string { return s.Undo }},
		{title: "ARGS", most: 40, text: func(s S) string { return string(s.Args) }},
		{title: "RESULT", most: 60, text: func(s S) string {
			if s.Error != nil {
				return s.Error.Code + ": " + s.Error.Message
			}
			return string(s.Result)
		}},
	}
}

func intentColumns(c *call) []column[control.Intent] {
	type I = control.Intent
	return []column[I]{
		{title: "INTENT", text: func(i I) string { return i.IntentID }},
		{title: "STATUS", text: func(i I) string { return string(i.Status) }},
		{title: "ACTION", most: 24, text: func(i I) string { return intentAction(&i) }},
		{title: "SUBJECT", most: 30, text: func(i I) string { return i.Subject }},
		{title: "AGENT", most: 20, text: func(i I) string { return i.AgentID }},
		{title: "BY", most: 20, wide: true, text: func(i I) string { return i.By }},
		{title: "TRIES", wide: true, right: true, text: func(i I) string { return strconv.Itoa(i.Tries) }},
		{title: "AGE", right: true, text: func(i I) string { return c.age(i.CreatedAt) }},
		{title: "TASK", wide: true, text: func(i I) string { return i.TaskID }},
		{title: "WHY", most: 60, text: func(i I) string { return i.Why }},
	}
}

// intentAction is the step at hand, and which of how many it is.
func intentAction(i *control.Intent) string {
	if i.At < 1 || i.At > len(i.Steps) {
		return ""
	}
	action := i.Steps[i.At-1].Action
	if len(i.Steps) > 1 {
		action = fmt.Sprintf("%s %d/%d", action, i.At, len(i.Steps))
	}
	return action
}
