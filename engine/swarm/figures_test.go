package swarm_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func p95(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)*95/100].Microseconds()) / 1000
}

// BenchmarkHeartbeatSpike prints how long one of 1,000 heartbeats that come at
// once takes, while the engine schedules, and how many leases were lost.
// Target: p95 under 200 ms, none lost.
func BenchmarkHeartbeatSpike(b *testing.B) {
	const workers = 1000
	r := benchRig(b, false)
	r.slots = -1
	r.Close()
	r.Open()
	var wg sync.WaitGroup
	leases := make([]task.Task, workers)
	ctx, cancel := context.WithCancel(context.Background())
	for i := range workers {
		wg.Go(func() {
			if _, err := r.swarm.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: kib}); err != nil {
				b.Error(err)
				return
			}
			tasks, err := r.swarm.Claim(ctx, alice, fmt.Sprint("w", i), 1)
			if err != nil || len(tasks) != 1 {
				b.Error(tasks, err)
				return
			}
			leases[i] = tasks[0]
		})
	}
	wg.Wait()
	done := expect.Later(func() error { return r.swarm.Run(ctx) })
	var took []time.Duration
	var mu sync.Mutex
	for range max(5, min(b.N, 20)) {
		spike := make(chan struct{})
		for i := range workers {
			wg.Go(func() {
				<-spike
				begin := time.Now()
				r.swarm.Beat(acme, fmt.Sprint("w", i))
				d := time.Since(begin)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			})
		}
		close(spike)
		wg.Wait()
		time.Sleep(300 * time.Millisecond)
	}
	lost := 0
	for _, t := range leases {
		if now := r.task(t.TaskID); now.Status != task.Running || now.Lease != t.Lease {
			lost++
		}
	}
	cancel()
	expect.No(b, <-done)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p95(took), "p95-ms")
	b.ReportMetric(float64(lost), "leases-lost")
}

// BenchmarkSessionStart prints the time from starting a session to its first
// claimed task, by the scheduler. Target: under 100 ms.
func BenchmarkSessionStart(b *testing.B) {
	r := benchRig(b, false)
	r.runner.started = make(chan *fakeWork, 1)
	r.swarm.Runner("test.run", commandRunner{r.runner})
	r.run()
	var took []time.Duration
	for i := range max(20, min(b.N, 200)) {
		ses := expect.Of(r.swarm.Sessions.Create(b.Context(), alice, fmt.Sprint("s", i)))(b)
		tk := r.dispatch(string(kib), func(d *swarm.Dispatch) { d.Session = ses.SessionID })
		begin := time.Now()
		expect.Of(r.swarm.Sessions.Start(b.Context(), alice, ses.SessionID))(b)
		w := <-r.runner.started
		took = append(took, time.Since(begin))
		w.end(ok(`{"rc":0}`))
		r.status(tk.TaskID, task.Succeeded)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p95(took), "p95-ms")
}

// commandRunner has its tasks judged as commands, by the default rules.
type commandRunner struct{ *fakeRunner }

func (commandRunner) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return "echo", judge.Action{Kind: "exec.run", Args: input}, nil
}

// BenchmarkDecision prints how long it takes to read one decision of 10,000 by
// its id, the moment after it was made (target: under 5 ms), and to list those
// of its task.
func BenchmarkDecision(b *testing.B) {
	r := benchRig(b, false)
	r.live(10_000, 256)
	var byTask, byID []time.Duration
	for range max(100, min(b.N, 1000)) {
		task := r.dispatch(string(kib))
		begin := time.Now()
		page, err := r.judge.Decisions(b.Context(), acme, core.Filter{Task: task.TaskID, Size: 1})
		byTask = append(byTask, time.Since(begin))
		if err != nil || len(page.Items) != 1 {
			b.Fatal(page, err)
		}
		begin = time.Now()
		expect.Of(r.judge.Decision(b.Context(), acme, page.Items[0].DecisionID))(b)
		byID = append(byID, time.Since(begin))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p95(byID), "p95-ms-by-id")
	b.ReportMetric(p95(byTask), "p95-ms-by-task")
}
