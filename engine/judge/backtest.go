package judge

import (
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
	"swarmdeck/engine/judge/effect"
)

// Bounds of a backtest.
const (
	MaxHistory     = 10_000 // decisions that are looked at, at most
	DefaultHistory = 1000
	// sampleOf one-shot programs, which take milliseconds each.
	sampleOf    = 100
	maxExamples = 3
)

// hindsight makes past decisions anew.
type hindsight struct {
	ledger    ledger
	policies  *policies
	decisions *decisions
	approvals *approvals
}

// BacktestReport says which past decisions a policy would change.
type BacktestReport struct {
	PolicyID string `json:"policy_id"`
	Version  string `json:"policy_version"`
	Last     int    `json:"last"`    // decisions by policy that were looked at
	Checked  int    `json:"checked"` // of those: made anew
	Unknown  int    `json:"unknown"` // what they were about is not known any more, or was never kept
	Sampled  bool   `json:"sampled"` // only some of them: a program that stays (serve) tries them all
	Flips    int    `json:"flips"`
	Groups   []Flip `json:"groups"` // the most first
	TookMs   int64  `json:"took_ms"`
}

// Flip is a group of decisions that would change alike.
type Flip struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Gate     Gate     `json:"gate"`
	Tool     string   `json:"tool"`              // tool, program or kind of action
	RuleID   string   `json:"rule_id,omitempty"` // of the new decision
	Reason   string   `json:"reason_code"`       // of the new decision
	Count    int      `json:"count"`
	Examples []string `json:"examples"` // the newest decision ids
}

// BacktestPolicy makes the tenant's last n decisions by policy anew with
// another policy, without effect but that it is told of. 0 is DefaultHistory.
// What people answered is left out: a policy answers to what people were asked.
func (j *hindsight) BacktestPolicy(ctx context.Context, by core.Caller, id string, n int) (BacktestReport, error) {
	rep, err := j.TryBacktest(ctx, by, id, n)
	if err != nil {
		return rep, err
	}
	err = j.ledger.change(ctx, by, "backtest policy "+id, func(tx *audit.Tx) error {
		p, err := j.policies.kind.Need(tx, id)
		if err != nil {
			return err
		}
		if _, err := tx.Record(audit.Entry{
			Type: "policy.backtested", Subject: "policy", ID: id,
			Detail: map[string]any{"by": by.Name, "policy_version": rep.Version, "checked": rep.Checked, "flips": rep.Flips},
		}); err != nil {
			return fmt.Errorf("audit the backtest of %s: %w", id, err)
		}
		return j.policies.tell(tx, p, backtested(rep))
	})
	return rep, err
}

// TryBacktest is BacktestPolicy, and tells nobody.
func (j *hindsight) TryBacktest(ctx context.Context, by core.Caller, id string, n int) (BacktestReport, error) {
	tenant := by.Tenant
	if n == 0 {
		n = DefaultHistory
	}
	rep := BacktestReport{PolicyID: id, Groups: []Flip{}}
	if n < 1 || n > MaxHistory {
		return rep, core.Invalid("last", n, fmt.Sprintf("1-%d", MaxHistory))
	}
	of, _, err := j.policies.onTrial(ctx, by, id)
	if err != nil {
		return rep, err
	}
	defer j.policies.rest(tenant, of)
	rep.Version = of.version
	began := time.Now()
	most := n
	if of.program != nil && !of.program.Serve {
		most = sampleOf
	}
	past, err := j.lastDecisions(ctx, tenant, n)
	if err != nil {
		return rep, err
	}
	rep.Last = len(past)
	step := max(1, (len(past)+most-1)/most)
	rep.Sampled = step > 1
	groups := map[string]*Flip{}
	for i := 0; i < len(past); i += step {
		d := &past[i]
		ask, known, err := j.recall(ctx, tenant, d)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return rep, err
		}
		if !known {
			rep.Unknown++
			continue
		}
		rep.Checked++
		v := j.policies.by(ctx, of, tenant, &ask, nil)
		from, to := was(d), said(&v)
		if from == to {
			continue
		}
		rep.Flips++
		at := Flip{From: from, To: to, Gate: d.Gate, Tool: cmp.Or(program(&ask.Action), ask.Action.Kind), RuleID: v.RuleID, Reason: v.ReasonCode}
		where := at.From + "\x00" + at.To + "\x00" + string(at.Gate) + "\x00" + at.Tool + "\x00" + at.RuleID + "\x00" + at.Reason
		g := groups[where]
		if g == nil {
			g = &at
			groups[where] = g
		}
		if g.Count++; len(g.Examples) < maxExamples {
			g.Examples = append(g.Examples, d.DecisionID)
		}
	}
	for _, g := range groups {
		rep.Groups = append(rep.Groups, *g)
	}
	core.Sort(rep.Groups, func(a, b Flip) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.From+a.To+a.Tool+a.RuleID+a.Reason, b.From+b.To+b.Tool+b.RuleID+b.Reason))
	})
	rep.TookMs = time.Since(began).Milliseconds()
	return rep, nil
}

