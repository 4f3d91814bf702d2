package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// offer has an agent's program say what it can be set to.
func (w *world) offer(name string, o fleet.Offers) {
	w.T.Helper()
	w.rt.handle(name).notify(fleet.Health{Status: fleet.Idle, Offers: &o})
	w.Await("the record has it", func() bool { return w.agent(name).Offered().Mode == o.Mode })
}

func TestAModeIsKeptAndSetAtOnce(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	w.awaitStatus("bob", fleet.Idle)
	if a, err := w.fleet.Choose(t.Context(), alice, "bob", fleet.SetMode, "early"); err != nil || string(a.Options) != `{"mode":"early"}` {
		t.Fatalf("before it has said anything: %s, %v", a.Options, err)
	}
	w.offer("bob", fleet.Offers{Modes: []fleet.Choice{{ID: "ask", Name: "Always ask"}, {ID: "auto"}}, Mode: "ask"})
	_, err := w.fleet.Choose(t.Context(), alice, "bob", fleet.SetMode, "yolo")
	refused(t, err, core.InvalidInput, "field", "mode")
	expect.Has(t, err.Error(), "one of: ask (Always ask), auto", "it says", err)
	_, err = w.fleet.Choose(t.Context(), alice, "bob", fleet.SetModel, "x")
	refused(t, err, core.InvalidInput, "field", "model")
	a, err := w.fleet.Choose(t.Context(), alice, "bob", fleet.SetMode, "auto")
	expect.Must(t, err == nil && string(a.Options) == `{"mode":"auto"}`, "options %s, %v", a.Options, err)
	h := w.rt.handle("bob")
	h.mu.Lock()
	same(t, "set", h.chosen, []string{"mode early", "mode auto"})
	h.choose = errors.New("busy")
	h.mu.Unlock()
	if a, err := w.fleet.Choose(t.Context(), alice, "bob", fleet.SetMode, "ask"); err == nil || !strings.Contains(err.Error(), "is kept as ask") || string(a.Options) != `{"mode":"ask"}` {
		t.Errorf("one that can't be set now: %s, %v", a.Options, err)
	}
	w.rt.handle("bob").notify(fleet.Health{Status: fleet.Idle, PID: 7})
	w.Await("another process is told of", func() bool { return w.agent("bob").PID == 7 })
	o := w.agent("bob").Offered()
	expect.True(t, len(o.Modes) == 2, "what it offers was forgotten: %+v", o)
	w.consistent()
}

func TestWhatAnAgentOffersIsBounded(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	w.awaitStatus("bob", fleet.Idle)
	o := fleet.Offers{Mode: "m0", Modes: []fleet.Choice{{ID: ""}, {ID: strings.Repeat("x", 1000)}}}
	for i := range 1000 {
		o.Modes = append(o.Modes, fleet.Choice{ID: fmt.Sprintf("m%d", i), Name: strings.Repeat("n", 1000)})
	}
	w.offer("bob", o)
	got := w.agent("bob").Modes
	expect.True(t, len(got) == 200 && len(got[0].Name) <= 128 && got[0].ID == "m0", "it keeps %d", len(got))
	_, err := w.fleet.Choose(t.Context(), alice, "bob", fleet.SetMode, "m900")
	expect.No(t, err, "one beyond what is kept is the agent's to judge")
}
