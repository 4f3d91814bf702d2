package judge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Case is one expectation of a policy: what it must answer to an input.
type Case struct {
	Name   string   `json:"name"`
	Input  core.Raw `json:"input"` // an Input
	Expect Expect   `json:"expect"`

	line int // where it stands
}

// Expect is what a case wants.
type Expect struct {
	Decision   string `json:"decision"`              // approve, deny, abort, hitl
	ReasonCode string `json:"reason_code,omitempty"` // "" is any
}

// CaseResult is how a case went.
type CaseResult struct {
	Name       string `json:"name"`
	Line       int    `json:"line"` // of its file
	Passed     bool   `json:"passed"`
	Want       Expect `json:"want"`
	Decision   string `json:"decision"`
	ReasonCode string `json:"reason_code"`
	RuleID     string `json:"rule_id,omitempty"`
	Rationale  string `json:"rationale,omitempty"`
	Stderr     string `json:"stderr,omitempty"`
}

// parseCases reads JSON lines; blank ones are passed over.
func parseCases(lines []byte) ([]Case, error) {
	if len(lines) > maxCasesBytes {
		return nil, core.Invalid("tests", fmt.Sprintf("%d bytes", len(lines)), fmt.Sprintf("at most %d bytes", maxCasesBytes))
	}
	var all []Case
	seen := map[string]bool{}
	n := 0
	for line := range bytes.Lines(lines) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		at := func(err error) error {
			return core.AsError(fmt.Errorf("tests: line %d: %w", n, err)).With(detailIn, inTests).With(detailLine, n)
		}
		c := Case{line: n}
		if err := core.Decode(line, &c); err != nil {
			return nil, at(err)
		}
		switch {
		case c.Name == "" || len(c.Name) > 200:
			return nil, at(core.Invalid("name", c.Name, "1-200 characters"))
		case seen[c.Name]:
			return nil, at(core.Invalid("name", c.Name, "a name that no other case has"))
		case len(c.Input) == 0:
			return nil, at(core.Invalid("input", "", "a JSON object"))
		}
		seen[c.Name] = true
		if !isWord(c.Expect.Decision) {
			return nil, at(core.Invalid("expect.decision", c.Expect.Decision, replyWords))
		}
		if _, err := parseInput("", c.Input); err != nil {
			return nil, at(err)
		}
		c.Input = bytes.Clone(c.Input)
		if all = append(all, c); len(all) > maxCases {
			return nil, core.Errorf(core.InvalidInput, "tests: at most %d cases", maxCases).With("field", "tests")
		}
	}
	return all, nil
}

// said is a verdict's word, with abort told apart from deny.
func said(v *Verdict) string {
	if v.Abort {
		return replyAbort
	}
	return string(v.Decision)
}

// TestPolicy runs a policy's cases as real decisions are made, without effect,
// and keeps the summary.
func (j *policies) TestPolicy(ctx context.Context, by core.Caller, id string) (Policy, []CaseResult, error) {
	of, d, err := j.onTrial(ctx, by, id)
	if err != nil {
		return Policy{}, nil, err
	}
	defer j.rest(by.Tenant, of)
	results, sum, bare, err := j.runCases(ctx, by.Tenant, of, []byte(d.CaseSet))
	if err != nil {
		return Policy{}, nil, err
	}
	var out Policy
	err = j.ledger.change(ctx, by, "test policy "+id, func(tx *audit.Tx) error {
		p, err := j.kind.Need(tx, id)
		if err != nil {
			return err
		}
		p.TestsSummary, p.TestedAt, p.TestedVersion, p.Version = &sum, tx.Now(), of.version, of.version
		p.Unsandboxed = bare
		if err := j.savePolicy(tx, p, "policy.tested", map[string]any{"by": by.Name, "tests_summary": sum, "policy_version": of.version}); err != nil {
			return err
		}
		out = *p
		return j.tell(tx, p, tested(sum, results))
	})
	return out, results, err
}

// onTrial is compiled for a caller who would run it. An agent that would run a
// program without a jail is refused, and audited: it could do there what its own
// runtime keeps it from.
func (j *policies) onTrial(ctx context.Context, by core.Caller, id string) (*ruling, PolicyDetail, error) {
	of, d, err := j.compiled(ctx, by.Tenant, id)
	if err != nil || by.Kind == core.Operator {
		return of, d, err
	}
	jailed, why := j.jailed(ctx, of)
	if jailed {
		return of, d, nil
	}
	cause := core.Errorf(core.Denied, "policy %s: it can't be jailed here (%s), so only an operator may run it; %s %q may not", id, why, by.Kind, by.Name)
	return nil, d, j.ledger.Refuse(ctx, by, audit.Entry{Type: "policy.refused", Subject: "policy", ID: core.ClipTo(id, 128)}, cause)
}

