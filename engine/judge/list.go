package judge

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Approval returns one approval.
func (j *Judge) Approval(ctx context.Context, tenant, id string) (Approval, error) {
	if err := j.local(ctx, core.Self(tenant, "judge"), core.ApprovalPrefix, "approval", id); err != nil {
		return Approval{}, err
	}
	var out Approval
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		a, err := load(tx, id)
		if err == nil {
			out = *a
		}
		return err
	})
	return out, err
}

// ApprovalIn is Approval inside a transaction, of an id that is known to be the
// tenant's.
func (j *Judge) ApprovalIn(tx *audit.Tx, id string) (Approval, error) {
	a, err := load(tx, id)
	if err != nil {
		return Approval{}, err
	}
	return *a, nil
}

// Open lists the open approvals, oldest first, deferred ones too.
func (j *Judge) Open(ctx context.Context, tenant string) ([]Approval, error) {
	var out []Approval
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		open, err := j.openIn(tx)
		for _, a := range open {
			out = append(out, *a)
		}
		return err
	})
	return out, err
}

// Approvals lists approvals newest first. Filter.Status is an ApprovalStatus,
// Kind the action's kind, Agent the agent that would act, Match a part of the
// id, intent, arguments, requester or answer.
func (j *Judge) Approvals(ctx context.Context, tenant string, f core.Filter) (core.Page[Approval], error) {
	switch ApprovalStatus(f.Status) {
	case "", Open, Approved, Refused, Expired, Voided:
	default:
		return core.Page[Approval]{}, core.Invalid("status", f.Status, "open, approved, denied, expired, void")
	}
	l := listing[Approval]{
		bucket: approvals, counter: countApprovals,
		read: func(_ store.Tx, _ uint64, value []byte) (Approval, error) {
			a, err := decodeApproval(value)
			if err != nil {
				return Approval{}, err
			}
			return *a, nil
		},
		at: func(a *Approval) time.Time { return a.CreatedAt },
		keep: func(a *Approval) bool {
			return same(f.Status, string(a.Status)) && same(f.Agent, a.Agent.Name) && same(f.Kind, a.Action.Kind) &&
				same(f.Session, a.Session) && same(f.Trace, a.TraceID) && same(f.Task, a.TaskID) &&
				holds(f.Match, a.ApprovalID, a.TaskID, a.Intent, string(a.Action.Args), a.Action.Tool, a.Agent.Name,
					a.RequestedBy, a.AnsweredBy, a.AnswerReason, a.ReasonCode)
		},
	}
	if ApprovalStatus(f.Status) == Open {
		l.only = approvalsOpen
	}
	return l.page(ctx, j.ledger, tenant, f)
}

// Decision returns one decision.
func (j *Judge) Decision(ctx context.Context, tenant, id string) (GateDecision, error) {
	if err := j.local(ctx, core.Self(tenant, "judge"), core.DecisionPrefix, "decision", id); err != nil {
		return GateDecision{}, err
	}
	_, _, seq, _ := core.ParseID(id)
	var out GateDecision
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		value, err := tx.Get(decisions, key(seq))
		if err != nil {
			return fmt.Errorf("read decision %s: %w", id, err)
		}
		if value == nil {
			return core.Missing("decision", id)
		}
		out, err = j.readDecision(tx.Tx, seq, value)
		return err
	})
	return out, err
}

// Decisions lists decisions newest first. Filter.Status is a Decision, Kind
// the action's kind, Match a part of the id, reason, rule, rationale or names.
func (j *Judge) Decisions(ctx context.Context, tenant string, f core.Filter) (core.Page[GateDecision], error) {
	l := listing[GateDecision]{
		bucket: decisions, counter: countDecisions, read: j.readDecision,
		at: func(d *GateDecision) time.Time { return d.CreatedAt },
		keep: func(d *GateDecision) bool {
			return same(f.Status, string(d.Decision)) && same(f.Agent, d.Agent) && same(f.Kind, d.Kind) &&
				same(f.Session, d.Session) && same(f.Trace, d.TraceID) && same(f.Task, d.TaskID) &&
				holds(f.Match, d.DecisionID, d.TaskID, d.ReasonCode, d.RuleID, d.Rationale, d.DecidedBy, d.Agent, d.Kind, d.ApprovalID)
		},
	}
	switch d := Decision(f.Status); d {
	case "", Approve:
	case Deny, HITL:
		l.only, l.under = decisionRare, []byte{d[0]}
	default:
		return core.Page[GateDecision]{}, core.Invalid("status", f.Status, "approve, deny, hitl")
	}
	return l.page(ctx, j.ledger, tenant, f)
}

// Past returns the newest n answered approvals of the same shape (gate, kind,
// program, agent), without a itself.
func (j *Judge) Past(ctx context.Context, tenant string, a Approval, n int) ([]Approval, error) {
	if n < 1 || n > core.MaxPageSize {
		return nil, core.Invalid("n", n, "1-100")
	}
	var out []Approval
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		var keys [][]byte
		prefix := shape(&a)
		if err := tx.Scan(approvalsShape, prefix, after(prefix), true, func(k, _ []byte) bool {
			keys = append(keys, append([]byte(nil), k[len(prefix):]...))
			return len(keys) <= n
		}); err != nil {
			return fmt.Errorf("find past approvals: %w", err)
		}
		for _, k := range keys {
			value, err := tx.Get(approvals, k)
			if err != nil || value == nil {
				return fmt.Errorf("read a past approval: %w", err)
			}
			past, err := decodeApproval(value)
			if err != nil {
				return err
			}
			if past.ApprovalID != a.ApprovalID && len(out) < n {
				out = append(out, *past)
			}
		}
		return nil
	})
	return out, err
}

