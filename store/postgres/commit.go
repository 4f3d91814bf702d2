package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/store"
)

// commitSQL writes a commit in one statement, which is one transaction: nothing
// unless the owner's row has us, our epoch, session and last commit: after a failover
// that lost a take, two engines may have one epoch. It waits for the disk even where the
// server is told not to. Each removed row is found by the index: a join could be planned
// as a look at all rows of the tenant.
const commitSQL = `with mine as (
	update owner set commit = commit + 1, schema = $5, until = greatest(until, clock_timestamp() + $6 * interval '1 microsecond')
	where tenant = $1 and epoch = $2 and session = $3 and commit = $4 and engine = $12 returning true
), removed as (
	delete from kv where ctid = any(array(
		select found.ctid from unnest($7::bytea[], $8::bytea[]) as gone(bucket, key),
		lateral (select ctid from kv where tenant = $1 and kv.bucket = gone.bucket and kv.key = gone.key limit 1) as found
	)) and exists (select from mine)
), written as (
	insert into kv (tenant, bucket, key, value)
	select $1, bucket, key, value from unnest($9::bytea[], $10::bytea[], $11::bytea[]) as new(bucket, key, value)
	where exists (select from mine)
	on conflict (tenant, bucket, key) do update set value = excluded.value
)
select case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end from mine`

// askSQL asks for the number of the last commit. The new session keeps a commit
// that is still on its way from happening later.
const askSQL = `update owner set session = session + 1 where tenant = $1 and epoch = $2 and engine = $3 returning session, commit`

// patience is how long a commit of unknown outcome is asked after.
const patience = time.Minute

// write sends a commit until its outcome is known.
func (t *tenant) write(draft *moment) error {
	removed, put := draft.staged.columns()
	for deadline := time.Now().Add(patience); ; wait(t.db.ctx, 10*time.Millisecond) {
		since := time.Now()
		rows, err := t.db.query(t.db.ctx, nil, commitSQL, []byte(t.name), t.epoch, t.session, draft.commit,
			int64(t.schema), max(t.db.opt.Lease, 0), removed.buckets, removed.keys, put.buckets, put.keys, put.values, t.db.opt.Engine)
		switch {
		case err == nil && len(rows) == 1:
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
			unknown = fmt.Errorf("what it held may or may not be stored: %w: %w", store.ErrUnusable, unknown)
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
