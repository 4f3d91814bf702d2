package judge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Tasks are the tasks that asks belong to.
type Tasks interface {
	// PastAsk is the question at a task's start; NOT_FOUND when it is gone.
	PastAsk(ctx context.Context, tenant, task string) (Ask, error)
	// Gate marks that a running task waits for an approval; CONFLICT of one that
	// does not run.
	Gate(tx *audit.Tx, task, approval string) error
	// Ungate has a task go on that waits for an approval, if it does.
	Ungate(tx *audit.Tx, task, approval string) error
}

// Serve names the tasks. Call it before the first Request and Backtest.
func (j *approvals) Serve(t Tasks) { j.tasks = t }

// Request is one effect of a running task, or of a call that belongs to none,
// that waits where it stands while a person must answer.
type Request struct {
	By   core.Caller     // in whose name it is recorded
	Ask  Ask             // about the task
	Beat func()          // renews the lease: the work is alive, it is the answer that takes its time; nil has none
	Stop <-chan struct{} // closed when the work is to end
	// Held reports whether the work is to stand still, so that nothing begins
	// under a pause; moved is closed when that changes. nil never does.
	Held func() (held bool, moved <-chan struct{})
	// Commit makes the transaction that puts the question; nil is Ledger.Update.
	Commit func(ctx context.Context, by core.Caller, fn func(*audit.Tx) error) error
	// Record records each step, in the transaction that makes it.
	Record func(tx *audit.Tx, s Step) error
	// Opened is told, once that is on disk, that a person is asked; nil is not.
	Opened func(approval string)
	// Apart is for a call that no running task waits for: whoever made it does.
	// Its approval is voided when that one has gone, and once voided, by that or
	// by another, the call is refused rather than put anew.
	Apart bool
	// GivesUp is for what the work waits for and may cease to want before it ends: its
	// approval is voided then and the work goes on. Once voided it is refused, too.
	GivesUp bool
	// Bind finds the files that the effect names, as they are now; nil where it
	// names none.
	Bind func(args core.Raw) []File
	// Check returns edited arguments as they will run; nil takes any object.
	Check func(args core.Raw) (core.Raw, error)
}

// The steps of a Request.
const (
	Requested = "requested" // the policy has decided
	Started   = "started"   // its approval is used, right before the effect
	Stale     = "stale"     // its approval no longer stands: it is put anew
)

// Step is one step of a Request.
type Step struct {
	Name     string       // Requested, Started or Stale
	Decision GateDecision // the policy's
	Approval string       // by which a person is asked; "" for none
}

// Detail is what an audit event says of a step, at least.
func (s *Step) Detail() map[string]any {
	if s.Name == Requested {
		return map[string]any{"decision_id": s.Decision.DecisionID, "decision": s.Decision.Decision}
	}
	return map[string]any{"approval_id": s.Approval}
}

// ErrStopped is what a request gets whose work is to end.
var ErrStopped = errors.New("the run is being ended")

// ErrWider is the cause of a context that ends because another request names more.
var ErrWider = errors.New("another question, which names more, takes its place")

var errVoid = errors.New("the approval was voided")

const (
	requestBeat = 250 * time.Millisecond // keeps a lease of 1 s well alive
	voidGrace   = time.Second            // in which a run whose approval is void may turn out to end
)

// Request blocks until there is an answer. A yes is given only after the decision
// is on disk, and after an approval was checked again and marked used.
func (j *answers) Request(ctx context.Context, x Request) (Outcome, error) {
	for {
		if err := x.ready(ctx); err != nil {
			return Outcome{}, err
		}
		dec, w, err := j.request(ctx, &x)
		switch {
		case err != nil:
			return Outcome{}, err
		case w == nil && dec.Decision == Approve:
			return Outcome{Approved: true, Args: x.Ask.Action.Args, Files: x.Ask.Action.Files, Decision: dec}, nil
		case w == nil:
			return Outcome{Abort: dec.Abort, Reason: dec.Rationale, Decision: dec}, nil
		}
		if x.Opened != nil {
			x.Opened(dec.ApprovalID)
		}
		out, err := w.wait(ctx)
		j.approvals.waits.take(x.By.Tenant, dec.ApprovalID)
		switch void := errors.Is(err, errVoid); {
		case void && x.Apart:
			return Outcome{Reason: err.Error(), Decision: dec}, nil
		case void && x.GivesUp:
			return Outcome{Reason: err.Error(), Decision: dec}, j.abandon(ctx, &x, dec.ApprovalID)
		case void:
			continue
		case err != nil && (x.Apart || x.GivesUp):
			return Outcome{}, errors.Join(err, j.abandon(ctx, &x, dec.ApprovalID))
		case err != nil || !out.Approved:
			return out, err
		}
		if len(out.Args) > 0 {
			x.Ask.Action.Args = out.Args
		}
		if err := x.ready(ctx); err != nil {
			return Outcome{}, err
		}
		err = j.ledger.Update(ctx, x.By, func(tx *audit.Tx) (err error) {
			s := Step{Started, dec, dec.ApprovalID}
			if out.Approved, err = j.approvals.Start(tx, dec.ApprovalID, x.Ask); err != nil {
				return err
			}
			if !out.Approved {
				s.Name = Stale
			}
			return x.Record(tx, s)
		})
		if out.Args, out.Files = x.Ask.Action.Args, x.Ask.Action.Files; err != nil || out.Approved {
			return out, err
		}
	}
}

