package skill_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const office = "t_office"

var bob = core.Caller{Tenant: office, Name: "bob", Kind: core.Operator, Door: core.DoorCLI}

// desk is a swarm with one kind of task that is a skill of kind agent, and
// an agent that is a function.
type desk struct {
	t     *testing.T
	path  string
	db    *store.DB
	swarm *swarm.Swarm
	tasks *task.Table
	close func()

	mu     sync.Mutex
	asked  []string // inputs of the agent's tasks
	params core.Raw
	agent  skill.Func
}

func newDesk(t *testing.T, agent skill.Func) *desk {
	d := &desk{t: t, path: filepath.Join(t.TempDir(), "data.db"), agent: agent, params: core.Raw(`{"file":"a.go"}`)}
	d.open()
	expect.Of(d.swarm.CreateTenant(t.Context(), bob, office))(t)
	t.Cleanup(func() { d.close() })
	return d
}

func (d *desk) open() {
	d.t.Helper()
	db := expect.Of(store.Open(d.path, store.Options{}))(d.t)
	ledger := audit.New(db, audit.Options{})
	policy := `{schema: 1, name: test, rules: [{id: ok, gates: [task.start, result], when: 'true', decision: approve, reason_code: test.ok, risk: low}]}`
	j := expect.Of(judge.New(judge.Options{Ledger: ledger, Policy: []byte(policy), Tenants: db.Tenants}))(d.t)
	d.db = db
	d.tasks = task.New(task.Options{Ledger: ledger})
	d.swarm = expect.Of(swarm.New(d.t.Context(), swarm.Options{Store: db, Ledger: ledger, Judge: j, Tasks: d.tasks, Slots: 4, Spill: d.t.TempDir()}))(d.t)
	d.swarm.Runner("agent.prompt", deskRunner{d: d, kind: "agent.prompt"})
	d.swarm.Runner("test.skill", deskRunner{d: d, kind: "test.skill"})
	ctx, stop := context.WithCancel(context.Background())
	ended := expect.Later(func() error { return d.swarm.Run(ctx) })
	d.close = func() {
		stop()
		expect.Is(d.t, <-ended, nil)
		expect.Is(d.t, db.Close(), nil)
		d.close = func() {}
	}
}

// invoke dispatches the skill and waits for its end.
func (d *desk) invoke() (task.Task, func() task.Result) {
	d.t.Helper()
	priority := 70
	t := expect.Of(d.swarm.Dispatch(d.t.Context(), bob, swarm.Dispatch{Kind: "test.skill", Input: core.Raw(`{}`), Priority: &priority}))(d.t)
	return t, func() task.Result { return d.result(t.TaskID) }
}

func (d *desk) result(id string) task.Result {
	d.t.Helper()
	ctx, stop := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer stop()
	expect.Of(d.tasks.Wait(ctx, office, id, ""))(d.t)
	return expect.Of(d.tasks.Result(ctx, office, id))(d.t)
}

// child waits for the skill's child, at the status.
func (d *desk) child(parent string, status task.Status) (child task.Task) {
	d.t.Helper()
	expect.Await(d.t, "a child at "+string(status), func() bool {
		tree := expect.Of(d.tasks.Tree(d.t.Context(), office, parent))(d.t)
		child = tree[len(tree)-1]
		return len(tree) > 1 && child.Status == status
	})
	return child
}

// deskRunner is the swarm's runner of both kinds.
type deskRunner struct {
	d    *desk
	kind string
}

func (r deskRunner) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return r.kind, judge.Action{Kind: r.kind, Args: input}, nil
}
func (deskRunner) Slot(_, _ string) (bool, string) { return true, "" }

