package judge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Whom an always rule is for.
const (
	ForAgent   = "agent"   // the agent that asks
	ForRun     = "run"     // the attempt of the task
	ForSession = "session" // all that belongs to the session
	ForProject = "project" // the agents of the project
	ForAnyone  = "anyone"
)

// Fors lists them.
func Fors() []string { return []string{ForAgent, ForRun, ForSession, ForProject, ForAnyone} }

// Bounds of an always rule.
const (
	maxExpiry   = 30 * 24 * time.Hour
	maxUses     = 1000
	maxBacktest = 1000
)

func (w *Always) check() error {
	switch {
	case !slices.Contains(Fors(), w.For):
		return core.Invalid("always", w.For, strings.Join(Fors(), ", "))
	case w.Expires < time.Second || w.Expires > maxExpiry:
		return core.Invalid("expires", w.Expires, "1s-720h (30 days)")
	case w.MaxUses < 1 || w.MaxUses > maxUses:
		return core.Invalid("max_uses", w.MaxUses, "1-1000")
	}
	return checkAny(w.Any)
}

func checkAny(places []string) error {
	if len(places) > maxAny {
		return core.Invalid("any", len(places), fmt.Sprintf("at most %d places", maxAny))
	}
	for _, place := range places {
		if place == "" || len(place) > maxPlace || !core.Printable(place) {
			return core.Invalid("any", core.Clip(place), fmt.Sprintf("1-%d printable bytes", maxPlace))
		}
	}
	return nil
}

