package swarm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// fill has the disk full: ordinary writes are refused.
func (r *rig) fill() (room func()) {
	r.T.Helper()
	ses := expect.Of(r.swarm.Sessions.Create(r.T.Context(), alice, ""))(r.T)
	room = storetest.FillDisk(r.T, r.Path)
	input := core.Raw(`{"x":"` + strings.Repeat("x", 50_000) + `"}`)
	for range 1000 {
		_, err := r.swarm.Dispatch(r.T.Context(), alice, swarm.Dispatch{Kind: "test.run", Input: input, Session: ses.SessionID})
		if err == nil {
			continue
		}
		if e := core.AsError(err); e.Code != core.StorageFull || !errors.Is(err, store.ErrFull) || e.Details["path"] != r.Path || e.Details["free_bytes"] == nil {
			r.T.Fatalf("refused with %+v", e)
		}
		return room
	}
	r.T.Fatal("the disk never got full")
	return nil
}

// spent is a store whose reserve is used up once the disk is full.
type spent struct{ *store.DB }

func (s spent) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	if how, _ := store.IfFullOf(ctx); how == store.UseReserve {
		ctx = store.IfFull(ctx, store.Refuse)
	}
	return s.DB.Update(ctx, tenant, fn)
}

func TestAFullDiskHoldsWorkUpAndLosesNone(t *testing.T) {
	r := newRig(t)
	file := enginetest.File(t, r.DB)
	r.run()
	done, goes, held := r.dispatch(`{"n":1}`), r.dispatch(`{"n":2}`), r.dispatch(`{"ask":1}`)
	works := map[string]*fakeWork{}
	for range 2 {
		w := <-r.runner.started
		works[w.job.Task.TaskID] = w
	}
	far := r.dispatch(`{"n":3}`)
	mine := r.claim()
	expect.Must(t, mine.TaskID == far.TaskID, "claimed %s", mine.TaskID)
	silent := r.heartbeat("w1")
	room := r.fill()
	silent()

	works[done.TaskID].end(ok(`{"done":true}`))
	_, err := r.swarm.Complete(t.Context(), alice, mine.TaskID, mine.Lease, ok(`{}`))
	expect.True(t, hasCode(err, core.StorageFull), "a result of a worker outside: %v", err)
	_, err = r.swarm.Claim(t.Context(), alice, "w2", 1)
	expect.True(t, err == nil || hasCode(err, core.StorageFull), "a claim: %v", err)
	works[goes.TaskID].job.Log("INFO", "said while the disk is full")
	r.Await("an outage longer than a lease", func() bool { return file.Stalled() > 1500*time.Millisecond })
	for _, tk := range []task.Task{done, goes, far} {
		now := r.task(tk.TaskID)
		expect.True(t, now.Status == task.Running && now.Attempt == tk.Attempt, "%s is %s in attempt %d", tk.TaskID, now.Status, now.Attempt)
	}
	page, err := r.tasks.List(t.Context(), acme, core.Filter{})
	expect.True(t, err == nil && page.Info.Total != 0, "list: %v", err)

	// What stops something goes on, and is recorded.
	stop, err := r.swarm.EStops.Press(t.Context(), alice, "the disk is full")
	expect.True(t, err == nil && stop.On && !stop.Unrecorded && works[goes.TaskID].isPaused(), "emergency stop: %+v, %v", stop, err)
	_, err = r.swarm.EStops.Thaw(t.Context(), alice, "go on")
	expect.True(t, hasCode(err, core.StorageFull), "thaw: %v", err)

	defer r.heartbeat("w1")()
	room()
	r.Await("room", func() bool { return file.Full() == nil })
	expect.Of(r.swarm.EStops.Thaw(t.Context(), alice, "there is room"))(t)
	now := r.status(done.TaskID, task.Succeeded)
	expect.True(t, now.Attempt == done.Attempt, "the result of %s was committed in attempt %d", now.TaskID, now.Attempt)
	res := r.complete(mine, ok(`{}`))
	expect.True(t, res.Status == task.Succeeded, "the worker outside: %+v", res)
	works[goes.TaskID].end(ok(`{}`))
	r.status(goes.TaskID, task.Succeeded)
	lines, _, err := r.tasks.Log(t.Context(), acme, goes.TaskID, 0, 10)
	expect.True(t, err == nil && len(lines) == 1 && strings.Contains(lines[0].Message, "while the disk is full"), "log: %v, %v", lines, err)
	now = r.task(held.TaskID)
	expect.True(t, now.Status == task.Queued && now.Waiting != "", "%s is %s, waiting for %q", now.TaskID, now.Status, now.Waiting)
	r.whole()
}

func TestWhatStopsWorkNeedsNoRoom(t *testing.T) {
	r := newRig(t)
	enginetest.File(t, r.DB)
	r.Close()
	r.over = func(st store.Store) store.Store { return spent{st.(*store.DB)} }
	r.Open()
	r.run()
	frozen, ended := r.dispatch(`{"n":1}`), r.dispatch(`{"n":2}`)
	works := map[string]*fakeWork{}
	for range 2 {
		w := <-r.runner.started
		works[w.job.Task.TaskID] = w
	}
	room := r.fill()
	_, err := r.swarm.Cancel(t.Context(), alice, ended.TaskID, "enough")
	expect.True(t, errors.Is(err, store.ErrFull) && strings.Contains(err.Error(), "its work is ended"), "cancel: %v", err)
	<-works[ended.TaskID].Done()
	stop, err := r.swarm.EStops.Press(t.Context(), alice, "stop all")
	expect.True(t, err == nil && stop.On && stop.Unrecorded && works[frozen.TaskID].isPaused(), "emergency stop: %+v, %v", stop, err)
	room()
	r.Await("the record of the stop", func() bool {
		stop := r.swarm.EStops.State(acme)
		return stop.On && !stop.Unrecorded && stop.By == alice.Name && stop.Reason == "stop all"
	})
	expect.Is(t, r.status(ended.TaskID, task.Cancelled).Attempt, ended.Attempt, "cancelled in attempt")
	expect.Of(r.swarm.EStops.Thaw(t.Context(), alice, "there is room"))(t)
	works[frozen.TaskID].end(ok(`{}`))
	r.status(frozen.TaskID, task.Succeeded)
	r.whole()
}
