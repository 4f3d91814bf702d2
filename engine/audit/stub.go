package audit

import (
	"context"
	"io"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Update makes a state change: fn writes and records at least one event, all
// in one transaction. A write without an event is refused.
func (l *Ledger) Update(ctx context.Context, by core.Caller, fn func(*Tx) error) error {
	panic("not built")
}

// Append writes records that are not state (log lines, outputs) without an event.
func (l *Ledger) Append(ctx context.Context, by core.Caller, fn func(*Tx) error) error {
	panic("not built")
}

// View reads a consistent snapshot.
func (l *Ledger) View(ctx context.Context, tenant string, fn func(*Tx) error) error {
	panic("not built")
}

// Record appends an event and returns its seq.
func (tx *Tx) Record(e Entry) (uint64, error) { panic("not built") }

// Changed tells the watchers, after the commit, that a record changed.
func (tx *Tx) Changed(kind, id string, record any) { panic("not built") }

// Refuse audits a refusal in a transaction of its own (tenant.violation, a
// late result, …) and returns cause, so that callers can `return l.Refuse(…)`.
func (l *Ledger) Refuse(ctx context.Context, by core.Caller, e Entry, cause error) error {
	panic("not built")
}

// Clock is the ledger's time.
func (l *Ledger) Clock() core.Clock { return l.opt.Clock }

// List returns events newest first; f.Kind filters by event type (a trailing
// * matches a prefix), f.Task by subject id.
func (l *Ledger) List(ctx context.Context, tenant string, f core.Filter) (core.Page[Event], error) {
	panic("not built")
}

// Get returns one event by id.
func (l *Ledger) Get(ctx context.Context, tenant, id string) (Event, error) { panic("not built") }

// Since returns up to n events after seq, oldest first.
func (l *Ledger) Since(ctx context.Context, tenant string, seq uint64, n int) ([]Event, error) {
	panic("not built")
}

// Trail follows the Prev links from seq, newest first, at most n events.
func (l *Ledger) Trail(ctx context.Context, tenant string, seq uint64, n int) ([]Event, error) {
	panic("not built")
}

// Verify recomputes the whole log; saved, when not nil, is a checkpoint kept
// outside that the log must extend.
func (l *Ledger) Verify(ctx context.Context, tenant string, saved []byte) (Report, error) {
	panic("not built")
}

// Checkpoint is the newest signed checkpoint (C2SP tlog-checkpoint note).
func (l *Ledger) Checkpoint(ctx context.Context, tenant string) ([]byte, error) { panic("not built") }

// Prove returns a self-contained inclusion proof (C2SP tlog-proof text) of an event.
func (l *Ledger) Prove(ctx context.Context, tenant, id string) ([]byte, error) { panic("not built") }

// Export writes the log as "jsonl" or "csv".
func (l *Ledger) Export(ctx context.Context, tenant, format string, w io.Writer) error {
	panic("not built")
}

// Reconcile replays the log and lists every difference from the store.
func (l *Ledger) Reconcile(ctx context.Context, tenant string, kinds []Auditable) ([]Delta, error) {
	panic("not built")
}

// Sealer extends the Merkle tree and signs a checkpoint inside each commit.
type Sealer struct{}

// OpenSealer loads the ed25519 signing key at path (0600), or makes it.
func OpenSealer(path string) (*Sealer, error) { panic("not built") }

// Verifier is the C2SP verifier key string of the log ("name+hash+key").
func (s *Sealer) Verifier() string { panic("not built") }

// Seal implements store.Options.Seal.
func (s *Sealer) Seal(tx store.Tx) error { panic("not built") }

// CheckProof checks a proof made by Prove against a verifier key and returns the event.
func CheckProof(proof []byte, verifier string) (Event, error) { panic("not built") }

var _ time.Time
