package swarm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/task"
)

// lease is one running task as this engine knows it. The claim itself (worker
// and fencing token) is in the task's header; the heartbeat is a matter of
// now and lives here only: a new engine finds every old lease lost.
type lease struct {
	ref
	session string
	agent   string
	worker  string
	id      uint64
	local   bool // run by this engine's scheduler
	pulse   *pulse
	bell    chan struct{}
	began   time.Duration // on the swarm's own clock
	limit   time.Duration // timeout_s of a task that another worker runs
	settles atomic.Bool   // its outcome is on its way to the disk: nobody beats any more

	// Guarded by Swarm.mu.
	paused  bool // an operator paused the task
	cancel  bool // its work must end
	why     string
	frozen  bool          // its work has acknowledged a stop
	stopped time.Duration // when it did
	stood   time.Duration // how long it stood still in all, before that
	noted   time.Duration // running time that was written down for the budgets
}

func refOf(t *task.Task) ref { return ref{t.TenantID, t.TaskID} }

// leaseTTL is how long a worker may be silent before it counts as dead.
const leaseTTL = time.Second

// seconds is a time-out as a task keeps it.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func timedOut() *task.Error {
	return &task.Error{Code: "timed_out", Message: "the attempt ran longer than timeout_s", Retryable: true}
}

// pulse is the heartbeat of one worker: all leases it holds share it. The
// engine's own leases have one each, since each work beats for itself.
type pulse struct {
	last   atomic.Int64 // Swarm.awake at the last heartbeat
	leases int          // guarded by Swarm.mu
}

func (l *lease) poke() { loop.Ring(l.bell) }

// ran is how long the attempt has run. Time it stood still does not count,
// for its time-out and for budgets: the stop was not its doing.
func (l *lease) ran(now time.Duration) time.Duration {
	if l.frozen {
		now = l.stopped
	}
	return now - l.began - l.stood
}

func (l *lease) freeze(on bool, now time.Duration) {
	switch {
	case on && !l.frozen:
		l.stopped = now
	case !on && l.frozen:
		l.stood += now - l.stopped
	}
	l.frozen = on
}

// uptime is the swarm's own clock: it never jumps when the system's is set. It
// stands still while the disk is full, when nothing can be taken away or
// committed: leases, time-outs and bills wait with the rest.
func (s *shared) uptime() time.Duration { return time.Since(s.born) - s.room.Stalled() }

// full reports whether the disk has no room for writes.
func (s *shared) full() bool { return s.room.Full() != nil }

// awake is uptime without the time in which this process itself stood still (a
// stopped or starved process): a worker's silence then was ours.
func (s *shared) awake() time.Duration { return s.uptime() - time.Duration(s.slept.Load()) }

// newLease is the lease of a task that was just claimed.
func newLease(t *task.Task) *lease {
	l := &lease{
		ref: refOf(t), session: t.SessionID, agent: t.Agent, worker: t.Worker, id: t.Lease,
		local: t.Worker == localWorker, bell: make(chan struct{}, 1),
		paused: t.Paused, // it was when its last attempt was interrupted
	}
	if !l.local {
		l.limit = seconds(t.TimeoutS)
	}
	return l
}

// leased notes a committed claim.
func (s *leasing) leased(l *lease) {
	l.began = s.uptime()
	s.mu.Lock()
	if l.local {
		l.pulse = &pulse{}
	} else {
		key := ref{l.tenant, l.worker}
		if s.pulses[key] == nil {
			s.pulses[key] = &pulse{}
		}
		l.pulse = s.pulses[key]
	}
	l.pulse.leases++
	l.pulse.last.Store(int64(s.awake()))
	s.leases[l.ref] = l
	s.granted[l.tenant] = l.id
	first := len(s.leases) == 1
	s.mu.Unlock()
	if first {
		s.ring() // leases are looked at from now on
	}
}

// released forgets a lease whose attempt is over, and ends what may still run
// under it.
func (s *leasing) released(r ref, id uint64) {
	s.mu.Lock()
	if l := s.leases[r]; l != nil && l.id == id {
		delete(s.leases, r)
		l.cancel, l.why = true, cmp.Or(l.why, "the lease is lost")
		l.poke()
		if l.pulse.leases--; l.pulse.leases == 0 && !l.local {
			delete(s.pulses, ref{l.tenant, l.worker})
		}
	}
	s.mu.Unlock()
	s.ring()
}

// Beat renews every lease that a tenant's worker holds, and reports whether it
// holds any. A worker that is silent for the lease time (1 s) loses them all.
func (s *leasing) Beat(tenant, worker string) bool {
	s.mu.Lock()
	p := s.pulses[ref{tenant, worker}]
	s.mu.Unlock()
	if p != nil {
		p.last.Store(int64(s.awake()))
	}
	return p != nil
}

