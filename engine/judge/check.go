package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// same reports whether a policy is what a proposal says.
func (in *Proposal) same(p *Policy) bool {
	return p.SourceDigest == digestOf(in.Source) && p.CasesDigest == digestOf(in.Cases) && p.Kind == in.Kind &&
		p.Serve == in.Serve && slices.Equal(p.Interpreter, in.Interpreter) && slices.Equal(p.Gates, in.Gates)
}

// Apply proposes a policy and activates it, unless just this one rules already.
// It says what was done: unchanged, created, or, where the tenant wants two
// persons and this is the first, proposed.
func (j *Judge) Apply(ctx context.Context, by core.Caller, in Proposal) (Policy, string, error) {
	all, err := j.Policies(ctx, by.Tenant)
	if err != nil {
		return Policy{}, "", err
	}
	for _, p := range all {
		if !in.same(&p) {
			continue
		}
		switch p.Status {
		case PolicyActive:
			return p, "unchanged", nil
		case PolicyRetired:
			p, err = j.Restore(ctx, by, p.PolicyID)
			return p, applied(&p), err
		}
	}
	p, err := j.Propose(ctx, by, in)
	if err == nil {
		p, err = j.Activate(ctx, by, p.PolicyID)
	}
	return p, applied(&p), err
}

func applied(p *Policy) string {
	if p.Status == PolicyActive {
		return "created"
	}
	return "proposed"
}

// CheckApply reports what Apply would refuse, and changes nothing: the policy
// is read and compiled, and its cases are run. The tenant need not be there
// yet. Of an error the details "in" (source, tests) and "line" say where it
// stands, as far as that is known.
func (j *Judge) CheckApply(ctx context.Context, by core.Caller, in Proposal) error {
	if by.Kind != core.Operator {
		return core.Errorf(core.Denied, "policy: only an operator may activate one; %s %q may not", by.Kind, by.Name)
	}
	var terms PolicyTerms
	rules := false
	err := j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) (err error) {
		if terms, err = readTerms(tx.Tx); err != nil {
			return err
		}
		return j.policies.Each(tx, func(p *Policy) error {
			rules = rules || p.Status == PolicyActive && in.same(p)
			return nil
		})
	})
	if err != nil && !errors.Is(err, store.ErrNoTenant) {
		return fmt.Errorf("look at the policies: %w", err)
	}
	if rules {
		return nil
	}
	p, of, err := j.draft(ctx, by, in)
	if err != nil {
		return err
	}
	if terms.Jailed && p.Unsandboxed {
		return core.Errorf(core.Denied, "policy: it can't be jailed here, and the tenant wants that")
	}
	if p.Cases == 0 {
		return core.Errorf(core.Conflict, "tests: a policy without cases can't be activated").With("field", "tests").With(detailIn, inTests)
	}
	defer j.rest(by.Tenant, of)
	results, sum, _, err := j.runCases(ctx, by.Tenant, of, in.Cases)
	if err != nil {
		return err
	}
	return failedCases(p.Name, sum, results)
}
