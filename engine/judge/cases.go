package judge

import (
	"bytes"
	"context"
	"fmt"

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
func (j *Judge) TestPolicy(ctx context.Context, by core.Caller, id string) (Policy, []CaseResult, error) {
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
	err = j.change(ctx, by, "test policy "+id, func(tx *audit.Tx) error {
		p, err := j.policies.Need(tx, id)
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
func (j *Judge) onTrial(ctx context.Context, by core.Caller, id string) (*ruling, PolicyDetail, error) {
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
func (j *Judge) jailed(ctx context.Context, of *ruling) (bool, string) {
	if of.program == nil || j.programs == nil {
		return true, ""
	}
	return j.programs.Jailed(ctx)
}

// compiled is a policy compiled, active or not.
func (j *Judge) compiled(ctx context.Context, tenant, id string) (*ruling, PolicyDetail, error) {
	d, err := j.GetPolicy(ctx, tenant, id)
	if err != nil {
		return nil, d, err
	}
	of, err := j.compilePolicy(&d.Policy, []byte(d.Source))
	return of, d, err
}

func (j *Judge) runCases(ctx context.Context, tenant string, of *ruling, lines []byte) (all []CaseResult, sum TestsSummary, bare bool, err error) {
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
