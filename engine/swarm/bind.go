package swarm

import (
	"context"
	"errors"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// binder is implemented by runners whose work depends on files of a work
// directory.
type binder interface {
	// Bind finds the files that an action of this kind names, as they are now.
	// It reads them, so it has no place in a transaction.
	Bind(tenant string, action judge.Action) []judge.File
}

// bind adds to a question the files that its action names.
func (s *shared) bind(tenant string, ask *judge.Ask) {
	if b, ok := s.runs(ask.Action.Kind).(binder); ok {
		ask.Action.Files = b.Bind(tenant, ask.Action)
	}
}

var _ judge.Binder = (*Swarm)(nil)

func (s *shared) Bind(a judge.Approval) []judge.File {
	ask := judge.Ask{Action: a.Action}
	s.bind(a.TenantID, &ask)
	return ask.Action.Files
}

// binds reports whether a task's files are compared when its work starts, and
// its approval marked as used only then. Another worker's files are not ours to
// read.
func (s *shared) binds(t *task.Task, worker string) bool {
	_, ok := s.runs(t.Kind).(binder)
	return ok && worker == localWorker
}

// confirm checks, right before a task's work starts, that the files it names
// are what was judged, and marks its approval as used. Where they are not, the
// approval is void and the task goes back to its gate; only a rule that lets
// them pass as they are now lets it go on. The files are what the work is to
// be held to.
func (s *Swarm) confirm(ctx context.Context, t *task.Task) (files []judge.File, ok bool, err error) {
	if t.Begun || !s.binds(t, localWorker) {
		return nil, true, nil
	}
	ask, err := s.startAsk(t, t.Input)
	if err != nil {
		return nil, true, nil // the runner says why it can't start
	}
	s.bind(t.TenantID, &ask.Ask)
	files = ask.Action.Files
	var v judge.Verdict
	switch {
	case t.ApprovalID != "":
	case judge.FilesDigest(files) == t.Bound:
		return running(files), true, nil
	default:
		v = s.judge.Evaluate(ctx, t.TenantID, ask.Ask)
	}
	err = s.underLease(ctx, t, func(tx *audit.Tx, now *task.Task) error {
		switch {
		case t.ApprovalID != "":
			if ok, err = s.judge.Start(tx, t.ApprovalID, ask.Ask); err != nil || ok {
				return err
			}
		case v.Decision == judge.Approve:
			dec, _, err := s.judge.Commit(tx, ask.Ask, v)
			if errors.Is(err, judge.ErrStale) {
				break
			}
			if err != nil {
				return err
			}
			ok, now.Bound, now.DecisionID = true, judge.FilesDigest(files), dec.DecisionID
			t.DecisionID = dec.DecisionID
			return s.tasks.Move(tx, now, task.Running, "task.judged", queuedDetail(tx, now, dec))
		}
		return s.interrupt(tx, now, filesChanged, 0)
	})
	if t.ApprovalID == "" {
		files = running(files)
	}
	return files, ok, err
}

// running are the files that run. What a rule let pass is held to them alone:
// an operand that always changes, such as a log, would keep it from ever
// starting, and nobody has looked at it.
func running(files []judge.File) []judge.File {
	return slices.DeleteFunc(slices.Clone(files), func(f judge.File) bool { return !f.Runs })
}

const filesChanged = "what it names is not what was judged"

// changedRest keeps a file that changes all the time from filling the log.
const changedRest = 200 * time.Millisecond

// backToGate returns a task to its gate whose files changed as it started.
func (s *ending) backToGate(ctx context.Context, t *task.Task) error {
	return s.underLease(ctx, t, func(tx *audit.Tx, now *task.Task) error { return s.interrupt(tx, now, filesChanged, changedRest) })
}

// unconfirmed is the outcome of work that was not started: none where its task
// went back to its gate.
func (s *shared) unconfirmed(err error) (task.Outcome, bool) {
	if ignoreLate(err) == nil {
		return task.Outcome{}, false
	}
	return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "start_failed", Message: err.Error(), Retryable: true}}, true
}

// underLease changes a task that runs under the lease it was claimed with.
func (s *shared) underLease(ctx context.Context, t *task.Task, fn func(*audit.Tx, *task.Task) error) error {
	return s.ledger.Update(ctx, core.Self(t.TenantID, "scheduler"), func(tx *audit.Tx) error {
		var now task.Task
		if err := s.tasks.Load(tx, t.Seq(), &now); err != nil {
			return err
		}
		if now.Status != task.Running || now.Lease != t.Lease {
			return errLate
		}
		return fn(tx, &now)
	})
}
