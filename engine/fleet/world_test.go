package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
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
	*enginetest.World
	rt    *runtime
	judge *judge.Judge
	tasks *task.Table
	swarm *swarm.Swarm
	fleet *fleet.Fleet

	panes     map[string]*pane                  // of agents with a terminal
	wrap      func(fleet.Runtime) fleet.Runtime // nil: as it is
	observer  fleet.Observer
	deadline  time.Duration
	stuck     fleet.StuckLimits
	elsewhere func(tenant string) bool
	over      func(store.Store) store.Store // between the services and the store; nil: nothing
}

var alice = core.Caller{Tenant: home, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

func newWorld(t testing.TB) *world {
	w := &world{rt: newRuntime()}
	enginetest.New(t, enginetest.Options{Tenants: []string{}, Build: w.build, Over: func(st store.Store) store.Store {
		if w.over == nil {
			return st
		}
		return w.over(st)
	}})
	expect.Of(w.swarm.CreateTenant(t.Context(), alice, home))(w.T)
	return w
}

// build makes the engine; nothing runs yet.
func (w *world) build(e *enginetest.World) {
	w.World = e
	var err error
	w.judge = expect.Of(judge.New(judge.Options{Ledger: w.Ledger, Policy: []byte(rules), Tenants: w.DB.Tenants, Deadline: w.deadline}))(w.T)
	w.tasks = task.New(task.Options{Ledger: w.Ledger})
	w.swarm = expect.Of(swarm.New(w.T.Context(), swarm.Options{Store: w.DB, Ledger: w.Ledger, Judge: w.judge, Tasks: w.tasks, Spill: w.Dir}))(w.T)
	var rt fleet.Runtime = w.rt
	if w.wrap != nil {
		rt = w.wrap(rt)
	}
	w.fleet, err = fleet.New(w.T.Context(), fleet.Options{
		Ledger: w.Ledger, Judge: w.judge, Swarm: w.swarm, Tasks: w.tasks, Runtimes: map[string]fleet.Runtime{"exec": rt}, Stuck: w.stuck, Observer: w.observer, Elsewhere: w.elsewhere,
	})
	w.No(err)
	w.swarm.Runner(fleet.KindPrompt, w.fleet.Runner())
	w.No(w.swarm.Recover(w.T.Context()))
	w.swarm.EStops.Freezer(w.fleet)
	w.judge.Await(judge.GateTool, w.fleet)
	w.judge.Await(judge.GateQuestion, w.fleet)
}

// run starts the engine's loops.
func (w *world) run() *world {
	w.Start(w.fleet.Run, w.swarm.Run, w.judge.Run)
	return w
}

// crash ends the engine so that nothing of its end reaches the disk.
func (w *world) crash() {
	w.Crash()
	w.rt.reset()
}

func (w *world) agent(name string) fleet.Agent {
	w.T.Helper()
	return expect.Of(w.fleet.Agent(w.T.Context(), home, name))(w.T)
}

func (w *world) awaitStatus(name string, s fleet.AgentStatus) fleet.Agent {
	w.T.Helper()
	w.Await(fmt.Sprintf("%s is %s", name, s), func() bool { return w.agent(name).Status == s })
	return w.agent(name)
}

// create makes an agent and, when the engine runs, waits until it is idle.
func (w *world) create(name string) {
	w.T.Helper()
	expect.Of(w.fleet.Create(w.T.Context(), alice, fleet.Create{Name: name, Project: "Setup", Role: "coder", Command: []string{"x"}}))(w.T)
	w.awaitStatus(name, fleet.Idle)
}

// session makes a session and returns its id.
func (w *world) session() string {
	w.T.Helper()
	s := expect.Of(w.swarm.Sessions.Create(w.T.Context(), alice, ""))(w.T)
	return s.SessionID
}

// assign gives an agent a task that ends as the script says.
func (w *world) assign(name, message string) task.Task {
	w.T.Helper()
	return expect.Of(w.fleet.Assign(w.T.Context(), alice, name, message, ""))(w.T)
}

// result waits for the end of a task.
func (w *world) result(id string) task.Result {
	w.T.Helper()
	ctx, stop := context.WithTimeout(w.T.Context(), 2*time.Minute)
	defer stop()
	_, err := w.tasks.Wait(ctx, home, id, "")
	expect.No(w.T, err, "wait for", id)
	return expect.Of(w.tasks.Result(ctx, home, id))(w.T)
}

// approval waits for the one open approval.
func (w *world) approval() judge.Approval {
	w.T.Helper()
	var open []judge.Approval
	w.Await("an open approval", func() bool {
		open = expect.Of(w.judge.Open(w.T.Context(), home))(w.T)
		return len(open) == 1
	})
	return open[0]
}

// sendAgain answers the question whether a task goes to its agent once more.
func (w *world) sendAgain(id string, answer judge.Answer) {
	w.T.Helper()
	ap := w.approval()
	expect.Must(w.T, ap.TaskID == id && ap.ReasonCode == swarm.ReasonSent, "asked about something else: %+v", ap)
	expect.Of(w.judge.Answer(w.T.Context(), alice, ap.ApprovalID, answer))(w.T)
}

// sendOn has what engines died under go to its agents once more.
func (w *world) sendOn() {
	w.T.Helper()
	open := expect.Of(w.judge.Open(w.T.Context(), home))(w.T)
	for _, ap := range open {
		expect.Of(w.judge.Answer(w.T.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true}))(w.T)
	}
}

func (w *world) events(kind string) []audit.Event {
	w.T.Helper()
	page := expect.Of(w.Ledger.List(w.T.Context(), home, core.Filter{Kind: kind, Size: 100}))(w.T)
	return page.Items
}

// consistent checks what must hold whatever happened: counters equal a
// recount, and the log explains the store.
func (w *world) consistent() {
	w.T.Helper()
	counts := expect.Of(w.fleet.Counts(w.T.Context(), home))(w.T)
	err := w.DB.View(w.T.Context(), home, func(tx store.Tx) error {
		for st := range counts { // as of the same moment as the records: agents go on meanwhile
			counts[st] = tx.Counter("agent.status." + string(st))
		}
		return tx.Scan("agent", nil, nil, false, func(_, value []byte) (bool, error) {
			var a fleet.Agent
			expect.Is(w.T, core.DecodeStored(value, &a), nil)
			counts[a.Status]--
			return true, nil
		})
	})
	expect.No(w.T, err)
	for s, n := range counts {
		expect.Is(w.T, n, 0, "counter of", s, "agents is")
	}
	deltas := expect.Of(w.Ledger.Reconcile(w.T.Context(), home))(w.T)
	expect.True(w.T, len(deltas) == 0, "unexplained: %+v", deltas)
}

// refused checks an error's code and the value of one detail.
func refused(t testing.TB, err error, code core.Code, detail, value string) {
	t.Helper()
	expect.Must(t, err != nil, "no error; want %s", code)
	e := core.AsError(err)
	expect.Must(t, e.Code == code && (detail == "" || fmt.Sprint(e.Details[detail]) == value),
		"got %s %q %v; want %s with %s=%s", e.Code, e.Message, e.Details, code, detail, value)
}