// fault says why a lease must be taken away: silence, or its task's time-out
// when another worker runs it (the engine's own work is timed by its attempt).
// It also says when to look again.
func (s *leasing) fault(l *lease) (silent, late bool, next time.Duration) {
	now := s.awake()
	last := time.Duration(l.pulse.last.Load())
	if last > now || l.settles.Load() { // it beat before we noticed that we had slept
		last = now
		l.pulse.last.Store(int64(now))
	}
	next = leaseTTL - (now - last)
	silent = next < 0
	if l.limit > 0 {
		left := l.limit - l.ran(s.uptime())
		late, next = left <= 0, min(next, left)
	}
	return silent, late, next
}

// expire takes the leases of silent workers away. It returns when the next one
// may be due.
func (s *ending) expire(ctx context.Context) (time.Duration, error) {
	dead := map[string][]*lease{}
	next := time.Minute
	s.mu.Lock()
	if late := s.uptime() - s.planned; s.planned > 0 && late > 2*leaseTick {
		s.slept.Add(int64(late))
	}
	s.planned = 0
	for _, l := range s.leases {
		silent, late, at := s.fault(l)
		if silent || late {
			dead[l.tenant] = append(dead[l.tenant], l)
			at = leaseTTL // it may be heard of in time, and fall silent again
		}
		next = min(next, at)
	}
	s.mu.Unlock()
	for tenant, leases := range dead {
		if _, err := s.guards.leases.Try(ctx, tenant, func() error { return s.takeAway(ctx, tenant, leases) }); err != nil {
			return 0, err
		}
	}
	return max(next, time.Millisecond), nil
}

// changeBatch is how many tasks one transaction changes at most, where many
// change for one reason: others must not wait long behind it.
const changeBatch = 100

// takeAway requeues or fails the tasks of lost leases. A worker that was heard
// of while this waited for the disk keeps its lease.
func (s *ending) takeAway(ctx context.Context, tenant string, leases []*lease) error {
	of := map[uint64]*lease{}
	for _, l := range leases {
		of[task.Seq(l.task)] = l
	}
	err := s.eachTask(ctx, core.Self(tenant, "leases"), slices.Sorted(maps.Keys(of)), func(tx *audit.Tx, seq uint64) error {
		l := of[seq]
		var t task.Task
		if err := s.tasks.Load(tx, seq, &t); err != nil {
			return err
		}
		if t.Status != task.Running || t.Lease != l.id {
			tx.OnCommit(func() { s.released(l.ref, l.id) })
			return nil // it went on meanwhile
		}
		s.mu.Lock()
		silent, late, _ := s.fault(l)
		s.mu.Unlock()
		switch {
		case silent && (t.Resumes || t.Sent): // it was not its work that was silent, or it may have had its effect
			tx.OnCommit(func() { s.explain(l.ref, WhySilent) })
			return s.orphaned(tx, &t, whyMissed)
		case silent:
			return s.loseTask(tx, &t, whyMissed)
		case late:
			if err := s.leave(tx, &t); err != nil {
				return err
			}
			return s.end(tx, &t, task.Result{Status: task.TimedOut, Error: timedOut()})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("take %d leases away: %w", len(leases), err)
	}
	for seq, l := range of { // nothing that its work does can be kept any more
		if s.isQuarantined(tenant, seq) {
			s.released(l.ref, l.id)
		}
	}
	return nil
}

// leave is said when an attempt no longer holds its task: its running time is
// billed and the lease goes with the commit.
func (s *leasing) leave(tx *audit.Tx, t *task.Task) error {
	r, id := refOf(t), t.Lease
	tx.OnCommit(func() { s.released(r, id) })
	return s.bill(tx, t)
}

// whyMissed is why a silent worker loses its tasks.
const whyMissed = "the worker missed its heartbeat"

func (s *ending) loseTask(tx *audit.Tx, t *task.Task, why string) error {
	if err := s.voidGates(tx, t, why); err != nil {
		return err
	}
	if err := s.leave(tx, t); err != nil {
		return err
	}
	if t.CancelRequested {
		return s.end(tx, t, task.Result{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: why}})
	}
	t.SetWaiting(tx, false)
	e := task.Error{Code: "lease_lost", Message: why + " (worker " + t.Worker + ")", Retryable: true}
	if t.LastTry() {
		return s.end(tx, t, task.Result{Status: task.Failed, Error: &e})
	}
	return s.retryLater(tx, t, "lease.lost", e)
}

// Holds reports, in a transaction, whether an attempt still holds its task:
// what one does that has lost it must leave no trace.
func (s *shared) Holds(tx *audit.Tx, t *task.Task) (bool, error) {
	now, err := s.tasks.In(tx, t.TaskID)
	return now.Status == task.Running && now.Lease == t.Lease, err
}
