package swarm_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const acme = "t_acme"

var alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// testPolicy approves what is not marked in its input.
const testPolicy = `
schema: 1
name: test
rules:
  - {id: no, gates: [task.start], when: 'has(action.args.deny)', decision: deny, reason_code: test.deny, risk: low, rationale: marked so}
  - {id: ask, gates: [task.start], when: 'has(action.args.ask)', decision: hitl, reason_code: test.ask, risk: low, rationale: marked so}
  - {id: low, gates: [result], when: 'result.has_confidence && result.confidence < 0.70', decision: deny, retry: true, reason_code: confidence.low, risk: low, rationale: say what you are sure of}
  - {id: band, gates: [result], when: 'result.has_confidence && result.confidence <= 0.90', decision: hitl, reason_code: confidence.band, risk: low}
  - {id: ok, gates: [task.start, result], when: 'true', decision: approve, reason_code: test.ok, risk: low}
`

type rig struct {
	*enginetest.World
	judge  *judge.Judge
	tasks  *task.Table
	swarm  *swarm.Swarm
	runner *fakeRunner
	policy []byte
	over   func(store.Store) store.Store // nil: the store as it is
	slots  int
	change func(core.Change)
}

// defaultRules makes a rig judge by the embedded table.
var defaultRules = []byte{}

// newRig opens a swarm on a fresh file. It is not running: see run.
func newRig(t testing.TB, change ...func(*rig)) *rig {
	r := &rig{runner: &fakeRunner{started: make(chan *fakeWork, 100)}, slots: 2}
	for _, c := range change {
		c(r)
	}
	enginetest.New(t, r.options())
	expect.Of(r.swarm.CreateTenant(t.Context(), alice, acme))(r.T)
	return r
}

func (r *rig) options() enginetest.Options {
	return enginetest.Options{Tenants: []string{}, Build: r.build, Over: func(st store.Store) store.Store {
		if r.over != nil {
			return r.over(st)
		}
		return st
	}, Changed: func(c core.Change) {
		if r.change != nil {
			r.change(c)
		}
	}}
}

func (r *rig) build(w *enginetest.World) {
	r.World = w
	policy := []byte(testPolicy)
	if r.policy != nil {
		policy = nil
	}
	var err error
	r.judge = expect.Of(judge.New(judge.Options{Ledger: r.Ledger, Policy: policy, Tenants: r.Store.Tenants}))(r.T)
	r.tasks = task.New(task.Options{Ledger: r.Ledger, Session: func(tenant, name string) (string, bool) { return r.swarm.Sessions.Named(tenant, name) }})
	r.swarm, err = swarm.New(context.Background(), swarm.Options{Store: r.Store, Ledger: r.Ledger, Judge: r.judge, Tasks: r.tasks, Slots: r.slots, Spill: r.T.TempDir()})
	r.No(err)
	r.swarm.Runner("test.run", r.runner)
	r.swarm.Runner("agent.prompt", agentRunner{r.runner})
	r.swarm.Runner("test.resume", resumingRunner{r.runner})
	r.No(r.swarm.Recover(context.Background()))
}

// run starts the scheduler; Close or the test's end stops it.
func (r *rig) run() { r.Start(r.swarm.Run) }

func (r *rig) dispatch(input string, change ...func(*swarm.Dispatch)) task.Task {
	r.T.Helper()
	d := swarm.Dispatch{Kind: "test.run", Input: core.Raw(input)}
	for _, c := range change {
		c(&d)
	}
	return expect.Of(r.swarm.Dispatch(r.T.Context(), alice, d))(r.T)
}

// pausedWork dispatches a task and pauses it at work.
func (r *rig) pausedWork() (task.Task, *fakeWork) {
	r.T.Helper()
	tk := r.dispatch(`{}`)
	w := <-r.runner.started
	expect.Of(r.swarm.PauseTask(r.T.Context(), alice, tk.TaskID, "look"))(r.T)
	r.Await("the pause", w.isPaused)
	return tk, w
}

func (r *rig) claim() task.Task {
	r.T.Helper()
	tasks, err := r.swarm.Claim(r.T.Context(), alice, "w1", 1)
	expect.Must(r.T, err == nil && len(tasks) == 1, "claim: %v, %v", tasks, err)
	return tasks[0]
}

func (r *rig) complete(t task.Task, out task.Outcome) task.Result {
	r.T.Helper()
	return expect.Of(r.swarm.Complete(r.T.Context(), alice, t.TaskID, t.Lease, out))(r.T)
}

func (r *rig) task(id string) task.Task {
	r.T.Helper()
	return expect.Of(r.tasks.Get(r.T.Context(), acme, id))(r.T)
}

// await polls until ok, for state that no event announces.
func (r *rig) status(id string, want task.Status) task.Task {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), 2*time.Minute)
	defer cancel()
	t, err := r.tasks.Wait(ctx, acme, id, want)
	expect.Must(r.T, err == nil && t.Status == want, "task %s is %s (%v), want %s", id, t.Status, err, want)
	return t
}

