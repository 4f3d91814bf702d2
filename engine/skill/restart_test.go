package skill_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"

	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

func TestAClosedEngineGoesOnWhereItWas(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	reached := make(chan bool, 1)
	w.fake.on("detect", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		reached <- true
		return nil, hold.Sleep(ctx, time.Minute)
	})
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	<-reached
	w.Reopen()
	if a := w.agent(a.AgentID); a.State != skill.Running || a.AssignedSkill != "detect" || len(a.Results) != 1 || a.Shown() != "interrupted" {
		t.Errorf("between the engines: %s %+v", a.Shown(), a)
	}
	live := w.skills.Live(home)
	expect.True(t, len(live) == 1 && live[0].Shown() == "interrupted", "between the engines: %+v", live)
	if all := w.executions(a.AgentID); len(all) != 2 || !all[1].Interrupted || all[1].Error != "interrupted: the engine stopped" || all[1].Status != skill.StatusFailed {
		t.Errorf("between the engines: %+v", all)
	}
	w.fake.gives("detect", `{"objects":["cup"],"object_id":"cup"}`)
	w.run()
	a = w.over(a.AgentID)
	all := w.executions(a.AgentID)
	if a.State != skill.Completed || len(a.Results) != 3 || len(all) != 4 || len(w.fake.of("navigate")) != 1 || len(w.fake.of("detect")) != 2 {
		t.Errorf("%s %q, %d executions, %d navigations", a.State, a.Error, len(all), len(w.fake.of("navigate")))
	}
	calls := w.fake.of("grasp")
	expect.True(t, len(calls) == 1 && string(calls[0].Results["navigate"]) != "", "grasp got %+v", calls)
	task, err := w.tasks.Get(t.Context(), home, a.TaskID)
	expect.True(t, err == nil && task.Attempt == 0, "a close cost an attempt: %+v, %v", task, err)
	f := w.messages("perception.failed")
	expect.True(t, len(f) == 0, "the interruption was announced: %+v", f)
	w.whole()
}

func TestARunKeepsItsSkillsOverARestart(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	reached := make(chan bool, 1)
	w.fake.on("navigate", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		if len(w.fake.of("navigate")) > 1 {
			return core.Raw(`{"final_position":{}}`), nil
		}
		reached <- true
		return nil, hold.Sleep(ctx, time.Minute)
	})
	w.run()
	a := w.invoke("grasp", toTheKitchen)
	<-reached
	w.Reopen()
	does := w.fake.does["navigate"]
	fetch(w, func(s *skill.Skill) { // what it was asked for would be refused now
		s.ParametersSchema = core.Raw(`{"type":"object","properties":{"other":{}},"required":["other"]}`)
	})
	w.fake.on("navigate", does)
	w.run()
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed && len(w.fake.of("navigate")) == 2, "%s %q", a.State, a.Error)
	w.whole()
}

func TestACompositeGoesOnWithinItself(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "one"}, skill.Skill{Name: "two"}, skill.Skill{Name: "both", Runner: skill.Spec{Kind: "composite", Steps: []skill.Step{
		{ID: "a", Skill: "one"}, {ID: "b", Skill: "two", Params: core.Raw(`{"from":"${a.n}"}`)},
	}}})
	w.fake.gives("one", `{"n":7}`)
	reached := make(chan bool, 1)
	w.fake.on("two", func(ctx context.Context, c skill.Call, hold *skill.Hold) (core.Raw, error) {
		if len(w.fake.of("two")) > 1 {
			return c.Params, nil
		}
		reached <- true
		return nil, hold.Sleep(ctx, time.Minute)
	})
	w.run()
	a := w.invoke("both", `{}`)
	<-reached
	w.Reopen()
	w.run()
	a = w.over(a.AgentID)
	if a.State != skill.Completed || string(a.Results["both"]) != `{"from":7}` || len(w.fake.of("one")) != 1 || len(w.fake.of("two")) != 2 {
		t.Errorf("%s %q %s: one ran %d times", a.State, a.Error, a.Results["both"], len(w.fake.of("one")))
	}
	w.whole()
}

func TestWorkThatSeesTheEngineCloseFirstIsRunAgain(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "one"})
	w.fake.gives("one", `{}`)
	reached := make(chan bool, 1)
	w.fake.work = func(engine context.Context) swarm.Work {
		return &brokenOff{engine, reached}
	}
	w.run()
	a := w.invoke("one", `{}`)
	<-reached
	w.Close()
	w.fake.work = nil
	w.Open()
	w.run()
	a = w.over(a.AgentID)
	expect.True(t, a.State == skill.Completed, "%s %q", a.State, a.Error)
}

// brokenOff is work that has ended, and fails since the engine closes.
type brokenOff struct {
	engine  context.Context
	reached chan<- bool
}

func (b *brokenOff) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func (b *brokenOff) Outcome() task.Outcome {
	b.reached <- true
	<-b.engine.Done()
	return task.Outcome{Status: task.Failed, Error: &task.Error{Code: "killed", Message: "killed"}}
}

func (b *brokenOff) Cancel(string)                {}
func (b *brokenOff) Pause(context.Context) error  { return nil }
func (b *brokenOff) Resume(context.Context) error { return nil }

