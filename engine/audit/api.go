// Package audit is the one path by which state changes, and the log that
// proves it: every change, decision and refusal appends an event in the same
// transaction, events form an RFC 6962 Merkle log per tenant, and each commit
// carries a signed checkpoint (C2SP note) of it.
package audit

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Event is one AuditEvent (seed 1), never changed or removed.
type Event struct {
	TenantID  string    `json:"tenant_id"`
	TraceID   string    `json:"trace_id"`
	EventID   string    `json:"event_id"`
	EventType string    `json:"event_type"`
	Payload   core.Raw  `json:"payload"`
	CreatedAt time.Time `json:"created_at"`

	Seq   uint64         `json:"seq"` // 1-based place in the tenant's log
	Actor string         `json:"actor"`
	Kind  core.ActorKind `json:"actor_kind"`
	Door  core.Door      `json:"door"`
	// Prev is the seq of the previous event about the same subject, 0 if none.
	Prev uint64 `json:"prev,omitzero"`
}

// Entry is what a change says about itself. It becomes an Event whose payload
// is {"subject","id","state","detail"}.
type Entry struct {
	Type    string // "task.queued", "judge.outcome", …
	Trace   string // "" takes a fresh trace id
	Subject string // kind of record: "task", "session", "agent", "approval", …
	ID      string
	// State is the subject's audited state after the change; replaying the
	// log folds these, and reconcile compares them with the store. Leave nil
	// when the event changes nothing.
	State any
	// Detail is everything else worth keeping: reason, error, digest.
	Detail any
	Prev   uint64 // seq of the subject's previous event, 0 if none
}

// Tx is a transaction of the ledger: the store's, plus audit and changes.
type Tx struct {
	store.Tx
	By core.Caller
	at time.Time
	l  *Ledger

	events  int
	changes []core.Change
}

// Now is the one time of this transaction.
func (tx *Tx) Now() time.Time { return tx.at }

// Options of New.
type Options struct {
	Clock    core.Clock
	NewTrace func() string     // fresh trace ids; nil means random
	OnChange func(core.Change) // called in commit order; must be quick and not block
}

// Ledger is the one path by which state changes.
type Ledger struct {
	st  store.Store
	opt Options
}

// New binds a ledger to a store.
func New(st store.Store, opt Options) *Ledger { return &Ledger{st: st, opt: opt} }

// Delta is one difference between the replayed log and the store.
type Delta struct {
	Subject string `json:"subject"`
	ID      string `json:"id"`
	Field   string `json:"field"`
	Log     string `json:"log"`   // value by the log, "" when absent
	Store   string `json:"store"` // value in the store, "" when absent
}

// Auditable is a kind of record that reconcile compares. State must encode
// to the same JSON object that the service puts in Entry.State.
type Auditable interface {
	Subject() string
	States(tx store.Tx, each func(id string, state any) error) error
}

// Report is what verify found.
type Report struct {
	TenantID string   `json:"tenant_id"`
	OK       bool     `json:"ok"`
	Events   uint64   `json:"events"`
	RootHash string   `json:"root_hash"` // base64, RFC 6962
	Problems []string `json:"problems,omitempty"`
}

var _ = context.Background
