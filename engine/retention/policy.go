// Package retention lets what is old leave a tenant: finished tasks, log lines,
// messages, executions, decisions and audit events, by age or by number, as a
// tenant's policies say. Without a policy everything stays, but for messages.
//
// What leaves does so in slices, each a commit of bounded work with an audit
// event that names it: the keys of the rows, the first and the last record, how
// many, and a digest. Reconcile takes a record for gone only if such an event
// says so. What runs, waits or is open stays, and so does what that needs.
//
// Erase takes out what one person or agent said, whenever that was.
package retention

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Kinds of what leaves.
const (
	Tasks      = "tasks"      // finished, with their input, result, log and files
	Logs       = "logs"       // lines; the number is of each log
	Messages   = "messages"   // that nobody can be given any more
	Executions = "executions" // of skills
	Decisions  = "decisions"  // and the approvals that are older than all of them
	Audit      = "audit"      // events
)

// Kinds are all of them, in the order in which they are looked at.
func Kinds() []string { return []string{Tasks, Logs, Messages, Executions, Decisions, Audit} }

// Policy is how long a tenant keeps things of one kind.
type Policy struct {
	TenantID string `json:"tenant_id"`
	Kind     string `json:"kind" allow:"tasks, logs, messages, executions, decisions, audit"`
	AgeS     int64  `json:"age_s,omitzero" allow:"none or 1m-878400h (100 years)"` // what ended longer ago leaves
	Count    int64  `json:"count,omitzero" allow:"none or 1-1000000000000"`        // so many of the newest stay
	// Bytes is how much of the log of each agent stays; 0 means task.DefaultLogBytes.
	Bytes int64 `json:"bytes,omitzero" allow:"none or 1048576-1099511627776 bytes (1 MiB to 1 TiB)"`
	// Export is the directory that audit events are written to before they leave.
	Export    string    `json:"export,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq"`
}

// Check refuses what no policy can be, and names the field.
func (p *Policy) Check() error {
	if err := bound.Check(p); err != nil {
		return err
	}
	switch {
	case p.Bytes != 0 && p.Kind != Logs:
		return core.Invalid("mib", p.Bytes>>20, "only with logs")
	case p.AgeS == 0 && p.Count == 0 && p.Bytes == 0:
		return core.Invalid("age", "", "an age, a count, or both; for logs also a size")
	case p.Export != "" && p.Kind != Audit:
		return core.Invalid("export", p.Export, "only with audit")
	case p.Export != "" && (!filepath.IsAbs(p.Export) || len(p.Export) > 4096):
		return core.Invalid("export", p.Export, "an absolute path")
	}
	return nil
}

// limit is what the policy lets go at a time.
func (p *Policy) limit(now time.Time) record.Limit {
	l := record.Limit{Keep: p.Count}
	if p.AgeS > 0 {
		l.Before = now.Add(-time.Duration(p.AgeS) * time.Second)
	}
	return l
}

// Set keeps a policy, in place of the one that the tenant has of its kind, and
// says what that did: created, changed or unchanged.
func (s *Service) Set(ctx context.Context, by core.Caller, p Policy) (_ Policy, action string, err error) {
	if err := p.Check(); err != nil {
		return p, "", err
	}
	if err := s.kind.ByOperator(ctx, by, p.Kind); err != nil {
		return p, "", err
	}
	err = s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		action, err = s.kind.Put(tx, record.Event{}, &p, nil)
		return err
	})
	if err != nil {
		return p, "", fmt.Errorf("keep a retention: %w", err)
	}
	return p, action, nil
}

// List are the tenant's policies.
func (s *Service) List(ctx context.Context, tenant string) ([]Policy, error) {
	return record.Values(s.kind.List(ctx, tenant))
}

// Delete removes a policy: things of its kind stay from now on.
func (s *Service) Delete(ctx context.Context, by core.Caller, kind string) (Policy, error) {
	if err := s.kind.ByOperator(ctx, by, kind); err != nil {
		return Policy{}, err
	}
	return record.Value(s.kind.Delete(ctx, by, "retention.deleted", kind))
}

// follow learns of policies as they are kept and removed.
func (s *Service) follow(tenant, kind string, p *Policy) {
	s.all.Follow(tenant, kind, p)
	s.loop.Ring(tenant)
}

// Limit is what a tenant's policy of a kind lets go now; the zero value for
// none.
func (s *Service) Limit(tenant, kind string) record.Limit {
	p := s.all.Get(tenant, kind)
	if p == nil {
		return record.Limit{}
	}
	return p.limit(s.opt.Ledger.Clock().Now())
}

// LogBytes is how much of the log of each agent a tenant keeps; 0 where its
// policy doesn't say.
func (s *Service) LogBytes(tenant string) int64 {
	if p := s.all.Get(tenant, Logs); p != nil {
		return p.Bytes
	}
	return 0
}
