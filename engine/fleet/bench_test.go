package fleet_test

import (
	"fmt"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestAPageHoldsAHundredAgents(t *testing.T) {
	w := newWorld(t)
	for i := range 120 {
		expect.Of(w.fleet.Create(t.Context(), alice, fleet.Create{Name: fmt.Sprint("a", i), Project: "P", Command: []string{"x"}}))(t)
	}
	p, err := w.fleet.Agents(t.Context(), home, core.Filter{Size: 100})
	expect.True(t, err == nil && len(p.Items) == 100 && p.Info.Total == 120, "%d of %d, %v", len(p.Items), p.Info.Total, err)
}

func BenchmarkListAgents(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b)
			for i := range n {
				_, err := w.fleet.Create(b.Context(), alice, fleet.Create{Name: fmt.Sprint("a", i), Project: "P", Command: []string{"x"}})
				expect.No(b, err)
			}
			for b.Loop() {
				expect.Of(w.fleet.Agents(b.Context(), home, core.Filter{Size: 100}))(b)
			}
		})
	}
}
