package task

import (
	"context"
	"slices"

	"swarmdeck/engine/core"
)

// Wait returns when the task has the status, or any terminal one when status
// is "". A task that ended otherwise is returned too: it can't get there any
// more. ctx ends the wait.
func (b *Table) Wait(ctx context.Context, tenant, id string, status Status) (Task, error) {
	if status != "" {
		if err := status.Check(); err != nil {
			return Task{}, err
		}
	}
	by := core.Self(tenant, "reader")
	seq, err := b.ledger.LocalSeq(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return Task{}, err
	}
	id = core.NewID(core.TaskPrefix, tenant, seq) // as who ends it spells it
	key := name{tenant, id}
	for {
		changed := make(chan struct{})
		b.mu.Lock()
		b.waiters[key] = append(b.waiters[key], changed)
		b.mu.Unlock()
		t, err := b.Header(ctx, by, id)
		if err != nil || t.Status == status || t.Status.Terminal() {
			b.unwait(key, changed)
			return t, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.unwait(key, changed)
			return t, ctx.Err()
		}
	}
}

func (b *Table) unwait(key name, ch chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := slices.DeleteFunc(b.waiters[key], func(c chan struct{}) bool { return c == ch })
	if b.waiters[key] = rest; len(rest) == 0 {
		delete(b.waiters, key)
	}
}