// was is what a policy decided: an always rule stood in for a person.
func was(d *GateDecision) string {
	if d.ReasonCode == ReasonAlways {
		return string(HITL)
	}
	return d.Word()
}

// lastDecisions are the newest n that a policy made, newest first.
func (j *hindsight) lastDecisions(ctx context.Context, tenant string, n int) ([]GateDecision, error) {
	var all []GateDecision
	for page := 1; len(all) < n; page++ {
		got, err := j.decisions.Decisions(ctx, tenant, core.Filter{Page: page, Size: core.MaxPageSize})
		if err != nil {
			return nil, err
		}
		for _, d := range got.Items {
			if d.DecidedBy == byPolicy && d.ReasonCode != reasonDeadline && len(all) < n {
				all = append(all, d)
			}
		}
		if !got.Info.Next {
			break
		}
	}
	return all, nil
}

// maxPastAsk bounds the arguments that are kept of one, in bytes.
const maxPastAsk = 16 << 10

// pastAsk is what a decision was about that nothing else keeps: a person's
// answer has its approval, and a task's start its task.
type pastAsk struct {
	Action    Action         `json:"action"`
	Agent     AgentRef       `json:"agent,omitzero"`
	Contained Containment    `json:"contained,omitzero"`
	Driver    string         `json:"driver,omitempty"`
	Intent    string         `json:"intent,omitempty"`
	Risk      Risk           `json:"risk,omitempty"`
	Attempt   int            `json:"attempt,omitzero"`
	Priority  int            `json:"priority,omitzero"`
	By        string         `json:"by,omitempty"`
	ByKind    core.ActorKind `json:"by_kind,omitempty"`
}

func keepAsk(tx *audit.Tx, d *GateDecision, ask *Ask) error {
	if d.Decision == HITL || len(ask.Action.Args) > maxPastAsk {
		return nil
	}
	switch ask.Gate {
	case GateTool, GateSkill, GateAgent, GateIntent, GateNet:
	default:
		return nil
	}
	return pastAsks.Put(tx, keyOf(d.DecisionID), pastAsk{
		ask.Action, ask.Agent, ask.Contained, ask.Driver, core.ClipTo(ask.Intent, maxIntent), ask.Risk, ask.Attempt, ask.Priority, ask.By.Name, ask.By.Kind,
	})
}

// recall finds what a decision was about; false when nobody knows any more.
func (j *hindsight) recall(ctx context.Context, tenant string, d *GateDecision) (Ask, bool, error) {
	if d.ApprovalID != "" {
		a, err := j.approvals.Approval(ctx, tenant, d.ApprovalID)
		if errors.Is(err, core.Kind(core.NotFound)) { // it left
			return Ask{}, false, nil
		}
		if err != nil || a.PriorDigest != "" || core.IsErased(a.Action.Args) { // edited since: these are other arguments
			return Ask{}, false, err
		}
		return a.ask(), d.Gate != GateResult, nil // an approval keeps no result's text
	}
	if d.Gate == GateStart {
		if j.approvals.tasks == nil || d.TaskID == "" {
			return Ask{}, false, nil
		}
		ask, err := j.approvals.tasks.PastAsk(ctx, tenant, d.TaskID)
		if err != nil { // the task, its content, its agent or its runner is gone
			return Ask{}, false, ctx.Err()
		}
		return ask, true, nil
	}
	var out Ask
	found := false
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		p, kept, err := pastAsks.Get(tx, keyOf(d.DecisionID))
		if err != nil || !kept {
			return err
		}
		p.Action.Args = append(core.Raw(nil), p.Action.Args...)
		if found = !core.IsErased(p.Action.Args); !found {
			return nil
		}
		out = Ask{
			Gate: d.Gate, TraceID: d.TraceID, TaskID: d.TaskID, Session: d.Session, Attempt: p.Attempt, Priority: p.Priority,
			Action: p.Action, Agent: p.Agent, Contained: p.Contained, Driver: p.Driver, Intent: p.Intent, Risk: p.Risk,
			By: core.Caller{Tenant: tenant, Name: p.By, Kind: p.ByKind, Door: d.Door},
		}
		return nil
	})
	if err != nil {
		return out, false, fmt.Errorf("recall what decision %s was about: %w", d.DecisionID, err)
	}
	return out, found, nil
}

