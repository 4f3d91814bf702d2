package swarm_test

import (
	"context"
	"sync"
	"testing"

	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// onItsWay is a store whose next updates stand on one that is on its way to the disk: its
// hooks run, and its caller is told, after the update behind it was run, which itself is on
// its way until end is closed.
type onItsWay struct {
	store.Store
	behind func(tx store.Tx) bool // an update is to be the one on its way
	ran    chan struct{}          // the update behind it was run
	end    chan struct{}

	mu    sync.Mutex
	state int // 1: one is on its way; 2: so is the one behind it
}

// hooked is a transaction whose hooks are the store's to run later.
type hooked struct {
	store.Tx
	hooks []func()
}

func (h *hooked) OnCommit(fn func()) { h.hooks = append(h.hooks, fn) }

func (o *onItsWay) Update(ctx context.Context, tenant string, fn func(store.Tx) error) error {
	var tx *hooked
	var wait chan struct{}
	err := o.Store.Update(ctx, tenant, func(inner store.Tx) error {
		tx, wait = &hooked{Tx: inner}, nil
		if err := fn(tx); err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		switch {
		case o.state == 0 && o.behind(tx):
			o.state, wait = 1, o.ran
		case o.state == 1:
			o.state, wait = 2, o.end
			close(o.ran)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if wait != nil {
		<-wait
	}
	for _, fn := range tx.hooks {
		fn()
	}
	return nil
}

func TestATaskCancelledWhileItsClaimIsOnItsWayIsOverOnceItsWorkIs(t *testing.T) {
	o := &onItsWay{ran: make(chan struct{}), end: make(chan struct{})}
	claimed := make(chan struct{})
	o.behind = func(tx store.Tx) bool {
		if tx.Counter("lease") == 0 {
			return false
		}
		close(claimed)
		return true
	}
	r := newRig(t, func(r *rig) {
		r.over = func(st store.Store) store.Store { o.Store = st; return o }
	})
	tk := r.dispatch(`{}`)
	r.run()
	<-claimed
	told := expect.Later(func() task.Task {
		got, err := r.swarm.Cancel(t.Context(), alice, tk.TaskID, "changed my mind")
		expect.Is(t, err, nil)
		return got
	})
	w := <-r.runner.started
	close(o.end)
	got := <-told
	expect.True(t, got.Status == task.Running && got.CancelRequested, "it is said to be %s although its work has begun", got.Status)
	<-w.Done()
	r.status(tk.TaskID, task.Cancelled)
	r.whole()
}