// standing are the rules that stand in for a person whom the policy asks.
type standing struct {
	ledger   ledger
	policies *policies
	kind     record.Table[Rule]
	always   perTenant[ruleSet]
	// spent are the rules that a transaction found used up, by tenant and id: the
	// commit that used them up may not be seen here yet.
	spent sync.Map
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

// State is how a rule stands: active, revoked, expired, used, or ended if it is of an
// older form, which did not say all that it matched.
func (r Rule) State(now time.Time) string {
	switch {
	case r.Digest == "":
		return "ended"
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
	return r.Digest != "" && !r.Revoked && r.Uses < r.MaxUses && now.Before(r.ExpiresAt)
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
func (j *standing) applyAlways(ctx context.Context, of *ruling, tenant string, ask *Ask, v *Verdict) {
	if !v.yields() || !ask.Gate.hasRules() || j.ledger.Ledger == nil {
		return
	}
	live, err := j.liveRules(ctx, tenant)
	if err != nil || len(*live) == 0 {
		return // a person it is
	}
	now := j.ledger.Clock().Now()
	for _, r := range *live {
		if _, spent := j.spent.Load([2]string{tenant, r.RuleID}); spent || !r.alive(now) || v.Risk.above(r.Risk) || !r.covers(ask) {
			continue
		}
		v.asks = v.RuleID
		v.Decision, v.ReasonCode, v.RuleID, v.always = Approve, ReasonAlways, r.RuleID, r.RuleID
		v.Rationale = fmt.Sprintf("%s approved just this always, %d of %d times, until %s.", r.Owner, r.Uses+1, r.MaxUses, r.ExpiresAt.UTC().Format("2006-01-02 15:04"))
		if j.policies.hold(ctx, time.Now().Add(j.policies.evaluation), of, ask, nil, v); v.Decision != Approve {
			v.always = ""
		}
		return
	}
}

// hasRules reports whether always rules can be made at a gate.
func (g Gate) hasRules() bool {
	return g == GateStart || g == GateTool || g == GateSkill || g == GateNet
}

// Stands reports whether an always rule is neither revoked nor over: what it let through may
// go on, also when that was its last use.
func (j *standing) Stands(ctx context.Context, tenant, id string) bool {
	live, err := j.liveRules(ctx, tenant)
	return err == nil && slices.ContainsFunc(*live, func(r *Rule) bool { return r.RuleID == id && j.ledger.Clock().Now().Before(r.ExpiresAt) })
}

// useRule counts one use. ErrStale when the rule ran out since Evaluate.
func (j *standing) useRule(tx *audit.Tx, ask *Ask, v *Verdict) error {
	old, err := j.needRule(tx, v.always)
	if err != nil {
		return err
	}
	r := *old
	if !r.alive(tx.Now()) {
		j.spent.Store([2]string{tx.Tenant(), r.RuleID}, true)
		return ErrStale
	}
	r.Uses++
	return j.kind.Save(tx, record.Event{Type: "rule.used", Detail: map[string]any{
		"task_id": ask.TaskID, "digest": v.Digest, "uses_left": r.MaxUses - r.Uses,
	}}, old, &r)
}

// ruled reports whether a rule could stand for it: the next merge is of other work.
func (a *Approval) ruled() bool {
	return a.Gate.hasRules() && a.Action.Kind != "tree.merge" && a.Action.Kind != "tree.undo"
}

// For lists whom an always rule of this approval can be for, the narrowest first; none
// where no rule can be made. A connection needs none for its run: any yes holds for it.
func (a *Approval) For() []string {
	if !a.ruled() || a.Risk == Critical || a.Needed() > 1 {
		return nil
	}
	ask := a.ask()
	return slices.DeleteFunc(Fors(), func(who string) bool {
		return who == ForAgent && ask.actor() == "" || who == ForRun && (a.TaskID == "" || a.Gate == GateNet) || who == ForSession && a.Session == "" || who == ForProject && a.Agent.Project == ""
	})
}

// Offer is the rule that an always would make of this approval, with its line and its
// digest. Whether it can be made is for the answer to find out.
func (a *Approval) Offer(want Always) Rule {
	r := Rule{
		TenantID: a.TenantID, Gate: a.Gate, Action: a.Action, Any: slices.Sorted(slices.Values(want.Any)),
		ExpiresAt: time.Time{}.Add(want.Expires), MaxUses: want.MaxUses, Risk: a.Risk, ApprovalID: a.ApprovalID,
	}
	r.Action.CallID, r.Action.Files = "", slices.Clone(a.Action.Files)
	for i := range r.Action.Files { // without what a card shows of them
		f := &r.Action.Files[i]
		f.Text, f.Diff, f.Note = "", "", ""
	}
	switch ask := a.ask(); want.For {
	case ForAgent:
		r.Agent = ask.actor()
	case ForRun:
		r.Run = runOf(a.TaskID, a.Attempt)
	case ForSession:
		r.Session = a.Session
	case ForProject:
		r.Project = a.Agent.Project
	}
	r.seal()
	return r
}

// seal makes the line of a rule that is proposed, and the digest that binds the two.
func (r *Rule) seal() {
	r.Line, r.Digest = "", ""
	r.Line = r.String()
	digest, err := core.Digest(r)
	if err != nil { // its arguments are refused with this error wherever they come from
		return
	}
	r.Digest = digest
}

// standing is what is offered where nothing else is asked for.
func (a *Approval) standing() string {
	who := a.For()
	if len(who) == 0 || a.Status != Open {
		return ""
	}
	return a.Offer(Always{For: who[0], Expires: DefaultExpiry, MaxUses: DefaultUses}).Line
}

// DefaultExpiry and DefaultUses are the terms of a rule that names none.
const (
	DefaultExpiry = time.Hour
	DefaultUses   = 5
)

// Rules lists the always rules, newest first; revoked and expired ones too.
func (j *standing) Rules(ctx context.Context, tenant string) ([]Rule, error) {
	out, err := record.Values(j.kind.List(ctx, tenant))
	if err != nil {
		return nil, fmt.Errorf("list the always rules: %w", err)
	}
	slices.Reverse(out)
	for i := range out {
		out[i].Line = out[i].String()
	}
	return out, nil
}

// RevokeRule ends an always rule at once. Revoking twice is no error.
func (j *standing) RevokeRule(ctx context.Context, by core.Caller, id string) (Rule, error) {
	if err := j.ledger.operator(ctx, by, "rule", id, "revoke it"); err != nil {
		return Rule{}, err
	}
	if err := j.ledger.local(ctx, by, core.RulePrefix, "rule", id); err != nil {
		return Rule{}, err
	}
	var out Rule
	err := j.ledger.change(ctx, by, "revoke rule "+id, func(tx *audit.Tx) error {
		old, err := j.needRule(tx, id)
		if err != nil {
			return err
		}
		if out = *old; out.Revoked {
			return nil
		}
		out.Revoked = true
		return j.kind.Save(tx, record.Event{Type: "rule.revoked", Detail: map[string]any{"by": by.Name}}, old, &out)
	})
	out.Line = out.String()
	return out, err
}

// ruleKind keeps the always rules.
func (j *standing) ruleKind(erase func(*record.Erasure, *Rule)) record.Table[Rule] {
	return &record.Kind[*Rule]{
		Noun: "rule", Bucket: "always", Ledger: j.ledger.Ledger, Follow: j.followRule,
		ID:  func(r *Rule) string { return r.RuleID },
		Key: record.Numbered(core.RulePrefix), Name: record.NumberedName(core.RulePrefix),
		Says: "uses revoked", Personal: erase,
	}
}

// addRule stores a proposed rule, live from this commit on.
func (j *standing) addRule(tx *audit.Tx, p *proposal) (*Rule, error) {
	r := p.rule
	r.Line = ""
	r.RuleID = core.NewID(core.RulePrefix, tx.Tenant(), j.kind.Next(tx))
	r.ExpiresAt = tx.Now().Add(p.rule.ExpiresAt.Sub(time.Time{}))
	told := r
	told.Action.Args, told.Action.Files = nil, nil // what a person may want erased: the row's digest tells of it
	return &r, j.kind.Save(tx, record.Event{Type: "rule.added", Detail: &told}, nil, &r)
}

// needRule reads a rule; an id of another tenant is core.ErrForeign.
func (j *standing) needRule(tx *audit.Tx, id string) (*Rule, error) {
	if _, err := core.LocalSeq(core.RulePrefix, tx.Tenant(), id); err != nil {
		return nil, err
	}
	return j.kind.Need(tx, id)
}

// ruleSet are a tenant's always rules that are neither revoked nor over, also those that are
// used up, held so that Evaluate reads no store.
// It is never changed, only replaced, in commit order.
type ruleSet []*Rule

func (j *standing) liveRules(ctx context.Context, tenant string) (*ruleSet, error) {
	return j.always.load(tenant, func() (*ruleSet, error) {
		now := j.ledger.Clock().Now()
		all, err := j.kind.List(ctx, tenant)
		set := ruleSet(slices.DeleteFunc(all, func(r *Rule) bool { return r.Revoked || !now.Before(r.ExpiresAt) }))
		return &set, err
	})
}

// followRule takes a rule over, as it is on disk.
func (j *standing) followRule(tenant, _ string, r *Rule) {
	j.always.change(tenant, func(old *ruleSet) *ruleSet {
		if old == nil {
			return nil
		}
		set := slices.DeleteFunc(slices.Clone(*old), func(o *Rule) bool { return o.RuleID == r.RuleID || !o.ExpiresAt.After(r.CreatedAt) })
		if !r.Revoked {
			set = append(set, r)
			slices.SortFunc(set, func(a, b *Rule) int { return int(a.AuditSeq) - int(b.AuditSeq) })
		}
		return &set
	})
}
