// Package estop is the emergency stop of each tenant: whether it is on, who
// must freeze then, and what has not acknowledged it.
//
// The stop is on disk before anybody freezes. On a disk with no room for its
// record it holds all the same, and is written down later. Whoever runs tasks
// freezes them by On; everything else with processes is a Freezer.
//
// Lock order: nothing is called with Stops.mu held, so On may be asked under
// any lock.
package estop

import (
	"context"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// State is the state of a tenant's emergency stop.
type State struct {
	TenantID string    `json:"tenant_id"`
	On       bool      `json:"on"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Waiting lists the tasks and agents that have not acknowledged the
	// freeze, Frozen counts the tasks that have. Not stored.
	Waiting []string `json:"waiting"`
	Frozen  int      `json:"frozen"`
	// Unrecorded says that the disk was too full to write the stop down: it
	// holds, and is recorded once there is space. Not stored.
	Unrecorded bool   `json:"unrecorded,omitzero"`
	AuditSeq   uint64 `json:"audit_seq,omitzero"`
}

// Freezer is told when the emergency stop of a tenant goes on and off, beside
// the running work that follows On. The fleet is one: idle agents have
// processes too.
type Freezer interface {
	// Freeze returns the names of what did not acknowledge before ctx ended.
	Freeze(ctx context.Context, tenant string) []string
	Thaw(ctx context.Context, tenant string)
}

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	// Work tells which running tasks of a tenant have not acknowledged the stop
	// that is on, and how many have.
	Work func(tenant string) (waiting []string, frozen int)
	// Changed is told that a tenant's stop went on or off.
	Changed func(tenant string)
}

// Stops are the emergency stops of all tenants.
type Stops struct {
	opt  Options
	kind record.Table[State]

	mu         sync.Mutex
	states     map[string]State // by tenant
	unrecorded map[string]func(context.Context) error
	freezers   []Freezer
}

const (
	bucket store.Bucket = "estop"
	// countOn is 1 while the stop is on.
	countOn = "estop.on"
)

// New makes them; Read brings in what a tenant's record says.
func New(opt Options) *Stops {
	s := &Stops{opt: opt, states: map[string]State{}, unrecorded: map[string]func(context.Context) error{}}
	s.kind = &record.Kind[*State]{
		Noun: "estop", Bucket: bucket, Ledger: opt.Ledger, Follow: s.follow,
		Unread: func(tenant, _ string) { // it may be on
			s.follow(tenant, tenant, &State{TenantID: tenant, On: true, Reason: "its record can't be read"})
		},
		ID: func(st *State) string { return st.TenantID },
		Head: func(st *State) record.Head {
			return record.Head{Tenant: &st.TenantID, Updated: &st.At, Seq: &st.AuditSeq}
		},
		Says: "on",
	}
	opt.Ledger.Register(s.kind.Auditable())
	return s
}

// Read takes over what is on disk of a tenant.
func (s *Stops) Read(ctx context.Context, tenant string) error { return s.kind.Read(ctx, tenant) }

// Freezer adds one. Call it before the first stop.
func (s *Stops) Freezer(f Freezer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freezers = append(s.freezers, f)
}

// On reports whether a tenant's stop is on.
func (s *Stops) On(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[tenant].On
}

// OnIn is On as a transaction sees it.
func (s *Stops) OnIn(tx store.Tx) bool { return tx.Counter(countOn) != 0 }

// State tells whether the stop is on, and who has not acknowledged it. It
// reads nothing from the store.
func (s *Stops) State(tenant string) State {
	s.mu.Lock()
	st := s.states[tenant]
	s.mu.Unlock()
	st.TenantID, st.Waiting = tenant, []string{}
	if st.On {
		waiting, frozen := s.opt.Work(tenant)
		st.Waiting, st.Frozen = append(st.Waiting, waiting...), frozen
	}
	return st
}

// follow takes the stop over, as it is on disk.
func (s *Stops) follow(tenant, _ string, st *State) {
	s.mu.Lock()
	s.states[tenant] = *st
	s.mu.Unlock()
	s.opt.Changed(tenant)
}
