package task

import (
	"context"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Follower keeps a record of its own beside each task of a kind.
type Follower interface {
	// Moved brings that record to where the task now is, in the transaction
	// that moved it, so that the two never disagree. from is the status
	// before, "" for a new task: only that may be refused. The result of a
	// task that is over can be read already (ResultIn). It must not call the
	// ledger or what does, nor read the task, whose header is still the old
	// one. t's input is there while it starts.
	Moved(tx *audit.Tx, t *Task, from Status) error
}

// Leaver keeps rows of its own beside tasks.
type Leaver interface {
	// TaskLeaves removes what is kept of a finished task that leaves by
	// retention, in the transaction that removes it.
	TaskLeaves(tx *audit.Tx, t *Task) error
}

// Beside makes f the follower of the tasks of a kind.
func (b *Table) Beside(kind string, f Follower) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beside[kind] = f
}

// Leaver adds one.
func (b *Table) Leaver(l Leaver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leavers = append(b.leavers, l)
}

// Follow has f called with every header that a commit wrote, in commit order on
// the store's goroutine. It must be quick and must not change the header.
func (b *Table) Follow(f func(*Task)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followers = append(b.followers, f)
}

func (b *Table) moved(tx *audit.Tx, t *Task, from Status) error {
	b.mu.Lock()
	f := b.beside[t.Kind]
	b.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Moved(tx, t, from)
}

func (b *Table) leaves(tx *audit.Tx, t *Task) error {
	b.mu.Lock()
	all := b.leavers
	b.mu.Unlock()
	for _, l := range all {
		if err := l.TaskLeaves(tx, t); err != nil {
			return err
		}
	}
	return nil
}

// committed runs after the commit: whoever waits for the task looks again.
func (b *Table) committed(t *Task) {
	key := name{t.TenantID, t.TaskID}
	b.mu.Lock()
	waiting, followers := b.waiters[key], b.followers
	delete(b.waiters, key)
	b.mu.Unlock()
	for _, ch := range waiting {
		close(ch)
	}
	for _, f := range followers {
		f(t)
	}
}

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
