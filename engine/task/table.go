package task

import (
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/place"
	"swarmdeck/engine/record"
)

// Component is what troubles with tasks are told under.
const Component = "tasks"

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	Health *health.Troubles
	// Session is the id of the live session that has a name; nil knows none.
	Session func(tenant, name string) (id string, ok bool)
	// Shown is an input as it may be seen; nil shows all of it.
	Shown func(kind string, input core.Raw) core.Raw
	Spill string      // directory of outputs that are in files of their own
	Place place.Place // where that lies
	// Spills reports a kind whose outputs may name such files. What others say
	// about files is their own word. nil is no kind.
	Spills func(kind string) bool
	// LogBytes is how much of an agent's log a tenant keeps; 0 or nil means
	// DefaultLogBytes.
	LogBytes func(tenant string) int64
}

// Table holds the tasks of all tenants. Make one with New, and tell it who
// follows before it is used.
//
// Lock order: no method calls the ledger while it holds Table.mu.
type Table struct {
	ledger *audit.Ledger
	opt    Options
	heads  heads

	mu        sync.Mutex
	beside    map[string]Follower // by kind
	leavers   []Leaver
	followers []func(*Task)
	waiters   map[name][]chan struct{}
}

// name is a task of a tenant. The id alone would not do: the tag in it only
// marks a tenant, two may share one.
type name struct{ tenant, task string }

// New makes the table.
func New(opt Options) *Table {
	t := &Table{ledger: opt.Ledger, opt: opt, beside: map[string]Follower{}, waiters: map[name][]chan struct{}{}}
	t.ledger.Register(audited{})
	allTasks().Hold(t.ledger, countWaiting)
	for _, st := range Statuses() {
		t.ledger.Hold("", countStatus(st))
	}
	return t
}

// Load reads a header by its number; core.NotFound when there is none, and
// core.Damaged when it can't be read or says what can't be.
func (b *Table) Load(tx *audit.Tx, seq uint64, t *Task) error {
	if head := b.heads.load(tx, seq); head != nil {
		*t = *head
		return nil
	}
	return load(tx, seq, t)
}

func load(tx *audit.Tx, seq uint64, t *Task) error {
	id := core.NewID(core.TaskPrefix, tx.Tenant(), seq)
	if err := record.Fetch(tx, bTask, keyIn(tx, seq), "task", id, t); err != nil {
		return err
	}
	return t.possible(tx.Tenant(), id)
}

// Input reads the input of a task.
func (b *Table) Input(tx *audit.Tx, seq uint64) (core.Raw, error) {
	input, err := tx.Get(bInput, keyIn(tx, seq))
	return append(core.Raw(nil), input...), err
}

// ResultIn reads the result of a task that is over.
func (b *Table) ResultIn(tx *audit.Tx, id string) (r Result, err error) {
	err = record.Fetch(tx, bResult, keyIn(tx, Seq(id)), "result of task", id, &r)
	return r, err
}

// In reads a task's header, in a transaction that moves it as it was before.
func (b *Table) In(tx *audit.Tx, id string) (t Task, err error) {
	err = b.Load(tx, Seq(id), &t)
	return t, err
}

// StatusIn is the status of a task inside a transaction.
func (b *Table) StatusIn(tx *audit.Tx, id string) (Status, error) {
	t, err := b.In(tx, id)
	return t.Status, err
}

func (b *Table) report(tenant string, err error) { b.opt.Health.Report(tenant, Component, "", err) }

// heads remembers the headers of live tasks as the last commit left them, so
// that the three transitions of a task decode none. A transaction that writes a
// header forgets it first, and its commit remembers the new one: what is
// remembered is what any writing transaction would read.
type heads struct {
	mu sync.Mutex
	m  map[headKey]*Task // never changed
}

type headKey struct {
	tenant string
	seq    uint64
}

// maxHeads bounds the memory: about 12 MB when full.
const maxHeads = 16 << 10

// put remembers a committed header; t must not be changed any more.
func (h *heads) put(t *Task, seq uint64) {
	key := headKey{t.TenantID, seq}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Status.Terminal() { // another transaction of this commit may have put it
		delete(h.m, key)
		return
	}
	if h.m == nil || len(h.m) >= maxHeads {
		h.m = make(map[headKey]*Task, 256)
	}
	h.m[key] = t
}

// forget is called by a transaction before it writes a header.
func (h *heads) forget(tenant string, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.m, headKey{tenant, seq})
}

// committed is a header as of the last commit, nil when it is not remembered.
func (h *heads) committed(tenant string, seq uint64) *Task {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m[headKey{tenant, seq}]
}

// load is a header as a transaction has it, nil when it is to be read.
func (h *heads) load(tx *audit.Tx, seq uint64) *Task {
	if tx.ReadOnly() { // it may be of an earlier commit
		return nil
	}
	return h.committed(tx.Tenant(), seq)
}
