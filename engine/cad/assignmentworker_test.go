package cad_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// prompts is a fleet whose agents answer by a function of the test.
type prompts struct {
	answer func(message string) task.Outcome

	mu    sync.Mutex
	asked []string
}

func (p *prompts) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return "prompt", judge.Action{Kind: "agent.prompt", Args: input}, nil
}

func (p *prompts) Slot(string, string) (bool, string) { return true, "" }

func (p *prompts) Start(_ context.Context, job swarm.Job) (swarm.Work, error) {
	var in struct {
		Message string `json:"message"`
	}
	if err := core.DecodeStored(job.Task.Input, &in); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.asked = append(p.asked, in.Message)
	p.mu.Unlock()
	w := &prompted{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.out = p.answer(in.Message)
	}()
	return w, nil
}

func (p *prompts) messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

type prompted struct {
	done chan struct{}
	out  task.Outcome
}

func (w *prompted) Done() <-chan struct{}        { return w.done }
func (w *prompted) Outcome() task.Outcome        { <-w.done; return w.out }
func (w *prompted) Cancel(string)                {}
func (w *prompted) Pause(context.Context) error  { return nil }
func (w *prompted) Resume(context.Context) error { return nil }

func text(s string) task.Outcome {
	return task.Outcome{Status: task.Succeeded, Output: core.MustEncode(map[string]string{"text": s})}
}

const answered = `{"scenario_name":"teapot","description":"A teapot","workflow_pattern":"mixed","success_criteria":"It pours",
 "agent_assignments":[{"agent_id":"potter","role_name":"modeler","workspace_id":"ws_potter"}],
 "task_sequence":[{"task_id":"t1","agent_id":"potter","description":"Throw it","check":"size(entities) == 1",
   "operations":[{"id":"p","method":"entity.create_point","params":{"entity_id":"spout","x":1,"y":2}}]}]}`

func TestAnAgentDecomposesWhatNoPatternKnows(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns []string // the agent's answers
		want  string   // of the error; "" when it runs
		asked int
		told  []string // of what was wrong with the first
	}{
		{"at once", []string{"Here:\n```json\n" + answered + "\n```"}, "", 1, nil},
		{"after a mistake", []string{strings.Replace(answered, `"modeler"`, `"validator"`, 1), answered}, "", 2, []string{"answer.json:3: ", "required_operations"}},
		{"never", []string{"I can't", "I really can't", "No"}, "can't be used, after 3 tries", 3, nil},
		{"with parameters that the method does not have", []string{
			strings.Replace(answered, `entity.create_point","params":{"entity_id":"spout","x":1,"y":2}`, `entity.create_circle","params":{"entity_id":"spout","diameter":5}`, 1), answered,
		}, "", 2, []string{
			"task_sequence[0].operations[0].params: entity.create_circle: center is missing; give 2 or 3 numbers", "radius is missing", "diameter: unknown parameter; allowed: entity_id, center, radius",
		}},
		{"in the name of another", []string{strings.Replace(answered, `"x":1`, `"agent_id":"moe","x":1`, 1), answered}, "", 2, []string{"agent_id is the task's own agent; leave it out"}},
		{"with a text for a number", []string{strings.Replace(answered, `"x":1`, `"x":"wide"`, 1), answered}, "", 2, []string{`entity.create_point: x: "wide" is not allowed; give a number`}},
		{"ambiguous", []string{`{"missing":["its size","who\u001b[2J drinks"]}`}, "missing: its size; who [2J drinks", 1, nil},
		{"an unknown method", []string{strings.ReplaceAll(answered, "create_point", "create_teapot"), strings.ReplaceAll(answered, "create_point", "create_teapot"), "No"}, "can't be used", 3, []string{"entity.create_teapot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			n := 0
			p := &prompts{}
			p.answer = func(string) task.Outcome { n++; return text(c.turns[n-1]) }
			w.swarm.Runner("agent.prompt", p)
			w.run()
			flow, err := w.cad.Decompose(t.Context(), alice, cad.Decompose{Goal: "a teapot", Agent: "claude", Run: true})
			if c.want != "" {
				expect.True(t, code(err) == core.InvalidInput && strings.Contains(err.Error(), c.want), "%v, want %q", err, c.want)
			} else if err != nil {
				t.Error(err)
			} else if flow = w.over(flow.WorkflowID); flow.State != cad.WorkflowCompleted || flow.Goal != "a teapot" || w.ids("ws_potter") != "spout" {
				t.Errorf("%s %+v", flow.Shown(), flow.Failures)
			}
			all := p.messages()
			expect.True(t, len(all) == c.asked && strings.Contains(all[0], "a teapot") && strings.Contains(all[0], "- modeler: entity.create_point"),
				"asked %d times: %.300q", len(all), all)
			for _, want := range c.told {
				expect.Has(t, all[1], want, "the mistake was not told")
			}
			expect.True(t, strings.Contains(all[0], "- solid.revolve: entity_id text") && !strings.Contains(all[0], "- solid.shell:"),
				"not all that a role allows is explained: %s", all[0])
		})
	}
}

