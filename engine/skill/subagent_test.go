package skill_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestBadSubagentsAreRefused(t *testing.T) {
	w := newWorld(t)
	keys := map[string]int{}
	for i := range 21 {
		keys[fmt.Sprint("k", i)] = i
	}
	for name, c := range map[string]struct {
		spawn skill.Spawn
		says  string
	}{
		"long name":      {skill.Spawn{Name: strings.Repeat("n", 101)}, "name"},
		"control":        {skill.Spawn{Name: "a\x1b[31m"}, "name"},
		"too many keys":  {skill.Spawn{Metadata: core.MustEncode(keys)}, "21 keys"},
		"no object":      {skill.Spawn{Metadata: core.Raw(`[1]`)}, "metadata"},
		"not JSON":       {skill.Spawn{Metadata: core.Raw(`{"a"`)}, "metadata"},
		"twice the same": {skill.Spawn{Metadata: core.Raw(`{"a":1,"a":2}`)}, "metadata"},
	} {
		_, err := w.skills.Spawn(t.Context(), alice, c.spawn)
		expect.True(t, isCode(err, core.InvalidInput) && strings.Contains(err.Error(), c.says), "%s: %v, want INVALID_INPUT naming %q", name, err, c.says)
	}
	delete(keys, "k20")
	a, err := w.skills.Spawn(t.Context(), alice, skill.Spawn{Name: strings.Repeat("ü", 100), Metadata: core.MustEncode(keys)})
	expect.True(t, err == nil && a.State == skill.Idle && core.IsUUID(a.AgentID) && !a.CreatedAt.IsZero() && a.AssignedSkill == "",
		"a subagent at its limits: %+v, %v", a, err)
	w.whole()
}

func TestAnIdOfAnotherTenantIsRefusedAndAudited(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	expect.Of(w.swarm.CreateTenant(t.Context(), alice, "t_other"))(t)
	mallory := core.Caller{Tenant: "t_other", Name: "mallory", Kind: core.Operator, Door: core.DoorCLI}
	a := expect.Of(w.skills.Spawn(t.Context(), alice, skill.Spawn{}))(t)
	tries := []error{}
	_, err := w.skills.Assign(t.Context(), mallory, a.AgentID, skill.Invoke{Skill: "grasp"})
	tries = append(tries, err)
	_, err = w.skills.Cancel(t.Context(), mallory, a.AgentID, "")
	tries = append(tries, err)
	_, err = w.skills.Subagent(t.Context(), "t_other", a.AgentID)
	tries = append(tries, err)
	_, err = w.skills.Executions(t.Context(), "t_other", "", core.Filter{Agent: a.AgentID})
	tries = append(tries, err)
	_, err = w.swarm.Dispatch(t.Context(), mallory, swarm.Dispatch{Kind: skill.KindInvoke, Input: core.MustEncode(map[string]any{"skill": "grasp", "agent_id": a.AgentID})})
	tries = append(tries, err)
	for i, err := range tries {
		expect.Err(t, err, core.ErrForeign, "try", i)
	}
	page, err := w.Ledger.List(t.Context(), "t_other", core.Filter{Kind: "tenant.violation"})
	expect.True(t, err == nil && page.Info.Total == len(tries), "%d violations are audited (%v), want %d", page.Info.Total, err, len(tries))
	for _, id := range []string{"", "nope", "a7f3c2e1-8d4b-1a9c-9e2f-1b3c4d5e6f7a"} {
		_, err := w.skills.Subagent(t.Context(), home, id)
		expect.True(t, isCode(err, core.InvalidInput), "%q: %v", id, err)
	}
	_, err = w.skills.Subagent(t.Context(), home, core.NewUUID(home, 1, strings.NewReader("0123456")))
	expect.True(t, isCode(err, core.NotFound), "an id with another random part: %v", err)
}

