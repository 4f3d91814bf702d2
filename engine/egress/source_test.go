package egress_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// talker is an agent that begins a call "c1" with its prompt, and works until
// it is told "end".
type talker struct {
	begun, end chan struct{}
	notify     sync.Map // by agent
}

func (*talker) Check(fleet.Create) error { return nil }

func (t *talker) Open(_ context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	t.notify.Store(a.Name, notify)
	notify(fleet.Health{Status: fleet.Idle, PID: 1})
	return &talking{t}, nil
}

type talking struct{ *talker }

func (t *talking) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	for _, e := range []fleet.Event{
		{Type: "tool_call", CallID: "c0", Tool: "read", Text: "notes"},
		{Type: "tool_result", CallID: "c0", Tool: "read", Status: "ok"},
		{Type: "tool_call", CallID: "c1", Tool: "execute", Text: "curl \x1b[2Jhttps://api.example"},
	} {
		if p.Message == "quietly" {
			break
		}
		if _, err := p.Emit(ctx, e); err != nil {
			return task.Outcome{}, err
		}
	}
	t.begun <- struct{}{}
	for {
		select {
		case <-t.end:
			return task.Outcome{Status: task.Succeeded}, nil
		case <-time.After(100 * time.Millisecond):
			p.Beat()
		case <-ctx.Done():
			return task.Outcome{}, ctx.Err()
		}
	}
}
func (*talking) Interrupt()                    {}
func (*talking) Pause(context.Context) error   { return nil }
func (*talking) Resume(context.Context) error  { return nil }
func (*talking) Stop(context.Context) error    { return nil }
func (*talking) Restart(context.Context) error { return nil }
func (*talking) Close() error                  { return nil }

// working is a world whose engine runs, with agents ada and bob.
type working struct {
	*world
	agents *talker
}

func work(t *testing.T, policy string) *working {
	t.Helper()
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "data.db"), store.Options{}))(t)
	w := &working{&world{t: t}, &talker{begun: make(chan struct{}), end: make(chan struct{})}}
	opt := engine.Options{Store: db, Runtimes: map[string]fleet.Runtime{"exec": w.agents}}
	if policy != "" {
		opt.Policy = []byte(policy)
	}
	w.Engine = expect.Of(engine.Open(t.Context(), opt))(t)
	w.bell = w.Watch(t.Context())
	expect.Of(w.Swarm.CreateTenant(t.Context(), alice, acme))(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		err := w.Run(ctx)
		expect.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	})
	t.Cleanup(func() {
		cancel()
		all.Wait()
		_ = w.Close()
		_ = db.Close()
	})
	for _, name := range []string{"ada", "bob"} {
		expect.Of(w.Fleet.Create(t.Context(), alice, fleet.Create{Name: name, Project: "site", Role: "coder", Command: []string{"x"}}))(w.t)
		w.is(name, fleet.Idle)
	}
	return w
}

// is waits until an agent has a status.
func (w *working) is(name string, status fleet.AgentStatus) {
	w.t.Helper()
	w.until(string(status), func() bool {
		now, _ := w.Fleet.Now(acme, name)
		return now.Agent.Status == status
	})
}

// gives an agent a task, and returns its id once it works on it.
func (w *working) gives(name, message string) string {
	w.t.Helper()
	t := expect.Of(w.Fleet.AssignWhenReady(w.t.Context(), alice, name, message, "", 10*time.Second))(w.t)
	<-w.agents.begun
	return t.TaskID
}

// over ends one agent's task and waits until that is recorded.
func (w *working) over(task string) {
	w.t.Helper()
	w.agents.end <- struct{}{}
	w.until("over", func() bool {
		t := expect.Of(w.Tasks.Get(w.t.Context(), acme, task))(w.t)
		return t.Status.Terminal()
	})
}

// shared is the process of both.
var shared = egress.Origin{
	Tenant: acme, Role: "coder", Profile: "worker", Run: "agents:t_acme:shared-1", Process: "node",
	Agents: func() []string { return []string{"ada", "bob"} },
}

