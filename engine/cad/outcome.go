package cad

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// marked is what is on disk under a mark: an operation that was done, or the
// file that one is about to write.
type marked struct {
	Done *Done  `json:"done,omitzero"`
	File string `json:"file,omitzero"` // directory, 0, path
}

// recorded is the result of an operation that was done under a mark.
func (c *Controller) recorded(ctx context.Context, tenant, mark string) (done Done, there bool, err error) {
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		done, there, err = doneUnder(tx, mark)
		return err
	})
	return done, there, err
}

func doneUnder(tx store.Tx, mark string) (Done, bool, error) {
	k, _, err := marks.Get(tx, record.Key(mark))
	if err != nil || k.Done == nil {
		return Done{}, false, err
	}
	k.Done.Repeated = true
	return *k.Done, true, nil
}

// ForgetMarks removes what is on disk under the marks that begin with prefix:
// their task is over.
func (c *Controller) ForgetMarks(tx *audit.Tx, prefix string) error {
	return marks.Drop(tx, record.Key(prefix))
}

// errRepeated says that another execution of the same mark was stored first.
var errRepeated = errors.New("the operation was done meanwhile")

// store writes an operation that a worker has carried out. Until it is on disk
// nothing has happened.
func (x *execution) store(ctx context.Context, reply Reply) (Done, error) {
	var d *draft
	if reply.Entry != nil {
		var err error
		if d, err = prepare(*reply.Entry); err != nil {
			return Done{}, err
		}
	}
	file := x.left()
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	var done Done
	judged, passes := true, true
	err := judge.Decide(func() (err error) {
		if !judged {
			// The rules changed while the worker computed. What still may pass does;
			// anything else is undone and asked about.
			x.verdict = x.c.opt.Judge.Evaluate(ctx, x.by.Tenant, x.ask)
			if passes = x.verdict.Decision == judge.Approve; !passes {
				return nil
			}
		}
		judged = false
		done, err = x.commit(ctx, reply, func(tx *audit.Tx, a *Agent, done *Done) error {
			if file != nil {
				if err := files.Put(tx, x.writtenKey(), *file); err != nil {
					return err
				}
			}
			if d == nil {
				return nil
			}
			return x.append(tx, a, d, done)
		})
		return err
	})
	if !passes {
		return Done{}, judge.ErrStale
	}
	return done, err
}

// commit is the one transaction of an operation: what it changed, by apply, its
// decision, its agent's counters and its audit event.
func (x *execution) commit(ctx context.Context, reply Reply, apply func(*audit.Tx, *Agent, *Done) error) (Done, error) {
	var done Done
	err := x.c.ledger.Update(ctx, x.by, func(tx *audit.Tx) error {
		done = Done{AgentID: x.m.id, WorkspaceID: x.space.WorkspaceID, Method: x.method.Name, Data: reply.Data, Elapsed: reply.Elapsed, DecisionID: x.decisionID}
		if err := x.holds(tx); err != nil {
			return err
		}
		if x.op.Mark != "" {
			was, there, err := doneUnder(tx, x.op.Mark)
			if err != nil {
				return err
			}
			if there {
				done = was
				return errRepeated
			}
		}
		a, err := x.c.loadAgent(tx, x.m.id)
		if err != nil {
			return err
		}
		if a.Status == Terminated {
			return terminated(a.AgentID)
		}
		decision := x.decision
		if decision == nil {
			d, _, err := x.c.opt.Judge.Commit(tx, x.ask, x.verdict)
			if err != nil {
				return err
			}
			decision, done.DecisionID = d.Audit(), d.DecisionID
		}
		if err := x.started(a); err != nil {
			return err
		}
		if err := a.to(Idle); err != nil {
			return err
		}
		if err := apply(tx, a, &done); err != nil {
			return err
		}
		done.Metadata = core.MustEncode(metadata{x.method.Name, reply.Elapsed.Milliseconds(), done.WorkspaceID, done.AgentID, done.Seq})
		a.OperationCount++
		a.SuccessCount++
		a.ViolationsInRow = 0
		a.LastActive = seconds(tx.Now())
		if err := x.c.count(tx, a.AgentID, sample{x.method.Name, milliseconds(reply.Elapsed), true}); err != nil {
			return err
		}
		if x.op.Mark != "" {
			if err := marks.Put(tx, record.Key(x.op.Mark), marked{Done: &done, File: x.file}); err != nil {
				return err
			}
		}
		return x.c.saveAgent(tx, a, record.Event{Type: "cad.operation", Trace: x.trace, Detail: x.about(decision, map[string]any{
			"seq": done.Seq, "changed": len(done.Entities), "removed": len(done.Removed), "duration_ms": reply.Elapsed.Milliseconds(),
		})})
	})
	if errors.Is(err, errRepeated) {
		err = nil
	}
	return done, err
}

