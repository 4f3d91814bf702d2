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
func (j *Judge) Propose(ctx context.Context, by core.Caller, in Proposal) (Policy, error) {
	p, _, err := j.draft(ctx, by, in)
	if err != nil {
		return p, err
	}
	err = j.change(ctx, by, "propose a policy", func(tx *audit.Tx) error {
		live := 0
		var same *Policy
		if err := j.policies.Each(tx, func(old *Policy) error {
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
		n := j.policies.Next(tx)
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
func (j *Judge) draft(ctx context.Context, by core.Caller, in Proposal) (Policy, *ruling, error) {
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
		jailed, _ := j.programs.Jailed(ctx)
		p.Unsandboxed = !jailed
	}
	return p, of, nil
}

func checkProposal(p *Policy, source []byte) error {
	switch p.Kind {
	case KindRules:
		if len(p.Interpreter) > 0 || p.Serve || len(p.Gates) > 0 {
			return core.Errorf(core.InvalidInput, "kind: rules take no interpreter, serve or gates").With("field", "kind")
		}
	case KindProgram:
	default:
		return core.Invalid("kind", string(p.Kind), "rules, program")
	}
	if len(p.Name) > 64 || !utf8.ValidString(p.Name) || strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return core.Invalid("name", p.Name, "at most 64 bytes without controls")
	}
	if len(source) == 0 || len(source) > maxPolicy {
		return core.Invalid("source", fmt.Sprintf("%d bytes", len(source)), fmt.Sprintf("1-%d bytes", maxPolicy))
	}
	if p.Kind == KindProgram && !utf8.Valid(source) {
		return core.Errorf(core.InvalidInput, "source: want text in UTF-8").With("field", "source")
	}
	for _, g := range p.Gates {
		if !slices.Contains(gates, g) {
			return core.Invalid("gates", string(g), list(gates))
		}
	}
	if len(p.Interpreter) > maxWords {
		return core.Invalid("interpreter", len(p.Interpreter), fmt.Sprintf("at most %d words", maxWords))
	}
	for _, w := range p.Interpreter {
		if w == "" || len(w) > 256 || strings.ContainsRune(w, 0) || !utf8.ValidString(w) {
			return core.Invalid("interpreter", w, "words of 1-256 bytes")
		}
	}
	if p.Kind == KindProgram && len(p.Interpreter) == 0 && !strings.HasPrefix(string(source), "#!") {
		return core.Errorf(core.InvalidInput, "interpreter: needed, for the source does not begin with #!").With("field", "interpreter")
	}
	return nil
}

// person refuses, and audits, whoever is no operator of the policy's tenant.
func (j *Judge) person(ctx context.Context, by core.Caller, id, what string) error {
	if by.Kind != core.Operator || by.Name == "" {
		cause := core.Errorf(core.Denied, "policy %s: only an operator may %s it; %s %q may not", id, what, by.Kind, by.Name)
		return j.ledger.Refuse(ctx, by, audit.Entry{Type: "policy.refused", Subject: "policy", ID: clip(id, 128)}, cause)
	}
	return nil
}

// Withdraw takes a proposal back: an operator any, an agent its own. The
// active policy is ended by another one, or by RestoreBase.
func (j *Judge) Withdraw(ctx context.Context, by core.Caller, id string) (Policy, error) {
	if err := j.local(ctx, by, core.PolicyPrefix, "policy", id); err != nil {
		return Policy{}, err
	}
	var out Policy
	var denied error
	err := j.change(ctx, by, "withdraw policy "+id, func(tx *audit.Tx) error {
		p, err := j.policies.Need(tx, id)
		if err != nil {
			return err
		}
		switch own := p.ProposedBy == by.Name && p.ProposedKind == by.Kind; {
		case by.Kind != core.Operator && !own:
			denied = core.Errorf(core.Denied, "policy %s: only an operator or who proposed it may withdraw it", id)
			return denied
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
	if denied != nil {
		return Policy{}, j.ledger.Refuse(ctx, by, audit.Entry{Type: "policy.refused", Subject: "policy", ID: id}, denied)
	}
	return out, err
}