// ready waits while the work is to stand still, and finds the files that the effect
// names then.
func (x *Request) ready(ctx context.Context) error {
	tick := time.NewTicker(requestBeat)
	defer tick.Stop()
	for {
		held, moved := x.held()
		select { // ended work gets no approval, held or not
		case <-x.Stop:
			return ErrStopped
		default:
		}
		if !held || ctx.Err() != nil {
			break
		}
		select {
		case <-moved:
		case <-tick.C:
			x.beat()
		case <-x.Stop:
			return ErrStopped
		case <-ctx.Done():
		}
	}
	if x.Bind != nil && ctx.Err() == nil {
		x.Ask.Action.Files = x.Bind(x.Ask.Action.Args)
	}
	return ctx.Err()
}

func (x *Request) beat() {
	if x.Beat != nil {
		x.Beat()
	}
}

func (x *Request) held() (bool, <-chan struct{}) {
	if x.Held == nil {
		return false, nil
	}
	return x.Held()
}

// request records the verdict, and for a hitl also that the task waits. The
// waiter is registered before the commit, so that no answer comes before it.
func (j *answers) request(ctx context.Context, x *Request) (dec GateDecision, w *waiter, err error) {
	commit := x.Commit
	if commit == nil {
		commit = j.ledger.Update
	}
	err = Decide(func() error {
		w = nil
		v := j.standing.Evaluate(ctx, x.By.Tenant, x.Ask)
		err := commit(ctx, x.By, func(tx *audit.Tx) error {
			d, a, err := j.approvals.Commit(tx, x.Ask, v)
			if err != nil {
				return err
			}
			if dec = d; a != nil {
				w = &waiter{x, make(chan Outcome, 1), make(chan struct{})}
				j.approvals.waits.add(x.By.Tenant, a.ApprovalID, w)
				if !x.Apart && x.Ask.TaskID != "" {
					if err := j.approvals.tasks.Gate(tx, x.Ask.TaskID, a.ApprovalID); err != nil {
						return err
					}
				}
			}
			return x.Record(tx, Step{Requested, d, d.ApprovalID})
		})
		if err != nil && w != nil {
			j.approvals.waits.take(x.By.Tenant, dec.ApprovalID)
		}
		return err
	})
	return dec, w, err
}

// abandon voids the approval of a call whose caller has gone, if it is open, and has
// the task that waited for it go on.
func (j *answers) abandon(ctx context.Context, x *Request, approval string) error {
	why := "whoever asked has gone"
	if cause := context.Cause(ctx); errors.Is(cause, ErrWider) {
		why = cause.Error()
	}
	err := j.ledger.Update(context.WithoutCancel(ctx), x.By, func(tx *audit.Tx) error {
		err := j.approvals.Void(tx, func(a *Approval) bool { return a.ApprovalID == approval }, why)
		if err != nil || x.Apart || x.Ask.TaskID == "" {
			return err
		}
		return j.approvals.tasks.Ungate(tx, x.Ask.TaskID, approval)
	})
	if err != nil {
		return fmt.Errorf("void approval %s: %w", approval, err)
	}
	return nil
}

// wake wakes the work that waits for an approval, once its end is on disk: it is to
// find whatever the hooks before this one note. An approval whose work is gone can't
// be approved.
func (j *answers) wake(tx *audit.Tx, a *Approval, out Outcome) error {
	tenant, id := tx.Tenant(), a.ApprovalID
	if out.Approved && j.approvals.waits.of(tenant, id) == nil {
		return core.Errorf(core.Conflict, "approval %s: the run that asked has ended, nobody would act on it", id).With("field", "approval")
	}
	tx.OnCommit(func() {
		if w := j.approvals.waits.take(tenant, id); w != nil {
			w.answer <- out
		}
	})
	if a.TaskID == "" {
		return nil
	}
	return j.approvals.tasks.Ungate(tx, a.TaskID, id)
}

// waits are the requests that wait for an answer, by tenant and approval.
type waits struct {
	mu   sync.Mutex
	open map[[2]string]*waiter
}

// waiter is who waits for an answer: one slot, told at most once.
type waiter struct {
	*Request
	answer chan Outcome
	void   chan struct{} // closed once its approval is void
}

func (w *waits) add(tenant, approval string, by *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[[2]string{tenant, approval}] = by
}

// of is who waits, nil for nobody.
func (w *waits) of(tenant, approval string) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[[2]string{tenant, approval}]
}

// take is who has waited: it does no more.
func (w *waits) take(tenant, approval string) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := w.open[[2]string{tenant, approval}]
	delete(w.open, [2]string{tenant, approval})
	return by
}

// wait holds the work until its approval has ended. One that is voided for
// another reason than the end of this run is errVoid.
func (w *waiter) wait(ctx context.Context) (Outcome, error) {
	tick := time.NewTicker(requestBeat)
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
			return Outcome{}, errVoid
		case <-tick.C:
			w.beat()
		case <-w.Stop:
			return Outcome{}, ErrStopped
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		}
	}
}
