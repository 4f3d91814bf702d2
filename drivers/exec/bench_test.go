package exec

import (
	"context"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// BenchmarkTask is one exec.run of the cheapest program, from its start to
// its outcome with nothing left behind.
func BenchmarkTask(b *testing.B) {
	s, err := cell.NewSupervisor(cell.Options{Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r, err := NewRunner(s, RunnerOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	job := swarm.Job{
		Task: swarm.Task{TaskID: "tk_00000_0000000001", Input: core.Raw(`{"argv":["true"]}`)},
		Log:  func(string, string) {}, Beat: func() {},
	}
	for b.Loop() {
		w, err := r.Start(context.Background(), job)
		if err != nil {
			b.Fatal(err)
		}
		if o := w.Outcome(); o.Status != swarm.Succeeded {
			b.Fatalf("outcome %+v", o)
		}
	}
}

// BenchmarkSkill is one try of the cheapest skill that is a command.
func BenchmarkSkill(b *testing.B) {
	s, err := cell.NewSupervisor(cell.Options{Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r, err := NewSkillRunner(s, RunnerOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	call := (&logbook{}).call(`{"location":"kitchen"}`, "cat")
	for b.Loop() {
		w, err := r.Start(context.Background(), call)
		if err != nil {
			b.Fatal(err)
		}
		if o := w.Outcome(); o.Status != swarm.Succeeded {
			b.Fatalf("outcome %+v", o.Error)
		}
	}
}
