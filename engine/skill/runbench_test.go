package skill_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
)

// BenchmarkInvoke runs the model's chain of three steps from its invocation to
// its end, so many at once: spawn, dispatch with its gate, plan, six records
// of executions, three messages and the task's result.
func BenchmarkInvoke(b *testing.B) {
	for _, at := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("at-once=%d", at), func(b *testing.B) {
			w := newWorld(b)
			fetch(w)
			w.run()
			b.ResetTimer()
			var wg sync.WaitGroup
			turns := make(chan struct{}, b.N)
			for range b.N {
				turns <- struct{}{}
			}
			close(turns)
			for range at {
				wg.Go(func() {
					for range turns {
						a, err := w.skills.Invoke(context.Background(), alice, skill.Invoke{Skill: "grasp", Params: core.Raw(toTheKitchen)})
						if err == nil {
							a, err = w.skills.Wait(context.Background(), alice, a.AgentID)
						}
						if err != nil || a.State != skill.Completed {
							b.Errorf("%+v, %v", a, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "chains/s")
		})
	}
}

// BenchmarkFigures reads the figures of a skill and a page of its executions
// beside a history.
func BenchmarkFigures(b *testing.B) {
	w := newWorld(b)
	w.load(skill.Skill{Name: "tick"})
	w.fake.gives("tick", `{}`)
	w.run()
	const history = 2000
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range history / 50 {
				a, err := w.skills.Invoke(context.Background(), alice, skill.Invoke{Skill: "tick"})
				if err == nil {
					_, err = w.skills.Wait(context.Background(), alice, a.AgentID)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ResetTimer()
	for range b.N {
		f, err := w.skills.Figures(b.Context(), home, "tick")
		if err != nil || f.Counted != 200 {
			b.Fatalf("%+v, %v", f, err)
		}
		expect.Of(w.skills.Executions(b.Context(), home, "tick", core.Filter{}))(b)
	}
}
