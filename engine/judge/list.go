package judge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Approval returns one approval.
func (j *approvals) Approval(ctx context.Context, tenant, id string) (Approval, error) {
	if err := j.ledger.local(ctx, core.Self(tenant, "judge"), core.ApprovalPrefix, "approval", id); err != nil {
		return Approval{}, err
	}
	return record.Value(j.kind.Get(ctx, tenant, id))
}

// ApprovalIn is Approval inside a transaction, of an id that is known to be the
// tenant's.
func (j *approvals) ApprovalIn(tx *audit.Tx, id string) (Approval, error) {
	a, err := j.kind.Need(tx, id)
	if err != nil {
		return Approval{}, err
	}
	return *a, nil
}

// DecisionIn is Decision inside a transaction, of an id that is known to be the tenant's;
// nil of one that left.
func (j *decisions) DecisionIn(tx *audit.Tx, id string) (*GateDecision, error) {
	row, err := j.kind.At(tx, keyOf(id))
	if err != nil || row == nil {
		return nil, err
	}
	d, err := j.decision(tx.Tx, row)
	return &d, err
}

// Open lists the open approvals, oldest first, deferred ones too.
func (j *approvals) Open(ctx context.Context, tenant string) ([]Approval, error) {
	var out []Approval
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		out, err = record.Values(j.openIn(tx))
		return err
	})
	return out, err
}

// MoreUrgent orders open approvals as a person should answer them: those put off last,
// then by the time that is left, the shortest first, then by risk.
func MoreUrgent(a, b *Approval) int {
	later := func(a *Approval) int {
		if a.DeferredUntil.IsZero() {
			return 0
		}
		return 1
	}
	ends := func(a *Approval) time.Time {
		if at, _ := a.Ends(); !at.IsZero() {
			return at
		}
		return never
	}
	return cmp.Or(
		cmp.Compare(later(a), later(b)), ends(a).Compare(ends(b)),
		-cmp.Compare(risks[a.Risk], risks[b.Risk]), strings.Compare(a.ApprovalID, b.ApprovalID),
	)
}

// named are the words that lists have for a decision.
func (d *GateDecision) named() string {
	switch {
	case d.Decision == HITL:
		return "hitl ask"
	case d.Decision == Deny && d.Abort:
		return "deny abort"
	}
	return string(d.Decision)
}

// matches says whether an approval is among those that a filter asks for, whatever its
// time.
func (a *Approval) matches(f core.Filter) bool {
	return core.Wants(f.Status, string(a.Status)) && core.Wants(f.Agent, a.Agent.Name) && core.Wants(f.Kind, a.Action.Kind) &&
		core.Wants(f.Session, a.Session) && core.Wants(f.Trace, a.TraceID) && core.Wants(f.Task, a.TaskID) &&
		f.Finds(a.ApprovalID, a.TaskID, a.Subject.Headline, a.Intent, string(a.Action.Args), a.Action.Tool, a.Agent.Name,
			a.RequestedBy, a.AnsweredBy, a.AnswerReason, a.ReasonCode)
}

// Live are a tenant's open approvals by id, from memory. Neither they nor the map
// may be modified.
func (j *approvals) Live(tenant string) map[string]*Approval { return j.live.Of(tenant) }

// Read takes over the open approvals that are on disk of a tenant, before
// anything of it changes.
func (j *approvals) Read(ctx context.Context, tenant string) error {
	return j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		open, err := j.openIn(tx)
		for _, a := range open {
			j.live.Follow(tenant, a.ApprovalID, a)
		}
		return err
	})
}

// Approvals lists approvals newest first, open ones alone by urgency. Filter.Status is an ApprovalStatus,
// Kind the action's kind, Agent the agent that would act, Match a part of the
// id, intent, arguments, requester or answer.
func (j *approvals) Approvals(ctx context.Context, tenant string, f core.Filter) (core.Page[Approval], error) {
	q, err := queryOf[Approval](f)
	if err != nil {
		return core.Page[Approval]{}, err
	}
	if ApprovalStatus(f.Status) != Open {
		return record.Paged(j.kind.Find(ctx, tenant, q))
	}
	var found []Approval
	for _, a := range j.Live(tenant) {
		if a.matches(q.Filter) && q.Filter.Within(a.CreatedAt) {
			found = append(found, *a)
		}
	}
	core.Sort(found, func(a, b Approval) int { return MoreUrgent(&a, &b) })
	return core.PageOf(found, q.Filter), nil
}

// Decision returns one decision.
func (j *decisions) Decision(ctx context.Context, tenant, id string) (GateDecision, error) {
	if err := j.ledger.local(ctx, core.Self(tenant, "judge"), core.DecisionPrefix, "decision", id); err != nil {
		return GateDecision{}, err
	}
	var out GateDecision
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		row, err := j.kind.At(tx, keyOf(id))
		if err == nil && row == nil {
			err = core.Missing("decision", id)
		}
		if err == nil {
			out, err = j.decision(tx.Tx, row)
		}
		return err
	})
	return out, err
}

