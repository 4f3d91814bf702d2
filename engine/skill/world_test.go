package skill_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const home = "t_home"

var alice = core.Caller{Tenant: home, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// world is skills over a data file, with all that they stand on.
type world struct {
	*enginetest.World
	policy []byte
	most   int
	kinds  map[string]skill.Runner
	fake   *fake

	judge  *judge.Judge
	tasks  *task.Table
	swarm  *swarm.Swarm
	bus    *bus.Bus
	skills *skill.Skills
}

// fake carries out skills by functions of the test, by the skill's name.
type fake struct {
	mu    sync.Mutex
	does  map[string]skill.Func
	calls []skill.Call
	work  func(engine context.Context) swarm.Work // instead of all functions, if set
}

func (f *fake) Check(skill.Spec) error { return nil }

func (f *fake) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	do, work := f.does[call.Skill.Name], f.work
	f.mu.Unlock()
	if work != nil {
		return work(ctx), nil
	}
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
	w := blank()
	for _, c := range change {
		c(w)
	}
	enginetest.New(t, w.options())
	expect.Of(w.swarm.CreateTenant(t.Context(), alice, home))(w.T)
	return w
}

// worldOver is a world over a store that is open.
func worldOver(t testing.TB, st store.Store) *world {
	w := blank()
	enginetest.On(t, st, w.options())
	return w
}

func blank() *world {
	w := &world{fake: &fake{does: map[string]skill.Func{}}}
	w.kinds = map[string]skill.Runner{"builtin": w.fake}
	return w
}

func (w *world) options() enginetest.Options {
	return enginetest.Options{Tenants: []string{}, Build: w.build, Changed: func(c core.Change) {
		if w.bus != nil {
			w.bus.Changed(c)
		}
	}}
}

// build makes everything over an open store.
func (w *world) build(e *enginetest.World) {
	w.World = e
	ctx, st := context.Background(), e.Store
	var err error
	w.judge = expect.Of(judge.New(judge.Options{Ledger: w.Ledger, Policy: w.policy, Tenants: st.Tenants}))(w.T)
	w.tasks = task.New(task.Options{Ledger: w.Ledger})
	w.swarm = expect.Of(swarm.New(ctx, swarm.Options{Store: st, Ledger: w.Ledger, Judge: w.judge, Tasks: w.tasks, Spill: w.Dir}))(w.T)
	var p parties
	w.bus = bus.New(bus.Options{Ledger: w.Ledger, Directory: &p, Tenants: st.Tenants})
	w.skills, err = skill.New(ctx, skill.Options{
		Ledger: w.Ledger, Judge: w.judge, Swarm: w.swarm, Tasks: w.tasks, Bus: w.bus, Runners: w.kinds, MaxSubagents: w.most,
	})
	w.No(err)
	p.Directory = w.skills
	w.swarm.Runner(skill.KindInvoke, w.skills.Runner())
	w.No(w.swarm.Recover(ctx))
	w.judge.Await(judge.GateSkill, nil)
}

// parties is filled in after the bus is made.
type parties struct{ bus.Directory }

// run starts the scheduler.
func (w *world) run() { w.Start(w.swarm.Run, w.judge.Run) }

// load takes skills in. What is left out of one is filled in.
func (w *world) load(all ...skill.Skill) {
	w.T.Helper()
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
	got, err := w.skills.Load(w.T.Context(), alice, g)
	expect.Must(w.T, err == nil && len(got.Refused) == 0, "load: %v, refused %+v", err, got.Refused)
}

func (w *world) invoke(name, params string) skill.Subagent {
	w.T.Helper()
	return expect.Of(w.skills.Invoke(w.T.Context(), alice, skill.Invoke{Skill: name, Params: core.Raw(params)}))(w.T)
}

// over waits for a subagent's end.
func (w *world) over(id string) skill.Subagent {
	w.T.Helper()
	ctx, stop := context.WithTimeout(w.T.Context(), 2*time.Minute)
	defer stop()
	a, err := w.skills.Wait(ctx, alice, id)
	expect.Must(w.T, err == nil, "wait for subagent %s: %v (%+v)", id, err, a)
	return a
}

func (w *world) agent(id string) skill.Subagent {
	w.T.Helper()
	return expect.Of(w.skills.Subagent(w.T.Context(), home, id))(w.T)
}

// await polls until ok.
func (w *world) state(id string, want skill.State) skill.Subagent {
	w.T.Helper()
	w.Await("subagent "+id+" "+string(want), func() bool { return w.agent(id).State == want })
	return w.agent(id)
}

// executions of a subagent, oldest first.
func (w *world) executions(id string) []skill.Execution {
	w.T.Helper()
	page := expect.Of(w.skills.Executions(w.T.Context(), home, "", core.Filter{Agent: id, Size: 100}))(w.T)
	all := make([]skill.Execution, 0, len(page.Items))
	for i := len(page.Items) - 1; i >= 0; i-- {
		all = append(all, page.Items[i])
	}
	return all
}

// messages on a topic, oldest first.
func (w *world) messages(topic string) []bus.Message {
	w.T.Helper()
	all, _, err := w.bus.Since(w.T.Context(), home, topic, 0, 100)
	expect.No(w.T, err)
	return all
}

// whole checks that the store equals the log's replay, and the log itself.
func (w *world) whole() {
	w.T.Helper()
	deltas, err := w.Ledger.Reconcile(context.Background(), home)
	expect.True(w.T, err == nil && len(deltas) == 0, "reconcile: %+v, %v", deltas, err)
}

func isCode(err error, c core.Code) bool { return errors.Is(err, core.Kind(c)) }

// reading has the skills read their files again when these change, until stop is called.
func (w *world) reading() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		err := w.skills.Run(ctx)
		expect.True(w.T, err == nil || ctx.Err() != nil, "Run: %v", err)
	})
	return sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
}
