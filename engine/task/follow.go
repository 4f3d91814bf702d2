package task

import "swarmdeck/engine/audit"

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
