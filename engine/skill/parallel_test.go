package skill_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
)

// TestFiftyAtOnceEachForItself: one panics, one hangs, one floods its log; the
// others do not notice. The clock is the bubble's, so that no time passes but
// what is waited for.
func TestFiftyAtOnceEachForItself(t *testing.T) { synctest.Test(t, fiftyAtOnce) }

func fiftyAtOnce(t *testing.T) {
	const n = 50
	w := newWorld(t)
	w.load(skill.Skill{Name: "calm"}, skill.Skill{Name: "panics"}, skill.Skill{Name: "hangs", Timeout: 1}, skill.Skill{Name: "floods"})
	w.fake.on("calm", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		return core.Raw(`{"ok":true}`), hold.Sleep(ctx, 100*time.Millisecond)
	})
	w.fake.on("panics", func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { panic("boom") })
	released := make(chan bool)
	defer close(released)
	w.fake.on("hangs", func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { // deaf to everything
		<-released
		return core.Raw(`{}`), nil
	})
	w.fake.on("floods", func(ctx context.Context, c skill.Call, _ *skill.Hold) (core.Raw, error) {
		line := strings.Repeat("x", 1000)
		for i := range 20_000 {
			c.Log("INFO", fmt.Sprint(i, line))
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		return core.Raw(`{"lines":20000}`), nil
	})
	w.run()
	all := make([]skill.Invoke, n)
	for i := range all {
		all[i] = skill.Invoke{Skill: "calm", Name: fmt.Sprint("worker-", i)}
	}
	all[10].Skill, all[20].Skill, all[30].Skill = "panics", "hangs", "floods"
	made, err := w.skills.RunParallel(t.Context(), alice, all)
	expect.Must(t, err == nil && len(made) == n, "%d made: %v", len(made), err)
	for i, a := range made {
		a := w.over(a.AgentID)
		switch i {
		case 10:
			if took := a.CompletedAt.Sub(a.StartedAt); a.State != skill.Failed || !strings.Contains(a.Error, "boom") || took >= time.Second {
				t.Errorf("the panic: %s %q after %s", a.State, a.Error, took)
			}
		case 20:
			if took := a.CompletedAt.Sub(a.StartedAt); a.State != skill.Failed || !strings.Contains(a.Error, "longer than 1 s") || took >= 2*time.Second {
				t.Errorf("the hang: %s %q after %s", a.State, a.Error, took)
			}
		default:
			expect.Is(t, a.State, skill.Completed, a.Name, a.Error)
		}
	}
	w.whole()
}

func TestNothingRunsInParallelWhenOneCant(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	_, err := w.skills.RunParallel(t.Context(), alice, []skill.Invoke{
		{Skill: "navigate", Params: core.Raw(`{"location":"kitchen"}`)},
		{Skill: "fly"},
		{Skill: "navigate", Params: core.Raw(`{"location":7}`)},
		{Skill: "navigate", Params: core.Raw(`{"location":"x"}`), Name: strings.Repeat("n", 101)},
	})
	for _, want := range []string{"[1]: ", "fly", "[2]: ", "params.location", "[3]: ", "name"} {
		expect.True(t, err != nil && strings.Contains(err.Error(), want), "%q is missing in %v", want, err)
	}
	expect.Is(t, expect.Of(w.skills.Subagents(t.Context(), home, core.Filter{}))(t).Info.Total, 0, "subagents were made")
	for _, n := range []int{0, 101} {
		_, err := w.skills.RunParallel(t.Context(), alice, make([]skill.Invoke, n))
		expect.True(t, isCode(err, core.InvalidInput), "%d items: %v", n, err)
	}
}

func TestListsAndFiguresOfExecutions(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	w.run()
	first := w.over(w.invoke("grasp", toTheKitchen).AgentID)
	failing(w, "detect", 99, "")
	second := w.over(w.invoke("grasp", toTheKitchen).AgentID)
	for name, c := range map[string]struct {
		skill string
		f     core.Filter
		want  string
	}{
		"all":            {"", core.Filter{}, "detect navigate grasp detect navigate"},
		"a page":         {"", core.Filter{Size: 2, Page: 2}, "grasp detect"},
		"past the end":   {"", core.Filter{Page: 9}, ""},
		"of a skill":     {"detect", core.Filter{}, "detect detect"},
		"of a version":   {"detect@1.0.0", core.Filter{}, "detect detect"},
		"of an agent":    {"", core.Filter{Agent: first.AgentID}, "grasp detect navigate"},
		"both":           {"detect", core.Filter{Agent: first.AgentID}, "detect"},
		"failed":         {"", core.Filter{Status: "failed"}, "detect"},
		"success":        {"", core.Filter{Status: "success", Size: 1, Page: 4}, "navigate"},
		"of a task":      {"", core.Filter{Task: second.TaskID}, "detect navigate"},
		"of a trace":     {"", core.Filter{Trace: second.TraceID}, "detect navigate"},
		"since":          {"", core.Filter{Since: second.StartedAt}, "detect navigate"},
		"until":          {"", core.Filter{Until: second.StartedAt}, "grasp detect navigate"},
		"of a kind":      {"", core.Filter{Kind: "exec"}, ""},
		"with a text":    {"", core.Filter{Match: "no LIGHT"}, "detect"},
		"of no such one": {"fly", core.Filter{}, ""},
	} {
		page, err := w.skills.Executions(t.Context(), home, c.skill, c.f)
		var got []string
		for _, e := range page.Items {
			got = append(got, e.SkillName)
		}
		expect.True(t, err == nil && strings.Join(got, " ") == c.want, "%s: %v (%v), want %s", name, got, err, c.want)
	}
	for name, f := range map[string]core.Filter{"status": {Status: "done"}, "agent": {Agent: "bob"}, "page": {Page: -1}} {
		_, err := w.skills.Executions(t.Context(), home, "", f)
		expect.True(t, isCode(err, core.InvalidInput), "bad %s: %v", name, err)
	}
	page, err := w.skills.Executions(t.Context(), home, "detect", core.Filter{Size: 1})
	expect.True(t, err == nil && page.Info.Total == 2 && page.Info.Next, "totals: %+v, %v", page.Info, err)
	one, err := w.skills.Execution(t.Context(), home, page.Items[0].ExecutionID)
	expect.True(t, err == nil && one.ExecutionID == page.Items[0].ExecutionID && one.Error == "no light", "one: %+v, %v", one, err)
	f, err := w.skills.Figures(t.Context(), home, "detect")
	expect.True(t, err == nil && f.Total == 2 && f.Counted == 2 && f.FailureRate == 0.5 && f.P95MS <= 5000, "figures %+v, %v", f, err)
	f, err = w.skills.Figures(t.Context(), home, "fly")
	expect.True(t, err == nil && f.Total == 0 && f.FailureRate == 0, "figures of nothing %+v, %v", f, err)
}
