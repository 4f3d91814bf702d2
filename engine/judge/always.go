package judge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Scopes of an always rule, narrowest first. All of them bind the gate, the
// kind of action, the server and the tool (for exec.run the program).
const (
	scopeExact   = "exact"   // and the very same arguments and files
	scopeAgent   = "agent"   // and the agent
	scopeSession = "session" // and the session
	scopeRun     = "run"     // and the task and its attempt
	scopeTool    = "tool"    // nothing more
)

// Bounds of an always rule.
const (
	maxExpiry   = 30 * 24 * time.Hour
	maxUses     = 1000
	maxBacktest = 1000
)

func (w *Always) check() error {
	switch {
	case !slices.Contains([]string{scopeExact, scopeTool, scopeAgent, scopeSession, scopeRun}, w.Scope):
		return core.Invalid("always", w.Scope, "exact, tool, agent, session, run")
	case w.Expires < time.Second || w.Expires > maxExpiry:
		return core.Invalid("expires", w.Expires, "1s-720h (30 days)")
	case w.MaxUses < 1 || w.MaxUses > maxUses:
		return core.Invalid("max_uses", w.MaxUses, "1-1000")
	}
	return nil
}

// program is what an action runs: its tool, or the program of an exec.run.
func program(a *Action) string {
	if a.Tool != "" || a.Kind != KindExec {
		return a.Tool
	}
	var in struct {
		Argv []string `json:"argv"`
	}
	if err := json.Unmarshal(a.Args, &in); err != nil || len(in.Argv) == 0 {
		return ""
	}
	return in.Argv[0]
}

// runOf names one run of a task; "" where an ask belongs to none.
func runOf(task string, attempt int) string {
	if task == "" {
		return ""
	}
	return task + "/" + strconv.Itoa(attempt)
}

// actor is the agent that would act: where a task goes to none, the one that asks.
func (a *Ask) actor() string {
	if a.Agent.Name == "" && a.By.Kind == core.Agent {
		return a.By.Name
	}
	return a.Agent.Name
}

// covers reports whether the rule is about this ask. Texts are compared
// exactly; a rule holds no pattern.
func (r *Rule) covers(ask *Ask) bool {
	a := &ask.Action
	if r.Gate != ask.Gate || r.Action.Kind != a.Kind || r.Action.Server != a.Server || program(&r.Action) != program(a) {
		return false
	}
	for _, effect := range a.Effects { // a skill that learnt to do more is another one
		if !slices.Contains(r.Action.Effects, effect) {
			return false
		}
	}
	if r.Agent != "" && r.Agent != ask.actor() || r.Session != "" && r.Session != ask.Session {
		return false
	}
	switch r.Scope {
	case scopeExact:
		return sameArgs(r.Action.Args, a.Args) && SameFiles(r.Action.Files, a.Files)
	case scopeAgent:
		return r.Agent != ""
	case scopeSession:
		return r.Session != ""
	case scopeRun:
		return r.Run != "" && r.Run == runOf(ask.TaskID, ask.Attempt)
	}
	return r.Scope == scopeTool
}

func sameArgs(a, b core.Raw) bool {
	ca, errA := canonicalArgs(a)
	cb, errB := canonicalArgs(b)
	return errA == nil && errB == nil && string(ca) == string(cb)
}

// State is how a rule stands: active, revoked, expired or used.
func (r Rule) State(now time.Time) string {
	switch {
	case r.Revoked:
		return "revoked"
	case !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt):
		return "expired"
	case r.Uses >= r.MaxUses:
		return "used"
	}
	return "active"
}

// alive reports whether the rule may still be used.
func (r *Rule) alive(now time.Time) bool {
	return !r.Revoked && r.Uses < r.MaxUses && now.Before(r.ExpiresAt)
}

// yields reports whether an always rule may stand in for the person whom the
// verdict asks: never for a fault, nor where nothing decided, nor for more than one.
func (v *Verdict) yields() bool {
	return v.Decision == HITL && (v.RuleID != "" || v.program) && v.Risk != Critical &&
		(v.route == nil || v.route.Quorum < 2) &&
		!slices.Contains([]string{ReasonError, ReasonTimeout, ReasonBadOutput}, v.ReasonCode)
}

// applyAlways lets an always rule stand in for the person whom the table asks.
// Never above the risk the rule was made at, and no floor yields to it.
func (j *Judge) applyAlways(ctx context.Context, of *ruling, tenant string, ask *Ask, v *Verdict) {
	if !v.yields() || !ask.Gate.HasRules() || j.ledger == nil {
		return
	}
	live, err := j.liveRules(ctx, tenant)
	if err != nil || len(*live) == 0 {
		return // a person it is
	}
	now := j.ledger.Clock().Now()
	for _, r := range *live {
		if r.spent.Load() || !r.alive(now) || v.Risk.above(r.Risk) || !r.covers(ask) {
			continue
		}
		v.Decision, v.ReasonCode, v.RuleID, v.always = Approve, reasonAlways, r.RuleID, r.RuleID
		v.Rationale = fmt.Sprintf("%s approved this always (scope %s) until %s.", r.Owner, r.Scope, r.ExpiresAt.UTC().Format("2006-01-02 15:04"))
		if j.hold(ctx, time.Now().Add(j.evaluation), of, ask, nil, v); v.Decision != Approve {
			v.always = ""
		}
		return
	}
}

