package swarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/queue"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// fullTick is how often the scheduler looks whether the disk is still full.
const fullTick = time.Second

// leaseTick is how often leases and budgets are looked at while work runs.
const leaseTick = 250 * time.Millisecond

// Run schedules until ctx ends: it promotes due retries, claims tasks for free
// slots and agents, watches leases and budgets, and tends the running work. It
// then interrupts what runs, puts it back in the queue and returns when all of
// it has stopped. An error means that the store can't be used any more.
func (s *Swarm) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var tending sync.WaitGroup
	defer tending.Wait()
	defer stop(nil)      // first: the work must not outlive the scheduler
	s.agents.Store(true) // a stop outlives the engine it was pressed in
	tending.Go(func() { s.inspect(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	var start func(task.Task)
	start = func(t task.Task) {
		tending.Go(func() {
			if err := s.tendAlone(ctx, t, start); err != nil {
				stop(err)
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		case <-s.wake:
		case <-timer.C:
		}
		if s.agents.Swap(false) {
			s.EStops.Renew(ctx, &tending)
		}
		if s.full() { // a step would wait for room, and stops must be seen to
			timer.Reset(fullTick)
			continue
		}
		wait, err := s.step(ctx, start)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("schedule: %w", err)
		}
		timer.Reset(wait)
	}
}

// step does what is to do now and says when to look again at the latest.
func (s *Swarm) step(ctx context.Context, start func(task.Task)) (time.Duration, error) {
	s.goOn(start)
	wait, err := s.expire(ctx)
	if err != nil {
		return 0, err
	}
	for _, tenant := range s.tenants() {
		next := wait
		rest, err := s.guards.schedule.Try(ctx, tenant, func() (err error) {
			next, err = s.stepOf(ctx, tenant, start)
			return err
		})
		if err != nil {
			return 0, err
		}
		if rest > 0 {
			next = rest
		}
		wait = min(wait, next)
	}
	s.mu.Lock()
	s.planned = s.uptime() + wait
	s.mu.Unlock()
	return wait, nil
}

// stepOf is step for one tenant.
func (s *Swarm) stepOf(ctx context.Context, tenant string, start func(task.Task)) (wait time.Duration, err error) {
	wait = time.Minute
	if err := s.EStops.Record(ctx, tenant); err != nil { // before anything is claimed
		return 0, err
	}
	now := s.ledger.Clock().Now()
	due := s.queue.NextDue(tenant)
	if !due.IsZero() && !due.After(now) {
		if due, err = s.promoteDue(ctx, tenant); err != nil {
			s.queue.DueAt(tenant, now) // what it did not get to
			return 0, err
		}
	}
	if !due.IsZero() {
		wait = min(wait, max(due.Sub(now), time.Millisecond))
	}
	if err := s.releaseRest(ctx, tenant); err != nil {
		return 0, err
	}
	if err := s.Sessions.Finish(ctx, tenant); err != nil {
		return 0, err
	}
	budgets, err := s.watchBudgets(ctx, tenant)
	if err != nil {
		return 0, err
	}
	if budgets {
		wait = min(wait, leaseTick)
	}
	return wait, s.assign(ctx, tenant, start)
}

func (s *Swarm) promoteDue(ctx context.Context, tenant string) (time.Time, error) {
	s.queue.Look(tenant)
	starts, err := s.lapse(ctx, tenant)
	if err != nil {
		return starts, err
	}
	next, err := s.promote(ctx, tenant)
	if err != nil {
		return next, err
	}
	next = queue.Earlier(starts, next)
	s.queue.Looked(tenant, next)
	return next, nil
}

func (s *damage) tenants() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.quarantined))
}

