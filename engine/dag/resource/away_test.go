package resource

import (
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestWhatAnotherMachineHasIsNeitherGoneNorKeptHere(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.opt.Place = "deck1/a"
		id := r.attachThing("mug")
		made := expect.Of(r.Snapshot(r.T.Context(), alice, id))(r.T)
		expect.Is(t, r.Fault(r.T.Context(), acme), nil, "at the machine that has it")
		r.opt.Place = "deck2/b"
		for what, do := range map[string]func() error{
			"probe":       func() error { _, err := r.Probe(r.T.Context(), alice, id); return err },
			"snapshot":    func() error { _, err := r.Snapshot(r.T.Context(), alice, id); return err },
			"restore":     func() error { _, err := r.Restore(r.T.Context(), alice, made.ID, "cup"); return err },
			"replacement": func() error { _, err := r.Restore(r.T.Context(), alice, made.ID, ""); return err },
			"fault":       func() error { return r.Fault(r.T.Context(), acme) },
		} {
			expect.Says(t, do(), "on deck1", what)
		}
		v, err := r.Show(r.T.Context(), acme, id)
		expect.True(t, err == nil && v.Liveness.Status == dag.LiveUnknown, "what can't be seen is taken for %v, %v", v.Liveness, err)
		expect.Says(t, expect.Fault(r.fork(r.began("run"), "eve", nil)), "on deck1", "fork")
		r.No(r.forget(r.T.Context(), alice, made.ID))
		expect.Is(t, len(r.shelf.kept), 1, "the machine that keeps it was told to drop it, or another one has")
	})
}
