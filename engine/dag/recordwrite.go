package dag

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Flush writes what is gathered, and returns the first error so far.
func (r *Recording) Flush(ctx context.Context) error { return r.flush(ctx, false) }

// flush writes also when the work that is told of was cancelled: it has
// happened, and what is gathered may be of others.
func (r *Recording) flush(ctx context.Context, over bool) error {
	if r.inside {
		return nil
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	events := r.take()
	var rest *openRun
	if over {
		rest = &openRun{ID: r.id, Network: r.network}
	}
	r.mu.Unlock()
	var err error
	if len(events) > 0 || over {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeFor*time.Duration(1+len(events)/MaxBatch))
		defer cancel()
		err = r.d.keep(ctx, r.by, r.id, events, rest)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.models.forget() // what it stated may be lost
		r.lost(explain("record a run", err))
	}
	return r.err
}

// Along makes a commit that writes what is gathered, before all else.
func (r *Recording) Along(ctx context.Context, commit func(record func(*audit.Tx) error) error) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	events := r.take()
	r.mu.Unlock()
	var refused error
	err := commit(func(tx *audit.Tx) error {
		_, refused = r.d.ObserveIn(tx, events...)
		return refused
	})
	switch {
	case err == nil:
		return nil
	case refused != nil: // which is no reason to keep anything else from being written
		err = r.d.keep(context.WithoutCancel(ctx), r.by, r.id, events, nil)
		r.mu.Lock()
		if err != nil {
			r.models.forget()
			r.lost(explain("record a run", err))
		}
		r.mu.Unlock()
		return commit(func(*audit.Tx) error { return nil })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(events, r.pending...)
	return err
}

// take empties what is gathered; mu is held.
func (r *Recording) take() []Event {
	events := r.pending
	r.pending = nil
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	return events
}

// keep writes events of a run, in their order; with over, nobody records it any more
// after the last. Others may emit into the run too: an event that does
// not agree with theirs costs itself alone, which the audit log tells. The
// first such is the error then; any other error ends it at once.
func (d *DAG) keep(ctx context.Context, by core.Caller, run string, events []Event, over *openRun) error {
	if len(events) <= MaxBatch {
		err := d.ledger.Append(ctx, by, func(tx *audit.Tx) error {
			if _, err := d.EmitIn(tx, events...); err != nil {
				return err
			}
			return closeRun(tx, run, over)
		})
		if !isConflict(err) {
			return err
		}
		if len(events) == 1 {
			return d.leaveOut(ctx, by, run, &events[0], over, err)
		}
	}
	half := len(events) / 2
	first := d.keep(ctx, by, run, events[:half], nil)
	if first != nil && !isConflict(first) {
		return first
	}
	err := d.keep(ctx, by, run, events[half:], over)
	if first == nil || err != nil && !isConflict(err) {
		return err
	}
	return first
}

// leaveOut tells of an event that could not be recorded, and why.
func (d *DAG) leaveOut(ctx context.Context, by core.Caller, run string, e *Event, over *openRun, why error) error {
	err := d.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		_, err := tx.Record(audit.Entry{
			Type: "dag.left_out", Trace: traceOf(e.TraceID), Subject: "dag.event", ID: e.EventID,
			Detail: map[string]any{"run_id": run, "kind": e.Kind, "error": why.Error()},
		})
		if err != nil {
			return err
		}
		return closeRun(tx, run, over)
	})
	if err != nil {
		return err
	}
	return why
}

func isConflict(err error) bool { return err != nil && core.AsError(err).Code == core.Conflict }

// closeRun takes a run's mark away if nobody records it any more, and keeps what its
// end is to tell.
func closeRun(tx *audit.Tx, run string, over *openRun) error {
	if over == nil {
		return nil
	}
	if len(over.Network) > 0 {
		_, h, err := reader{tx}.run(run)
		if err != nil {
			return err
		}
		if err := openRuns.Put(tx, openKey(ofTask, h.TaskID), *over); err != nil {
			return err
		}
	}
	return recording.Delete(tx, record.Key(run))
}

// Recover closes the runs of a tenant that a recorder left open when its
// process died: open calls and requests to models end as interrupted. It is
// called once, before anything is recorded.
func (d *DAG) Recover(ctx context.Context, tenant string) error {
	var runs []string
	cutOff := map[string][]Event{}
	var errs []error
	err := d.view(ctx, tenant, "look for runs that were cut off", func(r reader) error {
		var err error
		if runs, err = r.recorded(); err != nil {
			return err
		}
		for _, run := range runs {
			events, err := d.abandon(r, run)
			if err != nil {
				errs = append(errs, fmt.Errorf("run %s: %w", run, err)) // it stays open; the others are closed
				continue
			}
			cutOff[run] = events
		}
		return nil
	})
	errs = append(errs, err)
	for _, run := range runs {
		events, ok := cutOff[run]
		if !ok {
			continue
		}
		if err := d.keep(ctx, core.Self(tenant, "recorder"), run, events, &openRun{}); !isConflict(err) {
			errs = append(errs, err)
		} // else the audit log tells what could not be said of the run; it is closed
	}
	return explain("close the runs that were cut off", errors.Join(errs...))
}

// abandon is what ends a run whose recorder died; nothing of one that was
// finished meanwhile.
func (d *DAG) abandon(tx reader, run string) ([]Event, error) {
	num, h, err := tx.run(run)
	if err != nil || h.Status == "finished" {
		return nil, err
	}
	r := &Recording{d: d, id: run, inside: true, now: d.ledger.Clock().Now, last: h.LastAt.at, calls: map[string]openCall{}, ended: map[string]string{}, run: RunInfo{AgentID: h.AgentID, TaskID: h.TaskID, SessionID: h.SessionID, TraceID: h.TraceID}}
	open, err := tx.openCalls(num, h)
	if err != nil {
		return nil, err
	}
	var affects []EventRef
	for _, c := range open {
		affects = append(affects, EventRef{c.EventID})
		r.result(c.CallID, CallInterrupted, nil, &Fault{Code: string(ReasonCrash), Message: "the engine died meanwhile"})
	}
	for _, m := range h.OpenModels {
		affects = append(affects, EventRef{m.EventID})
		r.answer(openModel{id: m.EventID, correlation: m.CorrelationID, at: m.TS.at}, ModelAnswer{
			Status: CallInterrupted, Error: &Fault{Code: string(ReasonCrash), Message: "the engine died meanwhile"},
		})
	}
	r.interrupted(ReasonCrash, affects)
	r.add(r.head(), &RunFinished{Exit: "error"})
	return r.pending, r.err
}

// openCalls are a run's calls without a result: also those that its head has
// no room for.
func (r reader) openCalls(num uint64, h *head) ([]OpenCall, error) {
	if h.OpenUnlisted == 0 {
		return h.OpenCalls, nil
	}
	var open []OpenCall
	err := runCalls.Within(r, record.Seq(num), nil, nil, false, func(_ record.Parts, found record.Found[[]byte]) (bool, error) {
		e, err := r.event(record.LastSeq(found.Data))
		if err != nil {
			return false, err
		}
		c, err := r.call(e)
		if c.Status == callOpen {
			open = append(open, OpenCall{CallID: c.CallID, EventID: c.CallEvent})
		}
		return true, err
	})
	return open, err
}
