package judge

import (
	"cmp"
	"context"
	"strings"
	"time"

	"cel.dev/cel-go/common/types/ref"

	"swarmdeck/engine/core"
)

// Explanation is a decision without effect.
type Explanation struct {
	Decision      string         `json:"decision"` // approve, deny, abort, hitl
	ReasonCode    string         `json:"reason_code"`
	Rationale     string         `json:"rationale,omitempty"`
	Confidence    *float64       `json:"confidence,omitempty"`
	Risk          Risk           `json:"risk"`
	Gate          Gate           `json:"gate"`
	RuleID        string         `json:"rule_id,omitempty"`
	When          string         `json:"when,omitempty"`   // the rule's condition
	Values        map[string]any `json:"values,omitempty"` // what it read
	Tried         []string       `json:"tried,omitempty"`  // the rules before it that were about this kind and did not match
	PolicyID      string         `json:"policy_id,omitempty"`
	PolicyVersion string         `json:"policy_version"`
	Floor         bool           `json:"floor,omitzero"` // a deny rule of the base policy, which stands above any other
	Always        bool           `json:"always,omitzero"`
	Unsandboxed   bool           `json:"unsandboxed,omitzero"`
	Stderr        string         `json:"stderr,omitempty"` // what a program said beside
	TookUs        int64          `json:"took_us"`
}

// Explain decides without effect: nothing is recorded, no approval opened, no
// rule used. policy is the id of a proposal to ask instead of the active one.
// Who may only look may ask, so a proposed program is never run without a jail:
// that is Denied.
func (j *standing) Explain(ctx context.Context, tenant, policy string, input core.Raw) (Explanation, error) {
	ask, err := parseInput(tenant, input)
	if err != nil {
		return Explanation{}, err
	}
	of := j.policies.ruling(ctx, tenant)
	if policy != "" {
		rules := of.version
		if of, _, err = j.policies.compiled(ctx, tenant, policy); err != nil {
			return Explanation{}, err
		}
		if jailed, why := j.policies.jailed(ctx, of); !jailed && of.version != rules {
			return Explanation{}, core.Errorf(core.Denied, "policy %s: it can't be jailed here (%s) and does not rule, so a question does not run it; an operator's test of it does", policy, why)
		}
		defer j.policies.rest(tenant, of)
	}
	tr := &trace{}
	began := time.Now()
	v := j.policies.by(ctx, of, tenant, &ask, tr)
	if policy == "" {
		j.applyAlways(ctx, of, tenant, &ask, &v)
	}
	e := Explanation{
		Decision: said(&v), ReasonCode: v.ReasonCode, Rationale: v.Rationale, Confidence: v.Confidence, Risk: v.Risk, Gate: ask.Gate,
		RuleID: v.RuleID, PolicyID: of.policyID, PolicyVersion: v.PolicyVersion, Always: v.always != "",
		Unsandboxed: v.Unsandboxed, Stderr: v.stderr, TookUs: time.Since(began).Microseconds(),
	}
	j.policies.traced(&e, of, &v, tr)
	return e, nil
}

// trace notes which rules were tried, and what the last one read. A nil trace
// notes nothing.
type trace struct {
	tried  []string
	rule   *rule
	values map[string]any
}

// look begins a rule.
func (t *trace) look(r *rule) {
	if t == nil {
		return
	}
	t.tried = append(t.tried, r.ID)
	t.rule, t.values = r, map[string]any{}
}

// read notes a value that the rule asked for.
func (t *trace) read(name string, value any) {
	v, ok := value.(ref.Val)
	if !ok {
		return
	}
	native := v.Value()
	if _, err := core.Encode(native); err != nil {
		return
	}
	t.values[name] = native
}

// Grounds say why a policy decided as it did: the rule, its condition and the
// values that it read, found by asking the version that decided once more.
// When, Values and Tried are of rules; a program only gives its rationale.
type Grounds struct {
	Explanation
	DecisionID string `json:"decision_id"`
	ApprovalID string `json:"approval_id,omitempty"`
	PolicyName string `json:"policy_name,omitempty"`
	Program    bool   `json:"program,omitzero"` // a program decided; it is not run again
	Rules      bool   `json:"rules_now"`        // the version that decided is the one that rules now
	// Gone says why the decision can't be made anew, so that only what was
	// recorded is known of it; "" where it could.
	Gone string `json:"gone,omitempty"`
}