// HasRules reports whether always rules can be made at a gate.
func (g Gate) HasRules() bool {
	return g == GateStart || g == GateTool || g == GateSkill || g == GateNet
}

// useRule counts one use. ErrStale when the rule ran out since Evaluate.
func (j *Judge) useRule(tx *audit.Tx, ask *Ask, v *Verdict) error {
	old, err := j.needRule(tx, v.always)
	if err != nil {
		return err
	}
	r := *old
	if !r.alive(tx.Now()) {
		if live, _ := j.always.get(tx.Tenant()); live != nil {
			for _, l := range *live {
				if l.RuleID == r.RuleID {
					l.spent.Store(true)
				}
			}
		}
		return ErrStale
	}
	r.Uses++
	return j.rules.Save(tx, record.Event{Type: "rule.used", Detail: map[string]any{
		"task_id": ask.TaskID, "digest": v.Digest, "uses_left": r.MaxUses - r.Uses,
	}}, old, &r)
}

// proposal is an always rule that passed its checks, for one exact approval.
type proposal struct {
	rule   Rule
	digest string
}

// proposeRule checks what an operator asks to approve always: no deny rule and no
// floor matches, the risk allows it, and the tenant's recorded approvals were tried
// against it.
func (j *Judge) proposeRule(ctx context.Context, by core.Caller, a *Approval, want *Always) (*proposal, error) {
	field := "always"
	if want.named {
		field = KindGrant
	}
	refuse := func(format string, args ...any) error {
		return core.Errorf(core.InvalidInput, field+": "+format, args...).With("field", field)
	}
	switch {
	case !a.Gate.HasRules():
		return nil, refuse("a rule can't stand for the gate %s; each one is a person's", a.Gate)
	case a.Risk == Critical:
		return nil, refuse("not at critical risk")
	case a.Needed() > 1:
		return nil, refuse("not where %d persons must agree", a.Needed())
	case a.Risk == High && want.Scope != scopeExact:
		return nil, refuse("at high risk only the scope exact")
	case want.Scope == scopeAgent && a.Agent.Name == "":
		return nil, refuse("scope agent: no agent asked for this")
	case want.Scope == scopeSession && a.Session == "":
		return nil, refuse("scope session: this belongs to no session")
	case want.Scope == scopeRun && a.TaskID == "":
		return nil, refuse("scope run: this belongs to no run of a task")
	}
	ask := a.ask()
	floor, err := j.refusal(ctx, a.TenantID, &ask)
	if err != nil {
		return nil, fmt.Errorf("check the deny rules: %w", err)
	}
	if floor != nil {
		return nil, core.Errorf(core.Denied, field+": the deny rule %s stands above any other", floor.ID).With("rule_id", floor.ID)
	}
	held := Verdict{Decision: Approve}
	if j.hold(ctx, time.Now().Add(j.evaluation), j.ruling(ctx, a.TenantID), &ask, nil, &held); held.Decision != Approve {
		return nil, refuse("the floor %s asks a person each time", cmp.Or(held.RuleID, held.Rationale))
	}
	r := Rule{
		TenantID: a.TenantID, Scope: want.Scope, Gate: a.Gate, Action: a.Action,
		Owner: by.Name, ExpiresAt: time.Time{}.Add(want.Expires), MaxUses: want.MaxUses,
		Risk: a.Risk, ApprovalID: a.ApprovalID,
	}
	r.Action.CallID = ""
	if want.Scope == scopeAgent || want.named {
		r.Agent = a.Agent.Name
	}
	if want.Scope == scopeSession || want.named {
		r.Session = a.Session
	}
	if want.Scope == scopeRun {
		r.Run = runOf(a.TaskID, a.Attempt)
	}
	if r.Backtest, err = j.backtest(ctx, &r); err != nil {
		return nil, err
	}
	return &proposal{rule: r, digest: a.Digest}, nil
}

// Preview tells what an always rule made from an approval would have changed
// in the tenant's recorded approvals, or why it can't be made.
func (j *Judge) Preview(ctx context.Context, by core.Caller, id string, want Always) (Backtest, error) {
	if err := want.check(); err != nil {
		return Backtest{}, err
	}
	a, err := j.Approval(ctx, by.Tenant, id)
	if err != nil {
		return Backtest{}, err
	}
	p, err := j.proposeRule(ctx, by, &a, &want)
	if err != nil {
		return Backtest{}, err
	}
	return p.rule.Backtest, nil
}

