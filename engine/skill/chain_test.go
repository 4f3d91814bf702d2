package skill_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// fetch loads the model's example: navigate → detect → grasp.
func fetch(w *world, change ...func(*skill.Skill)) {
	all := []skill.Skill{
		{
			Name: "navigate", Tags: []string{"navigation", "motion"}, MaxRetries: 2, Timeout: 60,
			ParametersSchema: core.Raw(`{"type":"object","properties":{"location":{"type":"string"},"speed":{"type":"number","default":1.0}},"required":["location"]}`),
			ReturnsSchema:    core.Raw(`{"type":"object","properties":{"final_position":{"type":"object"}},"required":["final_position"]}`),
		},
		{
			Name: "detect", Tags: []string{"perception"}, MaxRetries: 2, Dependencies: []string{"navigate"},
			ParametersSchema: core.Raw(`{"type":"object","properties":{"area":{"type":"string"}},"required":["area"]}`),
			ReturnsSchema:    core.Raw(`{"type":"object","properties":{"objects":{"type":"array"}},"required":["objects"]}`),
		},
		{
			Name: "grasp", Tags: []string{"motion"}, Dependencies: []string{"detect"},
			ParametersSchema: core.Raw(`{"type":"object","properties":{"object_id":{"type":"string"}},"required":["object_id"]}`),
		},
	}
	for i := range all {
		for _, c := range change {
			c(&all[i])
		}
	}
	w.load(all...)
	w.fake.gives("navigate", `{"final_position":{"x":10,"y":5}}`)
	w.fake.gives("detect", `{"objects":["cup"],"object_id":"cup"}`)
	w.fake.gives("grasp", `{"grasped":true}`)
}

const toTheKitchen = `{"location":"kitchen","area":"kitchen"}`

func TestTheSeedsWorkflowLeavesItsRecords(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	expect.True(t, !a.State.Final() && a.Skill == "grasp@1.0.0" && core.IsUUID(a.AgentID), "as invoked: %+v", a)
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed && a.Error == "" && !a.StartedAt.IsZero() && !a.CompletedAt.Before(a.StartedAt), "subagent %+v", a)
	for name, want := range map[string]string{
		"navigate": `{"final_position":{"x":10,"y":5}}`, "detect": `{"objects":["cup"],"object_id":"cup"}`, "grasp": `{"grasped":true}`,
	} {
		expect.Is(t, string(a.Results[name]), want, "result of", name)
	}
	var got []string
	for _, e := range w.executions(a.AgentID) {
		got = append(got, e.SkillName+" "+string(e.Status)+" "+string(e.Parameters))
		if !core.IsUUID(e.ExecutionID) || e.AgentID != a.AgentID || e.SkillVersion != "1.0.0" || e.Error != "" || e.RetryCount != 0 || e.TaskID != a.TaskID {
			t.Errorf("execution %+v", e)
		}
		expect.True(t, e.DurationMS == e.CompletedAt.Sub(e.StartedAt).Milliseconds() && !e.CompletedAt.Before(e.StartedAt),
			"%s took %d ms from %s to %s", e.SkillName, e.DurationMS, e.StartedAt, e.CompletedAt)
		expect.Is(t, string(e.Result), string(a.Results[e.SkillName]), e.SkillName, "result", e.Result)
	}
	if want := []string{
		`navigate success {"location":"kitchen","speed":1.0}`, `detect success {"area":"kitchen"}`, `grasp success {"object_id":"cup"}`,
	}; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("executions:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all := w.messages("navigation.complete"); len(all) != 1 || all[0].SenderID != a.AgentID || string(all[0].Payload) != `{"final_position":{"x":10,"y":5}}` || all[0].TaskID != a.TaskID {
		t.Errorf("navigation.complete: %+v", all)
	}
	calls := w.fake.of("grasp")
	expect.True(t, len(calls) == 1 && string(calls[0].Results["navigate"]) != "" && calls[0].TraceID == a.TraceID, "grasp was called with %+v", calls)
	res, err := w.tasks.Result(t.Context(), home, a.TaskID)
	expect.True(t, err == nil && res.Status == task.Succeeded && strings.Contains(string(res.Output), `"grasped":true`), "the task's result: %+v, %v", res, err)
	w.whole()
}

// failing makes a skill fail so many times, then succeed.
func failing(w *world, name string, times int, result string) {
	n := 0
	w.fake.on(name, func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) {
		if n++; n <= times {
			return nil, errors.New("no light")
		}
		return core.Raw(result), nil
	})
}

func TestAStepThatFailsOnceIsRetried(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	failing(w, "detect", 1, `{"objects":["cup"],"object_id":"cup"}`)
	w.run()
	a := w.over(w.invoke("grasp", toTheKitchen).AgentID)
	all := w.executions(a.AgentID)
	expect.True(t, a.State == skill.Completed && len(all) == 3 && all[1].RetryCount == 1 && all[1].Status == skill.StatusSuccess && all[1].Error == "",
		"%s, %+v", a.State, all)
	expect.True(t, len(w.messages("perception.failed")) == 0 && len(w.messages("perception.complete")) == 1, "a retry was announced as a failure")
	w.whole()
}

