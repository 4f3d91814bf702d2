package judge

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/store"
)

// ErrStale means the rules changed, or an always rule ran out, since Evaluate:
// evaluate again.
var ErrStale = errors.New("policy changed since the evaluation")

// maxStale bounds how often a question is put again: more often than rules
// change by chance, and not without end.
const maxStale = 100

// Decide calls try, which evaluates a question and commits the verdict, and
// calls it again while that fails with ErrStale.
func Decide(try func() error) (err error) {
	for range maxStale {
		if err = try(); !errors.Is(err, ErrStale) {
			break
		}
	}
	return err
}

// The embedded rule table: the rules, and below them what the effects that
// they speak of are.
var (
	//go:embed default.yaml
	defaultRules string
	//go:embed effects.yaml
	defaultEffects string
)

// DefaultPolicy is the embedded rule table.
func DefaultPolicy() []byte { return []byte(defaultRules + defaultEffects) }

// Options of New.
type Options struct {
	Ledger *audit.Ledger // without one it can only Evaluate
	Policy []byte        // rule table (YAML); nil means the embedded default
	// Deadline is how long what a living run asks waits for an answer where no rule
	// says; 0 is by risk: 30m low, 15m medium, 10m high and critical.
	Deadline time.Duration
	// Evaluation is the longest one evaluation may take before a person is
	// asked instead; 0 means 2 s. What a rule may compute is bounded by its
	// cost anyway (some 100 ms), so this only has to outlast a busy machine:
	// a shorter one asks needlessly.
	Evaluation time.Duration
	// Programs runs policies that are programs; without it none can rule.
	Programs Programs
	// Book is told of activations; nil keeps none.
	Book Book
	// Tenants lists the tenants whose open approvals Run watches from its
	// start. Without it Run sees a tenant only once something was asked there.
	Tenants func(context.Context) ([]string, error)
	// Contents are the versions of files that cards show; nil shows none.
	Contents Contents
	// People knows the operators. Without it no answer can be signed, and a name is
	// all that tells them apart.
	People People
	Health *health.Troubles
}

// Judge decides, records and waits for answers. Its methods may be called
// from any goroutine. It is made of parts, each with what it keeps; one calls
// those before it alone.
type Judge struct {
	*policies  // which rules decide, and what
	*standing  // the rules that stand in for a person
	*decisions // what was decided
	*approvals // what waits for a person, and what came of it
	*cards     // what a person is shown
	*hindsight // what past decisions were about
	*answers   // what a person says
	*grants    // rules that are asked for in advance
}

// defaultTable loads the embedded rules when they are first needed, for all judges: a
// command that only reads does without them, and they take longer than all else.
var defaultTable = sync.OnceValue(func() *table {
	t, err := loadTable(DefaultPolicy())
	if err != nil {
		panic(fmt.Sprintf("judge: the embedded policy: %v", err)) // every test of this package would find it first
	}
	return t
})

// New compiles the policy; a rule that does not compile is an error.
func New(opt Options) (*Judge, error) {
	load := defaultTable
	if opt.Policy != nil {
		t, err := loadTable(opt.Policy)
		if err != nil {
			return nil, fmt.Errorf("load the policy: %w", err)
		}
		load = func() *table { return t }
	}
	l := ledger{opt.Ledger}
	p := &policies{ledger: l, table: load, evaluation: cmp.Or(opt.Evaluation, 2*time.Second), programs: opt.Programs, book: opt.Book}
	rules := &standing{ledger: l, policies: p}
	d := &decisions{ledger: l, policies: p}
	a := &approvals{
		ledger: l, policies: p, standing: rules, decisions: d, health: opt.Health, waits: waits{open: map[[2]string]*waiter{}},
		deadlines: map[Risk]time.Duration{Low: 30 * time.Minute, Medium: 15 * time.Minute, High: 10 * time.Minute, Critical: 10 * time.Minute},
	}
	if opt.Deadline != 0 {
		for risk := range a.deadlines {
			a.deadlines[risk] = opt.Deadline
		}
	}
	shown := &cards{approvals: a, contents: opt.Contents}
	made := &proposals{ledger: l, policies: p, approvals: a}
	said := &answers{
		ledger: l, policies: p, standing: rules, decisions: d, approvals: a, cards: shown, proposals: made, people: opt.People,
		owners: map[Gate]Settler{GateGrant: grantSettler{made}}, awaited: map[Gate]bool{}, failed: map[string]*retry{},
	}
	a.live.Keep = func(a *Approval) bool { return a.Status == Open }
	p.kind, rules.kind, d.kind, a.kind = p.policyKind(), rules.ruleKind(a.eraseRule), d.decisionKind(a.eraseDecision), a.approvalKind()
	if opt.Ledger != nil { // without one it only explains
		said.loop = loop.New(loop.Options{Component: "judge", Health: opt.Health, Clock: l.Clock(), Tenants: opt.Tenants, Pass: said.sweep})
		a.ring = said.loop.Ring
		l.Register(a.kind.Auditable(), d.kind.Auditable(), rules.kind.Auditable(), p.kind.Auditable(),
			single[PolicyTerms]{"policy.terms", func(tx store.Tx) (PolicyTerms, bool, error) { return policyTerms.Get(tx, termsKey) }}, single[ruleOf]{"policy.rules", readActive})
	}
	return &Judge{p, rules, d, a, shown, &hindsight{l, p, d, a}, said, &grants{l, p, a, made}}, nil
}

// ledger is the one that all parts write to.
type ledger struct{ *audit.Ledger }

// change is a transaction of the judge's own. A refusal says by itself what it
// is about; any other error is wrapped with what was attempted.
func (l ledger) change(ctx context.Context, by core.Caller, what string, fn func(*audit.Tx) error) error {
	err := l.Update(ctx, by, fn)
	var refused *core.Error
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// guarded is change, and audits what it refuses with DENIED.
func (l ledger) guarded(ctx context.Context, by core.Caller, what, subject, id string, fn func(*audit.Tx) error) error {
	err := l.change(ctx, by, what, fn)
	if errors.Is(err, core.Kind(core.Denied)) {
		return l.Refuse(ctx, by, audit.Entry{Type: subject + ".refused", Subject: subject, ID: id}, err)
	}
	return err
}

// operator refuses, and audits, whoever is none and wants what only they may.
func (l ledger) operator(ctx context.Context, by core.Caller, subject, id, what string) error {
	if by.Kind == core.Operator && by.Name != "" {
		return nil
	}
	cause := core.Errorf(core.Denied, "%s %s: only an operator may %s; %s %q may not", subject, id, what, by.Kind, by.Name)
	return l.Refuse(ctx, by, audit.Entry{Type: subject + ".refused", Subject: subject, ID: core.ClipTo(id, 128)}, cause)
}

// local refuses, and audits, an id of another tenant.
func (l ledger) local(ctx context.Context, by core.Caller, prefix, subject, id string) error {
	_, err := core.LocalSeq(prefix, by.Tenant, id)
	if errors.Is(err, core.ErrForeign) {
		return l.Refuse(ctx, by, audit.Entry{Type: "tenant.violation", Subject: subject, ID: id}, err)
	}
	return err
}