func TestAPausedRunIsStillPausedInTheNextEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		fetch(w)
		reached := make(chan bool, 2)
		w.fake.on("navigate", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
			reached <- true
			if len(w.fake.of("navigate")) > 1 {
				return core.Raw(`{"final_position":{}}`), nil
			}
			return nil, hold.Sleep(ctx, time.Minute)
		})
		w.run()
		a := w.invoke("grasp", toTheKitchen)
		<-reached
		expect.Of(w.skills.Pause(t.Context(), alice, a.AgentID))(t)
		w.Reopen()
		expect.Is(t, w.agent(a.AgentID).State, skill.Paused, "between the engines")
		w.run()
		select {
		case <-reached:
			t.Error("it went on under the pause")
		case <-time.After(200 * time.Millisecond):
		}
		expect.Of(w.skills.Resume(t.Context(), alice, a.AgentID))(t)
		a = w.over(a.AgentID)
		expect.True(t, a.State == skill.Completed, "%s %q", a.State, a.Error)
		w.whole()
	})
}

// long is a chain of five steps that tell when they start.
const long = 5

func (w *world) longChain(told func(agent, step string)) []skill.Skill {
	var all []skill.Skill
	for i := range long {
		s := skill.Skill{Name: fmt.Sprintf("step-%d", i), Tags: []string{"chain"}}
		if i > 0 {
			s.Dependencies = []string{fmt.Sprintf("step-%d", i-1)}
		}
		all = append(all, s)
		w.fake.on(s.Name, func(ctx context.Context, c skill.Call, hold *skill.Hold) (core.Raw, error) {
			told(c.AgentID, c.Skill.Name)
			return core.Raw(`{"n":1}`), hold.Sleep(ctx, 3*time.Millisecond)
		})
	}
	return all
}

// TestKilledAtAnyInstantNoFinishedStepRunsAgain runs chains in a process that
// is killed again and again. After each kill no step that had succeeded by the
// kill before has been started since, no execution is left pending, and every
// record equals the log.
func TestKilledAtAnyInstantNoFinishedStepRunsAgain(t *testing.T) {
	seen := map[string]int{} // data file, agent and step → how often it had started when it was seen to have succeeded
	over := map[skill.State]int{}
	storetest.Crash(t, storetest.CrashOptions{
		Rounds: 10, Life: 2 * time.Second, Budget: 10 * time.Second,
		Open: enginetest.Sealed,
		Load: func(ctx context.Context, st store.Store, ack func(string)) error { return churn(ctx, t, st, ack) },
		Verify: func(t testing.TB, dir string, st store.Store, acked []string) {
			w := worldOver(t, st)
			if _, err := w.swarm.Tenant(t.Context(), home); err != nil {
				return // killed before there was one
			}
			w.whole()
			starts := map[string]int{}
			for _, line := range acked {
				starts[dir+" "+line]++
			}
			clear(over)
			w.pages(t, func(a skill.Subagent) {
				over[a.State]++
				expect.True(t, a.State != skill.Failed || strings.Contains(a.Error, "the engine ended while it ran"),
					"subagent %s failed: %q", a.AgentID, a.Error)
				done := map[string]int{}
				for _, e := range w.executions(a.AgentID) {
					expect.True(t, e.Status != skill.StatusPending, "execution %s is left pending", e.ExecutionID)
					if e.Status == skill.StatusSuccess {
						done[e.Step]++
					}
				}
				for step, n := range done {
					key := dir + " " + a.AgentID + " " + step
					expect.Is(t, n, 1, key, "succeeded")
					was, ok := seen[key]
					expect.True(t, !ok || starts[key] == was, "%s had succeeded after %d starts and was started again: %d", key, was, starts[key])
					seen[key] = starts[key]
				}
				if a.State == skill.Completed && len(done) != long {
					t.Errorf("subagent %s is completed after %v", a.AgentID, slices.Sorted(maps.Keys(done)))
				}
			})
		},
	})
	t.Logf("%d steps looked at; subagents at the last look: %v", len(seen), over)
}

// pages calls each for every subagent.
func (w *world) pages(t testing.TB, each func(skill.Subagent)) {
	t.Helper()
	for page := 1; ; page++ {
		list := expect.Of(w.skills.Subagents(t.Context(), home, core.Filter{Page: page, Size: 100}))(t)
		for _, a := range list.Items {
			each(a)
		}
		if !list.Info.Next {
			return
		}
	}
}

// churn runs chains until it is killed.
func churn(ctx context.Context, t testing.TB, st store.Store, ack func(string)) error {
	w := worldOver(t, st)
	if _, err := w.swarm.CreateTenant(ctx, alice, home); err != nil && !isCode(err, core.Conflict) {
		return err
	}
	w.load(w.longChain(func(agent, step string) { ack(agent + " " + step) })...)
	errs := make(chan error, 8)
	var all sync.WaitGroup
	all.Go(func() { errs <- w.swarm.Run(ctx) })
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				a, err := w.skills.Invoke(ctx, alice, skill.Invoke{Skill: fmt.Sprint("step-", long-1)})
				if isCode(err, core.Conflict) { // as many as there may be
					runtime.Gosched()
					continue
				}
				if err == nil {
					_, err = w.skills.Wait(ctx, alice, a.AgentID)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	var first error
	for err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) && first == nil {
			first = err
		}
	}
	return first
}

func TestARetriedTaskRunsWithASubagentOfItsOwn(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	failing(w, "navigate", 3, `{"final_position":{}}`)
	w.run()
	first := w.over(w.invoke("grasp", toTheKitchen).AgentID)
	again, err := w.swarm.Retry(t.Context(), alice, first.TaskID)
	expect.No(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	again, err = w.tasks.Wait(ctx, home, again.TaskID, "")
	expect.True(t, err == nil && again.Status == task.Succeeded && again.TraceID == first.TraceID, "%+v, %v", again, err)
	page, err := w.skills.Subagents(t.Context(), home, core.Filter{Task: again.TaskID})
	expect.True(t, err == nil && len(page.Items) == 1 && page.Items[0].AgentID != first.AgentID && page.Items[0].State == skill.Completed,
		"%+v, %v", page.Items, err)
	w.whole()
}
