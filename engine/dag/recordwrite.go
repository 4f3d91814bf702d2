package dag

import (
	"cmp"
	"context"
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Flush writes what is gathered, and returns the first error so far.
func (r *Recording) Flush(ctx context.Context) error { return r.flush(ctx, false) }

// flush writes also when the work that is told of was cancelled: it has
// happened, and what is gathered may be of others. With over nobody records the run any
// more after that.
func (r *Recording) flush(ctx context.Context, over bool) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	for more := true; more; {
		r.mu.Lock()
		events := r.pending[:min(len(r.pending), MaxBatch)]
		r.pending = r.pending[len(events):]
		more = len(r.pending) > 0
		r.mu.Unlock()
		if len(events) == 0 && !over {
			break
		}
		var refused error
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), writeFor)
		err := r.d.ledger.Append(limited, r.by, func(tx *audit.Tx) (err error) {
			if _, refused, err = r.d.observe(tx, true, events); err == nil && over && !more {
				err = r.rest(tx)
			}
			return err
		})
		stop()
		r.missing(cmp.Or(err, refused))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// rest takes the run's mark away, and keeps what its end is to tell.
func (r *Recording) rest(tx *audit.Tx) error {
	if len(r.network) > 0 {
		if err := openRuns.Put(tx, openKey(ofTask, r.run.TaskID), openRun{ID: r.id, Network: r.network}); err != nil {
			return err
		}
	}
	return recording.Delete(tx, record.Key(r.id))
}

// missing notes why something of the run is not in the record, if so.
func (r *Recording) missing(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.models.forget() // what it stated may be lost
	r.lost(audit.Explain("record a run", err))
}

// Along makes a commit that writes what is gathered, before all else.
func (r *Recording) Along(commit func(record func(*audit.Tx) error) error) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	events := r.pending
	r.pending = nil
	r.mu.Unlock()
	var refused error
	err := commit(func(tx *audit.Tx) (err error) {
		_, refused, err = r.d.observe(tx, true, events)
		return err
	})
	if err == nil {
		r.missing(refused)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(events, r.pending...)
	return err
}

// Recover closes the runs of a tenant that a recorder left open when its
// process died: open calls and requests to models end as interrupted. It is
// called once, before anything is recorded.
func (d *DAG) Recover(ctx context.Context, tenant string) error {
	var runs []string
	err := d.view(ctx, tenant, "look for runs that were cut off", func(r reader) (err error) {
		runs, err = r.recorded()
		return err
	})
	errs := []error{err}
	for _, run := range runs { // one that can't be stays open; the others are closed
		errs = append(errs, d.ledger.Append(ctx, core.Self(tenant, "recorder"), func(tx *audit.Tx) error { return d.cutOff(tx, run) }))
	}
	return audit.Explain("close the runs that were cut off", errors.Join(errs...))
}

// cutOff closes a run that nobody ends any more.
func (d *DAG) cutOff(tx *audit.Tx, run string) error {
	err := d.Tell(tx, run, func(r *Recording) {
		r.interrupt(ReasonCrash, "", "the engine died meanwhile")
		r.add(r.head(), &RunFinished{Exit: "error"})
	})
	if err != nil {
		return err
	}
	return recording.Delete(tx, record.Key(run))
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
			open = append(open, OpenCall{CallID: c.CallID, EventID: c.CallEvent, Server: c.Server, Tool: c.Tool})
		}
		return true, err
	})
	return open, err
}