// metadata is what the CAD environment tells of an operation, and where it is.
type metadata struct {
	Operation string `json:"operation_type"`
	Took      int64  `json:"execution_time_ms"`
	Workspace string `json:"workspace_id"`
	Agent     string `json:"agent_id"`
	Seq       int    `json:"seq,omitzero"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (x *execution) holds(tx *audit.Tx) error {
	if x.op.Holds == nil {
		return nil
	}
	holds, err := x.op.Holds(tx)
	if err == nil && !holds {
		err = ErrLost
	}
	return err
}

// started is an agent that carries something out, by the ways that the seed
// allows: an error is cleared first.
func (x *execution) started(a *Agent) error {
	if a.Status == Failing {
		if err := a.to(Idle); err != nil {
			return err
		}
	}
	return a.to(Working)
}

// append stores what the operation changed.
func (x *execution) append(tx *audit.Tx, a *Agent, d *draft, done *Done) error {
	w, err := x.c.loadWorkspace(tx, x.space.WorkspaceID)
	if err != nil {
		return err
	}
	if err := d.append(tx, w); err != nil {
		return err
	}
	x.made(a, d, done)
	return x.c.saveWorkspace(tx, w, record.Event{Type: "cad.workspace.changed", Trace: x.trace, Detail: map[string]any{
		"seq": w.Seq, "method": x.method.Name, "agent_id": a.AgentID,
	}})
}

// made tells what an entry changed, and notes for the agent what it made.
func (x *execution) made(a *Agent, d *draft, done *Done) {
	done.Seq, done.Removed = d.entry.Seq, d.entry.Removed
	for _, e := range d.entry.Put {
		done.Entities = append(done.Entities, e.ID)
	}
	a.CreatedCount += len(d.added)
	a.CreatedEntities = newest(append(slices.Clip(a.CreatedEntities), d.added...), maxCreated)
}

// failed counts a failure. What never began leaves the agent as it was: a
// violation of its role, or what was denied.
func (x *execution) failed(ctx context.Context, f *OpError, took time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	event := "cad.operation_failed"
	if f.Class == RoleViolation {
		event = "cad.role_violation"
	}
	err := x.c.ledger.Update(ctx, x.by, func(tx *audit.Tx) error {
		if err := x.holds(tx); err != nil {
			return err
		}
		a, err := x.c.loadAgent(tx, x.m.id)
		if err != nil || a.Status == Terminated {
			return cmp.Or(err, error(errSame))
		}
		a.OperationCount++
		a.failed(clip(x.method.Name, 100) + ": " + strings.TrimPrefix(f.Error(), x.method.Name+": "))
		a.Waiting = ""
		a.LastActive = seconds(tx.Now())
		ms := milliseconds(took)
		switch {
		case f.Class == RoleViolation:
			a.RoleViolations++
			a.ViolationsInRow++
			ms = never
		case f.Denied:
			ms = never
		default:
			if err := x.started(a); err != nil {
				return err
			}
			if err := a.to(Failing); err != nil {
				return err
			}
		}
		method := x.method.Name
		if _, known := FindMethod(method); !known {
			method = unknownMethod
		}
		if err := x.c.count(tx, a.AgentID, sample{method, ms, false}); err != nil {
			return err
		}
		detail := map[string]any{"method": x.method.Name, "error_code": f.Class, "message": clip(f.Message, maxErrorText)}
		for name, v := range map[string]string{"error_type": f.Name, "field": f.Field, "task_id": x.op.TaskID, "decision_id": f.DecisionID, "role": a.Role} {
			if v != "" {
				detail[name] = v
			}
		}
		if x.space != nil {
			detail["workspace_id"] = x.space.WorkspaceID
		}
		if a.ViolationsInRow >= Stubborn {
			detail["violations_in_row"] = a.ViolationsInRow
		}
		return x.c.saveAgent(tx, a, record.Event{Type: event, Trace: x.trace, Detail: detail})
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return err
}

// unknownMethod stands for what is no method, in figures.
const unknownMethod = "unknown"