func TestAnAgentOfTheFleetDoesATaskWithoutOperations(t *testing.T) {
	w := newWorld(t)
	claude := core.Caller{Tenant: home, Name: "claude", Kind: core.Agent, Door: core.DoorMCP}
	s := four()
	s.Name, s.Tasks = "free", s.Tasks[:2]
	s.Tasks[0].Operations, s.Tasks[0].Worker, s.Tasks[0].Check = nil, "claude", "size(entities) == 1"
	s.Agents = s.Agents[1:3]
	w.put(s)
	p := &prompts{}
	w.swarm.Runner("agent.prompt", p)
	works := true
	p.answer = func(string) task.Outcome {
		if works {
			_, err := w.cad.Execute(t.Context(), claude, cad.Operation{Method: "entity.create_point", Params: core.Raw(`{"entity_id":"free"}`)})
			expect.True(t, err == nil, "%v", err)
			_, err = w.cad.Execute(t.Context(), claude, cad.Operation{AgentID: "joiner", Method: "entity.list"})
			expect.True(t, code(err) == core.Denied, "as an agent whose task it does not do: %v", err)
		}
		return text(`{"done":true}`)
	}
	w.run()
	w.agent("joiner", "integrator")
	flow := w.over(w.start("free").WorkflowID)
	_, err := w.cad.Execute(t.Context(), claude, cad.Operation{AgentID: "maker_a", Method: "entity.list"})
	expect.Is(t, code(err), core.Denied, "once the task is over")
	expect.True(t, flow.State == cad.WorkflowCompleted && w.ids("ws_a") == "free" && strings.Contains(string(of(flow, "a").Result), `"reply":{"done":true}`),
		"%s %+v %s", flow.Shown(), flow.Failures, of(flow, "a").Result)
	m := p.messages()
	expect.True(t, len(m) == 1 && strings.Contains(m[0], `cad_operation {"agent_id":"maker_a"`) && strings.Contains(m[0], "size(entities) == 1"), "%q", m)
	works = false // it says that it is done, and has done nothing
	flow = w.over(w.start("free").WorkflowID)
	if flow.State != cad.PartialFailure || flow.Failures[0].ErrorCode != cad.CheckFailed || !strings.Contains(flow.Failures[0].Error, "size(entities) = 0") {
		t.Errorf("%s %+v", flow.Shown(), flow.Failures)
	}
	w.sound()
}

func TestATaskOfItsOwnNeedsNoWorkflow(t *testing.T) {
	w := newWorld(t)
	w.agent("mona", "modeler")
	w.agent("vera", "validator")
	w.run()
	a, err := w.cad.Assign(t.Context(), alice, "mona", core.Raw(`{"description":"Two points","operations":[
		{"id":"p","method":"entity.create_point","params":{"entity_id":"one"}},{"method":"entity.create_point","params":{"entity_id":"${p.entity_id}_b"}}],"check":"size(entities) == 2"}`))
	expect.No(t, err)
	w.await("its end", func() bool {
		a, err = w.cad.Assignment(t.Context(), home, a.SwarmTask)
		return err == nil && a.Status == cad.Completed
	})
	expect.True(t, w.ids("ws_mona") == "one one_b" && a.Done == 2 && a.TaskID == a.SwarmTask, "%s %+v", w.ids("ws_mona"), a)
	flow := w.start("assembly_design")
	for input, want := range map[string]string{
		`{"description":"x"}`: "operations: none, and no worker",
		`{"description":"x","operations":[{"method":"entity.create_point"}],"workflow_id":"` + flow.WorkflowID + `","task_id":"t1"}`: "belongs to workflow",
		`{"description":"x","operations":[{"method":"entity.create_point","params":{"a":"${tasks.t1.p.x}"}}]}`:                       "is not among the dependencies",
	} {
		expect.Says(t, expect.Fault(w.cad.Assign(t.Context(), alice, "mona", core.Raw(input))), want, input)
	}
	if _, err := w.cad.Assign(t.Context(), alice, "vera", core.Raw(`{"description":"x","operations":[{"method":"entity.create_point"}]}`)); err == nil || core.AsError(err).Details["error"] != "ROLE_VIOLATION" {
		t.Errorf("%v", err)
	}
	w.over(flow.WorkflowID) // what still works can't be looked at as it was at one instant
	w.sound()
}

func TestAPausedAssignmentStandsStillBetweenOperations(t *testing.T) {
	w := newWorld(t)
	w.agent("mona", "modeler")
	reached, hold := make(chan bool, 1), make(chan bool)
	w.pool.on(func(_ context.Context, _ *fakeWorker, c cad.Call) error {
		if strings.Contains(string(c.Params), `"entity_id":"p1"`) {
			reached <- true
			<-hold
		}
		return nil
	}, nil)
	w.run()
	a, err := w.cad.Assign(t.Context(), alice, "mona", core.Raw(`{"description":"Points","operations":[
		{"method":"entity.create_point","params":{"entity_id":"p1"}},{"method":"entity.create_point","params":{"entity_id":"p2"}}]}`))
	expect.No(t, err)
	<-reached
	expect.Of(w.swarm.PauseTask(t.Context(), alice, a.SwarmTask, "look"))(t)
	close(hold)
	w.await("the first point", func() bool { return w.ids("ws_mona") == "p1" })
	w.await("the pause", func() bool {
		why, err := w.swarm.Why(t.Context(), home, a.SwarmTask)
		return err == nil && why.Kind == "pause"
	})
	expect.Is(t, w.ids("ws_mona"), "p1", "under the pause")
	expect.Of(w.swarm.ResumeTask(t.Context(), alice, a.SwarmTask))(t)
	w.await("its end", func() bool {
		a, err = w.cad.Assignment(t.Context(), home, a.SwarmTask)
		return err == nil && a.Status == cad.Completed
	})
	expect.Is(t, w.ids("ws_mona"), "p1 p2", "at its end")
	w.sound()
}
