package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Get returns one task with its input, as that may be seen.
func (b *Table) Get(ctx context.Context, tenant, id string) (Task, error) {
	t, err := b.Whole(ctx, core.Self(tenant, "reader"), id)
	if b.opt.Shown != nil {
		t.Input = b.opt.Shown(t.Kind, t.Input)
	}
	return t, err
}

// Whole returns one task with its input as it runs.
func (b *Table) Whole(ctx context.Context, by core.Caller, id string) (t Task, err error) {
	seq, err := b.ledger.LocalSeq(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return t, err
	}
	err = b.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		if err := b.Load(tx, seq, &t); err != nil {
			return err
		}
		t.Input, err = b.Input(tx, seq)
		return err
	})
	return t, err
}

// Header returns a task without its input.
func (b *Table) Header(ctx context.Context, by core.Caller, id string) (Task, error) {
	seq, err := b.ledger.LocalSeq(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return Task{}, err
	}
	if t := b.heads.committed(by.Tenant, seq); t != nil {
		return *t, nil
	}
	var t Task
	err = b.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error { return b.Load(tx, seq, &t) })
	return t, err
}

// Result returns the result of a task that is over.
func (b *Table) Result(ctx context.Context, tenant, id string) (r Result, err error) {
	if _, err := b.ledger.LocalSeq(ctx, core.Self(tenant, "reader"), core.TaskPrefix, id); err != nil {
		return r, err
	}
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		r, err = b.ResultIn(tx, id)
		return err
	})
	return r, err
}

// Live lists the tasks of a tenant that are not over, or those of one status,
// by their numbers.
func (b *Table) Live(tx *audit.Tx, status Status) (out []uint64, err error) {
	var from, to []byte
	if status != "" {
		from, to = record.Key{status[0]}.Under()
	}
	err = tx.Scan(bLive, from, to, false, func(key, _ []byte) (bool, error) {
		out = append(out, record.LastSeq(key))
		return true, nil
	})
	return out, err
}

// inspectBatch is how many headers one look of Inspect reads.
const inspectBatch = 1000

// Inspect reads a slice of the headers of tasks that are not over, from a key
// on. It names those that can't be read, and returns where to look next, nil
// when it is through.
func (b *Table) Inspect(tx *audit.Tx, from []byte) (bad map[uint64]error, next []byte, err error) {
	n := 0
	bad = map[uint64]error{}
	err = tx.Scan(bLive, from, nil, false, func(key, _ []byte) (bool, error) {
		if n++; n > inspectBatch {
			next = slices.Clone(key)
			return false, nil
		}
		var t Task
		seq := record.LastSeq(key)
		err := load(tx, seq, &t)
		if err == nil && t.Status[0] != key[0] {
			err = Damaged(tx.Tenant(), seq, fmt.Errorf("it is %s, and kept among those that are not", t.Status))
		}
		if err != nil {
			bad[seq] = err
		}
		return true, nil
	})
	return bad, next, err
}

// Results lists results, the last that came first. Those that can't be read are
// left out and told of.
func (b *Table) Results(ctx context.Context, tenant string, f core.Filter) (core.Page[Result], error) {
	f, err := b.checkFilter(ctx, tenant, f)
	if err != nil {
		return core.Page[Result]{}, err
	}
	type came struct {
		at  int64
		seq uint64
	}
	var found []came
	var items []Result
	err = b.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		err := tx.Scan(bResult, nil, nil, true, func(key, value []byte) (bool, error) {
			var r Result
			seq := record.LastSeq(key)
			if err := core.DecodeStored(value, &r); err != nil {
				b.report(tenant, &core.Damaged{Noun: "result", Key: core.NewID(core.TaskPrefix, tenant, seq), Err: err})
			} else if r.matches(f) {
				found = append(found, came{r.CompletedAt.UnixNano(), seq})
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		core.Sort(found, func(a, b came) int { return cmp.Compare(b.at, a.at) })
		from := min(f.Offset(), len(found))
		for _, c := range found[from:min(from+f.Size, len(found))] {
			r, err := b.ResultIn(tx, core.NewID(core.TaskPrefix, tenant, c.seq))
			if err != nil {
				return err
			}
			items = append(items, r)
		}
		return nil
	})
	if err != nil {
		return core.Page[Result]{}, fmt.Errorf("list results: %w", err)
	}
	return core.NewPage(items, f, len(found)), nil
}

func (r *Result) matches(f core.Filter) bool {
	text := ""
	if r.Error != nil {
		text = r.Error.Code + " " + r.Error.Message
	}
	return is(f.Task, r.TaskID) && is(f.Status, string(r.Status)) && is(f.Agent, r.ProducedBy) && is(f.Kind, "") &&
		is(f.Session, "") && is(f.Trace, r.TraceID) && f.Within(r.CompletedAt) && f.Finds(r.TaskID, text)
}
