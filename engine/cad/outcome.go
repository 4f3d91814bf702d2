package cad

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
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
func (c *roster) recorded(ctx context.Context, tenant, mark string) (done Done, there bool, err error) {
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
func (c *roster) ForgetMarks(tx *audit.Tx, prefix string) error {
	return marks.Drop(tx, record.Key(prefix))
}

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
			if err := x.c.appendIn(tx, d, done, x.trace, "agent_id", a.AgentID); err != nil {
				return err
			}
			a.CreatedCount += len(d.added)
			a.CreatedEntities = newest(append(slices.Clip(a.CreatedEntities), d.added...), maxCreated)
			return nil
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
	err := x.c.update(ctx, x.by, func(tx *audit.Tx) error {
		done = Done{AgentID: x.m.id, WorkspaceID: x.space.WorkspaceID, Method: x.method.Name, Data: reply.Data, Elapsed: reply.Elapsed, DecisionID: x.decisionID}
		if err := x.holds(tx); err != nil {
			return err
		}
		if x.op.Mark != "" {
			if was, there, err := doneUnder(tx, x.op.Mark); err != nil || there {
				done = was
				return cmp.Or(err, errSame) // another execution of the same mark was stored first
			}
		}
		a, err := x.c.kinds.agent.Need(tx, x.m.id)
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
		if err := cmp.Or(x.started(a), a.to(Idle)); err != nil {
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
		if err := x.recorded(tx, Operated{Decision: decision, Data: reply.Data}); err != nil {
			return err
		}
		return x.c.kinds.agent.Keep(tx, record.Event{Type: "cad.operation", Trace: x.trace, Detail: x.about(decision, map[string]any{
			"seq": done.Seq, "changed": len(done.Entities), "removed": len(done.Removed), "duration_ms": reply.Elapsed.Milliseconds(),
		})}, a)
	})
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

// started is an agent that carries something out, by the ways that the model
// allows: an error is cleared first.
func (x *execution) started(a *Agent) error {
	if a.Status == Failing {
		if err := a.to(Idle); err != nil {
			return err
		}
	}
	return a.to(Working)
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
	return x.c.update(ctx, x.by, func(tx *audit.Tx) error {
		if err := x.holds(tx); err != nil {
			return err
		}
		a, err := x.c.kinds.agent.Need(tx, x.m.id)
		if err != nil || a.Status == Terminated {
			return cmp.Or(err, errSame)
		}
		a.OperationCount++
		a.failed(core.ClipTo(x.method.Name, 100) + ": " + strings.TrimPrefix(f.Error(), x.method.Name+": "))
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
			if err := cmp.Or(x.started(a), a.to(Failing)); err != nil {
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
		detail := x.about(nil, map[string]any{"error_code": f.Class, "message": core.ClipTo(f.Message, maxErrorText)})
		for name, v := range map[string]string{"error_type": f.Name, "field": f.Field, "decision_id": f.DecisionID, "role": a.Role} {
			if v != "" {
				detail[name] = v
			}
		}
		if a.ViolationsInRow >= Stubborn {
			detail["violations_in_row"] = a.ViolationsInRow
		}
		if err := x.recorded(tx, Operated{Fault: f}); err != nil {
			return err
		}
		return x.c.kinds.agent.Keep(tx, record.Event{Type: event, Trace: x.trace, Detail: detail}, a)
	})
}

// unknownMethod stands for what is no method, in figures.
const unknownMethod = "unknown"

type written struct {
	Size    int64 `json:"size"`
	ModTime int64 `json:"mod_time"` // ns since the epoch
}

func writtenAs(f fs.FileInfo) written { return written{f.Size(), f.ModTime().UnixNano()} }

// fileAt is what lies at a path below a directory, nil when nothing does. What
// can't be looked at is the CAD environment's to refuse.
func fileAt(dir, path string) fs.FileInfo {
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		path = rel
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	there, err := root.Lstat(path)
	if err != nil {
		return nil
	}
	return there
}

// writtenKey is where a workflow's file is noted: among its marks, which go
// when it is completed.
func (x *execution) writtenKey() record.Key { return record.Text(x.op.Origin + "/").Last(x.file) }

// own reports whether a file is the operation's own: it was about to write it
// when an engine died, or its workflow wrote it and nobody changed it since.
func (x *execution) own(ctx context.Context, there fs.FileInfo) (mine bool, err error) {
	err = x.c.ledger.View(ctx, x.by.Tenant, func(tx *audit.Tx) error {
		if x.op.Mark != "" {
			if k, _, err := marks.Get(tx, record.Key(x.op.Mark)); err != nil || k.File == x.file {
				mine = err == nil
				return err
			}
		}
		if x.op.Origin == "" {
			return nil
		}
		was, noted, err := files.Get(tx, x.writtenKey())
		mine = noted && was == writtenAs(there)
		return err
	})
	return mine, err
}

// intend notes, under the operation's mark, which file is about to be written:
// after a crash the same operation finds its own file there, not another's.
func (x *execution) intend(tx *audit.Tx) error {
	if x.op.Mark == "" || x.file == "" {
		return nil
	}
	return marks.Put(tx, record.Key(x.op.Mark), marked{File: x.file})
}

// left is how the operation left its workflow's file; nil when there is nothing to
// note.
func (x *execution) left() *written {
	if x.op.Origin == "" || x.file == "" {
		return nil
	}
	dir, path, _ := strings.Cut(x.file, "\x00")
	there := fileAt(dir, path)
	if there == nil {
		return nil
	}
	return new(writtenAs(there))
}
