package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Grant is an always rule that is asked for before it is needed. It is the whole
// argument of its approval, so that the digest binds it and the card shows it.
type Grant struct {
	Gate     Gate     `json:"gate"` // where what it lets pass is asked about; "" follows from the kind
	Kind     string   `json:"kind"` // of that action
	Server   string   `json:"server,omitempty"`
	Tool     string   `json:"tool,omitempty"`
	Args     core.Raw `json:"args"`              // those that pass, but for what is in Any
	Any      []string `json:"any,omitempty"`     // places of the arguments that may hold anything
	Effects  []string `json:"effects,omitempty"` // what a skill may declare at most
	Agent    string   `json:"agent,omitempty"`   // that alone gets it; "" is everyone
	Session  string   `json:"session_id,omitempty"`
	ExpiresS int64    `json:"expires_s"` // seconds from the approval on, at most 30 days
	MaxUses  int      `json:"max_uses"`  // 1-1000
	Reason   string   `json:"reason"`    // of who asks, at most 1024 bytes
	Backtest Backtest `json:"backtest"`  // the judge's own
}

// grants ask for rules before they are needed.
type grants struct {
	ledger    ledger
	policies  *policies
	approvals *approvals
	proposals *proposals
}

// Bounds of a grant.
const (
	maxGrantWord   = 256 // bytes of a kind, server, tool or name
	maxGrantReason = 1024
	maxGrantOpen   = 10 // requests of one asker that wait for an answer
)

// RequestGrant asks a person for an always rule. Of from it takes who asks (By), in
// which trace, what is known of the agent that the grant names, and the session that
// an asking agent works in. An agent asks for itself alone, and for no other session.
//
// What can't be granted is refused at once: out of bounds, below a deny rule or a
// floor, or what the policy lets pass anyway.
func (j *grants) RequestGrant(ctx context.Context, from Ask, g Grant) (Approval, error) {
	out, err := j.requestGrant(ctx, from, g)
	if errors.Is(err, core.Kind(core.Denied)) {
		err = j.ledger.Refuse(ctx, from.By, audit.Entry{Type: "grant.refused", Trace: from.TraceID, Subject: "grant", ID: core.ClipTo(g.Kind, 128)}, err)
	}
	return out, err
}

func (j *grants) requestGrant(ctx context.Context, from Ask, g Grant) (out Approval, err error) {
	if g.Gate == "" {
		g.Gate = gateOf(g.Kind)
	}
	if len(g.Args) == 0 {
		g.Args = core.Raw("{}")
	}
	if err := g.check(); err != nil {
		return out, err
	}
	by := from.By
	if err := g.askedBy(by, from.Session); err != nil {
		return out, err
	}
	if from.Agent.Name != g.Agent {
		from.Agent = AgentRef{Name: g.Agent}
	}
	ask := Ask{
		Gate: GateGrant, TraceID: from.TraceID, Session: g.Session, By: by,
		Action: Action{Kind: KindGrant}, Agent: from.Agent, Intent: g.Reason, Said: true,
	}
	err = Decide(func() error {
		p, err := j.proposals.proposeGrant(ctx, by, &Approval{TenantID: by.Tenant, Agent: ask.Agent}, &g)
		if err != nil {
			return err
		}
		g.Backtest = p.rule.Backtest
		if ask.Action.Args, err = core.Canonical(core.MustEncode(&g)); err != nil {
			return fmt.Errorf("grant: %w", err)
		}
		v := j.policies.decide(ctx, by.Tenant, &ask)
		switch {
		case v.Refused() != nil:
			return fmt.Errorf("grant: %w", v.Refused())
		case v.Decision != HITL: // the policy is another one since the grant was tried
			return ErrStale
		}
		return j.ledger.change(ctx, by, "ask for a grant", func(tx *audit.Tx) error {
			if err := j.mayAsk(tx); err != nil {
				return err
			}
			_, a, err := j.approvals.Commit(tx, ask, v)
			if err == nil {
				out = *a
			}
			return err
		})
	})
	return out, err
}