func TestOnlyTheSeedsTransitionsAreAllowed(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "work"})
	w.fake.on("work", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		return nil, hold.Sleep(ctx, time.Minute)
	})
	w.run()
	ops := map[string]func(string) error{
		"assign": func(id string) error {
			_, err := w.skills.Assign(t.Context(), alice, id, skill.Invoke{Skill: "work"})
			return err
		},
		"pause":  func(id string) error { _, err := w.skills.Pause(t.Context(), alice, id); return err },
		"resume": func(id string) error { _, err := w.skills.Resume(t.Context(), alice, id); return err },
		"cancel": func(id string) error { _, err := w.skills.Cancel(t.Context(), alice, id, ""); return err },
		"stop":   func(id string) error { _, err := w.skills.Stop(t.Context(), alice, id); return err },
	}
	refused := func(id, state string, names ...string) {
		t.Helper()
		for _, name := range names {
			err := ops[name](id)
			expect.True(t, isCode(err, core.Conflict) && strings.Contains(err.Error(), state), "%s of one that is %s: %v", name, state, err)
		}
	}
	spawn := func() string {
		t.Helper()
		a := expect.Of(w.skills.Spawn(t.Context(), alice, skill.Spawn{}))(t)
		return a.AgentID
	}
	id := spawn()
	refused(id, "idle", "pause", "resume")
	expect.No(t, ops["assign"](id))
	w.state(id, skill.Running)
	w.Await("its work", func() bool { return len(w.fake.of("work")) == 1 })
	refused(id, "running", "assign", "resume")
	expect.No(t, ops["pause"](id))
	w.state(id, skill.Paused)
	refused(id, "paused", "assign", "pause")
	expect.No(t, ops["resume"](id))
	w.state(id, skill.Running)
	expect.No(t, ops["cancel"](id))
	a := w.agent(id)
	expect.True(t, a.State == skill.Failed && a.Error == "cancelled" && !a.CompletedAt.IsZero(), "cancelled: %+v", a)
	e := w.executions(id)
	expect.True(t, len(e) == 1 && e[0].Status == skill.StatusFailed && e[0].Error == "cancelled", "its execution: %+v", e)
	refused(id, "failed", "assign", "pause", "resume", "cancel", "stop")
	for name, want := range map[string]string{"cancel": "cancelled", "stop": "stopped"} {
		id := spawn()
		expect.No(t, ops[name](id))
		a := w.agent(id)
		expect.True(t, a.State == skill.Failed && a.Error == want && a.StartedAt.IsZero(), "%s of an idle one: %+v", name, a)
		id = w.invoke("work", `{}`).AgentID
		w.state(id, skill.Running)
		expect.Of(w.skills.Pause(t.Context(), alice, id))(t)
		expect.No(t, ops[name](id))
		a = w.agent(id)
		expect.True(t, a.State == skill.Failed && a.Error == want, "%s of a paused one: %+v", name, a)
	}
	w.whole()
}

func TestStopLetsTheStepEnd(t *testing.T) {
	for name, c := range map[string]struct {
		during string
		want   skill.State
		error  string
		ran    int
	}{
		"of the first step": {"navigate", skill.Failed, "stopped", 1},
		"of the last step":  {"grasp", skill.Completed, "", 3},
	} {
		w := newWorld(t)
		fetch(w)
		reached, release := w.fake.holds(c.during, `{"final_position":{}}`)
		w.run()
		defer w.reading()()
		a := w.invoke("grasp", toTheKitchen)
		<-reached
		a, err := w.skills.Stop(t.Context(), alice, a.AgentID)
		expect.True(t, err == nil && a.State == skill.Running && a.Stopping, "%s: %+v, %v", name, a, err)
		w.Await("it is shown to stop", func() bool { a := w.agent(a.AgentID); return a.Shown() == "stopping" })
		release()
		a = w.over(a.AgentID)
		if a.State != c.want || a.Error != c.error || len(w.executions(a.AgentID)) != c.ran {
			t.Errorf("%s: %s %q after %d executions", name, a.State, a.Error, len(w.executions(a.AgentID)))
		}
		w.whole()
		w.Close()
	}
}

func TestPauseStopsTimeAndWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.load(skill.Skill{Name: "tick", Timeout: 1})
		var ticks atomic.Int64
		w.fake.on("tick", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
			for range 30 {
				if err := hold.Sleep(ctx, 20*time.Millisecond); err != nil {
					return nil, err
				}
				ticks.Add(1)
			}
			return core.Raw(`{}`), nil
		})
		w.run()
		a := w.invoke("tick", `{}`)
		w.Await("ticks", func() bool { return ticks.Load() > 2 })
		if a, err := w.skills.Pause(t.Context(), alice, a.AgentID); err != nil || a.State != skill.Paused {
			t.Fatalf("%+v, %v", a, err)
		}
		w.Await("the pause", func() bool { n := ticks.Load(); time.Sleep(100 * time.Millisecond); return ticks.Load() == n })
		time.Sleep(1200 * time.Millisecond) // longer than its time-out
		expect.Of(w.skills.Resume(t.Context(), alice, a.AgentID))(t)
		if a = w.over(a.AgentID); a.State != skill.Completed {
			t.Errorf("%s %q after %d ticks", a.State, a.Error, ticks.Load())
		}
		w.whole()
	})
}