// backtest tries a rule on the newest 1000 approvals: how many it covers, and
// how many of those a person or the deadline had denied.
func (j *Judge) backtest(ctx context.Context, r *Rule) (Backtest, error) {
	var b Backtest
	err := j.ledger.View(ctx, r.TenantID, func(tx *audit.Tx) error {
		seen := 0
		return j.newest(tx, math.MaxUint64, func(_ uint64, a *Approval) bool {
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

// Rules lists the always rules, newest first; revoked and expired ones too.
func (j *Judge) Rules(ctx context.Context, tenant string) ([]Rule, error) {
	out, err := record.Values(j.rules.List(ctx, tenant))
	if err != nil {
		return nil, fmt.Errorf("list the always rules: %w", err)
	}
	slices.Reverse(out)
	return out, nil
}

// RevokeRule ends an always rule at once. Revoking twice is no error.
func (j *Judge) RevokeRule(ctx context.Context, by core.Caller, id string) (Rule, error) {
	if err := j.operator(ctx, by, "rule", id, "revoke it"); err != nil {
		return Rule{}, err
	}
	if err := j.local(ctx, by, core.RulePrefix, "rule", id); err != nil {
		return Rule{}, err
	}
	var out Rule
	err := j.change(ctx, by, "revoke rule "+id, func(tx *audit.Tx) error {
		old, err := j.needRule(tx, id)
		if err != nil {
			return err
		}
		if out = *old; out.Revoked {
			return nil
		}
		out.Revoked = true
		return j.rules.Save(tx, record.Event{Type: "rule.revoked", Detail: map[string]any{"by": by.Name}}, old, &out)
	})
	return out, err
}

// ruleKind keeps the always rules.
func (j *Judge) ruleKind() record.Table[Rule] {
	return &record.Kind[*Rule]{
		Noun: "rule", Bucket: "always", Ledger: j.ledger, Follow: j.followRule,
		ID:  func(r *Rule) string { return r.RuleID },
		Key: record.Numbered(core.RulePrefix), Name: record.NumberedName(core.RulePrefix),
		Head: func(r *Rule) record.Head {
			return record.Head{Tenant: &r.TenantID, Created: &r.CreatedAt, Seq: &r.AuditSeq}
		},
		State: func(r *Rule) any {
			return struct {
				Uses    int  `json:"uses"`
				Revoked bool `json:"revoked"`
			}{r.Uses, r.Revoked}
		},
	}
}

// addRule stores a proposed rule, live from this commit on.
func (j *Judge) addRule(tx *audit.Tx, p *proposal) (*Rule, error) {
	r := p.rule
	r.RuleID = core.NewID(core.RulePrefix, tx.Tenant(), j.rules.Next(tx))
	r.ExpiresAt = tx.Now().Add(p.rule.ExpiresAt.Sub(time.Time{}))
	told := r
	told.Action.Args, told.Action.Files = nil, nil // what a person may want erased: the row's digest tells of it
	return &r, j.rules.Save(tx, record.Event{Type: "rule.added", Detail: &told}, nil, &r)
}

// needRule reads a rule; an id of another tenant is core.ErrForeign.
func (j *Judge) needRule(tx *audit.Tx, id string) (*Rule, error) {
	if _, err := core.LocalSeq(core.RulePrefix, tx.Tenant(), id); err != nil {
		return nil, err
	}
	return j.rules.Need(tx, id)
}

// ruleSet are a tenant's live always rules, held so that Evaluate reads no store.
// It is never changed, only replaced, in commit order.
type ruleSet []*liveRule

type liveRule struct {
	Rule
	// spent is set as soon as a transaction found the rule used up, before
	// the commit that used it up is seen here.
	spent *atomic.Bool
}

func (j *Judge) liveRules(ctx context.Context, tenant string) (*ruleSet, error) {
	return j.always.load(tenant, func() (*ruleSet, error) {
		now := j.ledger.Clock().Now()
		all, err := j.rules.List(ctx, tenant)
		set := ruleSet{}
		for _, r := range all {
			if r.alive(now) {
				set = append(set, &liveRule{Rule: *r, spent: &atomic.Bool{}})
			}
		}
		return &set, err
	})
}

// followRule takes a rule over, as it is on disk.
func (j *Judge) followRule(tenant, _ string, r *Rule) {
	j.always.change(tenant, func(old *ruleSet) *ruleSet {
		if old == nil {
			return nil
		}
		next := &liveRule{Rule: *r, spent: &atomic.Bool{}}
		set := make(ruleSet, 0, len(*old)+1)
		for _, o := range *old {
			if o.RuleID == r.RuleID {
				next.spent = o.spent
			} else if o.ExpiresAt.After(r.CreatedAt) {
				set = append(set, o)
			}
		}
		if !r.Revoked && r.Uses < r.MaxUses {
			set = append(set, next)
			slices.SortFunc(set, func(a, b *liveRule) int { return int(a.AuditSeq) - int(b.AuditSeq) })
		}
		return &set
	})
}
