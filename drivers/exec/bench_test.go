package exec

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// BenchmarkTask is one exec.run of the cheapest program, from its start to its
// outcome with nothing left behind: lives per second with one and with eight
// at once for each processor, and those of a worker beside those of an open one.
func BenchmarkTask(b *testing.B) {
	s := expect.Of(cell.NewSupervisor(cell.Options{Instance: "bench", Program: os.Getenv("SWARMDECK_BENCH_PROGRAM")}))(b)
	defer s.Close()
	r := expect.Of(NewRunner(s, RunnerOptions{Dir: b.TempDir()}))(b)
	for _, at := range []int{1, 8} {
		var open float64
		for _, profile := range []cell.Profile{cell.Open, cell.Worker} {
			b.Run(fmt.Sprintf("%d/%s", at, profile), func(b *testing.B) {
				b.SetParallelism(at) // times GOMAXPROCS
				var lives atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						w, err := r.Start(context.Background(), swarm.Job{
							Task: task.Task{
								TaskID: core.NewID(core.TaskPrefix, "t_bench", uint64(lives.Add(1))),
								Input:  core.Raw(`{"argv":["true"],"profile":"` + string(profile) + `"}`),
							},
							Log: func(string, string) {}, Beat: func() {},
						})
						if err != nil {
							b.Error(err)
							return
						}
						if o := w.Outcome(); o.Status != task.Succeeded {
							b.Errorf("outcome %+v", o)
							return
						}
					}
				})
				rate := float64(b.N) / b.Elapsed().Seconds()
				b.ReportMetric(rate, "lives/s")
				if profile == cell.Open {
					open = rate
				} else if open > 0 {
					b.ReportMetric(rate/open, "x-open")
				}
			})
		}
	}
}

// BenchmarkSkill is one try of the cheapest skill that is a command.
func BenchmarkSkill(b *testing.B) {
	s := expect.Of(cell.NewSupervisor(cell.Options{Instance: "bench"}))(b)
	defer s.Close()
	r := expect.Of(NewSkillRunner(s, RunnerOptions{Dir: b.TempDir()}))(b)
	call := (&logbook{}).call(`{"location":"kitchen"}`, "cat")
	for b.Loop() {
		w := expect.Of(r.Start(context.Background(), call))(b)
		if o := w.Outcome(); o.Status != task.Succeeded {
			b.Fatalf("outcome %+v", o.Error)
		}
	}
}
