package swarm_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// newRemoteRig is a running rig whose engine has no slots of its own, so that
// other workers claim.
func newRemoteRig(t *testing.T, change ...func(*rig)) *rig {
	r := newRig(t, append(change, func(r *rig) { r.slots = -1 })...)
	r.run()
	return r
}

func (r *rig) heartbeat(worker string) (stop func()) {
	end := make(chan struct{})
	go func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(200 * time.Millisecond):
				r.swarm.Beat(acme, worker)
			}
		}
	}()
	return func() { close(end) }
}

func TestASilentRemoteWorkerIsNoticedAfterAnIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemoteRig(t)
		tk := r.dispatch(`{}`)
		time.Sleep(1200 * time.Millisecond) // nothing for the scheduler to do
		r.claim()
		start := time.Now()
		got := r.status(tk.TaskID, task.Queued)
		for got.Attempt == 0 && time.Since(start) < 10*time.Second {
			time.Sleep(5 * time.Millisecond)
			got = r.task(tk.TaskID)
		}
		took := time.Since(start)
		expect.True(t, took <= 10*time.Second && got.ErrorCode == "lease_lost", "noticed after %s: %+v", took, got)
		t.Logf("a dead worker was noticed after %s", time.Since(start).Round(time.Millisecond))
		r.whole()
	})
}

// beforeUpdate is a store that has something happen before an update, once.
type beforeUpdate struct {
	store.Store
	do atomic.Pointer[func()]
}

func (b *beforeUpdate) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if do := b.do.Swap(nil); do != nil {
		(*do)()
	}
	return b.Store.Update(ctx, tenant, fn)
}

func TestAWorkerThatWasHeardOfJustInTimeAndDiesIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &beforeUpdate{}
		r := newRemoteRig(t, func(r *rig) {
			r.over = func(s store.Store) store.Store { st.Store = s; return st }
		})
		task := r.dispatch(`{}`)
		r.claim()
		heard := make(chan struct{})
		beat := func() { r.swarm.Beat(acme, "w1"); close(heard) }
		st.do.Store(&beat) // the next update takes its lease away
		<-heard
		r.Await("the lease to be taken away", func() bool { return r.task(task.TaskID).ErrorCode == "lease_lost" })
	})
}

func TestWorkThatIsOverKeepsItsLeaseUntilTheDiskHasItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &beforeUpdate{}
		r := newRig(t, func(r *rig) {
			r.over = func(s store.Store) store.Store { st.Store = s; return st }
		})
		r.run()
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		synctest.Wait()
		slow := func() { time.Sleep(15 * time.Second) }
		st.do.Store(&slow) // the next update is the outcome's
		w.end(ok(`{}`))
		got := r.status(tk.TaskID, task.Succeeded)
		expect.True(t, got.Attempt == 0, "lost its lease: %+v", got)
		r.whole()
	})
}

func TestAWorkerThatBeatsKeepsItsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemoteRig(t)
		tk := r.dispatch(`{}`)
		claimed := r.claim()
		stop := r.heartbeat("w1")
		time.Sleep(2500 * time.Millisecond)
		stop()
		res := r.complete(claimed, ok(`{}`))
		expect.True(t, res.Status == task.Succeeded, "result %+v", res)
		got := r.task(tk.TaskID)
		expect.True(t, got.Attempt == 0, "lost its lease: %+v", got)
		expect.True(t, !r.swarm.Beat(acme, "w1"), "a worker without leases holds some")
	})
}

func TestAHeartbeatCountsForItsOwnTenantOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemoteRig(t)
		beta := core.Caller{Tenant: "t_beta", Name: "bob", Kind: core.Operator, Door: core.DoorCLI}
		expect.Of(r.swarm.CreateTenant(t.Context(), beta, beta.Tenant))(t)
		task := r.dispatch(`{}`)
		r.claim()
		for range 8 {
			r.swarm.Beat("t_beta", "w1") // a worker of the same name
			time.Sleep(200 * time.Millisecond)
		}
		got := r.task(task.TaskID)
		expect.True(t, got.Attempt == 1, "kept alive by another tenant's worker: %+v", got)
	})
}

func TestARemoteWorkersTaskTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemoteRig(t)
		tk := r.dispatch(`{}`, func(d *swarm.Dispatch) { d.Timeout = time.Second })
		claimed := r.claim()
		defer r.heartbeat("w1")()
		got := r.status(tk.TaskID, task.TimedOut)
		expect.True(t, got.ErrorCode == "timed_out", "%+v", got)
		_, err := r.swarm.Complete(t.Context(), alice, tk.TaskID, claimed.Lease, ok(`{}`))
		expect.True(t, hasCode(err, core.Conflict), "late result: %v", err)
		r.whole()
	})
}

func TestNobodyClaimsInTheEnginesName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, worker := range []string{"", "engine", "\xff", string(make([]byte, 129))} {
			_, err := r.swarm.Claim(t.Context(), alice, worker, 1)
			expect.True(t, hasCode(err, core.InvalidInput), "worker %.10q: %v", worker, err)
		}
	})
}

func TestOneAttemptDoesNotStartBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.run()
		tk := r.dispatch(`{}`)
		w := <-r.runner.started
		w.with(func(w *fakeWork) { w.mute, w.deaf = true, true }) // hangs, and takes its time to be killed
		r.Await("the next attempt to be claimed", func() bool {
			got := r.task(tk.TaskID)
			return got.Attempt == 1 && got.Status == task.Running
		})
		time.Sleep(1200 * time.Millisecond) // longer than a lease: waiting for it costs no attempt
		expect.Is(t, len(r.runner.started), 0, "the second attempt runs beside the first")
		w.end(ok(`{"first":true}`))
		w = <-r.runner.started
		expect.Is(t, w.job.Task.Attempt, 1, "attempt")
		w.end(ok(`{}`))
		r.status(tk.TaskID, task.Succeeded)
		r.whole()
	})
}

func TestTenantsThatShareATagDoNotMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]string{}
		var one, two string
		for i := 0; two == ""; i++ {
			id := fmt.Sprintf("t_x%d", i)
			if other, found := seen[core.TenantTag(id)]; found {
				one, two = other, id
			}
			seen[core.TenantTag(id)] = id
		}
		r := newRemoteRig(t)
		claimed := map[string]task.Task{}
		for _, tenant := range []string{one, two} {
			by := core.Caller{Tenant: tenant, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
			expect.Of(r.swarm.CreateTenant(t.Context(), by, tenant))(t)
			expect.Of(r.swarm.Dispatch(t.Context(), by, swarm.Dispatch{Kind: "test.run", Input: core.Raw(`{}`)}))(t)
			tasks, err := r.swarm.Claim(t.Context(), by, "w-"+tenant, 1)
			expect.Must(t, err == nil && len(tasks) == 1, "%v %v", tasks, err)
			claimed[tenant] = tasks[0]
		}
		expect.Must(t, claimed[one].TaskID == claimed[two].TaskID, "%s and %s: the ids should be the same", claimed[one].TaskID, claimed[two].TaskID)
		for range 8 { // only the second one's worker lives
			r.swarm.Beat(two, "w-"+two)
			time.Sleep(200 * time.Millisecond)
		}
		got, err := r.tasks.Get(t.Context(), one, claimed[one].TaskID)
		expect.True(t, err == nil && got.Attempt == 1, "%s: %+v %v", one, got, err)
		got, err = r.tasks.Get(t.Context(), two, claimed[two].TaskID)
		expect.True(t, err == nil && got.Status == task.Running && got.Attempt == 0, "%s: %+v %v", two, got, err)
	})
}

// slowRunner takes its time to start work.
type slowRunner struct {
	*fakeRunner
	takes time.Duration
}

// Start takes its time, in a bubble.
func (r slowRunner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	time.Sleep(r.takes)
	return r.fakeRunner.Start(ctx, job)
}

func TestWorkThatStartsSlowlyKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.swarm.Runner("test.run", slowRunner{r.runner, 5 * time.Second})
		r.run()
		tk := r.dispatch(`{}`)
		(<-r.runner.started).end(ok(`{}`))
		got := r.status(tk.TaskID, task.Succeeded)
		expect.True(t, got.Attempt == 0, "it was tried again: %+v", got)
		r.whole()
	})
}