// inherit returns the lanes that the slot of a task may be given to in the
// commit of its outcome; none when other tenants wait for slots too, who would
// never get one then. The slot counts as taken until over is called.
func (s *slotting) inherit(t *task.Task) (lanes []queue.Lane, over func()) {
	pool := s.pool(t.TenantID)
	if t.Agent == "" && s.slotsLeft(t.TenantID) >= 0 { // else its slot has gone
		lanes = s.queue.Alone(t.TenantID, func(tenant string, l queue.Lane) bool {
			return l.Agent == "" && s.pool(tenant) == pool && s.open(tenant, l)
		})
	}
	if len(lanes) == 0 {
		return nil, func() {}
	}
	hand := func(n int) {
		s.mu.Lock()
		s.handed[pool] += n
		s.mu.Unlock()
	}
	hand(1)
	return lanes, func() {
		hand(-1)
		s.ring()
	}
}

// assign claims what can start now. Agents have their own capacity, so tasks
// for them never wait for a slot.
func (s *Swarm) assign(ctx context.Context, tenant string, start func(task.Task)) error {
	by := core.Self(tenant, "scheduler")
	tasks, err := s.claim(ctx, by, localWorker, max(0, s.slotsLeft(tenant)), s.generalLanes(tenant))
	if err != nil {
		return err
	}
	// Started even when the next claim fails: they are claimed.
	for _, t := range tasks {
		start(t)
	}
	lanes := s.agentLanes(tenant)
	if tasks, err = s.claim(ctx, by, localWorker, len(lanes), lanes); err != nil {
		return err
	}
	for _, t := range tasks {
		start(t)
	}
	return nil
}

// tendAlone tends a task; what goes wrong with it is its own, unless no task is
// the cause. The lease of one whose outcome can't be kept runs out.
func (s *Swarm) tendAlone(ctx context.Context, t task.Task, start func(task.Task)) error {
	err := health.Caught(func() error { return s.tend(ctx, t, start) })
	if err == nil || health.WholeEngine(err) {
		return err
	}
	if ctx.Err() == nil && !broken(err) {
		s.opt.Health.Report(t.TenantID, component, "task "+t.TaskID, err)
	}
	return nil
}

// tend carries one claimed task through its run, and starts what its slot is
// given to then. It is the only goroutine that starts, stops or continues the
// task's work.
func (s *Swarm) tend(ctx context.Context, t task.Task, start func(task.Task)) error {
	s.mu.Lock()
	l := s.leases[refOf(&t)]
	s.mu.Unlock()
	if l == nil || l.id != t.Lease {
		return nil // cancelled as it was claimed
	}
	by := core.Self(t.TenantID, "scheduler")
	log := newLogPipe(s, by, t.TaskID)
	defer log.close()
	out, ok := s.carry(ctx, l, t, log)
	l.settles.Store(true)
	defer l.settles.Store(false)
	log.flush(context.WithoutCancel(ctx))
	if !ok {
		return nil
	}
	s.recordWork(context.WithoutCancel(ctx), &t)
	// The outcome must reach the disk although the engine is closing.
	end, cancel := core.Outlast(ctx, 10*time.Second)
	defer cancel()
	if ctx.Err() != nil {
		return ignoreLate(s.giveBack(end, by, t, out))
	}
	lanes, over := s.inherit(&t)
	defer over()
	_, next, err := s.completeAndClaim(end, by, t.TaskID, t.Lease, out, localWorker, 1, lanes)
	for _, t := range next {
		start(t)
	}
	if len(lanes) > 0 && ignoreLate(err) != nil && !broken(err) { // it may be the next one's fault
		_, err = s.Complete(end, by, t.TaskID, t.Lease, out)
	}
	if ignoreLate(err) != nil && !broken(err) { // what the runner reported can't be committed
		_, err = s.Complete(end, by, t.TaskID, t.Lease, task.Outcome{
			Status: task.Failed, Error: &task.Error{Code: "bad_outcome", Message: err.Error()},
		})
	}
	return ignoreLate(err)
}

