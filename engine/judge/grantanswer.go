package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// parseGrant reads the arguments of an approval at GateGrant.
func parseGrant(args core.Raw) (g Grant, err error) {
	if err = core.DecodeStored(args, &g); err != nil {
		return g, fmt.Errorf("read the grant: %w", err)
	}
	return g, nil
}

// grantWords say what arguments at GateGrant would allow.
func grantWords(args core.Raw) string {
	g, err := parseGrant(args)
	if err != nil {
		return err.Error()
	}
	return g.String()
}

// covered is the question that a grant would answer, as of an agent that asks it.
func (g *Grant) covered(of *Approval) Approval {
	return Approval{
		TenantID: of.TenantID, ApprovalID: of.ApprovalID, Digest: of.Digest, Gate: g.Gate, Action: g.action(), Agent: of.Agent, Session: g.Session,
		RequestedBy: g.Agent, RequestedKind: core.Agent,
	}
}

// byGrant is the verdict about a grant: what the policy finds of the action that it
// would let pass, with at least medium risk, for it stands for more than one.
func (j *Judge) byGrant(ctx context.Context, of *ruling, tenant string, ask *Ask, tr *trace) Verdict {
	v := Verdict{Decision: HITL, ReasonCode: ReasonError, PolicyVersion: of.version}
	if g, err := parseGrant(ask.Action.Args); err != nil {
		v.Rationale = err.Error()
	} else {
		a := g.covered(&Approval{TenantID: tenant, Agent: ask.Agent})
		v = j.by(ctx, of, tenant, new(a.ask()), tr)
	}
	v.Risk = graver(v.Risk, Medium)
	v.bind(tenant, ask)
	return v
}

// proposeGrant checks a grant, which stands in an approval or is about to: it is
// within its bounds, a person would be asked about what it lets pass, and a rule may
// stand in for that person.
func (j *Judge) proposeGrant(ctx context.Context, by core.Caller, of *Approval, g *Grant) (*proposal, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	a := g.covered(of)
	v := j.decide(ctx, a.TenantID, new(a.ask()))
	switch {
	case v.Decision == Approve:
		return nil, core.Errorf(core.InvalidInput, "grant: there is nothing to grant: the policy lets this pass without asking (%s)", v.ReasonCode).With("rule_id", v.RuleID)
	case v.Decision == Deny:
		return nil, core.Errorf(core.Denied, "grant: the policy denies this (%s), and no grant stands above that", joined(", rule ", v.ReasonCode, v.RuleID)).With("rule_id", v.RuleID)
	case !v.yields() && v.Risk != Critical: // of which proposeRule tells
		return nil, core.Errorf(core.InvalidInput, "grant: nothing can stand in for a person here (%s)", v.ReasonCode).With("field", KindGrant)
	}
	a.Risk = v.Risk
	return j.proposeRule(ctx, by, &a, KindGrant, g.rule(&a), "")
}

// proposeGranted is the rule that approving a grant makes, checked and tried anew:
// the policy and the past may be others than when it was asked for.
func (j *Judge) proposeGranted(ctx context.Context, by core.Caller, a *Approval) (*proposal, error) {
	g, err := parseGrant(a.Action.Args)
	if err != nil {
		return nil, err
	}
	p, err := j.proposeGrant(ctx, by, a, &g)
	if err == nil && p.rule.Risk.above(a.Risk) {
		return nil, core.Errorf(core.Conflict, "approval %s: the policy finds a %s risk in this now, and %s when it was asked; ask anew", a.ApprovalID, p.rule.Risk, a.Risk)
	}
	return p, err
}

// grantSettler is the owner of GateGrant. The rule that an approval makes is a part
// of the answer, as that of an always is.
type grantSettler struct{ j *Judge }

func (grantSettler) Settle(*audit.Tx, Approval, Outcome) error { return nil }

// Validate implements Settler: an edit narrows a grant. What it leaves out stays.
func (s grantSettler) Validate(a Approval, args core.Raw) (core.Raw, error) {
	was, err := parseGrant(a.Action.Args)
	if err != nil {
		return nil, err
	}
	now, err := parseGrant(a.Action.Args)
	if err != nil {
		return nil, err
	}
	if err := core.Decode(args, &now); err != nil {
		return nil, err
	}
	if err := now.narrows(&was); err != nil {
		return nil, err
	}
	p, err := s.j.proposeGrant(context.Background(), core.Self(a.TenantID, "judge"), &a, &now) // it only reads
	if err != nil {
		return nil, err
	}
	now.Backtest = p.rule.Backtest
	return core.MustEncode(&now), nil
}

// narrows refuses what would make another grant of one, or a wider one.
func (g *Grant) narrows(was *Grant) error {
	for _, f := range []struct{ name, was, now string }{
		{"gate", string(was.Gate), string(g.Gate)},
		{"kind", was.Kind, g.Kind},
		{"server", was.Server, g.Server},
		{"tool", was.Tool, g.Tool},
		{"effects", strings.Join(was.Effects, " "), strings.Join(g.Effects, " ")},
		{"agent", was.Agent, g.Agent},
		{"session_id", was.Session, g.Session},
		{"reason", was.Reason, g.Reason},
	} {
		if f.now != f.was {
			return core.Invalid(f.name, f.now, strings.TrimSpace(f.was+": only args, any, expires_s and max_uses can be edited"))
		}
	}
	before := was.covered(&Approval{})
	rule, args := was.rule(&before), values(g.Args)
	switch {
	case g.ExpiresS > was.ExpiresS:
		return core.Invalid("expires_s", g.ExpiresS, fmt.Sprintf("at most %d: an edit narrows a grant", was.ExpiresS))
	case g.MaxUses > was.MaxUses:
		return core.Invalid("max_uses", g.MaxUses, fmt.Sprintf("at most %d: an edit narrows a grant", was.MaxUses))
	case slices.ContainsFunc(g.Any, func(place string) bool { return !slices.Contains(was.Any, place) }):
		return core.Invalid("any", strings.Join(g.Any, ", "), strings.TrimSpace(strings.Join(was.Any, ", ")+" or fewer: an edit narrows a grant"))
	case args == nil || !rule.same("", values(was.Args), args):
		return core.Invalid("args", string(g.Args), "what those that were asked for let pass: an edit narrows a grant")
	}
	return nil
}
