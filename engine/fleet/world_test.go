package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

const home = "t_home"

// rules of the tests: reading is allowed, removing is denied, all other calls
// go to a person.
const rules = `
schema: 1
name: test
rules:
  - {id: start, gates: [task.start], when: "true", decision: approve, reason_code: ok, risk: low, rationale: fine}
  - {id: read, gates: [tool.call], when: 'action.tool == "read"', decision: approve, reason_code: ok, risk: low, rationale: reads}
  - {id: remove, gates: [tool.call], when: 'action.tool == "remove" || "force" in action.args', decision: deny, reason_code: removes, risk: high, rationale: never remove}
  - {id: keep, gates: [agent.delete], when: 'agent.name == "keeper"', decision: deny, reason_code: kept, risk: high, rationale: keeper stays}
  - {id: delete, gates: [agent.delete], when: 'context.actor_kind == "operator"', decision: approve, reason_code: ok, risk: low, rationale: fine}
  - {id: unsure, gates: [result], when: "result.has_confidence && result.confidence < 0.70", decision: deny, retry: true, reason_code: confidence.low, risk: low, rationale: say what you are sure of}
  - {id: result, gates: [result], when: "true", decision: approve, reason_code: ok, risk: low, rationale: fine}
`

// world is an engine of real parts over a data file; only the runtime of its
// agents is scripted.
type world struct {
	t      testing.TB
	path   string
	rt     *runtime
	db     *store.DB
	ledger *audit.Ledger
	judge  *judge.Judge
	tasks  *task.Table
	swarm  *swarm.Swarm
	fleet  *fleet.Fleet

	wrap      func(fleet.Runtime) fleet.Runtime // nil: as it is
	observer  fleet.Observer
	deadlines map[judge.Risk]time.Duration
	stuck     fleet.StuckLimits
	bell      chan struct{}
	stop      func()
}

var alice = core.Caller{Tenant: home, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

func newWorld(t testing.TB) *world {
	w := &world{t: t, path: filepath.Join(t.TempDir(), "data.db"), rt: newRuntime()}
	w.open()
	if _, err := w.swarm.CreateTenant(t.Context(), alice, home); err != nil {
		t.Fatal(err)
	}
	return w
}

// open builds the engine; nothing runs yet.
func (w *world) open() {
	w.t.Helper()
	var err error
	must := func() {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.db, err = store.Open(w.path, store.Options{})
	must()
	bell := make(chan struct{}, 1)
	w.bell = bell
	w.ledger = audit.New(w.db, audit.Options{OnChange: func(core.Change) {
		select {
		case bell <- struct{}{}:
		default:
		}
	}})
	w.judge, err = judge.New(judge.Options{Ledger: w.ledger, Policy: []byte(rules), Tenants: w.db.Tenants, Deadlines: w.deadlines})
	must()
	w.tasks = task.New(task.Options{Ledger: w.ledger})
	w.swarm, err = swarm.New(w.t.Context(), swarm.Options{Store: w.db, Ledger: w.ledger, Judge: w.judge, Tasks: w.tasks, Spill: w.t.TempDir()})
	must()
	var rt fleet.Runtime = w.rt
	if w.wrap != nil {
		rt = w.wrap(rt)
	}
	w.fleet, err = fleet.New(w.t.Context(), fleet.Options{
		Ledger: w.ledger, Judge: w.judge, Swarm: w.swarm, Tasks: w.tasks, Runtimes: map[string]fleet.Runtime{"exec": rt}, Stuck: w.stuck, Observer: w.observer,
	})
	must()
	w.swarm.Runner(fleet.KindPrompt, w.fleet.Runner())
	w.swarm.EStops.Freezer(w.fleet)
	w.judge.Own(judge.GateTool, w.fleet)
	db := w.db
	w.stop = func() { _ = db.Close() }
	w.t.Cleanup(func() { w.stop() })
}

// run starts the engine's loops.
func (w *world) run() *world {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for name, loop := range map[string]func(context.Context) error{"fleet": w.fleet.Run, "swarm": w.swarm.Run, "judge": w.judge.Run} {
		all.Go(func() {
			if err := loop(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrClosed) {
				w.t.Errorf("%s ended: %v", name, err)
			}
		})
	}
	db := w.db
	w.stop = func() {
		cancel()
		all.Wait()
		_ = db.Close()
	}
	return w
}

// shut ends the engine in order.
func (w *world) shut() {
	w.stop()
	w.stop = func() {}
}

// crash ends the engine so that nothing of its end reaches the disk.
func (w *world) crash() {
	_ = w.db.Close()
	w.shut()
	w.rt.reset()
}

// await waits until ok holds.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-w.bell:
		case <-time.After(5 * time.Millisecond):
		case <-limit:
			w.t.Fatalf("waited in vain: %s; %s", what, core.MustEncode(w.fleet.Live(home)))
		}
	}
}