// askedBy refuses who may not ask for a grant; session is the one that they work in.
func (g *Grant) askedBy(by core.Caller, session string) error {
	switch {
	case by.Name == "" || by.Kind != core.Operator && by.Kind != core.Agent:
		return core.Errorf(core.Denied, "grant: only an operator or an agent may ask for one; %s %q may not", by.Kind, by.Name)
	case by.Kind == core.Operator:
		return nil
	case g.Agent != by.Name:
		return core.Errorf(core.Denied, "grant: an agent asks for itself; %s may not ask for %q", by.Name, g.Agent).With("field", "agent")
	case g.Session != "" && g.Session != session:
		return core.Errorf(core.Denied, "grant: an agent asks for the session that it works in; %s may not ask for %q", by.Name, g.Session).With("field", "session")
	}
	return nil
}

// mayAsk refuses who has asked often enough: a person reads each request.
func (j *grants) mayAsk(tx *audit.Tx) error {
	open, err := j.approvals.openIn(tx)
	if err != nil {
		return err
	}
	n := 0
	for _, a := range open {
		if a.Gate == GateGrant && a.RequestedKind == tx.By.Kind && tx.By.Is(a.RequestedBy, a.RequestedPerson) {
			n++
		}
	}
	if n >= maxGrantOpen {
		return core.Errorf(core.Conflict, "grant: %d requests of %s wait for an answer; at most %d may", n, tx.By.Name, maxGrantOpen)
	}
	return nil
}

func (g *Grant) check() error {
	for _, f := range []struct{ name, value string }{
		{"kind", g.Kind}, {"server", g.Server}, {"tool", g.Tool}, {"agent", g.Agent}, {"session", g.Session}, {"effects", strings.Join(g.Effects, "")},
	} {
		if len(f.value) > maxGrantWord || !core.Printable(f.value) {
			return core.Invalid(f.name, f.value, fmt.Sprintf("at most %d printable bytes", maxGrantWord))
		}
	}
	ruled := slices.DeleteFunc(slices.Clone(gates), func(at Gate) bool { return !at.hasRules() })
	switch {
	case !g.Gate.hasRules():
		return core.Invalid("gate", string(g.Gate), list(ruled))
	case g.Kind == "":
		return core.Invalid("kind", "", "a kind of action, such as tool, exec.run, mcp.call, skill.invoke, net.connect")
	case g.ExpiresS < 1 || g.ExpiresS > int64(maxExpiry/time.Second):
		return core.Invalid("expires", fmt.Sprintf("%ds", g.ExpiresS), "1s-720h (30 days)")
	case g.MaxUses < 1 || g.MaxUses > maxUses:
		return core.Invalid("max_uses", g.MaxUses, "1-1000")
	}
	if err := cmp.Or(checkText("reason", &g.Reason, 1, maxGrantReason), CheckArgs(g.Args), checkAny(g.Any)); err != nil {
		return err
	}
	action := g.action()
	if program(&action) == "" { // a rule would be about no action at all
		switch g.Kind {
		case KindExec:
			return core.Errorf(core.InvalidInput, `args: %s needs {"argv":["PROGRAM", …]}`, g.Kind).With("field", "args")
		case KindTool, KindMCP, KindSkill, KindNet:
			return core.Errorf(core.InvalidInput, "tool: %s needs one", g.Kind).With("field", "tool")
		}
	}
	return nil
}

func (g *Grant) action() Action {
	return Action{Kind: g.Kind, Server: g.Server, Tool: g.Tool, Args: g.Args, Effects: g.Effects}
}

// rule is what approving the grant makes, for the approval that asks for it.
func (g *Grant) rule(a *Approval) Rule {
	r := a.Offer(Always{Any: g.Any, Expires: time.Duration(g.ExpiresS) * time.Second, MaxUses: g.MaxUses})
	r.Agent, r.Session = g.Agent, g.Session
	r.seal()
	return r
}

// String says what the grant would allow, in one line: that of its rule.
func (g *Grant) String() string {
	a := g.covered(&Approval{})
	return g.rule(&a).Line
}

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
func (j *policies) byGrant(ctx context.Context, of *ruling, tenant string, ask *Ask, tr *trace) Verdict {
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
func (j *proposals) proposeGrant(ctx context.Context, by core.Caller, of *Approval, g *Grant) (*proposal, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	a := g.covered(of)
	v := j.policies.decide(ctx, a.TenantID, new(a.ask()))
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
func (j *proposals) proposeGranted(ctx context.Context, by core.Caller, a *Approval) (*proposal, error) {
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
type grantSettler struct{ *proposals }

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
	p, err := s.proposeGrant(context.Background(), core.Self(a.TenantID, "judge"), &a, &now) // it only reads
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
