package judge_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const acme = "t_acme"

var (
	alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	bob   = core.Caller{Tenant: acme, Name: "bob", Kind: core.Operator, Door: core.DoorCockpit}
	robot = core.Caller{Tenant: acme, Name: "robot", Kind: core.Agent, Door: core.DoorEngine}
)

// owner settles gates and remembers what it was told.
type owner struct {
	mu       sync.Mutex
	outcomes []judge.Outcome
	refuse   error    // returned by Validate
	final    core.Raw // what Validate makes of an edit, when set
	broken   error    // returned by Settle
}

func (o *owner) Validate(_ judge.Approval, args core.Raw) (core.Raw, error) {
	if o.final != nil {
		args = o.final
	}
	return args, o.refuse
}

func (o *owner) Settle(_ *audit.Tx, _ judge.Approval, out judge.Outcome) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return o.broken
	}
	o.outcomes = append(o.outcomes, out)
	return nil
}

func (o *owner) last(t *testing.T) judge.Outcome {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.outcomes) == 0 {
		t.Fatal("nothing was settled")
	}
	return o.outcomes[len(o.outcomes)-1]
}

type fixture struct {
	*judge.Judge
	t      testing.TB
	ledger *audit.Ledger
	world  *enginetest.World
	owner  *owner
	clock  *clock
}

// clock moves only when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func setup(t testing.TB, change ...func(*judge.Options)) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2026, 5, 1, 14, 0, 0, 0, time.UTC)}
	f := over(t, enginetest.Options{Clock: c}, change...)
	f.clock = c
	return f
}

// over is a judge that owns what it is asked about.
func over(t testing.TB, opt enginetest.Options, change ...func(*judge.Options)) *fixture {
	f := &fixture{t: t, owner: &owner{}}
	opt.Build = func(w *enginetest.World) {
		f.world, f.ledger = w, w.Ledger
		opt := judge.Options{Ledger: w.Ledger, Tenants: w.DB.Tenants}
		for _, fn := range change {
			fn(&opt)
		}
		var err error
		f.Judge, err = judge.New(opt)
		w.No(err)
		for _, g := range []judge.Gate{judge.GateStart, judge.GateTool, judge.GateSkill, judge.GateResult, judge.GateBudget, judge.GateAgent, judge.GateQuestion} {
			f.Own(g, f.owner)
		}
	}
	enginetest.New(t, opt)
	return f
}

func withPolicy(yaml string) func(*judge.Options) {
	return func(o *judge.Options) { o.Policy = []byte(yaml) }
}

// commit evaluates and records an ask as the swarm does: with the audit event
// of its own that carries a folded decision.
func (f *fixture) commit(ask judge.Ask) (judge.GateDecision, *judge.Approval) {
	f.t.Helper()
	d, a, err := f.tryCommit(ask)
	expect.No(f.t, err)
	return d, a
}

func (f *fixture) tryCommit(ask judge.Ask) (d judge.GateDecision, a *judge.Approval, err error) {
	for {
		v := f.Evaluate(context.Background(), acme, ask)
		err = f.ledger.Update(context.Background(), ask.By, func(tx *audit.Tx) error {
			var err error
			if d, a, err = f.Commit(tx, ask, v); err != nil {
				return err
			}
			_, err = tx.Record(audit.Entry{Type: "task.queued", Trace: ask.TraceID, Subject: "task", ID: ask.TaskID, Detail: d.Audit()})
			return err
		})
		if !errors.Is(err, judge.ErrStale) {
			return d, a, err
		}
	}
}

// opened commits an ask that must open an approval.
func (f *fixture) opened(ask judge.Ask) judge.Approval {
	f.t.Helper()
	d, a := f.commit(ask)
	if a == nil {
		f.t.Fatalf("no approval was opened: %s %s", d.Decision, d.ReasonCode)
	}
	return *a
}

func (f *fixture) approval(id string) judge.Approval {
	f.t.Helper()
	a := expect.Of(f.Approval(context.Background(), acme, id))(f.t)
	return a
}

func (f *fixture) decision(id string) judge.GateDecision {
	f.t.Helper()
	d := expect.Of(f.Decision(context.Background(), acme, id))(f.t)
	return d
}

// start asks, as the scheduler does, whether an approved effect may start.
func (f *fixture) start(id string, ask judge.Ask) bool {
	f.t.Helper()
	var ok bool
	err := f.ledger.Update(context.Background(), core.Self(acme, "scheduler"), func(tx *audit.Tx) (err error) {
		ok, err = f.Start(tx, id, ask)
		return err
	})
	expect.No(f.t, err)
	return ok
}

// healthy fails when the log does not verify or differs from the store.
func (f *fixture) healthy() {
	f.t.Helper()
	deltas := expect.Of(f.ledger.Reconcile(context.Background(), acme))(f.t)
	for _, d := range deltas {
		f.t.Errorf("unexplained: %+v", d)
	}
}

// events lists the types of the audit events, oldest first.
func (f *fixture) events() []string {
	f.t.Helper()
	all := expect.Of(f.ledger.Since(context.Background(), acme, 0, 10000))(f.t)
	var out []string
	for _, e := range all {
		out = append(out, e.EventType)
	}
	return out
}

const taskID = "tk_00000_0000000007"

// execBy asks to run a command.
func execBy(by core.Caller, args string) judge.Ask {
	ask := judge.Ask{
		Gate: judge.GateStart, TraceID: "0123456789abcdef0123456789abcdef", TaskID: taskID, Attempt: 1, Priority: 50,
		Action: judge.Action{Kind: judge.KindExec, Args: core.Raw(args)}, Driver: "exec", By: by, Intent: "run it",
	}
	if by.Kind == core.Agent {
		ask.Agent.Name = by.Name
	}
	return ask
}

// call asks for a tool call by the robot.
func call(tool, args string) judge.Ask {
	ask := execBy(robot, args)
	ask.Gate = judge.GateTool
	ask.Action = judge.Action{Kind: "tool", Server: "exec", Tool: tool, CallID: "c1", Args: core.Raw(args)}
	return ask
}

func code(err error) core.Code {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}
