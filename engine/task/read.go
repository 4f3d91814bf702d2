package task

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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
