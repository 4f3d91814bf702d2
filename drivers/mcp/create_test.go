package mcp

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// TestWhoIsAskedSeesWhatANewAgentIsLike: what a call leaves open is settled
// before a person answers, not after.
func TestWhoIsAskedSeesWhatANewAgentIsLike(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, sony, "", nil)
	want := map[string]any{"name": "Zed", "project": "P", "task": "wait"}
	made := make(chan agentAnswer, 1)
	create := func(args map[string]any) {
		var out agentAnswer
		defer func() { made <- out }()
		use(t, cs, "create_agent", args, &out)
	}
	go create(want)
	a := h.answer(t, "create_agent", judge.Answer{Approve: true})
	expect.Has(t, string(a.Action.Args), `"like":"Sony"`, "the card says")
	out := <-made
	expect.True(t, out.Agent.Name == "Zed" && strings.Contains(out.Message, "Zed shares "+h.dir), "%+v", out)
	want["name"], want["command"] = "Yves", "head -n 1 | cat"
	go create(want)
	h.answer(t, "create_agent", judge.Answer{Approve: true})
	<-made
	yves, err := h.eng.Fleet.Agent(t.Context(), lab, "Yves")
	expect.True(t, err == nil && slices.Equal(yves.Command, []string{"sh", "-c", "head -n 1 | cat"}) && yves.Dir == h.dir,
		"%v in %s, %v", yves.Command, yves.Dir, err)
	for field, args := range map[string]map[string]any{
		"like":    {"like": "Sony", "command": "cat"},
		"command": {"role": "painter"},
		"dir":     {"dir": "below", "command": "cat"},
		"name":    {"name": "no name"},
		"runtime": {"runtime": "rocket"},
		"task":    {"task": nil},
		"project": {"project": " P", "command": "cat"},
	} {
		for _, name := range []string{"name", "project", "task"} {
			if _, given := args[name]; !given {
				args[name] = map[string]any{"name": "Xia", "project": "P", "task": "wait"}[name]
			}
		}
		e := refusal(t, cs, "create_agent", args)
		expect.True(t, e.Code == core.InvalidInput && e.Details["field"] == field, "%v: %+v", args, e)
	}
	open, err := h.eng.Judge.Open(t.Context(), lab)
	expect.True(t, err == nil && !slices.ContainsFunc(open, func(a judge.Approval) bool { return a.Action.Tool != "" }),
		"asked about mistakes: %+v %v", open, err)
}

// TestACallIsToldWhatBecomesOfACredential: a value in clear is kept as a secret,
// which whoever gave it has to know.
func TestACallIsToldWhatBecomesOfACredential(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	h := newHouse(t, func(opt *engine.Options, _ *cell.Supervisor) { opt.SecretKey = key })
	cs := h.stdio(t, person, "", nil)
	var out taskAnswer
	use(t, cs, "dispatch_task", map[string]any{"kind": "exec.run", "input": map[string]any{
		"argv": []string{"true"}, "env": map[string]any{"API_TOKEN": "abcdefghij0123456789"},
	}}, &out)
	expect.True(t, strings.Contains(out.Message, "dispatched task") && strings.Contains(out.Message, "API_TOKEN"), "%q", out.Message)
}

func TestAMessageCarriesTheTaskOfWhoSendsIt(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, sony, "", nil)
	given := expect.Of(h.eng.Fleet.Assign(t.Context(), alice, "Sony", "wait", ""))(t)
	expect.Await(t, "Sony is busy", func() bool {
		a, err := h.eng.Fleet.Agent(t.Context(), lab, "Sony")
		return err == nil && a.TaskID == given.TaskID
	})
	sent := make(chan messageAnswer, 1)
	go func() {
		var out messageAnswer
		defer func() { sent <- out }()
		use(t, cs, "publish_message", map[string]any{"topic": "a.b", "payload": map[string]any{}}, &out)
	}()
	h.answer(t, "publish_message", judge.Answer{Approve: true})
	m := (<-sent).Message
	expect.True(t, m.TaskID == given.TaskID && m.TraceID == given.TraceID && m.SenderID == "Sony", "%+v", m)
}
