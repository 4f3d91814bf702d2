package dag_test

import (
	"slices"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// TestATurnThatNoTaskAskedForIsRecordedOnce, however often it is told, and what is said
// after its end follows from it.
func TestATurnThatNoTaskAskedForIsRecordedOnce(t *testing.T) {
	r := newRig(t)
	x := dag.Elsewhere{Agent: "ada", Turn: "ada/build/3"}
	ask := func() (fresh bool) {
		r.No(r.Ledger.Append(t.Context(), alice, func(tx *audit.Tx) (err error) {
			fresh, err = r.AskedIn(tx, x, "mend it")
			return err
		}))
		return fresh
	}
	answer := func(said ...string) {
		r.No(r.Ledger.Append(t.Context(), alice, func(tx *audit.Tx) error { return r.AnsweredIn(tx, x, said) }))
	}
	kinds := func() (all []string) {
		p := expect.Of(r.Events(t.Context(), acme, dag.Query{Forward: true}))(r.T)
		for _, e := range p.Items {
			all = append(all, string(e.Event.Kind))
		}
		return all
	}
	expect.True(t, ask() && !ask(), "a turn is fresh once")
	for range 2 {
		answer("looking", "mended")
	}
	got := kinds()
	expect.True(t, len(got) == 5, "recorded %v, want a run with a question and two answers", got)
	answer("looking", "mended", "and tested")
	got = kinds()
	expect.True(t, len(got) == 8, "recorded %v, want another run with one answer", got)
	p := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Match: "and tested"}}))(r.T)
	l := expect.Of(r.Lineage(t.Context(), acme, dag.LineageQuery{Node: p.Items[0].Event.Nodes[0].Ref(), Depth: 10}))(r.T)
	q := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Match: "mend it"}}))(r.T)
	asked := slices.ContainsFunc(l.Steps, func(s dag.Step) bool { return s.Node == q.Items[0].Event.Nodes[0].Ref() })
	expect.True(t, asked, "the answer does not lead to the question: %+v", l.Steps)
	deltas := expect.Of(r.Ledger.Reconcile(t.Context(), acme))(r.T)
	expect.True(t, len(deltas) == 0, "%v", deltas)
}