// carry starts the work and minds it until it has ended. ok is false when the
// lease was lost meanwhile, so that there is nothing to report.
func (s *Swarm) carry(ctx context.Context, l *lease, t task.Task, log *logPipe) (out task.Outcome, ok bool) {
	earlier, over := s.enter(l.ref)
	defer over()
	m := attempt{s: s, l: l, limit: seconds(t.TimeoutS), begun: t.Begun}
	defer func() {
		if p := recover(); p != nil {
			out, ok = s.panicked(&t, m.work, p, debug.Stack()), true
		}
	}()
	if !m.admit(ctx, earlier) {
		return m.outcome(task.Outcome{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: "not started"}})
	}
	started := s.starting(l)
	defer started()
	r, err := s.runner(t.Kind)
	if err != nil {
		return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "no_runner", Message: "no runner for kind " + t.Kind}}, true
	}
	files, stands, err := s.confirm(ctx, &t)
	if err != nil || !stands {
		return s.unconfirmed(err)
	}
	if err := s.recordStart(ctx, r, &t); err != nil {
		return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "start_failed", Message: err.Error(), Retryable: true}}, true
	}
	m.work, err = r.Start(ctx, Job{
		Task: t, Files: files,
		Log:  log.add,
		Beat: func() { s.beat(l) },
		Use: func(tokens int64, cost float64) {
			// A usage that can't be written shows at the next write of the run.
			_ = s.Budgets.Use(context.WithoutCancel(ctx), core.Self(t.TenantID, "scheduler"), spender(&t), t.TaskID, t.TraceID, tokens, cost)
		},
		UseIn: func(tx *audit.Tx, tokens int64, cost float64) {
			s.Budgets.UseIn(tx, spender(&t), t.TaskID, tokens, cost)
		},
		Limited: func() bool { return s.Budgets.Limited(t.TenantID, spender(&t)) },
		Spill:   filepath.Join(s.opt.Spill, t.TenantID, fmt.Sprintf("%s.%d", t.TaskID, t.Attempt)),
		Place:   s.opt.Place,
	})
	if errors.Is(err, judge.ErrChanged) {
		return s.unconfirmed(s.backToGate(ctx, &t))
	}
	if err != nil {
		e := core.AsError(err)
		return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "start_failed", Message: e.Message, Retryable: e.Code == core.Unavailable}}, true
	}
	started()
	return m.run(ctx, log)
}

// mostStart is how long a runner may take to start work.
const mostStart = 30 * time.Second

// starting keeps a lease until its work has been started: what takes a moment takes
// longer than a lease on a busy machine, and nobody beats for it yet.
func (s *leasing) starting(l *lease) (over func()) {
	ctx, over := context.WithTimeout(context.Background(), mostStart)
	go func() {
		for s.beat(l); !core.Within(ctx.Done(), beatEvery); s.beat(l) {
		}
	}()
	return over
}

// enter marks that an attempt of a task is in hand until over is called, and
// returns what closes when an earlier one is over, nil when there is none.
func (s *Swarm) enter(r ref) (earlier <-chan struct{}, over func()) {
	mine := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.tended[r]; ch != nil {
		earlier = ch
	}
	s.tended[r] = mine
	return earlier, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tended[r] == mine {
			delete(s.tended, r)
		}
		close(mine)
	}
}

func (s *leasing) beat(l *lease) { l.pulse.last.Store(int64(s.awake())) }

func ignoreLate(err error) error {
	if err == nil || errors.Is(err, errLate) || errors.Is(err, store.ErrClosed) {
		return nil
	}
	return err
}

// broken reports an error of the store, not of what was asked of it.
func broken(err error) bool {
	return slices.ContainsFunc([]error{
		store.ErrClosed, store.ErrFull, store.ErrUnusable, store.ErrReadOnly, store.ErrFenced, store.ErrNoTenant,
		context.Canceled, context.DeadlineExceeded,
	}, func(e error) bool { return errors.Is(err, e) })
}

// Queued counts the tasks that are ready for an agent in a session, up to most.
func (s *shared) Queued(tx *audit.Tx, session, agent string, most int) (int, error) {
	return s.queue.Length(tx, queue.Lane{Session: session, Agent: agent}, most)
}