// Decisions lists decisions newest first. Filter.Status is a Decision, Kind
// the action's kind, Match a part of the id, reason, rule, rationale or names.
func (j *decisions) Decisions(ctx context.Context, tenant string, f core.Filter) (core.Page[GateDecision], error) {
	var none core.Page[GateDecision]
	q, err := queryOf[decisionRow](f)
	if err != nil {
		return none, err
	}
	switch d := Decision(f.Status); d {
	case "", Approve:
	case Deny, HITL:
		q.Along, q.Word = decisionRare, f.Status
	default:
		return none, core.Invalid("status", f.Status, "approve, deny, hitl")
	}
	var items []GateDecision
	var page core.Page[*decisionRow]
	err = j.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		if narrows(f) {
			q.Match = func(r *decisionRow) (bool, error) {
				d, err := j.decision(tx.Tx, r)
				return core.Wants(f.Status, string(d.Decision)) && core.Wants(f.Agent, d.Agent) && core.Wants(f.Kind, d.Kind) &&
					core.Wants(f.Session, d.Session) && core.Wants(f.Trace, d.TraceID) && core.Wants(f.Task, d.TaskID) &&
					f.Finds(d.DecisionID, d.TaskID, d.ReasonCode, d.RuleID, d.Rationale, d.DecidedBy, d.Agent, d.Kind, d.ApprovalID, d.named()), err
			}
		}
		page, err = j.kind.Page(ctx, tx, q)
		for _, r := range page.Items {
			d, bad := j.decision(tx.Tx, r)
			items, err = append(items, d), errors.Join(err, bad)
		}
		return err
	})
	return core.Page[GateDecision]{Items: items, Info: page.Info}, err
}

// Past returns the newest n answered approvals of the same shape (gate, kind,
// program, agent), without a itself.
func (j *approvals) Past(ctx context.Context, tenant string, a Approval, n int) ([]Approval, error) {
	if n < 1 || n > core.MaxPageSize {
		return nil, core.Invalid("n", n, "1-100")
	}
	var out []Approval
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		page, err := j.kind.Page(ctx, tx, record.Query[*Approval]{
			Filter: core.Filter{Page: 1, Size: n + 1}, Along: approvalShape, Word: a.shape(),
		})
		for _, past := range page.Items {
			if past.ApprovalID != a.ApprovalID && len(out) < n {
				out = append(out, *past)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find past approvals: %w", err)
	}
	return out, nil
}

// narrows says whether a filter asks for more than times.
func narrows(f core.Filter) bool {
	f.Since, f.Until = time.Time{}, time.Time{}
	return f.Narrows()
}

// queryOf is the query of a filter, the end of whose time is within it. Records
// that can't match are told by their bytes, undecoded.
func queryOf[T any](f core.Filter) (q record.Query[*T], err error) {
	if q.Filter, err = f.Check(); err != nil {
		return q, err
	}
	if !f.Until.IsZero() {
		q.Filter.Until = f.Until.Add(1)
	}
	hints := core.Hints(f.Status, f.Agent, f.Kind, f.Session, f.Trace, f.Task)
	q.Raw = func(data []byte) bool {
		return !slices.ContainsFunc(hints, func(h []byte) bool { return !bytes.Contains(data, h) })
	}
	return q, nil
}

// endedSlice is how many approvals one read transaction looks at.
const endedSlice = 2000

// Ended calls fn with the approvals that were answered or expired at or after
// since, the newest asked first; voided ones are not among them. It looks at
// most (1 or more) approvals and reports whether those were all there are.
func (j *approvals) Ended(ctx context.Context, tenant string, since time.Time, most int, fn func(*Approval)) (all bool, err error) {
	// None waits longer than maxOpen: older asks have ended before.
	oldest := since.Add(-maxOpen)
	below := uint64(math.MaxUint64)
	for seen := 0; seen < most && !all; {
		n := 0
		err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			all = true
			return j.newest(tx, below, func(number uint64, a *Approval) bool {
				if n == endedSlice || seen == most {
					all = false
					return false
				}
				n++
				seen++
				below = number
				if a.CreatedAt.Before(oldest) {
					return false
				}
				if (a.Status == Approved || a.Status == Refused || a.Status == Expired) && !a.AnsweredAt.Before(since) {
					fn(a)
				}
				return true
			})
		})
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return false, err
		}
	}
	return all, nil
}

// newest visits the approvals below a number, the newest first, until visit
// returns false.
func (j *approvals) newest(tx *audit.Tx, below uint64, visit func(number uint64, a *Approval) bool) error {
	n := j.kind.Newest(tx)
	gone := n - uint64(j.kind.Count(tx))
	for n = min(n, below-1); n > gone; n-- {
		a, err := j.kind.At(tx, record.Seq(n))
		if err != nil {
			return err
		}
		if a != nil && !visit(n, a) {
			break
		}
	}
	return nil
}