// Grounds are those of a decision, or of what opened an approval, by its id. A
// person's answer has the grounds of what that person was asked.
func (j *hindsight) Grounds(ctx context.Context, tenant, id string) (Grounds, error) {
	d, risk, err := j.asked(ctx, tenant, id)
	if err != nil {
		return Grounds{}, err
	}
	g := Grounds{
		Explanation: Explanation{
			Decision: was(&d), ReasonCode: d.ReasonCode, Rationale: d.Rationale, Confidence: d.Confidence, Risk: risk, Gate: d.Gate,
			RuleID: d.RuleID, PolicyVersion: d.PolicyVersion, Unsandboxed: d.Unsandboxed, Always: d.ReasonCode == ReasonAlways,
		},
		DecisionID: d.DecisionID, ApprovalID: d.ApprovalID,
	}
	of, err := j.policies.rulingOf(ctx, tenant, d.PolicyVersion)
	switch {
	case err != nil:
		return g, err
	case of == nil:
		g.Gone = "that version of the policy is not kept"
		return g, nil
	}
	g.PolicyID, g.PolicyName = of.policyID, of.name
	g.Rules = j.policies.ruling(ctx, tenant).version == of.version
	if g.Program = of.decides(d.Gate); g.Program {
		return g, nil
	}
	ask, known, err := j.recall(ctx, tenant, &d)
	if err != nil {
		return g, err
	}
	if !known {
		g.Gone = "what it was about is not kept"
		if d.PriorDigest != "" {
			g.Gone = "the arguments were edited since"
		}
		return g, nil
	}
	tr := &trace{}
	v := j.policies.by(ctx, of, tenant, &ask, tr)
	if v.RuleID != d.RuleID && !g.Always {
		g.Gone = "asked again it decides by another rule: it read what is not kept"
		return g, nil
	}
	if risk == "" {
		g.Risk = v.Risk
	}
	j.policies.traced(&g.Explanation, of, &v, tr)
	return g, nil
}

// asked is the policy's decision behind an id of a decision or an approval,
// with the risk as far as it is known.
func (j *hindsight) asked(ctx context.Context, tenant, id string) (GateDecision, Risk, error) {
	approval, decision := id, ""
	if !strings.HasPrefix(id, core.ApprovalPrefix+"_") {
		d, err := j.decisions.Decision(ctx, tenant, id)
		if err != nil || d.ApprovalID == "" {
			return d, "", err
		}
		approval, decision = d.ApprovalID, id
	}
	a, err := j.approvals.Approval(ctx, tenant, approval)
	if err != nil {
		return GateDecision{}, "", err
	}
	d := a.decision(core.Caller{Name: byPolicy, Door: core.DoorEngine}, HITL, a.ReasonCode)
	d.Rationale, d.DecisionID, d.Unsandboxed, d.CreatedAt = a.Rationale, cmp.Or(decision, a.DecisionID), a.Unsandboxed, a.CreatedAt
	return d, a.Risk, nil
}

// rulingOf is the policy of a version, as far as it is kept; nil when not.
func (j *policies) rulingOf(ctx context.Context, tenant, version string) (*ruling, error) {
	for _, of := range []*ruling{j.ruling(ctx, tenant), j.base()} {
		if of.version == version {
			return of, nil
		}
	}
	all, err := j.Policies(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Version != version {
			continue
		}
		of, _, err := j.compiled(ctx, tenant, all[i].PolicyID)
		if err == nil && of.version == version {
			return of, nil
		}
	}
	return nil, nil
}

// traced adds what a rule read to an explanation.
func (j *policies) traced(e *Explanation, of *ruling, v *Verdict, tr *trace) {
	last := tr.rule
	if last == nil || last.ID != v.RuleID || v.program {
		e.Tried = tr.tried
		return
	}
	e.When, e.Values = last.When, tr.values
	e.Floor = of.policyID != "" && j.table().byID[last.ID] == last && (last.Decision == Deny || last.Floor)
	e.Tried = tr.tried[:len(tr.tried)-1]
}

// Standing is what rules in a tenant, and on which terms that changes.
type Standing struct {
	PolicyID string      `json:"policy_id"` // BasePolicy for the embedded one
	Name     string      `json:"name"`
	Version  string      `json:"policy_version"`
	Rules    int         `json:"rules"`           // how many; 0 for a program
	Broken   string      `json:"broken,omitzero"` // why it can't be read: a person decides all
	Terms    PolicyTerms `json:"terms"`
	// Unjailed is why programs can't be jailed here; "" when they can, or when
	// nothing runs them.
	Unjailed string `json:"unjailed,omitempty"`
}

// Standing says what rules now.
func (j *policies) Standing(ctx context.Context, tenant string) (Standing, error) {
	terms, err := j.Terms(ctx, tenant)
	of := j.ruling(ctx, tenant)
	s := Standing{PolicyID: cmp.Or(of.policyID, BasePolicy), Name: of.name, Version: of.version, Rules: of.rules(), Terms: terms}
	if of.broken != nil {
		s.Broken = of.broken.Error()
	}
	if j.programs != nil {
		if jailed, why := j.programs.Jailed(ctx); !jailed {
			s.Unjailed = cmp.Or(why, "this system has no jail for them")
		}
	}
	return s, err
}

// TryCases runs a policy's cases as real decisions are made, and keeps nothing.
func (j *policies) TryCases(ctx context.Context, by core.Caller, id string) ([]CaseResult, TestsSummary, error) {
	of, d, err := j.onTrial(ctx, by, id)
	if err != nil {
		return nil, TestsSummary{}, err
	}
	defer j.rest(by.Tenant, of)
	all, sum, _, err := j.runCases(ctx, by.Tenant, of, []byte(d.CaseSet))
	return all, sum, err
}