func (w *working) denies(from egress.Origin, host string) judge.Approval {
	w.t.Helper()
	waits := w.asks(from, host, 443)
	a := w.open(1)[0]
	if a.TaskID != "" {
		why, err := w.Swarm.Why(w.t.Context(), acme, a.TaskID)
		expect.True(w.t, err == nil && why.Kind == "gate" && why.Ref == a.ApprovalID && strings.Contains(why.Text, a.Subject.Headline),
			"why the task waits: %+v %v", why, err)
	}
	w.answer(a.ApprovalID, judge.Answer{Reason: "no"})
	v := <-waits
	expect.True(w.t, !v.Allowed && v.Reason == "denied by alice: no", "%+v", v)
	return a
}

func TestAConnectionIsPartOfTheTaskAndCallOfItsAgent(t *testing.T) {
	w := work(t, "")
	from := ada
	from.Profile = "worker"
	if a := w.denies(from, "idle.example"); a.TaskID != "" || len(a.During) > 0 || a.Agent != (judge.AgentRef{Name: "ada", Role: "coder", Project: "site", Profile: "worker"}) || a.Driver != "exec" {
		t.Errorf("of an agent that does nothing: %+v", a)
	}
	task := w.gives("ada", "fetch it")
	a := w.denies(from, "api.example")
	expect.True(t, a.TaskID == task && len(a.During) == 1 && a.During[0] == (judge.During{CallID: "c1", Tool: "execute", Title: a.During[0].Title}), "%+v", a)
	got := a.During[0].String()
	expect.True(t, strings.HasPrefix(got, "execute curl ") && !strings.Contains(got, "\x1b") && strings.HasSuffix(got, " (c1)"), "the call is %q", got)
	full, err := w.Tasks.Get(t.Context(), acme, task)
	expect.True(t, err == nil && a.TraceID == full.TraceID, "%s %s %v", a.TraceID, full.TraceID, err)
	if got := w.log("egress.refused"); !strings.Contains(string(got[0].Payload), `"task_id":"`+task+`"`) || !strings.Contains(string(got[0].Payload), `"call_id":"c1"`) {
		t.Errorf("%s", got[0].Payload)
	}
	w.over(task)
	quiet := w.gives("ada", "quietly")
	a = w.denies(from, "quiet.example")
	expect.True(t, a.TaskID == quiet && len(a.During) == 0, "of an agent that tells of no call: %+v", a)
	w.over(quiet)
}

func TestAnAgentThatCannotWorkYetAsksNothing(t *testing.T) {
	w := work(t, "")
	said, _ := w.agents.notify.Load("ada")
	tell := said.(func(fleet.Health))
	for _, h := range []fleet.Health{{Status: fleet.Starting}, {Status: fleet.Offline, Reason: "it needs a login"}, {Status: fleet.Failed}, {Status: fleet.Idle, Reason: "its last prompt failed: it needs a login"}} {
		tell(h)
		w.is("ada", h.Status)
		w.until(h.Reason, func() bool {
			now, _ := w.Fleet.Now(acme, "ada")
			return now.Agent.Reason == h.Reason
		})
		for range 10 {
			v := <-w.asks(ada, "telemetry.example", 443)
			expect.True(t, !v.Allowed && v.Reason == "the agent can't work yet, and no egress rule names the host", "%+v: %+v", h, v)
		}
	}
	all, err := w.Judge.Approvals(t.Context(), acme, core.Filter{})
	if err != nil || len(all.Items) != 0 || len(w.log("egress.refused")) != 1 {
		t.Errorf("%v %v, the same refusal is told once: %v", all.Items, err, w.log("egress.refused"))
	}
	w.put(egress.Allow, "telemetry.example")
	v := <-w.asks(ada, "telemetry.example", 443)
	expect.True(t, v.Allowed, "a rule needs nobody: %+v", v)
	w.denies(shared, "shared.example") // bob can work
	check := ada
	check.Run = egress.Checking + "t_acme:ada"
	w.denies(check, "check.example") // it goes on without ada
	tell(fleet.Health{Status: fleet.Idle, PID: 1})
	w.is("ada", fleet.Idle)
	w.until("ready", func() bool {
		now, _ := w.Fleet.Now(acme, "ada")
		return now.Agent.Reason == ""
	})
	w.denies(ada, "api.example")
}

