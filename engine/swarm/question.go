package swarm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Questions puts what running work is about to do before the judge, and has
// the work wait where a person must answer. The owner of a gate has one; its
// judge.Settler hands the answers on to Settle.
type Questions struct {
	s *Swarm

	mu   sync.Mutex
	open map[ref]waiter // by tenant and approval
}

// waiter is who waits for an answer: one slot, told at most once.
type waiter struct {
	answer chan judge.Outcome
	void   chan struct{} // closed once its approval is void
	check  func(args core.Raw) (core.Raw, error)
	bind   func(args core.Raw) []judge.File
}

// Questions makes the questions of one gate.
func (s *Swarm) Questions() *Questions {
	q := &Questions{s: s, open: map[ref]waiter{}}
	s.judge.FollowVoids(q.voided)
	return q
}

// Question is about one effect of a running task, or of a call that belongs to
// none.
type Question struct {
	By   core.Caller     // in whose name it is recorded
	Ask  judge.Ask       // about the task
	Beat func()          // renews the lease: the work is alive, it is the answer that takes its time
	Stop <-chan struct{} // closed when the work is to end
	// Held reports whether the work is to stand still, so that nothing begins
	// under a pause; moved is closed when that changes.
	Held func() (held bool, moved <-chan struct{})
	// Asked records the question, in the transaction of its decision; a is nil
	// unless a person is asked.
	Asked func(tx *audit.Tx, d judge.GateDecision, a *judge.Approval) error
	// Opened is told, once that is on disk, that a person is asked; nil is not.
	Opened func(approval string)
	// Used records, in its transaction, that an approval is used right before
	// the effect, or that it no longer stands.
	Used func(tx *audit.Tx, approval string, stands bool) error
	// Anew is told when the question is put once more for that.
	Anew func()
	// Apart is for a call that no running task waits for: whoever made it does.
	// Its approval is voided when that one has gone, and once voided, by that or
	// by another, the call is refused rather than put anew.
	Apart bool
	// GivesUp is for what the work waits for and may cease to want before it ends: its
	// approval is voided then and the work goes on. Once voided it is refused, too.
	GivesUp bool
	// Bind finds the files that the effect names, as they are now; nil where it
	// names none.
	Bind func(args core.Raw) []judge.File
	// Check returns edited arguments as they will run; nil takes any object.
	Check func(args core.Raw) (core.Raw, error)
}

// Reply is the answer to a question. The decision is on disk.
type Reply struct {
	Approved bool
	Abort    bool         // with a no: the task is to end
	Args     core.Raw     // the arguments to act with: the edited ones after an edit
	Content  core.Raw     // what a question to a person was answered with
	Files    []judge.File // that it is bound to
	Reason   string
	Decision judge.GateDecision
}

// ErrStopped is what a question gets whose work is to end.
var ErrStopped = errors.New("the run is being ended")

// ErrWider is the cause of a context that ends because another question names more.
var ErrWider = errors.New("another question, which names more, takes its place")

var errVoid = errors.New("the approval was voided")

const (
	questionBeat = 250 * time.Millisecond // keeps a lease of 1 s well alive
	voidGrace    = time.Second            // in which a run whose approval is void may turn out to end
)

