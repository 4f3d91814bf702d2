package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/store"
)

// commitSQL writes a commit by the function of the layout: nothing is told unless it was
// written.
const commitSQL = `select from swarmdeck_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) as written where written`

// committerSQL makes the function that writes a commit, which is one transaction: nothing
// unless the owner's row has us, our epoch, session and last commit: after a failover that
// lost a take, two engines may have one epoch. The new rows are for sure not there, of
// which the index is asked only once; those that are put may be. It waits for the disk even
// where the server is told not to. A session plans each of its statements once, whatever
// a pooler does: a plan is made for no parameters in particular, and each removed row is
// found by the index, also while the table is empty.
const committerSQL = `create function swarmdeck_commit(of_tenant bytea, at_epoch bigint, in_session bigint, after_commit bigint, by_engine text,
	to_schema bigint, lease bigint, gone_buckets bytea[], gone_keys bytea[], new_buckets bytea[], new_keys bytea[], new_values bytea[],
	put_buckets bytea[], put_keys bytea[], put_values bytea[]) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$ begin
	update owner set commit = commit + 1, schema = to_schema, until = greatest(until, clock_timestamp() + lease * interval '1 microsecond')
	where tenant = of_tenant and epoch = at_epoch and session = in_session and commit = after_commit and engine = by_engine;
	if not found then
		return false;
	end if;
	delete from kv where ctid = any(array(
		select there.ctid from unnest(gone_buckets, gone_keys) as gone(bucket, key),
		lateral (select ctid from kv where tenant = of_tenant and kv.bucket = gone.bucket and kv.key = gone.key limit 1) as there
	));
	insert into kv (tenant, bucket, key, value)
	select of_tenant, new.bucket, new.key, new.value from unnest(new_buckets, new_keys, new_values) as new(bucket, key, value);
	insert into kv (tenant, bucket, key, value)
	select of_tenant, put.bucket, put.key, put.value from unnest(put_buckets, put_keys, put_values) as put(bucket, key, value)
	on conflict (tenant, bucket, key) do update set value = excluded.value;
	if current_setting('synchronous_commit') = 'off' then
		perform set_config('synchronous_commit', 'on', true);
	end if;
	return true;
end $$;`

// askSQL asks for the number of the last commit. The new session keeps a commit
// that is still on its way from happening later.
const askSQL = `update owner set session = session + 1 where tenant = $1 and epoch = $2 and engine = $3 returning session, commit`

// patience is how long a commit of unknown outcome is asked after.
const patience = time.Minute

// write sends a commit until its outcome is known.
func (t *tenant) write(draft *moment) error {
	gone, fresh, put := draft.staged.columns()
	for deadline := time.Now().Add(patience); ; wait(t.db.ctx, 10*time.Millisecond) {
		since := time.Now()
		rows, err := t.db.query(t.db.ctx, nil, commitSQL, []byte(t.name), t.epoch, t.session, draft.commit, t.db.opt.Engine,
			int64(t.schema), max(t.db.opt.Lease, 0), gone.buckets, gone.keys, fresh.buckets, fresh.keys, fresh.values, put.buckets, put.keys, put.values)
		switch {
		case err == nil && len(rows) == 1:
			t.db.full.Store(nil)
			t.held(since)
			return nil
		case err == nil:
			err = t.fenced()
			t.fail(err)
			return err
		case !errors.Is(err, errLost):
			return err
		}
		switch done, unknown := t.outcome(draft.commit, deadline); {
		case unknown != nil:
			unknown = t.db.fault(fmt.Errorf("what the last commit held may or may not be stored: %w", unknown))
			t.fail(unknown)
			return unknown
		case done:
			return nil
		case time.Now().After(deadline): // it has not happened and never will
			return fmt.Errorf("not carried out within %s: %w", patience, err)
		}
	}
}

// outcome asks whether what was sent after a commit has happened, until it is told: a
// standby refuses to answer for a while.
func (t *tenant) outcome(commit int64, deadline time.Time) (done bool, err error) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if done, err = t.ask(commit); err == nil || errors.Is(err, store.ErrFenced) || t.db.ctx.Err() != nil || time.Now().After(deadline) {
			return done, err
		}
		wait(t.db.ctx, pause)
	}
}

// ask reads back whether what was sent after a commit has happened.
func (t *tenant) ask(commit int64) (done bool, err error) {
	rows, err := t.db.query(t.db.ctx, nil, askSQL, []byte(t.name), t.epoch, t.db.opt.Engine)
	switch {
	case err != nil:
		return false, err
	case len(rows) == 0:
		return false, t.fenced()
	}
	t.session = integer(rows[0][0])
	switch integer(rows[0][1]) {
	case commit:
		return false, nil
	case commit + 1:
		return true, nil
	}
	return false, fmt.Errorf("the last commit is %d, not %d or the next: %w", integer(rows[0][1]), commit, store.ErrFenced)
}

// wait pauses, shorter when ctx ends.
func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// flight is a commit on its way: sent, its outcome not known. Nobody is told of what
// is in it, and no View sees that, until it has landed. Meanwhile the writer runs the
// next group on top of it, which is sent when it has landed, and fails when it failed.
type flight struct {
	draft *moment
	hooks []func()
	batch []*request
	over  chan struct{} // closed when the outcome is known
	err   error         // it, from then on
	down  bool          // the gate is open again; the writer's
}

// outcome waits until it is known.
func (f *flight) outcome() error {
	<-f.over
	return f.err
}

// isOver reports whether it is known.
func (f *flight) isOver() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// wrote reports whether the draft changes anything.
func (t *tenant) wrote() bool { return len(t.draft.staged.list) > 0 || t.ledger.Dirty() }

// send lets the draft go; none is under way. The gate stays shut until it has landed.
func (t *tenant) send(batch []*request) {
	t.draft.mu.Lock()
	counters := t.buckets.counters()
	_ = t.ledger.Write(func(name, value []byte) error { t.put(counters, name, value); return nil })
	t.draft.mu.Unlock()
	t.ledger.Settle(true) // or all is forgotten: see land
	t.draft.after = nil
	f := &flight{draft: t.draft, hooks: t.hooks, batch: append([]*request{}, batch...), over: make(chan struct{})}
	t.flight, t.draft, t.hooks = f, nil, nil
	t.gate <- struct{}{}
	go func() {
		defer close(f.over)
		if f.err = t.now.freeze(t.db.ctx); f.err != nil {
			f.err = fmt.Errorf("hold the views: %w", f.err)
		} else {
			f.err = t.write(f.draft)
		}
	}()
}

// landed waits until the flight has landed, or a request came in.
func (t *tenant) landed() bool {
	if t.flight.isOver() {
		return true
	}
	select {
	case <-t.flight.over:
		return true
	case <-t.queue.Bell:
		return false
	}
}

// land waits for the flight, makes it the present moment, and tells those who wait.
// When it failed, what the writer has in mind of it is forgotten, and what is in memory
// of the database: that may be why, if others wrote there.
func (t *tenant) land() error {
	f := t.flight
	err := f.outcome()
	if err != nil {
		err = fmt.Errorf("commit of tenant %.80q: %w", t.name, err)
		t.ledger.Forget()
		t.now.forget()
	} else {
		f.draft.commit++
		f.draft.staged = nil
		f.draft.has.shrink(t.db.opt.Memory)
		t.now = f.draft
		t.db.bell.committed(t.name)
	}
	<-t.gate
	f.down = true
	if err == nil {
		t.notify(f.hooks)
	}
	t.flight = nil // a hook that tore the writer down leaves it to exited
	answer(f.batch, err)
	return err
}