func (w *world) agent(name string) fleet.Agent {
	w.t.Helper()
	a, err := w.fleet.Agent(w.t.Context(), home, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) awaitStatus(name string, s fleet.AgentStatus) fleet.Agent {
	w.t.Helper()
	w.await(fmt.Sprintf("%s is %s", name, s), func() bool { return w.agent(name).Status == s })
	return w.agent(name)
}

// create makes an agent and, when the engine runs, waits until it is idle.
func (w *world) create(name string) {
	w.t.Helper()
	_, err := w.fleet.Create(w.t.Context(), alice, fleet.Create{Name: name, Project: "Setup", Role: "coder", Command: []string{"x"}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.awaitStatus(name, fleet.Idle)
}

// session makes a session and returns its id.
func (w *world) session() string {
	w.t.Helper()
	s, err := w.swarm.Sessions.Create(w.t.Context(), alice, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return s.SessionID
}

// assign gives an agent a task that ends as the script says.
func (w *world) assign(name, message string) task.Task {
	w.t.Helper()
	t, err := w.fleet.Assign(w.t.Context(), alice, name, message, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// result waits for the end of a task.
func (w *world) result(id string) task.Result {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer stop()
	if _, err := w.tasks.Wait(ctx, home, id, ""); err != nil {
		w.t.Fatalf("wait for %s: %v", id, err)
	}
	r, err := w.tasks.Result(ctx, home, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// approval waits for the one open approval.
func (w *world) approval() judge.Approval {
	w.t.Helper()
	var open []judge.Approval
	w.await("an open approval", func() bool {
		var err error
		if open, err = w.judge.Open(w.t.Context(), home); err != nil {
			w.t.Fatal(err)
		}
		return len(open) == 1
	})
	return open[0]
}

func (w *world) events(kind string) []audit.Event {
	w.t.Helper()
	page, err := w.ledger.List(w.t.Context(), home, core.Filter{Kind: kind, Size: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Items
}

// consistent checks what must hold whatever happened: counters equal a
// recount, and the log explains the store.
func (w *world) consistent() {
	w.t.Helper()
	counts, err := w.fleet.Counts(w.t.Context(), home)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.db.View(w.t.Context(), home, func(tx store.Tx) error {
		return tx.Scan("agent", nil, nil, false, func(_, value []byte) bool {
			var a fleet.Agent
			if err := core.DecodeStored(value, &a); err != nil {
				w.t.Error(err)
			}
			counts[a.Status]--
			return true
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for s, n := range counts {
		if n != 0 {
			w.t.Errorf("counter of %s agents is %d off", s, n)
		}
	}
	deltas, err := w.ledger.Reconcile(w.t.Context(), home)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(deltas) > 0 {
		w.t.Errorf("unexplained: %+v", deltas)
	}
}

// refused checks an error's code and the value of one detail.
func refused(t testing.TB, err error, code core.Code, detail, value string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %s", code)
	}
	e := core.AsError(err)
	if e.Code != code || detail != "" && fmt.Sprint(e.Details[detail]) != value {
		t.Fatalf("got %s %q %v; want %s with %s=%s", e.Code, e.Message, e.Details, code, detail, value)
	}
}