// after is the first key behind all those that start with prefix.
func after(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func same(want, got string) bool { return want == "" || want == got }

func holds(match string, in ...string) bool {
	if match == "" {
		return true
	}
	match = strings.ToLower(match)
	return slices.ContainsFunc(in, func(s string) bool { return strings.Contains(strings.ToLower(s), match) })
}

// listing pages through a bucket whose keys are the dense numbers up to counter,
// from those on that did not leave.
type listing[T any] struct {
	bucket  store.Bucket
	counter string
	only    store.Bucket // index of the wanted numbers, keys {under}{seq}
	under   []byte
	read    func(tx store.Tx, seq uint64, value []byte) (T, error)
	at      func(*T) time.Time
	keep    func(*T) bool
}

func (l *listing[T]) page(ctx context.Context, ledger *audit.Ledger, tenant string, f core.Filter) (core.Page[T], error) {
	var out core.Page[T]
	f, err := f.Check()
	if err != nil {
		return out, err
	}
	err = ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		lo, hi, err := l.span(tx.Tx, f)
		if err != nil {
			return err
		}
		byTime := f
		byTime.Since, byTime.Until = time.Time{}, time.Time{}
		if !byTime.Narrows() { // by arithmetic, whatever the size
			total := int(hi - lo)
			var items []T
			for seq := int64(hi) - 1 - int64(f.Offset()); seq >= int64(lo) && len(items) < f.Size; seq-- {
				item, err := l.get(tx.Tx, uint64(seq))
				if err != nil {
					return err
				}
				items = append(items, item)
			}
			out = core.NewPage(items, f, total)
			return nil
		}
		out, err = l.search(ctx, tx.Tx, f, lo, hi)
		return err
	})
	return out, err
}

func (l *listing[T]) get(tx store.Tx, seq uint64) (T, error) {
	var none T
	value, err := tx.Get(l.bucket, key(seq))
	if err != nil {
		return none, fmt.Errorf("read %s %d: %w", l.bucket, seq, err)
	}
	if value == nil {
		return none, core.Errorf(core.Internal, "%s %d is missing", l.bucket, seq)
	}
	return l.read(tx, seq, value)
}

// span is the half-open range of numbers within the filter's times. Numbers
// and times grow together: a transaction's time never runs backwards.
func (l *listing[T]) span(tx store.Tx, f core.Filter) (lo, hi uint64, err error) {
	floor := uint64(tx.Counter(floorOf(l.counter)))
	count := int(uint64(tx.Counter(l.counter)) - floor)
	find := func(past func(time.Time) bool) uint64 {
		return floor + 1 + uint64(sort.Search(count, func(i int) bool {
			if err != nil {
				return true
			}
			var item T
			if item, err = l.get(tx, floor+uint64(i)+1); err != nil {
				return true
			}
			return past(l.at(&item))
		}))
	}
	lo, hi = floor+1, floor+uint64(count)+1
	if !f.Since.IsZero() {
		lo = find(func(t time.Time) bool { return !t.Before(f.Since) })
	}
	if !f.Until.IsZero() {
		hi = max(lo, find(func(t time.Time) bool { return t.After(f.Until) }))
	}
	return lo, hi, err
}

// search looks at every record of the range, or of the index, newest first.
// Records that can't match are told by their bytes, undecoded.
func (l *listing[T]) search(ctx context.Context, tx store.Tx, f core.Filter, lo, hi uint64) (core.Page[T], error) {
	var hints [][]byte
	for _, want := range []string{f.Status, f.Agent, f.Kind, f.Session, f.Trace, f.Task} {
		if want != "" {
			hints = append(hints, quote(nil, want))
		}
	}
	var items []T
	total, seen := 0, 0
	var bad error
	visit := func(seq uint64, value []byte) bool {
		if seen++; seen%1024 == 0 && ctx.Err() != nil {
			bad = ctx.Err()
			return false
		}
		for _, h := range hints {
			if !bytes.Contains(value, h) {
				return true
			}
		}
		var item T
		if item, bad = l.read(tx, seq, value); bad != nil {
			return false
		}
		if l.keep(&item) {
			if total >= f.Offset() && len(items) < f.Size {
				items = append(items, item)
			}
			total++
		}
		return true
	}
	var err error
	if l.only == "" {
		err = tx.Scan(l.bucket, key(lo), key(hi), true, func(k, value []byte) bool {
			return visit(binary.BigEndian.Uint64(k), value)
		})
	} else {
		n := len(l.under)
		from, to := append(slices.Clone(l.under), key(lo)...), append(slices.Clone(l.under), key(hi)...)
		err = tx.Scan(l.only, from, to, true, func(k, _ []byte) bool {
			var value []byte
			if value, bad = tx.Get(l.bucket, k[n:]); bad != nil {
				return false
			}
			return visit(binary.BigEndian.Uint64(k[n:]), value)
		})
	}
	if err == nil {
		err = bad
	}
	if err != nil {
		return core.Page[T]{}, fmt.Errorf("search %s: %w", l.bucket, err)
	}
	return core.NewPage(items, f, total), nil
}
