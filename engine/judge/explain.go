package judge

import (
	"context"
	"time"

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
func (j *Judge) Explain(ctx context.Context, tenant, policy string, input core.Raw) (Explanation, error) {
	ask, err := parseInput(tenant, input)
	if err != nil {
		return Explanation{}, err
	}
	of := j.ruling(ctx, tenant)
	if policy != "" {
		rules := of.version
		if of, _, err = j.compiled(ctx, tenant, policy); err != nil {
			return Explanation{}, err
		}
		if of.program != nil && of.version != rules && j.programs != nil {
			if jailed, why := j.programs.Jailed(ctx); !jailed {
				return Explanation{}, core.Errorf(core.Denied, "policy %s: it can't be jailed here (%s) and does not rule, so a question does not run it; an operator's test of it does", policy, why)
			}
		}
		defer j.rest(tenant, of)
	}
	tr := &trace{}
	began := time.Now()
	v := j.by(ctx, of, tenant, &ask, tr)
	if v.Decision == HITL && (v.RuleID != "" || v.program) && policy == "" {
		j.applyAlways(ctx, tenant, &ask, &v)
	}
	e := Explanation{
		Decision: said(&v), ReasonCode: v.ReasonCode, Rationale: v.Rationale, Confidence: v.Confidence, Risk: v.Risk, Gate: ask.Gate,
		RuleID: v.RuleID, PolicyID: of.policyID, PolicyVersion: v.PolicyVersion, Always: v.always != "",
		Unsandboxed: v.Unsandboxed, Stderr: v.stderr, TookUs: time.Since(began).Microseconds(),
	}
	j.traced(&e, of, &v, tr)
	return e, nil
}