func (r deskRunner) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	call := skill.Call{
		Tenant: office, TaskID: job.Task.TaskID, TraceID: job.Task.TraceID, Log: job.Log,
		Skill: &skill.Skill{Name: "review", Version: "1.0.0", Runner: skill.Spec{Kind: "agent", Agent: "reviewer", Prompt: "Review ${file}."}},
	}
	var w swarm.Work
	var err error
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.kind == "agent.prompt" {
		r.d.asked = append(r.d.asked, string(job.Task.Input))
		w = skill.RunFunc(ctx, call, r.d.agent)
	} else {
		call.Params = r.d.params
		w, err = skill.NewAgentRunner(r.d.tasks, r.d.swarm).Start(ctx, call)
	}
	if err == nil {
		go beat(job, w)
	}
	return w, err
}

func beat(job swarm.Job, w swarm.Work) {
	for {
		select {
		case <-w.Done():
			return
		case <-time.After(100 * time.Millisecond):
			job.Beat()
		}
	}
}

func TestAnAgentIsAskedByAChildTask(t *testing.T) {
	d := newDesk(t, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) {
		return core.Raw(`{"verdict":"fine","issues":[]}`), nil
	})
	parent, result := d.invoke()
	r := result()
	expect.Must(t, r.Status == task.Succeeded && string(r.Output) == `{"verdict":"fine","issues":[]}`, "result %+v %+v", r, r.Error)
	child := d.child(parent.TaskID, task.Succeeded)
	if child.Kind != "agent.prompt" || child.ParentTaskID != parent.TaskID || child.TraceID != parent.TraceID || child.Priority != 70 ||
		child.CreatedBy != "bob" || child.MaxAttempts != 0 || child.Intent != "skill review@1.0.0 asks agent reviewer" {
		t.Errorf("child %+v", child)
	}
	expect.True(t, len(d.asked) == 1 && d.asked[0] == `{"agent":"reviewer","message":"Review a.go."}`, "asked %q", d.asked)
}

func TestAnAgentsTextThatIsOneObjectIsTheResult(t *testing.T) {
	for output, want := range map[string]string{
		`{"rc":0,"stdout":" {\"ok\": true}\n"}`:               `{"ok": true}`,
		`{"text":"{\"ok\":true}"}`:                            `{"ok":true}`,
		"{\"text\":\"```json\\n{\\\"ok\\\":true}\\n```\\n\"}": `{"ok":true}`,
		`{"text":"it is {\"ok\":true}"}`:                      ``,
		`{"text":"[1]"}`:                                      ``,
		`{"text":"{\"ok\":true}","score":1}`:                  ``,
		`{"text":{"text":"{}"}}`:                              ``,
		`{"verdict":"{}"}`:                                    ``,
		`{}`:                                                  ``,
	} {
		if want == "" {
			want = output
		}
		d := newDesk(t, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { return core.Raw(output), nil })
		_, result := d.invoke()
		expect.True(t, string(result().Output) == want, "%s became %s, want %s", output, result().Output, want)
		d.close()
	}
}

func TestAnAgentsFailureIsTheSkills(t *testing.T) {
	d := newDesk(t, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) {
		return nil, &skill.Failure{Code: "agent_exit", Message: "exit status 3"}
	})
	parent, result := d.invoke()
	r := result()
	child := d.child(parent.TaskID, task.Failed)
	want := "agent reviewer: task " + child.TaskID + " ended failed: exit status 3"
	expect.True(t, r.Status == task.Failed && r.Error.Code == "agent_exit" && r.Error.Message == want, "result %+v %+v, want %q", r, r.Error, want)
}

func TestAMissingParameterStartsNothing(t *testing.T) {
	d := newDesk(t, nil)
	d.params = core.Raw(`{}`)
	_, result := d.invoke()
	r := result()
	expect.True(t, r.Status == task.Failed && strings.Contains(r.Error.Message, "${file}: file has no value"), "result %+v %+v", r, r.Error)
	expect.Is(t, len(d.asked), 0, "asked", d.asked)
}