// jailed says whether what a ruling runs, if anything, is jailed, and if not why.
func (j *policies) jailed(ctx context.Context, of *ruling) (bool, string) {
	if of.program == nil || j.programs == nil {
		return true, ""
	}
	return j.programs.Jailed(ctx)
}

// compiled is a policy compiled, active or not.
func (j *policies) compiled(ctx context.Context, tenant, id string) (*ruling, PolicyDetail, error) {
	d, err := j.GetPolicy(ctx, tenant, id)
	if err != nil {
		return nil, d, err
	}
	of, err := j.compilePolicy(&d.Policy, []byte(d.Source))
	return of, d, err
}

func (j *policies) runCases(ctx context.Context, tenant string, of *ruling, lines []byte) (all []CaseResult, sum TestsSummary, bare bool, err error) {
	cases, err := parseCases(lines)
	if err != nil {
		return nil, sum, false, err
	}
	jailed, _ := j.jailed(ctx, of)
	bare = !jailed
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return all, sum, bare, err
		}
		ask, err := parseInput(tenant, c.Input)
		if err != nil {
			return all, sum, bare, err
		}
		v := j.by(ctx, of, tenant, &ask, nil)
		r := CaseResult{
			Name: c.Name, Line: c.line, Want: c.Expect, Decision: said(&v), ReasonCode: v.ReasonCode, RuleID: v.RuleID,
			Rationale: v.Rationale, Stderr: v.stderr,
		}
		r.Passed = r.Decision == c.Expect.Decision && core.Wants(c.Expect.ReasonCode, r.ReasonCode)
		if r.Passed {
			sum.Passed++
		}
		all = append(all, r)
	}
	sum.Total, sum.Failed = len(all), len(all)-sum.Passed
	return all, sum, bare, nil
}

// Trial asks a policy, whether or not it rules, without effect. Close ends it.
type Trial struct {
	PolicyID string // BasePolicy for the embedded one; "" of a file
	Name     string
	Version  string
	past     *hindsight
	tenant   string
	of       *ruling
}

// Trial begins to try a policy: one of that id, or NAME or NAME@VERSION of one
// that there is, of several the newest; "" is the one that rules.
func (j *hindsight) Trial(ctx context.Context, by core.Caller, policy string) (*Trial, error) {
	if policy == "" {
		of := j.policies.ruling(ctx, by.Tenant)
		return &Trial{cmp.Or(of.policyID, BasePolicy), of.name, of.version, j, by.Tenant, of}, nil
	}
	id, err := j.policies.policyNamed(ctx, by.Tenant, policy)
	if err != nil {
		return nil, err
	}
	of, d, err := j.policies.onTrial(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return &Trial{d.PolicyID, d.Name, of.version, j, by.Tenant, of}, nil
}

// TrialOf begins to try rules that are not proposed yet.
func (j *hindsight) TrialOf(by core.Caller, source []byte) (*Trial, error) {
	of, err := j.policies.compilePolicy(&Policy{TenantID: by.Tenant, Kind: KindRules, Name: "file", SourceDigest: digestOf(source)}, source)
	if err != nil {
		return nil, err
	}
	return &Trial{"", "file", of.version, j, by.Tenant, of}, nil
}

// policyNamed is the id of a policy.
func (j *policies) policyNamed(ctx context.Context, tenant, policy string) (string, error) {
	if _, _, _, is := core.ParseID(policy); is || policy == BasePolicy {
		return policy, nil
	}
	name, version, _ := strings.Cut(policy, "@")
	all, err := j.Policies(ctx, tenant)
	if err != nil {
		return "", err
	}
	for i := range all {
		if p := &all[i]; p.Name == name && strings.HasPrefix(p.Version, version) {
			return p.PolicyID, nil
		}
	}
	return "", core.Missing("policy", policy)
}

// Answer is what the policy would answer.
func (t *Trial) Answer(ctx context.Context, ask *Ask) (decision string, v Verdict) {
	v = t.past.policies.by(ctx, t.of, t.tenant, ask, nil)
	return said(&v), v
}

// Recall is what a decision was about; false when nobody knows any more.
func (t *Trial) Recall(ctx context.Context, decision string) (Ask, bool, error) {
	d, err := t.past.decisions.Decision(ctx, t.tenant, decision)
	if refused := new(core.Error); errors.As(err, &refused) { // it left, or is of another record
		return Ask{}, false, nil
	}
	if err != nil {
		return Ask{}, false, err
	}
	return t.past.recall(ctx, t.tenant, &d)
}

// Close ends what the trial keeps running.
func (t *Trial) Close() { t.past.policies.rest(t.tenant, t.of) }
