package skill_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

const home = "t_home"

var alice = core.Caller{Tenant: home, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// world is skills over a data file, with all that they stand on.
type world struct {
	t      testing.TB
	path   string
	policy []byte
	most   int
	kinds  map[string]skill.Runner
	fake   *fake

	db     *store.DB
	ledger *audit.Ledger
	judge  *judge.Judge
	tasks  *task.Table
	swarm  *swarm.Swarm
	bus    *bus.Bus
	skills *skill.Skills
	end    func()
}

// fake carries out skills by functions of the test, by the skill's name.
type fake struct {
	mu    sync.Mutex
	does  map[string]skill.Func
	calls []skill.Call
}

func (f *fake) Check(skill.Spec) error { return nil }

func (f *fake) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	do := f.does[call.Skill.Name]
	f.mu.Unlock()
	if do == nil {
		return nil, errors.New("the test has no " + call.Skill.Name)
	}
	return skill.RunFunc(ctx, call, do), nil
}

func (f *fake) on(name string, do skill.Func) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.does[name] = do
}

// gives makes a skill succeed with a result.
func (f *fake) gives(name, result string) {
	f.on(name, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { return core.Raw(result), nil })
}

// holds makes a skill wait until it is released; reached is closed as it starts.
// It can't stand still meanwhile.
func (f *fake) holds(name, result string) (reached chan bool, release func()) {
	reached, on := make(chan bool), make(chan bool)
	f.on(name, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) {
		close(reached)
		<-on
		return core.Raw(result), nil
	})
	return reached, func() { close(on) }
}

// of are the calls of a skill so far.
func (f *fake) of(name string) []skill.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []skill.Call
	for _, c := range f.calls {
		if c.Skill.Name == name {
			all = append(all, c)
		}
	}
	return all
}

func newWorld(t testing.TB, change ...func(*world)) *world {
	w := blank(t)
	w.path = filepath.Join(t.TempDir(), "data.db")
	for _, c := range change {
		c(w)
	}
	w.open()
	if _, err := w.swarm.CreateTenant(t.Context(), alice, home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func blank(t testing.TB) *world {
	w := &world{t: t, fake: &fake{does: map[string]skill.Func{}}}
	w.kinds = map[string]skill.Runner{"builtin": w.fake}
	return w
}

func (w *world) open() {
	w.t.Helper()
	db, err := store.Open(w.path, store.Options{})
	if err == nil {
		w.db = db
		err = w.build(db)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// build makes everything over an open store.
func (w *world) build(st store.Store) (err error) {
	ctx := context.Background()
	w.ledger = audit.New(st, audit.Options{OnChange: func(c core.Change) {
		if w.bus != nil {
			w.bus.Changed(c)
		}
	}})
	if w.judge, err = judge.New(judge.Options{Ledger: w.ledger, Policy: w.policy, Tenants: st.Tenants}); err != nil {
		return err
	}
	w.tasks = task.New(task.Options{Ledger: w.ledger})
	if w.swarm, err = swarm.New(ctx, swarm.Options{Store: st, Ledger: w.ledger, Judge: w.judge, Tasks: w.tasks, Spill: filepath.Dir(w.path)}); err != nil {
		return err
	}
	var p parties
	w.bus = bus.New(bus.Options{Ledger: w.ledger, Directory: &p, Tenants: st.Tenants})
	if w.skills, err = skill.New(ctx, skill.Options{
		Ledger: w.ledger, Judge: w.judge, Swarm: w.swarm, Tasks: w.tasks, Bus: w.bus, Runners: w.kinds, MaxSubagents: w.most,
	}); err != nil {
		return err
	}
	p.Directory = w.skills.Parties()
	w.swarm.Runner(skill.KindInvoke, w.skills.Runner())
	w.judge.Own(judge.GateSkill, w.skills)
	return nil
}

// parties is filled in after the bus is made.
type parties struct{ bus.Directory }

// run starts the scheduler.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{w.swarm.Run, w.judge.Run} {
		all.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Errorf("Run: %v", err)
			}
		})
	}
	w.end = func() {
		cancel()
		all.Wait()
		w.end = nil
	}
}

func (w *world) close() {
	if w.end != nil {
		w.end()
	}
	if w.db != nil {
		if err := w.db.Close(); err != nil {
			w.t.Error(err)
		}
		w.db = nil
	}
}

// again closes the data file and opens it anew.
func (w *world) again() {
	w.t.Helper()
	w.close()
	w.open()
}

// load takes skills in. What is left out of one is filled in.
func (w *world) load(all ...skill.Skill) {
	w.t.Helper()
	var g skill.Given
	for _, s := range all {
		if s.Version == "" {
			s.Version = "1.0.0"
		}
		if len(s.ParametersSchema) == 0 {
			s.ParametersSchema = core.Raw(`{"type":"object"}`)
		}
		if s.Timeout == 0 {
			s.Timeout = 30
		}
		if s.Runner.Kind == "" {
			s.Runner = skill.Spec{Kind: "builtin", Name: "fake"}
		}
		for i := range s.Runner.Steps {
			if s.Runner.Steps[i].ErrorPolicy == "" {
				s.Runner.Steps[i].ErrorPolicy = skill.Abort
			}
		}
		g.Definitions = append(g.Definitions, skill.FromCode(s))
	}
	got, err := w.skills.Load(w.t.Context(), alice, g)
	if err != nil || len(got.Refused) > 0 {
		w.t.Fatalf("load: %v, refused %+v", err, got.Refused)
	}
}

func (w *world) invoke(name, params string) skill.Subagent {
	w.t.Helper()
	a, err := w.skills.Invoke(w.t.Context(), alice, skill.Invoke{Skill: name, Params: core.Raw(params)})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// over waits for a subagent's end.
func (w *world) over(id string) skill.Subagent {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer stop()
	a, err := w.skills.Wait(ctx, alice, id)
	if err != nil {
		w.t.Fatalf("wait for subagent %s: %v (%+v)", id, err, a)
	}
	return a
}

func (w *world) agent(id string) skill.Subagent {
	w.t.Helper()
	a, err := w.skills.Subagent(w.t.Context(), home, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// await polls until ok.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited 10 s for: %s", what)
		}
	}
}

func (w *world) state(id string, want skill.State) skill.Subagent {
	w.t.Helper()
	w.await("subagent "+id+" "+string(want), func() bool { return w.agent(id).State == want })
	return w.agent(id)
}

// executions of a subagent, oldest first.
func (w *world) executions(id string) []skill.Execution {
	w.t.Helper()
	page, err := w.skills.Executions(w.t.Context(), home, "", core.Filter{Agent: id, Size: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	all := make([]skill.Execution, 0, len(page.Items))
	for i := len(page.Items) - 1; i >= 0; i-- {
		all = append(all, page.Items[i])
	}
	return all
}

// messages on a topic, oldest first.
func (w *world) messages(topic string) []bus.Message {
	w.t.Helper()
	all, _, err := w.bus.Since(w.t.Context(), home, topic, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// whole checks that the store equals the log's replay, and the log itself.
func (w *world) whole() {
	w.t.Helper()
	deltas, err := w.ledger.Reconcile(context.Background(), home)
	if err != nil || len(deltas) > 0 {
		w.t.Errorf("reconcile: %+v, %v", deltas, err)
	}
}

func isCode(err error, c core.Code) bool { return errors.Is(err, core.Kind(c)) }