// whole checks what must hold after any sequence: the log verifies, the store
// equals its replay and the counters equal a recount.
func (r *rig) whole() {
	r.T.Helper()
	ctx := context.Background()
	rep, err := r.Ledger.Verify(ctx, acme, nil)
	expect.True(r.T, err == nil && rep.OK, "audit verify: %+v, %v", rep, err)
	deltas, err := r.Ledger.Reconcile(ctx, acme)
	expect.True(r.T, err == nil && len(deltas) == 0, "reconcile: %+v, %v", deltas, err)
	counts := expect.Of(r.tasks.Counts(ctx, acme))(r.T)
	real := map[task.Status]int64{}
	var total, waiting int64
	for page := 1; ; page++ {
		list := expect.Of(r.tasks.List(ctx, acme, core.Filter{Page: page, Size: 100}))(r.T)
		for _, t := range list.Items {
			real[t.Status]++
			total++
			if t.Waiting != "" {
				waiting++
			}
		}
		if !list.Info.Next {
			break
		}
	}
	expect.True(r.T, total == counts.Total && waiting == counts.Waiting,
		"counters say %d tasks, %d waiting; the records say %d, %d", counts.Total, counts.Waiting, total, waiting)
	for _, st := range task.Statuses() {
		expect.Is(r.T, real[st], counts.ByStatus[st], "counter of", st, "is")
		list, err := r.tasks.List(ctx, acme, core.Filter{Status: string(st)})
		expect.True(r.T, err == nil && int64(list.Info.Total) == real[st], "list by status %s: total %d (%v), want %d", st, list.Info.Total, err, real[st])
	}
}

func ok(output string) task.Outcome {
	return task.Outcome{Status: task.Succeeded, Output: core.Raw(output)}
}

func failure(retryable bool) task.Outcome {
	return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "boom", Message: "it broke", Retryable: retryable}}
}

func hasCode(err error, c core.Code) bool { return errors.Is(err, core.Kind(c)) }

// fakeRunner hands every started work to the test.
type fakeRunner struct{ started chan *fakeWork }

func (f *fakeRunner) Check(_ string, input core.Raw) (string, judge.Action, error) {
	if err := core.CheckObject("input", input, core.MaxInput); err != nil {
		return "", judge.Action{}, err
	}
	if f.started == nil { // benchmarks: judged as a command
		return "echo", judge.Action{Kind: "exec.run", Args: input}, nil
	}
	return "test " + string(input), judge.Action{Kind: "test.run", Args: input}, nil
}

func (f *fakeRunner) Slot(string, string) (bool, string) { return true, "" }

func (f *fakeRunner) Start(_ context.Context, job swarm.Job) (swarm.Work, error) {
	w := &fakeWork{job: job, done: make(chan struct{})}
	go w.beat()
	f.started <- w
	return w, nil
}

// resumingRunner tells when its work has begun its effect.
type resumingRunner struct{ *fakeRunner }

func (resumingRunner) Resumes(core.Raw) bool { return true }

type agentRunner struct{ *fakeRunner }

func (a agentRunner) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	title, action, err := a.fakeRunner.Check(tenant, input)
	action.Kind = "agent.prompt"
	return title, action, err
}

func (agentRunner) Target(input core.Raw) string {
	var v struct {
		Agent string `json:"agent"`
	}
	_ = core.DecodeStored(input, &v)
	return v.Agent
}

type fakeWork struct {
	job  swarm.Job
	done chan struct{}

	mu     sync.Mutex
	out    task.Outcome
	paused bool
	mute   bool // the worker hangs: no heartbeat
	deaf   bool // it does not end when cancelled
	stuck  int  // so many pauses and resumes fail
	silent bool // pauses and resumes take effect, but are not acknowledged
	reason string
}

func (w *fakeWork) beat() {
	for {
		select {
		case <-w.done:
			return
		case <-time.After(100 * time.Millisecond):
			w.mu.Lock()
			mute := w.mute
			w.mu.Unlock()
			if !mute {
				w.job.Beat()
			}
		}
	}
}

func (w *fakeWork) end(out task.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.done:
	default:
		w.out = out
		close(w.done)
	}
}

func (w *fakeWork) Done() <-chan struct{} { return w.done }

func (w *fakeWork) Outcome() task.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out
}

func (w *fakeWork) Cancel(reason string) {
	w.mu.Lock()
	w.reason = reason
	deaf := w.deaf
	w.mu.Unlock()
	if deaf {
		return
	}
	w.end(task.Outcome{Status: task.Cancelled, Error: &task.Error{Code: "cancelled", Message: reason}})
}

func (w *fakeWork) set(paused bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck > 0 {
		w.stuck--
		return errors.New("the process does not react")
	}
	w.paused = paused
	if w.silent {
		return errors.New("the process does not answer")
	}
	return nil
}

func (w *fakeWork) with(change func(*fakeWork)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *fakeWork) Pause(context.Context) error  { return w.set(true) }
func (w *fakeWork) Resume(context.Context) error { return w.set(false) }

func (w *fakeWork) isPaused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused
}