func TestAStepThatAlwaysFailsEndsTheRunWithWhatWasDone(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	failing(w, "detect", 99, "")
	w.run()
	a := w.over(w.invoke("grasp", toTheKitchen).AgentID)
	all := w.executions(a.AgentID)
	expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, "detect: no light") && string(a.Results["navigate"]) != "" && len(a.Results) == 1,
		"%+v", a)
	if len(all) != 2 || all[1].Status != skill.StatusFailed || all[1].RetryCount != 2 || all[1].Error != "no light" || len(all[1].Result) != 0 || len(w.fake.of("detect")) != 3 {
		t.Errorf("%+v", all)
	}
	m := w.messages("perception.failed")
	expect.True(t, len(m) == 1 && string(m[0].Payload) == `{"error":"no light"}`, "perception.failed: %+v", m)
	tk, err := w.tasks.Get(t.Context(), home, a.TaskID)
	expect.True(t, err == nil && tk.Status == task.Failed && tk.Attempt == 0, "task %+v, %v", tk, err)
	w.whole()
}

func TestAResultThatBreaksItsSchemaIsAFailure(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	w.fake.gives("navigate", `{"final_position":"there"}`)
	w.run()
	a := w.over(w.invoke("navigate", `{"location":"kitchen"}`).AgentID)
	all := w.executions(a.AgentID)
	expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, "result.final_position") && len(all) == 1 && all[0].RetryCount == 2,
		"%s %q, %+v", a.State, a.Error, all)
}

func TestAStepThatRunsTooLongTimesOut(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "sleepy", Timeout: 1, MaxRetries: 1})
	w.fake.on("sleepy", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		return nil, hold.Sleep(ctx, time.Minute)
	})
	w.run()
	a := w.over(w.invoke("sleepy", `{}`).AgentID)
	all := w.executions(a.AgentID)
	if a.State != skill.Failed || len(all) != 1 || all[0].Status != skill.StatusTimeout || all[0].RetryCount != 1 || all[0].Error != "it ran longer than 1 s" {
		t.Errorf("%s %q, %+v", a.State, a.Error, all)
	}
	expect.True(t, all[0].DurationMS >= 2000 && all[0].DurationMS <= 4000, "two tries of 1 s took %d ms", all[0].DurationMS)
	w.whole()
}

func TestBadInvocationsChangeNothing(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	for name, c := range map[string]struct {
		skill, params string
		code          core.Code
		says          string
	}{
		"no such skill":            {"fly", `{}`, core.NotFound, "fly"},
		"no such version":          {"grasp@9.9.9", `{}`, core.NotFound, "grasp@9.9.9"},
		"no name":                  {"", `{}`, core.InvalidInput, "skill"},
		"nobody takes it":          {"grasp", `{"location":"kitchen","area":"x","colour":"red"}`, core.InvalidInput, "params.colour"},
		"the first step lacks one": {"grasp", `{"area":"kitchen"}`, core.InvalidInput, "location"},
		"a later step's type":      {"grasp", `{"location":"kitchen","area":7}`, core.InvalidInput, "params.area"},
		"its own type":             {"grasp", `{"location":"kitchen","area":"x","object_id":false}`, core.InvalidInput, "params.object_id"},
		"no object":                {"grasp", `[]`, core.InvalidInput, "params"},
	} {
		_, err := w.skills.Invoke(t.Context(), alice, skill.Invoke{Skill: c.skill, Params: core.Raw(c.params)})
		expect.True(t, isCode(err, c.code) && strings.Contains(err.Error(), c.says), "%s: %v, want %s naming %q", name, err, c.code, c.says)
	}
	page, err := w.skills.Subagents(t.Context(), home, core.Filter{})
	expect.True(t, err == nil && page.Info.Total == 0, "subagents were left: %+v, %v", page, err)
}

func TestASkillThatChangesDuringItsRunDoesNotChangeTheRun(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	reached, release := w.fake.holds("navigate", `{"final_position":{}}`)
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	<-reached
	fetch(w, func(s *skill.Skill) { // now detect wants something else, and there is a newer grasp
		switch s.Name {
		case "detect":
			s.ParametersSchema = core.Raw(`{"type":"object","properties":{"room":{"type":"integer"}},"required":["room"]}`)
		case "grasp":
			s.Version = "2.0.0"
		}
	})
	release()
	a = w.over(a.AgentID)
	all := w.executions(a.AgentID)
	expect.True(t, a.State == skill.Completed && len(all) == 3 && all[2].SkillVersion == "1.0.0" && string(all[1].Parameters) == `{"area":"kitchen"}`,
		"%s %q: %+v", a.State, a.Error, all)
	_, err := w.skills.Invoke(t.Context(), alice, skill.Invoke{Skill: "grasp", Params: core.Raw(toTheKitchen)})
	expect.True(t, err != nil, "a new run is not held against the new definition")
}
