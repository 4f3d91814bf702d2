package judge

import (
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
	"swarmdeck/engine/record"
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
	// Deadlines by risk; nil means 30m low, 15m medium, 10m high and critical.
	Deadlines map[Risk]time.Duration
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
// from any goroutine.
type Judge struct {
	ledger     *audit.Ledger
	table      func() *table
	deadlines  map[Risk]time.Duration
	evaluation time.Duration
	contents   Contents
	people     People
	around     Surroundings
	health     *health.Troubles

	owners    map[Gate]Settler
	voids     []func(tenant, approval string)
	programs  Programs
	book      Book
	past      History
	rulings   perTenant[ruling]
	versions  versions
	approvals record.Table[Approval]
	live      record.Mirror[Approval] // those that are open
	decisions record.Table[decisionRow]
	policies  record.Table[Policy]
	rules     record.Table[Rule]
	always    perTenant[ruleSet]
	loop      *loop.Loop        // nil without a ledger
	failed    map[string]*retry // of the loop alone, by approval
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
	j := &Judge{
		ledger: opt.Ledger, table: load, evaluation: opt.Evaluation, contents: opt.Contents, people: opt.People, health: opt.Health,
		owners: map[Gate]Settler{}, failed: map[string]*retry{}, programs: opt.Programs, book: opt.Book,
		deadlines: map[Risk]time.Duration{
			Low: 30 * time.Minute, Medium: 15 * time.Minute, High: 10 * time.Minute, Critical: 10 * time.Minute,
		},
	}
	for risk, d := range opt.Deadlines {
		if !risk.valid() {
			return nil, core.Invalid("deadlines", risk, "low, medium, high, critical")
		}
		if d < time.Second || d > maxDefer {
			return nil, core.Invalid("deadlines."+string(risk), d, "1s-24h")
		}
		j.deadlines[risk] = d
	}
	if j.evaluation == 0 {
		j.evaluation = 2 * time.Second
	}
	j.owners[GateGrant] = grantSettler{j}
	j.live.Keep = func(a *Approval) bool { return a.Status == Open }
	j.versions.init()
	j.approvals, j.decisions, j.policies, j.rules = j.approvalKind(), j.decisionKind(), j.policyKind(), j.ruleKind()
	if j.ledger != nil { // without one it only explains
		j.loop = loop.New(loop.Options{Component: "judge", Health: opt.Health, Clock: j.ledger.Clock(), Tenants: opt.Tenants, Pass: j.sweep})
		j.ledger.Register(j.approvals.Auditable(), j.decisions.Auditable(), j.rules.Auditable(), j.policies.Auditable(), termsRecords{}, rulesRecords{})
	}
	return j, nil
}

// Own names the owner of a gate. Call it before Run, once per gate. An
// approval of a gate without an owner can be denied but never approved.
func (j *Judge) Own(g Gate, s Settler) { j.owners[g] = s }

// FollowVoids adds who hears of each approval that became void, after its
// commit. Call it before Run.
func (j *Judge) FollowVoids(hear func(tenant, approval string)) { j.voids = append(j.voids, hear) }

// PolicyVersion is the digest of the tenant's active policy.
func (j *Judge) PolicyVersion(tenant string) string {
	return j.ruling(context.Background(), tenant).version
}

// Policy is the tenant's active policy as canonical JSON, with its version.
// It must not be modified.
func (j *Judge) Policy(tenant string) (version string, source core.Raw) {
	r := j.ruling(context.Background(), tenant)
	return r.version, r.source
}

// change is a transaction of the judge's own. A refusal says by itself what it
// is about; any other error is wrapped with what was attempted.
func (j *Judge) change(ctx context.Context, by core.Caller, what string, fn func(*audit.Tx) error) error {
	err := j.ledger.Update(ctx, by, fn)
	var refused *core.Error
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