func TestOfASharedProcessOnlyWhatIsKnownIsSaid(t *testing.T) {
	w := work(t, "")
	a := w.denies(shared, "idle.example")
	if a.TaskID != "" || len(a.During) > 0 || a.Agent != (judge.AgentRef{Role: "coder", Profile: "worker"}) || a.Intent != "node of ada or bob connects to idle.example:443" {
		t.Errorf("nobody works: %+v", a)
	}
	first := w.gives("ada", "quietly")
	a = w.denies(shared, "one.example")
	expect.True(t, a.TaskID == first && len(a.During) == 0 && a.Agent.Name == "", "one works: %+v", a)
	second := w.gives("bob", "aloud")
	a = w.denies(shared, "two.example")
	want := []judge.During{{Agent: "ada", TaskID: first}, {Agent: "bob", TaskID: second, CallID: "c1", Tool: "execute"}}
	expect.Must(t, len(a.During) == 2, "both work: %+v", a)
	want[1].Title = a.During[1].Title
	expect.True(t, a.TaskID == "" && a.During[0] == want[0] && a.During[1] == want[1], "both work: %+v", a)
	expect.Is(t, a.During[0].String(), "ada, "+first+": tells of no call")
	w.agents.end <- struct{}{}
	w.over(first)
}

func TestRulesSeeTheProfileOfWhatConnects(t *testing.T) {
	w := work(t, `
schema: 1
name: test
rules:
  - {id: start, gates: [task.start], when: "true", decision: approve, reason_code: ok, risk: low, rationale: fine}
  - {id: walled, gates: [net.connect], when: 'agent.profile == "worker" && agent.project == "site" && context.driver == "exec"', decision: approve, reason_code: ok, risk: low, rationale: a wall holds it}
  - {id: all, gates: [net.connect], when: 'agent.profile == ""', decision: deny, reason_code: no, risk: low, rationale: nothing holds it}
`)
	from := ada
	v := <-w.asks(from, "api.example", 443)
	expect.True(t, !v.Allowed, "%+v", v)
	from.Profile = "worker"
	v = <-w.asks(from, "api.example", 443)
	expect.True(t, v.Allowed, "%+v", v)
}

func TestBytesAreNamedByTask(t *testing.T) {
	w := work(t, "")
	host := target(t, "api.example", 443)
	opened := func(from egress.Origin, sent int64) (over func()) {
		return w.Egress.Opened(from, host, func() (int64, int64) { return sent, 0 })
	}
	opened(ada, 1)()
	task := w.gives("ada", "quietly")
	opened(ada, 10)()
	late := opened(ada, 100)
	w.over(task)
	used := func() (all string) {
		for _, e := range w.log("egress.used") {
			all += string(e.Payload) + "\n"
		}
		return all
	}
	if got := used(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"sent_bytes":10,`) || !strings.Contains(got, task) {
		t.Errorf("a task that is over has its sum in the log: %s", got)
	}
	late()
	w.no(w.Egress.EndRun(t.Context(), acme, ada.Run))
	got := used()
	if strings.Count(got, "\n") != 3 || strings.Count(got, task) != 2 || !strings.Contains(got, `"sent_bytes":100,`) || !strings.Contains(got, `"sent_bytes":1}`) {
		t.Errorf("%s", got)
	}
}

func TestWhatASharedProcessSendsForATaskIsInItsRecord(t *testing.T) {
	w := work(t, "")
	first := w.gives("ada", "quietly")
	known := w.Egress.Tally(acme, "ada", first)
	host := target(t, "api.example", 443)
	w.Egress.Opened(shared, host, func() (int64, int64) { return 10, 0 })()
	second := w.gives("bob", "quietly")
	other := w.Egress.Tally(acme, "bob", second)
	w.Egress.Opened(shared, host, func() (int64, int64) { return 100, 0 })() // of either
	got := known.End()
	expect.True(t, len(got) == 1 && got[0].Sent == 10, "%v", got)
	got = other.End()
	expect.True(t, len(got) == 0, "%v", got)
	w.agents.end <- struct{}{}
	w.agents.end <- struct{}{}
}

func TestAQuestionThatIsVoidedIsNoPersonsNo(t *testing.T) {
	w := open(t, "", 0)
	waits := w.asks(ada, "api.example", 443)
	id := w.open(1)[0].ApprovalID
	w.no(w.Audit.Update(t.Context(), alice, func(tx *audit.Tx) error {
		return w.Judge.Void(tx, func(a *judge.Approval) bool { return a.ApprovalID == id }, "its task is over")
	}))
	v := <-waits
	expect.True(t, !v.Allowed, "%+v", v)
	again := w.asks(ada, "api.example", 443)
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Approve: true})
	v = <-again
	expect.True(t, v.Allowed, "%+v", v)
}