// busy is an agent at work until it is interrupted.
func busy(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
	return core.Raw(`{"slept":true}`), hold.Sleep(ctx, time.Hour)
}

func TestCancellingTheSkillCancelsItsChild(t *testing.T) {
	d := newDesk(t, busy)
	parent, result := d.invoke()
	child := d.child(parent.TaskID, task.Running)
	expect.Of(d.swarm.Cancel(t.Context(), bob, parent.TaskID, "changed my mind"))(t)
	r := result()
	expect.True(t, r.Status == task.Cancelled, "skill %+v", r)
	r = d.result(child.TaskID)
	expect.True(t, r.Status == task.Cancelled && strings.Contains(r.Error.Message, "changed my mind"), "child %+v %+v", r, r.Error)
}

func TestACancelledChildFailsTheSkill(t *testing.T) {
	d := newDesk(t, busy)
	parent, result := d.invoke()
	child := d.child(parent.TaskID, task.Running)
	expect.Of(d.swarm.Cancel(t.Context(), bob, child.TaskID, "wrong agent"))(t)
	if r := result(); r.Status != task.Failed || r.Error.Code != "agent_cancelled" || !strings.Contains(r.Error.Message, "wrong agent") {
		t.Errorf("skill %+v %+v", r, r.Error)
	}
}

func TestPausingTheSkillPausesItsChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan int, 1000)
		d := newDesk(t, func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
			for i := range 1000 {
				if err := hold.Sleep(ctx, 5*time.Millisecond); err != nil {
					return nil, err
				}
				steps <- i
			}
			return core.Raw(`{}`), nil
		})
		parent, _ := d.invoke()
		child := d.child(parent.TaskID, task.Running)
		<-steps
		expect.Of(d.swarm.PauseTask(t.Context(), bob, parent.TaskID, "look"))(t)
		still := func(id string) bool {
			why := expect.Of(d.swarm.Why(t.Context(), office, id))(t)
			return why.Kind == "pause" && !why.Moving
		}
		expect.Await(t, "the pause does not come into effect", func() bool { return still(parent.TaskID) && still(child.TaskID) })
		for len(steps) > 0 {
			<-steps
		}
		select {
		case <-steps:
			t.Error("the agent went on while paused")
		case <-time.After(100 * time.Millisecond):
		}
		expect.Of(d.swarm.ResumeTask(t.Context(), bob, parent.TaskID))(t)
		expect.From(t, steps, "the agent does not go on")
	})
}

func TestATryAfterARestartTakesTheLiveChildOver(t *testing.T) {
	release := make(chan struct{})
	d := newDesk(t, func(ctx context.Context, _ skill.Call, _ *skill.Hold) (core.Raw, error) {
		select {
		case <-release:
			return core.Raw(`{"ok":true}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	parent, _ := d.invoke()
	child := d.child(parent.TaskID, task.Running)
	d.close()
	d.open()
	d.child(parent.TaskID, task.Running)
	close(release)
	r := d.result(parent.TaskID)
	expect.True(t, r.Status == task.Succeeded && string(r.Output) == `{"ok":true}`, "skill %+v %+v", r, r.Error)
	tree, err := d.tasks.Tree(t.Context(), office, parent.TaskID)
	expect.True(t, err == nil && len(tree) == 2 && tree[1].TaskID == child.TaskID, "tree %+v %v, want the one child %s", tree, err, child.TaskID)
}

func TestAnAgentSectionIsChecked(t *testing.T) {
	r := skill.NewAgentRunner(nil, nil)
	for field, spec := range map[string]skill.Spec{
		"runner.agent":  {Prompt: "x"},
		"runner.prompt": {Agent: "a"},
	} {
		err := r.Check(spec)
		expect.True(t, err != nil && core.AsError(err).Details["field"] == field, "%+v: %v", spec, err)
	}
	expect.No(t, r.Check(skill.Spec{Agent: "a", Prompt: "do ${x}"}))
}
