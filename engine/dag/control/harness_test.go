package control_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const acme = "t_acme"

var (
	alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	ada   = core.Caller{Tenant: acme, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
)

// rig is a controller over a store of its own.
type rig struct {
	*enginetest.World
	*control.Controller
	dag   *dag.DAG
	judge *judge.Judge
	world *world
}

// inBubble runs a test on fake time.
func inBubble(t *testing.T, fn func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{world: newWorld()}
		enginetest.New(t, enginetest.Options{Build: r.build, File: true})
		fn(r)
		r.Stop()
		r.Proven(acme)
	})
}

// build makes the services over the open store.
func (r *rig) build(w *enginetest.World) {
	r.World = w
	r.dag = dag.New(dag.Options{Ledger: r.Ledger})
	r.judge = expect.Of(judge.New(judge.Options{Ledger: r.Ledger, Policy: []byte(testPolicy), Tenants: r.DB.Tenants}))(r.T)
	r.Controller = r.controller()
	r.judge.Own(judge.GateIntent, r.Controller)
}

const testPolicy = `
schema: 1
name: test
rules:
  - {id: never, gates: [dag.intent], when: 'action.args.steps.exists(s, has(s.args.never))', decision: deny, reason_code: never, risk: high}
  - {id: small, gates: [dag.intent], when: 'action.args.steps.all(s, has(s.args.small))', decision: approve, reason_code: small, risk: low}
`

func (r *rig) controller() *control.Controller {
	r.T.Helper()
	c := control.New(control.Options{Ledger: r.Ledger, DAG: r.dag, Judge: r.judge, Tenants: r.DB.Tenants})
	for action, k := range map[string]control.Kind{
		"make": {}, "fail": {Attempts: 3}, "hang": {Timeout: 10 * time.Second, Attempts: 2}, "wipe": {Destructive: true},
	} {
		k.Effect = r.world
		r.No(c.Register(action, k))
	}
	return c
}

// run carries intents out until Stop.
func (r *rig) run() { r.Start(r.Run) }

func (r *rig) intend(by core.Caller, spec control.Spec) control.Intent {
	r.T.Helper()
	if spec.AgentID == "" {
		spec.AgentID = "ada"
	}
	return expect.Of(r.Intend(r.T.Context(), by, spec))(r.T)
}

func (r *rig) await(id string) control.Intent {
	r.T.Helper()
	ctx, end := context.WithTimeout(r.T.Context(), time.Hour) // of the bubble's time
	defer end()
	return expect.Of(r.Controller.Await(ctx, acme, id))(r.T)
}

func (r *rig) get(id string) control.Intent {
	r.T.Helper()
	return expect.Of(r.Get(r.T.Context(), alice, id))(r.T)
}

// void voids all questions, as the end of a task does.
func (r *rig) void() {
	r.T.Helper()
	r.No(r.Ledger.Update(r.T.Context(), alice, func(tx *audit.Tx) error {
		return r.judge.Void(tx, func(*judge.Approval) bool { return true }, "its task ended")
	}))
}

// told are the kinds of an intent's events in their order, with what they say.
func (r *rig) told(id string) (all []string) {
	r.T.Helper()
	page := expect.Of(r.dag.Events(r.T.Context(), acme, dag.Query{Run: id, Filter: core.Filter{Size: 100}}))(r.T)
	for _, e := range page.Items {
		text := string(e.Event.Kind)
		switch b := e.Event.Body.(type) {
		case *dag.ToolCall:
			text += " " + b.Tool
		case *dag.ToolResult:
			text += " " + string(b.Status)
		case *dag.Interruption:
			text += " " + string(b.Reason)
		case *dag.RunFinished:
			text += " " + b.Exit
		}
		all = append(all, text)
	}
	return all
}

func step(action, args string) control.Step {
	return control.Step{Action: action, Args: core.Raw(args)}
}

// world is what the effects of the tests work on: things by key.
type world struct {
	mu     sync.Mutex
	things map[string]bool
	calls  []string // "act KEY", in their order
	begun  map[string]int
	most   int // acts side by side

	// Set by tests, called without the lock.
	onAct  func(ctx context.Context, j control.Job) (*control.Seen, error)
	onUndo func(ctx context.Context, j control.Job) error
	blind  bool // Probe sees nothing
}

func newWorld() *world { return &world{things: map[string]bool{}, begun: map[string]int{}} }

func (w *world) note(what string, j control.Job) {
	w.calls = append(w.calls, fmt.Sprintf("%s %s", what, j.Key[len(j.IntentID)-1:]))
}

func (w *world) Probe(_ context.Context, j control.Job) (control.Seen, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("probe", j)
	return control.Seen{Met: w.things[j.Key] && !w.blind, Why: "it is not there"}, nil
}

func (w *world) Act(ctx context.Context, j control.Job) (control.Seen, error) {
	w.mu.Lock()
	w.note("act", j)
	w.begun[j.Key]++
	w.most = max(w.most, w.begun[j.Key])
	on := w.onAct
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.begun[j.Key]--
		w.mu.Unlock()
	}()
	if on != nil {
		if seen, err := on(ctx, j); seen != nil || err != nil {
			if seen == nil {
				seen = &control.Seen{}
			}
			return *seen, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.things[j.Key] = true
	return control.Seen{Met: true, Result: core.Raw(`{"made":"` + j.Key + `"}`)}, nil
}

func (w *world) Compensate(ctx context.Context, j control.Job) (control.Seen, error) {
	w.mu.Lock()
	w.note("undo", j)
	on := w.onUndo
	w.mu.Unlock()
	if on != nil {
		if err := on(ctx, j); err != nil {
			return control.Seen{}, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.things, j.Key)
	return control.Seen{Met: true}, nil
}

func (w *world) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}
