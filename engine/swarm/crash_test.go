package swarm_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// TestKilledAtAnyInstantNothingAcknowledgedIsLost runs real task lives, with
// approvals, retries and several producers, in a process that is killed again
// and again. After each kill every acknowledged step is there, no step is
// there twice or by half, the counters equal a recount, the audit log verifies
// and its replay equals the store.
func TestKilledAtAnyInstantNothingAcknowledgedIsLost(t *testing.T) {
	storetest.Crash(t, storetest.CrashOptions{
		Open: enginetest.Sealed,
		Load: func(ctx context.Context, st store.Store, ack func(string)) error {
			r := rigOn(t, st)
			if _, err := r.swarm.CreateTenant(ctx, alice, acme); err != nil && !hasCode(err, core.Conflict) {
				return err
			}
			return r.churn(ctx, ack)
		},
		Verify: func(t testing.TB, dir string, st store.Store, acked []string) {
			r := rigOn(t, st)
			if len(acked) == 0 {
				return // perhaps killed before there was a tenant
			}
			r.whole()
			for _, line := range acked {
				r.holds(strings.Fields(line))
			}
		},
	})
}

// rigOn is a rig over an open store, without the runners' goroutines.
func rigOn(t testing.TB, st store.Store) *rig {
	r := &rig{runner: &fakeRunner{started: make(chan *fakeWork)}}
	enginetest.On(t, st, r.options())
	return r
}

// churn works on tasks for ever and acknowledges each step it was told of.
func (r *rig) churn(ctx context.Context, ack func(string)) error {
	errs := make(chan error, 8)
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			worker := fmt.Sprint("w", p)
			for n := 0; ctx.Err() == nil; n++ {
				if err := r.oneLife(ctx, worker, n, ack); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func (r *rig) oneLife(ctx context.Context, worker string, n int, ack func(string)) error {
	input := fmt.Sprintf(`{"worker":%q,"n":%d}`, worker, n)
	if n%7 == 3 {
		input = fmt.Sprintf(`{"ask":%d}`, n)
	}
	t, err := r.swarm.Dispatch(ctx, alice, swarm.Dispatch{Kind: "test.run", Input: core.Raw(input)})
	if err != nil {
		return err
	}
	ack("dispatched " + t.TaskID + " " + input)
	if t.Waiting != "" {
		a := judge.Answer{Approve: n%2 == 0, Reason: "because"}
		if _, err := r.judge.Answer(ctx, alice, t.ApprovalID, a); err != nil {
			return err
		}
		ack(fmt.Sprintf("answered %s %v", t.ApprovalID, a.Approve))
	}
	tasks, err := r.swarm.Claim(ctx, alice, worker, 1)
	if err != nil {
		return err
	}
	for goOn := n%2 == 1; len(tasks) > 0; goOn = false {
		t := tasks[0]
		ack(fmt.Sprintf("claimed %s %d", t.TaskID, t.Lease))
		out := ok(fmt.Sprintf(`{"lease":%d}`, t.Lease))
		if n%5 == 4 {
			out = failure(n%10 == 9)
		}
		var res task.Result
		if goOn {
			res, tasks, err = r.swarm.CompleteAndClaim(ctx, alice, t.TaskID, t.Lease, out, worker, 1)
		} else {
			tasks = nil
			res, err = r.swarm.Complete(ctx, alice, t.TaskID, t.Lease, out)
		}
		if err != nil {
			return err
		}
		ack(fmt.Sprintf("completed %s %s %d", t.TaskID, res.Status, t.Lease))
	}
	return nil
}

// holds checks one acknowledged step against the store.
func (r *rig) holds(step []string) {
	r.T.Helper()
	if step[0] == "answered" {
		ap, err := r.judge.Approval(context.Background(), acme, step[1])
		want := map[string]judge.ApprovalStatus{"true": judge.Approved, "false": judge.Refused}[step[2]]
		expect.True(r.T, err == nil && ap.Status == want, "%v: approval is %s, %v", step, ap.Status, err)
		return
	}
	t, err := r.tasks.Get(context.Background(), acme, step[1])
	if err != nil {
		r.T.Errorf("%v: %v", step, err)
		return
	}
	switch step[0] {
	case "dispatched":
		expect.Is(r.T, string(t.Input), step[2], step, "input is", t.Input)
	case "claimed":
		// Its lease died with the process: it is over, or went on to a new attempt.
		expect.True(r.T, t.Status != task.Running, "%v: still running", step)
	case "completed":
		if step[2] == string(task.Queued) { // a retryable failure: it came back
			expect.True(r.T, t.Attempt != 0, "%v: attempt %d", step, t.Attempt)
			return
		}
		res, err := r.tasks.Result(context.Background(), acme, step[1])
		expect.True(r.T, err == nil && string(t.Status) == step[2] && string(res.Status) == step[2],
			"%v: task %s, result %s, %v", step, t.Status, res.Status, err)
		expect.True(r.T, res.Status != task.Succeeded || string(res.Output) == `{"lease":`+step[3]+`}`, "%v: output %s", step, res.Output)
	}
}
