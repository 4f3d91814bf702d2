package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Bounds of a policy.
const (
	maxProposals  = 1000 // of a tenant that are neither active nor withdrawn
	maxCasesBytes = 1 << 20
	maxCases      = 1000
	maxWords      = 16
)

// Proposal is a policy that somebody suggests.
type Proposal struct {
	Kind        PolicyKind
	Name        string // "" takes the table's own
	Source      []byte
	Interpreter []string // of a program; none runs the source as it is, or by its first line (#!)
	Serve       bool     // a program that stays: a line in, a line out
	Gates       []Gate   // that a program decides; none means all
	Cases       []byte   // JSON lines {name, input, expect}; none can't be activated
}

// Propose keeps a policy, which rules nothing yet. Agents may propose. The
// same policy with the same cases, as long as it is a proposal, is not kept twice.
func (j *policies) Propose(ctx context.Context, by core.Caller, in Proposal) (Policy, error) {
	p, _, err := j.draft(ctx, by, in)
	if err != nil {
		return p, err
	}
	err = j.ledger.change(ctx, by, "propose a policy", func(tx *audit.Tx) error {
		live := 0
		var same *Policy
		if err := j.kind.Each(tx, func(old *Policy) error {
			if old.Status == PolicyProposed {
				live++
				if old.Version == p.Version && old.CasesDigest == p.CasesDigest && old.Name == p.Name {
					same = old
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if same != nil {
			p = *same
			return nil
		}
		if live >= maxProposals {
			return core.Errorf(core.Conflict, "propose a policy: %d proposals wait already; withdraw some", live)
		}
		n := j.kind.Next(tx)
		p.PolicyID = core.NewID(core.PolicyPrefix, tx.Tenant(), n)
		if err := errors.Join(policySources.Put(tx, record.Seq(n), in.Source), policyCases.Put(tx, record.Seq(n), in.Cases)); err != nil {
			return err
		}
		if err := j.savePolicy(tx, &p, "policy.proposed", p); err != nil {
			return err
		}
		return j.tell(tx, &p, p.Proposed())
	})
	return p, err
}

// draft reads and compiles a proposal.
func (j *policies) draft(ctx context.Context, by core.Caller, in Proposal) (Policy, *ruling, error) {
	p := Policy{
		TenantID: by.Tenant, Kind: in.Kind, Status: PolicyProposed, Name: in.Name, SourceDigest: digestOf(in.Source),
		CasesDigest: digestOf(in.Cases), Interpreter: slices.Clone(in.Interpreter), Serve: in.Serve, Gates: slices.Clone(in.Gates),
		ProposedBy: by.Name, ProposedKind: by.Kind,
	}
	p.URI = "resource://approval-policy/proposals/" + p.SourceDigest
	if by.Name == "" {
		return p, nil, core.Errorf(core.Denied, "propose a policy: nobody asks")
	}
	if err := checkProposal(&p, in.Source); err != nil {
		return p, nil, err
	}
	of, err := j.compilePolicy(&p, in.Source)
	if err != nil {
		return p, nil, placed(in.Source, err)
	}
	cases, err := parseCases(in.Cases)
	if err != nil {
		return p, nil, err
	}
	p.Cases = len(cases)
	if p.Version = of.version; p.Name == "" {
		if p.Name = of.table.file.Name; p.Kind == KindProgram || p.Name == "" {
			p.Name = "policy"
		}
	}
	if p.Kind == KindProgram {
		if j.programs == nil {
			return p, nil, core.Errorf(core.Unavailable, "propose a policy: nothing here runs policies that are programs")
		}
		jailed, _ := j.jailed(ctx, of)
		p.Unsandboxed = !jailed
	}
	return p, of, nil
}

func checkProposal(p *Policy, source []byte) error {
	program := p.Kind == KindProgram
	switch {
	case !program && p.Kind != KindRules:
		return core.Invalid("kind", string(p.Kind), "rules, program")
	case !program && (len(p.Interpreter) > 0 || p.Serve || len(p.Gates) > 0):
		return core.Errorf(core.InvalidInput, "kind: rules take no interpreter, serve or gates").With("field", "kind")
	case len(p.Name) > 64 || !utf8.ValidString(p.Name) || strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return core.Invalid("name", p.Name, "at most 64 bytes without controls")
	case len(source) == 0 || len(source) > maxPolicy:
		return core.Invalid("source", fmt.Sprintf("%d bytes", len(source)), fmt.Sprintf("1-%d bytes", maxPolicy))
	case program && !utf8.Valid(source):
		return core.Errorf(core.InvalidInput, "source: want text in UTF-8").With("field", "source")
	case len(p.Interpreter) > maxWords:
		return core.Invalid("interpreter", len(p.Interpreter), fmt.Sprintf("at most %d words", maxWords))
	case program && len(p.Interpreter) == 0 && !strings.HasPrefix(string(source), "#!"):
		return core.Errorf(core.InvalidInput, "interpreter: needed, for the source does not begin with #!").With("field", "interpreter")
	}
	for _, g := range p.Gates {
		if !slices.Contains(gates, g) {
			return core.Invalid("gates", string(g), list(gates))
		}
	}
	for _, w := range p.Interpreter {
		if w == "" || len(w) > 256 || strings.ContainsRune(w, 0) || !utf8.ValidString(w) {
			return core.Invalid("interpreter", w, "words of 1-256 bytes")
		}
	}
	return nil
}

// Withdraw takes a proposal back: an operator any, an agent its own. The
// active policy is ended by another one, or by RestoreBase.
func (j *policies) Withdraw(ctx context.Context, by core.Caller, id string) (Policy, error) {
	if err := j.ledger.local(ctx, by, core.PolicyPrefix, "policy", id); err != nil {
		return Policy{}, err
	}
	var out Policy
	err := j.ledger.guarded(ctx, by, "withdraw policy "+id, "policy", id, func(tx *audit.Tx) error {
		p, err := j.kind.Need(tx, id)
		if err != nil {
			return err
		}
		switch own := p.ProposedBy == by.Name && p.ProposedKind == by.Kind; {
		case by.Kind != core.Operator && !own:
			return core.Errorf(core.Denied, "policy %s: only an operator or who proposed it may withdraw it", id)
		case p.Status == PolicyWithdrawn:
			out = *p
			return nil
		case p.Status == PolicyActive:
			return core.Errorf(core.Conflict, "policy %s: it rules; activate another one, or restore an older one or \"default\"", id).With("status", p.Status)
		}
		p.Status, p.WithdrawnBy, p.FirstBy, p.FirstPerson = PolicyWithdrawn, by.Name, "", ""
		out = *p
		if err := j.savePolicy(tx, &out, "policy.withdrawn", map[string]any{"by": by.Name}); err != nil {
			return err
		}
		return j.tell(tx, &out, PolicyStep{Did: DidWithdraw})
	})
	return out, err
}

// same reports whether a policy is what a proposal says.
func (in *Proposal) same(p *Policy) bool {
	return p.SourceDigest == digestOf(in.Source) && p.CasesDigest == digestOf(in.Cases) && p.Kind == in.Kind &&
		p.Serve == in.Serve && slices.Equal(p.Interpreter, in.Interpreter) && slices.Equal(p.Gates, in.Gates)
}

// Apply proposes a policy and activates it, unless just this one rules already.
// It says what was done: unchanged, created, or, where the tenant wants two
// persons and this is the first, proposed.
func (j *policies) Apply(ctx context.Context, by core.Caller, in Proposal) (Policy, string, error) {
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
func (j *policies) CheckApply(ctx context.Context, by core.Caller, in Proposal) error {
	if by.Kind != core.Operator {
		return core.Errorf(core.Denied, "policy: only an operator may activate one; %s %q may not", by.Kind, by.Name)
	}
	var terms PolicyTerms
	rules := false
	err := j.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) (err error) {
		if terms, err = readTerms(tx.Tx); err != nil {
			return err
		}
		return j.kind.Each(tx, func(p *Policy) error {
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
