package fleet_test

import (
	"context"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// overhearing is a runtime whose agents are talked to elsewhere too.
type overhearing struct {
	fleet.Runtime
	hear chan func(context.Context, fleet.Event) error
}

type talker struct {
	fleet.Handle
	hear chan func(context.Context, fleet.Event) error
}

func (t talker) Overhear(hear func(context.Context, fleet.Event) error) { t.hear <- hear }

func (o overhearing) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	h, err := o.Runtime.Open(ctx, a, notify)
	return talker{h, o.hear}, err
}

func TestWhatIsSaidElsewhereIsInTheLogOfTheAgentAlone(t *testing.T) {
	w := newWorld(t)
	w.observer = &witness{}
	hear := make(chan func(context.Context, fleet.Event) error, 1)
	w.wrap = func(rt fleet.Runtime) fleet.Runtime { return overhearing{rt, hear} }
	w.Close()
	w.Open()
	w.run()
	w.create("bob")
	w.awaitStatus("bob", fleet.Idle)
	say := <-hear
	for _, e := range []fleet.Event{
		{Type: "prompt", Text: "mend it", Turn: "t1"}, {Type: "message", Text: "mended \x1b[31m"}, {Type: "log", Level: "WARN", Text: "careful"},
	} {
		expect.No(t, say(t.Context(), e))
	}
	expect.True(t, say(t.Context(), fleet.Event{Type: "usage", Tokens: 5}) != nil, "it spends what no task has")
	page, err := w.fleet.Log(t.Context(), home, "bob", core.Filter{Size: 10})
	expect.Must(t, err == nil && len(page.Items) == 3, "%+v, %v", page, err)
	for i, want := range []string{"WARN log careful", "INFO message mended \x1b[31m", "INFO prompt told elsewhere: mend it"} {
		l := page.Items[i]
		got := l.Level + " " + l.Source + " " + l.Message
		expect.True(t, got == want && l.TaskID == "", "line %d: %q of task %q, want %q", i, got, l.TaskID, want)
	}
	w.consistent()
}
