package judge

import (
	"context"
	"errors"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Run enforces deadlines and escalations until ctx ends. It looks at the open
// approvals, does what is due, and sleeps until the next one is or something
// changed. What the owner of a gate fails to settle is tried again, from 1 s
// up to once a minute.
func (j *answers) Run(ctx context.Context) error {
	j.policies.table() // loaded before the first question waits for it
	return j.loop.Run(ctx)
}

// afterOutage is how long an approval stays open whose deadline passed while the
// disk was full, from when there is room again.
const afterOutage = 5 * time.Minute

// retry is the back-off of an approval whose end could not be settled.
type retry struct {
	at    time.Time
	pause time.Duration
}

// sweep does what is due in a tenant and returns when to look again; zero
// when nothing is open.
func (j *answers) sweep(ctx context.Context, tenant string, _ bool) (time.Time, error) {
	now := j.ledger.Clock().Now()
	var due []string
	var next time.Time
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return approvalOpen.Each(tx, nil, func(k record.Parts, look uint64) (bool, error) {
			id := core.NewID(core.ApprovalPrefix, tenant, k.Seq())
			at := time.UnixMicro(int64(look))
			if r := j.failed[id]; r != nil && r.at.After(at) {
				at = r.at
			}
			if !at.After(now) {
				due = append(due, id)
			} else if next.IsZero() || at.Before(next) {
				next = at
			}
			return true, nil
		})
	})
	if err != nil {
		return next, err
	}
	for _, id := range due {
		at, err := j.enforce(ctx, tenant, id)
		if err != nil {
			return next, err
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, nil
}

// enforce does what is due for one approval, in a transaction of its own, and
// returns when to look at it again. One approval's trouble (its owner can't
// settle it, its record is damaged) must not keep the other deadlines from
// being enforced: it is audited once and tried again later.
func (j *answers) enforce(ctx context.Context, tenant, id string) (time.Time, error) {
	self := core.Self(tenant, "judge")
	var next time.Time
	err := j.ledger.change(ctx, self, "enforce the deadline of "+id, func(tx *audit.Tx) error {
		next = time.Time{}
		a, err := j.approvals.kind.Need(tx, id)
		if err != nil || a.Status != Open {
			return err
		}
		switch now := tx.Now(); {
		case j.ledger.Room().Outage().Holds(a.DeadlineAt): // nobody could answer
			a.DeadlineAt = now.Add(afterOutage)
			err = j.approvals.save(tx, a, "approval.extended", map[string]any{"reason": store.ErrFull.Error(), "deadline_at": a.DeadlineAt})
		case passed(a.DeadlineAt, now):
			return j.expire(tx, a)
		case passed(a.escalates(), now):
			a.EscalatedAt, a.EscalatedTo = now, a.EscalateTo
			detail := map[string]any{"by": byPolicy, "deadline_at": a.DeadlineAt}
			if a.EscalatedTo != "" {
				detail["to"] = a.EscalatedTo
			}
			err = j.approvals.save(tx, a, "approval.escalated", detail)
		case passed(a.DeferredUntil, now):
			a.DeferredUntil = time.Time{}
			err = j.approvals.save(tx, a, "approval.resurfaced", map[string]any{"deadline_at": a.DeadlineAt})
		}
		next = a.due()
		return err
	})
	if err == nil {
		delete(j.failed, id)
		j.approvals.health.Clear(tenant, "judge", "approval "+id)
		return next, nil
	}
	for _, fatal := range []error{store.ErrClosed, store.ErrUnusable, store.ErrReadOnly, store.ErrNoTenant} {
		if ctx.Err() != nil || errors.Is(err, fatal) {
			return next, err
		}
	}
	r := j.failed[id]
	if r == nil {
		r = &retry{pause: time.Second / 2}
		j.failed[id] = r
		// The cause comes back when it can't be audited either; the next try shows it.
		_ = j.ledger.Refuse(ctx, self, audit.Entry{Type: "approval.unsettled", Subject: "approval", ID: id}, err)
	}
	j.approvals.health.Report(tenant, "judge", "approval "+id, err)
	r.pause = min(2*r.pause, time.Minute)
	r.at = j.ledger.Clock().Now().Add(r.pause)
	return r.at, nil
}

// expire lets the deadline deny: silence is never consent (requirement 2.5).
func (j *answers) expire(tx *audit.Tx, a *Approval) error {
	a.Status, a.AnsweredBy, a.AnsweredAt = Expired, byPolicy, tx.Now()
	a.AnswerReason = "nobody answered in time"
	d := a.decision(core.Self(tx.Tenant(), byPolicy), Deny, reasonDeadline)
	d.Rationale = a.AnswerReason
	return j.end(tx, a, &d, "approval.expired", map[string]any{"deadline_at": a.DeadlineAt, "approved_by": a.Consenting()}, Outcome{Reason: a.AnswerReason, By: byPolicy})
}

// Bounds of deferring.
const (
	minDefer = time.Minute
	maxDefer = 24 * time.Hour
	maxOpen  = 7 * 24 * time.Hour // from an approval's making to its last deadline
)

// DeadlineAllowed is what a deadline may be.
const DeadlineAllowed = "1m-24h"

// CheckDeadline reports one that is out of range.
func CheckDeadline(field string, d time.Duration) error {
	if d < time.Minute || d > maxDefer {
		return core.Invalid(field, d, DeadlineAllowed)
	}
	return nil
}

// Defer hides an open approval for d (1m-24h) and moves its deadline, if it has one, by
// the same time; that is never more than 7 days after it was asked.
func (j *answers) Defer(ctx context.Context, by core.Caller, id string, d time.Duration) (Approval, error) {
	if d < minDefer || d > maxDefer {
		return Approval{}, core.Invalid("for", d, "1m-24h")
	}
	return j.adjust(ctx, by, id, "defer", func(tx *audit.Tx, a *Approval) error {
		if !a.DeadlineAt.IsZero() && a.DeadlineAt.Add(d).Sub(a.CreatedAt) > maxOpen {
			return core.Errorf(core.Conflict, "approval %s: it can't wait longer than 7 days in all", id)
		}
		for _, at := range []*time.Time{&a.DeadlineAt, &a.EscalateAt} {
			if !at.IsZero() {
				*at = at.Add(d)
			}
		}
		a.DeferredUntil = tx.Now().Add(d)
		return j.approvals.save(tx, a, "approval.deferred", map[string]any{"by": by.Name, "until": a.DeferredUntil, "deadline_at": a.DeadlineAt})
	})
}

// Escalate names who should look at an open approval. The deadline stays.
func (j *answers) Escalate(ctx context.Context, by core.Caller, id, to, reason string) (Approval, error) {
	to = strings.TrimSpace(to)
	if to == "" || len(to) > 64 || core.ClipTo(to, 64) != to {
		return Approval{}, core.Invalid("to", to, "a name of 1-64 bytes")
	}
	if j.people != nil && !j.people.Known(by.Tenant, to) {
		return Approval{}, core.Errorf(core.InvalidInput, "to: there is no operator and no group %q; operator list tells who there is", to).With("field", "to").With("value", to)
	}
	if err := checkText("reason", &reason, 0, maxReason); err != nil {
		return Approval{}, err
	}
	return j.adjust(ctx, by, id, "escalate", func(tx *audit.Tx, a *Approval) error {
		a.EscalatedTo, a.EscalatedAt = to, tx.Now()
		a.DeferredUntil = time.Time{}
		return j.approvals.save(tx, a, "approval.escalated", map[string]any{"by": by.Name, "to": to, "reason_sha256": core.SHA256(reason)})
	})
}

// Shown records when an operator first saw the card of an open approval. One that
// was answered meanwhile stays as it is.
func (j *answers) Shown(ctx context.Context, by core.Caller, id string) error {
	a, err := j.approvals.Approval(ctx, by.Tenant, id)
	if err == nil && !a.ShownAt.IsZero() {
		return nil
	}
	_, err = j.adjust(ctx, by, id, showing, func(tx *audit.Tx, a *Approval) error {
		if !a.ShownAt.IsZero() {
			return nil
		}
		a.ShownAt = tx.Now()
		return j.approvals.save(tx, a, "approval.shown", map[string]any{"by": by.Name})
	})
	if errors.Is(err, core.Kind(core.Conflict)) {
		return nil
	}
	return err
}

// adjust changes an open approval without answering it. Only who may answer it puts
// it off or hands it on.
func (j *answers) adjust(ctx context.Context, by core.Caller, id, what string, fn func(*audit.Tx, *Approval) error) (Approval, error) {
	if err := j.mayAnswer(ctx, by, id); err != nil {
		return Approval{}, err
	}
	return j.alter(ctx, by, id, what, func(tx *audit.Tx, a *Approval) error {
		if what == showing {
			return nil
		}
		_, denied := j.barred(by, a, tx.Now())
		return denied
	}, fn)
}

// alter changes an open approval for whom may does not refuse, and audits who is.
func (j *answers) alter(ctx context.Context, by core.Caller, id, what string, may, fn func(*audit.Tx, *Approval) error) (Approval, error) {
	var out Approval
	err := j.ledger.guarded(ctx, by, what+" approval "+id, "approval", id, func(tx *audit.Tx) error {
		a, err := j.approvals.kind.Need(tx, id)
		if err == nil {
			err = may(tx, a)
		}
		if err == nil {
			err = stillOpen(a)
		}
		switch {
		case err != nil:
			return err
		case passed(a.DeadlineAt, tx.Now()):
			return core.Errorf(core.Conflict, "approval %s: the deadline passed at %s and denied it", id, clock(a.DeadlineAt))
		}
		if err = fn(tx, a); err == nil {
			out = *a
		}
		return err
	})
	return out, err
}

// showing is what anyone who may look does to an approval.
const showing = "show"
