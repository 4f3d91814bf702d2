package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Figures show how an operator answered, to see approval fatigue: answers that
// get quicker and more alike, canaries approved. Canaries are counted apart.
type Figures struct {
	Operator      string  `json:"operator"`
	Answered      int     `json:"answered"` // final answers; as the first of two persons: First
	Approved      int     `json:"approved"`
	ApprovedShare float64 `json:"approved_share"` // of the answered, 0-1
	Consents      int     `json:"consents"`
	Edited        int     `json:"edited"`
	Denied        int     `json:"denied"`
	// Reasons are those of the newest denials, at most 5.
	Reasons []string `json:"deny_reasons"`
	// Times to decide are from when the card was first shown, to whomever, to
	// the answer. Answers to what was never shown, as from a script, are not
	// among the timed.
	Timed   int      `json:"timed"`
	MedianS *float64 `json:"median_s,omitzero"`
	P90S    *float64 `json:"p90_s,omitzero"`
	Hasty   int      `json:"hasty_high_risk"` // timed answers within 2 s at high or critical risk
	// Canaries that they answered and had not placed themselves.
	Canaries       int `json:"canaries"`
	CanariesMissed int `json:"canaries_missed"` // approved
}

// Bounds of the figures.
const (
	maxFigured = 50_000 // approvals looked at, the newest
	hasty      = 2 * time.Second
	maxReasons = 5
)

// Figures are those of every operator who answered at or after since, by name.
// They are taken from the newest 50,000 approvals; all reports whether these
// reach back to since.
func (j *Judge) Figures(ctx context.Context, tenant string, since time.Time) (out []Figures, all bool, err error) {
	by := map[string]*Figures{}
	times := map[string][]float64{}
	of := func(name string) *Figures {
		if by[name] == nil {
			by[name] = &Figures{Operator: name, Reasons: []string{}}
		}
		return by[name]
	}
	var asked []*Approval // canaries that a person answered
	all, err = j.Ended(ctx, tenant, since, maxFigured, func(a *Approval) {
		switch {
		case a.Status == Expired:
			return
		case a.Gate == GateCanary:
			asked = append(asked, a)
			return
		}
		f := of(a.AnsweredBy)
		f.Answered++
		for _, c := range a.Consents {
			of(c.By).Consents++
		}
		if a.PriorDigest != "" {
			f.Edited++
		}
		if a.Status == Approved {
			f.Approved++
		} else if f.Denied++; len(f.Reasons) < maxReasons {
			f.Reasons = append(f.Reasons, a.AnswerReason)
		}
		if a.ShownAt.IsZero() {
			return
		}
		took := a.AnsweredAt.Sub(a.ShownAt)
		times[a.AnsweredBy] = append(times[a.AnsweredBy], took.Seconds())
		if took < hasty && a.Risk.above(Medium) {
			f.Hasty++
		}
	})
	if err != nil {
		return nil, false, err
	}
	err = j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for _, a := range asked {
			placed, _, err := canaries.Get(tx, keyOf(a.ApprovalID))
			if err != nil {
				return err
			}
			if placed.By == a.AnsweredBy {
				continue
			}
			f := of(a.AnsweredBy)
			f.Canaries++
			if a.Status == Approved {
				f.CanariesMissed++
			}
		}
		return nil
	})
	for name, f := range by {
		if f.Answered > 0 {
			f.ApprovedShare = float64(f.Approved) / float64(f.Answered)
		}
		if t := times[name]; len(t) > 0 {
			slices.Sort(t)
			f.Timed, f.MedianS, f.P90S = len(t), rank(t, 50), rank(t, 90)
		}
		out = append(out, *f)
	}
	core.Sort(out, func(a, b Figures) int { return strings.Compare(a.Operator, b.Operator) })
	return out, all, err
}

// rank is the smallest of sorted values that percent of them do not exceed.
func rank(sorted []float64, percent int) *float64 {
	return new(sorted[(len(sorted)*percent+99)/100-1])
}

// GateCanary is the gate of questions that are asked to see whether somebody
// reads them. Nothing stands behind it: whatever the answer, nothing runs. The
// right one is deny.
const GateCanary Gate = "canary"

const reasonCanary = "canary"

// placedCanary says who knows that it is one.
type placedCanary struct {
	By string `json:"placed_by"`
}

// Canary asks a fake question at a risk below critical. Its record and its
// audit events carry the gate canary and the reason canary; nobody started it,
// it belongs to no task.
func (j *Judge) Canary(ctx context.Context, by core.Caller, risk Risk) (Approval, error) {
	if by.Kind != core.Operator || by.Name == "" {
		return Approval{}, core.Errorf(core.Denied, "canary: only an operator may ask one; %s %q may not", by.Kind, by.Name)
	}
	if !risk.valid() || risk == Critical {
		return Approval{}, core.Invalid("risk", string(risk), "low, medium, high")
	}
	self := core.Self(by.Tenant, "canary")
	ask := Ask{
		Gate: GateCanary, TraceID: core.NewTrace(nil), Attempt: 1, By: self, Risk: risk,
		Action: Action{Kind: "exec.run", Args: core.Raw(`{"argv":["rm","-rf","/var/backups"]}`)},
		Intent: "delete every backup to make room", Said: true,
	}
	v := Verdict{Decision: HITL, ReasonCode: reasonCanary, RuleID: reasonCanary, PolicyVersion: reasonCanary, Risk: risk}
	var err error
	if v.Digest, err = Digest(by.Tenant, v.PolicyVersion, ask); err != nil {
		return Approval{}, fmt.Errorf("bind a canary: %w", err)
	}
	var out Approval
	err = j.change(ctx, by, "ask a canary", func(tx *audit.Tx) error {
		a := j.newApproval(tx, &ask, &v)
		if err := j.open(tx, a); err != nil {
			return err
		}
		if _, err := tx.Record(audit.Entry{Type: "canary.placed", Trace: a.TraceID, Subject: "canary", ID: a.ApprovalID}); err != nil {
			return err
		}
		out = *a
		return canaries.Put(tx, keyOf(a.ApprovalID), placedCanary{by.Name})
	})
	return out, err
}

// CanarySettler is the owner of GateCanary: it notes how a canary was answered
// and does nothing else.
type CanarySettler struct{}

var _ Settler = CanarySettler{}

// Validate implements Settler.
func (CanarySettler) Validate(a Approval, _ core.Raw) (core.Raw, error) {
	return nil, core.Errorf(core.InvalidInput, "edit: the arguments of %s can't be changed", a.ApprovalID).With("field", "edit")
}

// Settle implements Settler.
func (CanarySettler) Settle(tx *audit.Tx, a Approval, out Outcome) error {
	event := map[bool]string{true: "canary.missed", false: "canary.noticed"}[out.Approved]
	if a.Status == Expired {
		event = "canary.expired"
	}
	_, err := tx.Record(audit.Entry{Type: event, Trace: a.TraceID, Subject: "canary", ID: a.ApprovalID, Detail: map[string]any{"by": out.By}})
	return err
}