// Put blocks until there is an answer. A yes is given only after the decision
// is on disk, and after an approval was checked again and marked used.
func (q *Questions) Put(ctx context.Context, x Question) (Reply, error) {
	for {
		if err := x.unheld(ctx); err != nil {
			return Reply{}, err
		}
		x.bind()
		dec, approval, w, err := q.judge(ctx, &x)
		switch {
		case err != nil:
			return Reply{}, err
		case w == nil && dec.Decision == judge.Approve:
			return Reply{Approved: true, Args: x.Ask.Action.Args, Files: x.Ask.Action.Files, Decision: dec}, nil
		case w == nil:
			return Reply{Abort: dec.Abort, Reason: dec.Rationale, Decision: dec}, nil
		}
		if x.Opened != nil {
			x.Opened(approval)
		}
		out, err := q.wait(ctx, &x, w)
		q.drop(ref{x.By.Tenant, approval})
		switch {
		case x.Apart && errors.Is(err, errVoid):
			return Reply{Reason: err.Error(), Decision: dec}, nil
		case x.GivesUp && errors.Is(err, errVoid):
			return Reply{Reason: err.Error(), Decision: dec}, q.abandon(ctx, &x, approval)
		case (x.Apart || x.GivesUp) && err != nil:
			return Reply{}, errors.Join(err, q.abandon(ctx, &x, approval))
		case errors.Is(err, errVoid):
			continue
		case err != nil:
			return Reply{}, err
		case !out.Approved:
			return Reply{Abort: out.Abort, Reason: out.Reason, Decision: out.Decision}, nil
		}
		if len(out.Args) > 0 {
			x.Ask.Action.Args = out.Args
		}
		if err := x.unheld(ctx); err != nil {
			return Reply{}, err
		}
		x.bind()
		if stands, err := q.redeem(ctx, &x, approval); err != nil || stands {
			return Reply{Approved: stands, Args: x.Ask.Action.Args, Content: out.Content, Files: x.Ask.Action.Files, Reason: out.Reason, Decision: out.Decision}, err
		}
		x.Anew()
	}
}

// bind finds the files that the effect names now.
func (x *Question) bind() {
	if x.Bind != nil {
		x.Ask.Action.Files = x.Bind(x.Ask.Action.Args)
	}
}

// judge records the verdict, and for a hitl also that the task waits. The
// waiter is registered before the commit, so that no answer comes before it.
func (q *Questions) judge(ctx context.Context, x *Question) (dec judge.GateDecision, approval string, w *waiter, err error) {
	err = judge.Decide(func() error {
		v := q.s.judge.Evaluate(ctx, x.By.Tenant, x.Ask)
		err := q.s.ledger.Update(ctx, x.By, func(tx *audit.Tx) error {
			d, ap, err := q.s.judge.Commit(tx, x.Ask, v)
			if err != nil {
				return err
			}
			dec = d
			if ap != nil {
				approval = ap.ApprovalID
				w = &waiter{make(chan judge.Outcome, 1), make(chan struct{}), x.Check, x.Bind}
				q.register(ref{x.By.Tenant, approval}, *w)
				if !x.Apart && x.Ask.TaskID != "" {
					if err := q.s.Gate(tx, x.Ask.TaskID, ap.ApprovalID); err != nil {
						return err
					}
				}
			}
			return x.Asked(tx, d, ap)
		})
		if err != nil && approval != "" {
			q.drop(ref{x.By.Tenant, approval})
		}
		return err
	})
	return dec, approval, w, err
}

// wait holds the work until its approval has ended. One that is voided for
// another reason than the end of this run is put anew.
func (q *Questions) wait(ctx context.Context, x *Question, w *waiter) (judge.Outcome, error) {
	tick := time.NewTicker(questionBeat)
	defer tick.Stop()
	void := w.void
	var anew <-chan time.Time
	for {
		select {
		case out := <-w.answer:
			return out, nil
		case <-void:
			void, anew = nil, time.After(voidGrace)
		case <-anew:
			return judge.Outcome{}, errVoid
		case <-tick.C:
			x.Beat()
		case <-x.Stop:
			return judge.Outcome{}, ErrStopped
		case <-ctx.Done():
			return judge.Outcome{}, ctx.Err()
		}
	}
}