// proposals are always rules before they stand: each is checked and tried.
type proposals struct {
	ledger    ledger
	policies  *policies
	approvals *approvals
}

// proposal is an always rule that passed its checks, for one exact approval.
type proposal struct {
	rule   Rule
	digest string
}

// proposeRule checks the rule that an operator asks for: no deny rule and no floor
// matches, the risk allows it, what may be any is no command, it is what they saw, and
// the tenant's recorded approvals were tried against it.
func (j *proposals) proposeRule(ctx context.Context, by core.Caller, a *Approval, field string, r Rule, saw string) (*proposal, error) {
	refuse := func(format string, args ...any) error {
		return core.Errorf(core.InvalidInput, field+": "+format, args...).With("field", field)
	}
	switch {
	case !a.ruled():
		return nil, refuse("a rule can't stand for %s at the gate %s; each one is a person's", a.Action.Kind, a.Gate)
	case a.Risk == Critical:
		return nil, refuse("not at critical risk")
	case a.Needed() > 1:
		return nil, refuse("not where %d persons must agree", a.Needed())
	case a.Risk == High && len(r.Any) > 0:
		return nil, refuse("at high risk exactly this, and no argument may be any (%s)", strings.Join(r.Any, ", "))
	case saw != "" && saw != r.Digest:
		return nil, core.Errorf(core.Conflict, "%s: the rule is not the one that you saw (digest %.12s, now %.12s): %s", field, saw, r.Digest, r.Line).With("digest", r.Digest)
	}
	ask := a.ask()
	of := j.policies.ruling(ctx, a.TenantID)
	for _, lists := range []*effect.Classifier{j.policies.table().effects, of.table.effects} {
		if err := widens(lists, &r.Action, r.Any); err != nil {
			return nil, err
		}
	}
	floor, err := j.policies.refusal(ctx, a.TenantID, &ask)
	if err != nil {
		return nil, fmt.Errorf("check the deny rules: %w", err)
	}
	if floor != nil {
		return nil, core.Errorf(core.Denied, field+": the deny rule %s stands above any other", floor.ID).With("rule_id", floor.ID)
	}
	held := Verdict{Decision: Approve}
	if j.policies.hold(ctx, time.Now().Add(j.policies.evaluation), of, &ask, nil, &held); held.Decision != Approve {
		return nil, refuse("the floor %s asks a person each time", cmp.Or(held.RuleID, held.Rationale))
	}
	r.Owner = by.Name
	if r.Backtest, err = j.backtest(ctx, &r); err != nil {
		return nil, err
	}
	return &proposal{rule: r, digest: a.Digest}, nil
}

// proposeAlways is the rule that an answer asks for.
func (j *proposals) proposeAlways(ctx context.Context, by core.Caller, a *Approval, want *Always) (*proposal, error) {
	if who := a.For(); len(who) > 0 && !slices.Contains(who, want.For) {
		return nil, core.Errorf(core.InvalidInput, "always: %s: this has none; allowed: %s", want.For, strings.Join(who, ", ")).With("field", "always")
	}
	return j.proposeRule(ctx, by, a, "always", a.Offer(*want), want.Digest)
}

// backtest tries a rule on the newest 1000 approvals: how many it covers, and
// how many of those a person or the deadline had denied.
func (j *proposals) backtest(ctx context.Context, r *Rule) (Backtest, error) {
	var b Backtest
	err := j.ledger.View(ctx, r.TenantID, func(tx *audit.Tx) error {
		seen := 0
		return j.approvals.newest(tx, math.MaxUint64, func(_ uint64, a *Approval) bool {
			seen++
			if a.Status != Open && a.Status != Voided && r.covers(new(a.ask())) {
				b.Checked++
				if a.Status != Approved {
					b.Flips++
				}
			}
			return seen < maxBacktest
		})
	})
	if err != nil {
		return b, fmt.Errorf("try the rule on the recorded approvals: %w", err)
	}
	return b, nil
}
