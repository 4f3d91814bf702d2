package judge

import (
	"context"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Bounds of deferring.
const (
	minDefer = time.Minute
	maxDefer = 24 * time.Hour
	maxOpen  = 7 * 24 * time.Hour // from an approval's making to its last deadline
)

// Defer hides an open approval for d (1m-24h) and moves its deadline by the
// same time; it never ends more than 7 days after it was asked.
func (j *Judge) Defer(ctx context.Context, by core.Caller, id string, d time.Duration) (Approval, error) {
	if d < minDefer || d > maxDefer {
		return Approval{}, core.Invalid("for", d, "1m-24h")
	}
	return j.adjust(ctx, by, id, "defer", func(tx *audit.Tx, a *Approval) error {
		if a.DeadlineAt.Add(d).Sub(a.CreatedAt) > maxOpen {
			return core.Errorf(core.Conflict, "approval %s: it can't wait longer than 7 days in all", id)
		}
		a.DeadlineAt = a.DeadlineAt.Add(d)
		a.DeferredUntil = tx.Now().Add(d)
		return j.save(tx, a, "approval.deferred", map[string]any{"by": by.Name, "until": a.DeferredUntil, "deadline_at": a.DeadlineAt})
	})
}

// Escalate names who should look at an open approval. The deadline stays.
func (j *Judge) Escalate(ctx context.Context, by core.Caller, id, to, reason string) (Approval, error) {
	to, reason = strings.TrimSpace(to), strings.TrimSpace(reason)
	if to == "" || len(to) > 64 || clip(to, 64) != to {
		return Approval{}, core.Invalid("to", to, "a name of 1-64 bytes")
	}
	if len(reason) > maxReason || clip(reason, maxReason) != reason {
		return Approval{}, core.Invalid("reason", reason, "at most 4096 bytes of UTF-8")
	}
	return j.adjust(ctx, by, id, "escalate", func(tx *audit.Tx, a *Approval) error {
		a.EscalatedTo, a.EscalatedAt = to, tx.Now()
		a.DeferredUntil = time.Time{}
		return j.save(tx, a, "approval.escalated", map[string]any{"by": by.Name, "to": to, "reason_sha256": core.SHA256(reason)})
	})
}

// Shown records when an operator first saw the card of an open approval.
func (j *Judge) Shown(ctx context.Context, by core.Caller, id string) error {
	a, err := j.Approval(ctx, by.Tenant, id)
	if err == nil && !a.ShownAt.IsZero() {
		return nil
	}
	_, err = j.adjust(ctx, by, id, "show", func(tx *audit.Tx, a *Approval) error {
		if !a.ShownAt.IsZero() {
			return nil
		}
		a.ShownAt = tx.Now()
		return j.save(tx, a, "approval.shown", map[string]any{"by": by.Name})
	})
	return err
}

// adjust changes an open approval without answering it.
func (j *Judge) adjust(ctx context.Context, by core.Caller, id, what string, fn func(*audit.Tx, *Approval) error) (Approval, error) {
	if err := j.mayAnswer(ctx, by, id); err != nil {
		return Approval{}, err
	}
	var out Approval
	err := j.change(ctx, by, what+" approval "+id, func(tx *audit.Tx) error {
		a, err := j.approvals.Need(tx, id)
		if err != nil {
			return err
		}
		if err := stillOpen(a); err != nil {
			return err
		}
		if !tx.Now().Before(a.DeadlineAt) {
			return core.Errorf(core.Conflict, "approval %s: the deadline passed at %s and denied it", id, clock(a.DeadlineAt))
		}
		if err := fn(tx, a); err != nil {
			return err
		}
		out = *a
		return nil
	})
	return out, err
}