// unheld waits while the work is to stand still.
func (x *Question) unheld(ctx context.Context) error {
	tick := time.NewTicker(questionBeat)
	defer tick.Stop()
	for {
		held, moved := x.Held()
		select { // ended work gets no approval, held or not
		case <-x.Stop:
			return ErrStopped
		default:
		}
		if !held {
			return ctx.Err()
		}
		select {
		case <-moved:
		case <-tick.C:
			x.Beat()
		case <-x.Stop:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// redeem marks the approval as used, right before its effect may start. False
// means that it does not stand for exactly this any more.
func (q *Questions) redeem(ctx context.Context, x *Question, approval string) (stands bool, err error) {
	err = q.s.ledger.Update(ctx, x.By, func(tx *audit.Tx) error {
		if stands, err = q.s.judge.Start(tx, approval, x.Ask); err != nil {
			return err
		}
		return x.Used(tx, approval, stands)
	})
	return stands, err
}

// abandon voids the approval of a call whose caller has gone, if it is open, and has
// the task that waited for it go on.
func (q *Questions) abandon(ctx context.Context, x *Question, approval string) error {
	why := "whoever asked has gone"
	if cause := context.Cause(ctx); errors.Is(cause, ErrWider) {
		why = cause.Error()
	}
	err := q.s.ledger.Update(context.WithoutCancel(ctx), x.By, func(tx *audit.Tx) error {
		err := q.s.judge.Void(tx, func(a *judge.Approval) bool { return a.ApprovalID == approval }, why)
		if err != nil || x.Apart {
			return err
		}
		return q.goesOn(tx, x.Ask.TaskID, approval)
	})
	if err != nil {
		return fmt.Errorf("void approval %s: %w", approval, err)
	}
	return nil
}

// Validate checks the edited arguments of a question that waits, and returns
// them as they will run.
func (q *Questions) Validate(ap judge.Approval, args core.Raw) (core.Raw, error) {
	if err := core.CheckObject("args", args, core.MaxInput); err != nil {
		return nil, err
	}
	q.mu.Lock()
	check := q.open[ref{ap.TenantID, ap.ApprovalID}].check
	q.mu.Unlock()
	if check == nil {
		return args, nil
	}
	return check(args)
}

// Bind finds the files that an edited question names.
func (q *Questions) Bind(ap judge.Approval) []judge.File {
	q.mu.Lock()
	bind := q.open[ref{ap.TenantID, ap.ApprovalID}].bind
	q.mu.Unlock()
	if bind == nil {
		return nil
	}
	return bind(ap.Action.Args)
}

// Settle wakes the work that waits for an approval, once its end is on disk. The
// owner of a gate calls it last in its own: hooks run in their order, and the work
// is to find whatever they note. An approval whose work is gone can't be approved.
func (q *Questions) Settle(tx *audit.Tx, ap judge.Approval, out judge.Outcome) error {
	key := ref{tx.Tenant(), ap.ApprovalID}
	if out.Approved && !q.waits(key) {
		return core.Errorf(core.Conflict, "approval %s: the run that asked has ended, nobody would act on it", ap.ApprovalID).With("field", "approval")
	}
	tx.OnCommit(func() { q.tell(key, out) })
	return q.goesOn(tx, ap.TaskID, ap.ApprovalID)
}

// goesOn has a task that waits for an approval go on.
func (q *Questions) goesOn(tx *audit.Tx, id, approval string) error {
	var t task.Task
	if id == "" {
		return nil
	}
	if err := q.s.tasks.Load(tx, task.Seq(id), &t); err != nil || t.Waiting == "" || t.ApprovalID != approval {
		return err
	}
	return q.s.Gate(tx, id, "")
}

func (q *Questions) register(key ref, w waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[key] = w
}

func (q *Questions) drop(key ref) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, key)
}

func (q *Questions) waits(key ref) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[key].answer != nil
}

// voided wakes the work whose approval is void.
func (q *Questions) voided(tenant, approval string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := ref{tenant, approval}
	if w := q.open[key]; w.void != nil {
		close(w.void)
		delete(q.open, key)
	}
}

func (q *Questions) tell(key ref, out judge.Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if answer := q.open[key].answer; answer != nil {
		answer <- out
		delete(q.open, key)
	}
}