func TestPauseStopsBetweenStepsWhatCantStandStill(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	reached, release := w.fake.holds("navigate", `{"final_position":{}}`)
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	<-reached
	expect.Of(w.skills.Pause(t.Context(), alice, a.AgentID))(t)
	why, err := w.swarm.Why(t.Context(), home, a.TaskID)
	expect.True(t, err == nil && strings.Contains(why.Text, "not yet acknowledged"), "why: %+v, %v", why, err)
	release()
	w.Await("the pause", func() bool {
		why, err := w.swarm.Why(t.Context(), home, a.TaskID)
		return err == nil && !strings.Contains(why.Text, "not yet")
	})
	expect.Is(t, len(w.fake.of("detect")), 0, "detect ran")
	expect.Of(w.skills.Resume(t.Context(), alice, a.AgentID))(t)
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed, "%+v", a)
}

func TestAtMostSoManySubagentsAreLive(t *testing.T) {
	w := newWorld(t, func(w *world) { w.most = 2 })
	fetch(w)
	var ids []string
	for range 2 {
		a := expect.Of(w.skills.Spawn(t.Context(), alice, skill.Spawn{}))(t)
		ids = append(ids, a.AgentID)
	}
	_, err := w.skills.Spawn(t.Context(), alice, skill.Spawn{})
	expect.True(t, isCode(err, core.Conflict) && strings.Contains(err.Error(), "max_subagents"), "a third: %v", err)
	_, err = w.skills.RunParallel(t.Context(), alice, []skill.Invoke{{Skill: "grasp", Params: core.Raw(toTheKitchen)}})
	expect.True(t, isCode(err, core.Conflict), "a third in parallel: %v", err)
	w.run()
	tk, err := w.swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: skill.KindInvoke, Input: core.Raw(`{"skill":"grasp","params":` + toTheKitchen + `}`)})
	expect.No(t, err)
	w.Await("a refused start", func() bool {
		now, err := w.tasks.Get(t.Context(), home, tk.TaskID)
		return err == nil && now.ErrorCode == "start_failed" && now.Status == task.Queued
	})
	expect.Of(w.skills.Cancel(t.Context(), alice, ids[0], ""))(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	tk, err = w.tasks.Wait(ctx, home, tk.TaskID, "")
	expect.True(t, err == nil && tk.Status == task.Succeeded, "with room again: %+v, %v", tk, err)
	page, err := w.skills.Subagents(t.Context(), home, core.Filter{Task: tk.TaskID})
	expect.True(t, err == nil && len(page.Items) == 1 && page.Items[0].State == skill.Completed, "the subagent made for it: %+v, %v", page.Items, err)
	w.whole()
}

func TestListsOfSubagents(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	w.run()
	done := w.over(w.invoke("grasp", toTheKitchen).AgentID)
	idle := expect.Of(w.skills.Spawn(t.Context(), alice, skill.Spawn{Name: "Navigator-1"}))(t)
	for name, c := range map[string]struct {
		f    core.Filter
		want []string
	}{
		"all":         {core.Filter{}, []string{idle.AgentID, done.AgentID}},
		"one":         {core.Filter{Size: 1}, []string{idle.AgentID}},
		"second page": {core.Filter{Size: 1, Page: 2}, []string{done.AgentID}},
		"past it":     {core.Filter{Page: 9}, nil},
		"idle":        {core.Filter{Status: "idle"}, []string{idle.AgentID}},
		"completed":   {core.Filter{Status: "completed"}, []string{done.AgentID}},
		"paused":      {core.Filter{Status: "paused"}, nil},
		"by skill":    {core.Filter{Kind: "grasp"}, []string{done.AgentID}},
		"by task":     {core.Filter{Task: done.TaskID}, []string{done.AgentID}},
		"by name":     {core.Filter{Match: "navigator"}, []string{idle.AgentID}},
		"since":       {core.Filter{Since: idle.CreatedAt}, []string{idle.AgentID}},
		"until":       {core.Filter{Until: idle.CreatedAt}, []string{done.AgentID}},
	} {
		page, err := w.skills.Subagents(t.Context(), home, c.f)
		var got []string
		for _, a := range page.Items {
			got = append(got, a.AgentID)
		}
		expect.True(t, err == nil && strings.Join(got, " ") == strings.Join(c.want, " "), "%s: %v (%v), want %v", name, got, err, c.want)
	}
	_, err := w.skills.Subagents(t.Context(), home, core.Filter{Status: "working"})
	expect.True(t, isCode(err, core.InvalidInput), "a state that is none: %v", err)
	live := w.skills.Live(home)
	expect.True(t, len(live) == 1 && live[0].AgentID == idle.AgentID, "live: %+v", live)
	p := w.skills
	expect.True(t, !p.Known(home, done.AgentID) && p.Known(home, idle.AgentID) && p.Elsewhere("t_other", idle.AgentID), "the bus knows the wrong ones")
}
