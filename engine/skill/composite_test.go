package skill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/expect"
)

// steps loads a composite over the model's skills and returns how its run ended
// and what was executed, as "place status".
func (w *world) composite(s skill.Skill, params string) (skill.Subagent, []string) {
	w.T.Helper()
	s.Runner.Kind = "composite"
	w.load(s)
	a := w.over(w.invoke(s.Name, params).AgentID)
	var got []string
	for _, e := range w.executions(a.AgentID) {
		line := e.Step + " " + string(e.Status)
		if e.RetryCount > 0 {
			line += fmt.Sprintf(" after %d retries", e.RetryCount)
		}
		got = append(got, line)
	}
	return a, got
}

func TestACompositeMapsItsSteps(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	w.fake.on("grasp", func(_ context.Context, c skill.Call, _ *skill.Hold) (core.Raw, error) {
		return core.Raw(`{"grasped":` + string(c.Params) + `}`), nil
	})
	w.run()
	a, got := w.composite(skill.Skill{Name: "fetch", Runner: skill.Spec{Steps: []skill.Step{
		{ID: "go", Skill: "navigate", Params: core.Raw(`{"location":"${params.room}"}`)},
		{ID: "look", Skill: "detect", Params: core.Raw(`{"area":"the ${params.room}"}`)},
		{ID: "take", Skill: "grasp", Params: core.Raw(`{"object_id":"${look.objects[0]}"}`)},
	}}}, `{"room":"kitchen"}`)
	want := "fetch success, fetch/go success, fetch/look success, fetch/take success"
	expect.True(t, a.State == skill.Completed && strings.Join(got, ", ") == want, "%s %q: %v, want %s", a.State, a.Error, got, want)
	expect.True(t, string(a.Results["fetch"]) == `{"grasped":{"object_id":"cup"}}` && string(a.Results["fetch"]) == string(a.Results["grasp"]),
		"results %s", a.Results)
	look := w.fake.of("detect")
	expect.True(t, len(look) == 1 && string(look[0].Params) == `{"area":"the kitchen"}`, "look was called with %+v", look)
	w.whole()
}

func TestACompositeRunsWhatItsStepsDependOn(t *testing.T) {
	w := newWorld(t)
	fetch(w)
	w.run()
	a, got := w.composite(skill.Skill{Name: "fetch", Runner: skill.Spec{Steps: []skill.Step{
		{ID: "look", Skill: "detect", Params: core.Raw(`{"area":"x"}`)},
	}}}, `{}`)
	// navigate needs a location that nobody gave.
	expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, "fetch/look/navigate") && strings.Contains(a.Error, "location"),
		"%s %q %v", a.State, a.Error, got)
	w.load(skill.Skill{Name: "light"}, skill.Skill{Name: "paint", Dependencies: []string{"light"}})
	w.fake.gives("light", `{}`)
	w.fake.gives("paint", `{}`)
	a, got = w.composite(skill.Skill{Name: "decorate", Runner: skill.Spec{Steps: []skill.Step{
		{ID: "one", Skill: "paint"}, {ID: "two", Skill: "paint"},
	}}}, `{}`)
	want := "decorate success, decorate/one/light success, decorate/one success, decorate/two success"
	expect.True(t, a.State == skill.Completed && strings.Join(got, ", ") == want, "%s %q: %v, want %s", a.State, a.Error, got, want)
}

func TestErrorPoliciesOfAComposite(t *testing.T) {
	for name, c := range map[string]struct {
		policy  skill.ErrorPolicy
		retries int // of the step's skill
		fails   int
		want    string
		state   skill.State
	}{
		"abort":                  {skill.Abort, 0, 1, "both failed, both/a failed", skill.Failed},
		"abort after retries":    {skill.Abort, 1, 9, "both failed, both/a failed after 1 retries", skill.Failed},
		"retry once":             {skill.Retry, 0, 1, "both success, both/a failed, both/a~again success, both/b success", skill.Completed},
		"retry once, in vain":    {skill.Retry, 0, 2, "both failed, both/a failed, both/a~again failed", skill.Failed},
		"retry, as often as max": {skill.Retry, 2, 2, "both success, both/a success after 2 retries, both/b success", skill.Completed},
		"retry, max in vain":     {skill.Retry, 1, 9, "both failed, both/a failed after 1 retries", skill.Failed},
		"fallback":               {skill.Fallback, 0, 9, "both success, both/a failed, both/a~fallback success, both/b success", skill.Completed},
	} {
		w := newWorld(t)
		w.load(skill.Skill{Name: "shaky", MaxRetries: c.retries}, skill.Skill{Name: "steady"})
		failing(w, "shaky", c.fails, `{"by":"shaky"}`)
		w.fake.on("steady", func(_ context.Context, call skill.Call, _ *skill.Hold) (core.Raw, error) { return call.Params, nil })
		w.run()
		first := skill.Step{ID: "a", Skill: "shaky", Params: core.Raw(`{"n":1}`), ErrorPolicy: c.policy, BackoffMultiplier: 1}
		if c.policy == skill.Fallback {
			first.Fallback = "steady"
		}
		a, got := w.composite(skill.Skill{Name: "both", Runner: skill.Spec{Steps: []skill.Step{first, {ID: "b", Skill: "steady", Params: core.Raw(`{"saw":"${a}"}`)}}}}, `{}`)
		expect.True(t, a.State == c.state && strings.Join(got, ", ") == c.want,
			"%s: %s %q\n%s\nwant\n%s", name, a.State, a.Error, strings.Join(got, ", "), c.want)
		expect.True(t, c.policy != skill.Fallback || string(a.Results["both"]) == `{"saw":{"n":1}}`,
			"%s: the fallback did not get the step's parameters: %s", name, a.Results["both"])
		w.whole()
		w.Close()
	}
}

func TestACompositeIsTriedAgainAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "steady"}, skill.Skill{Name: "shaky"})
	w.fake.gives("steady", `{}`)
	failing(w, "shaky", 1, `{}`)
	w.run()
	a, got := w.composite(skill.Skill{Name: "both", MaxRetries: 1, Runner: skill.Spec{Steps: []skill.Step{{ID: "a", Skill: "steady"}, {ID: "b", Skill: "shaky"}}}}, `{}`)
	want := "both success after 1 retries, both/a success, both/b failed, both~1/a success, both~1/b success"
	expect.True(t, a.State == skill.Completed && strings.Join(got, ", ") == want, "%s %q: %v, want %s", a.State, a.Error, got, want)
}

func TestACompositesTimeIsThatOfItsSteps(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "slow"})
	w.fake.on("slow", func(ctx context.Context, _ skill.Call, hold *skill.Hold) (core.Raw, error) {
		return core.Raw(`{}`), hold.Sleep(ctx, 700*time.Millisecond)
	})
	w.run()
	a, got := w.composite(skill.Skill{Name: "both", Timeout: 1, Runner: skill.Spec{Steps: []skill.Step{{ID: "a", Skill: "slow"}, {ID: "b", Skill: "slow"}}}}, `{}`)
	want := "both timeout, both/a success, both/b failed"
	expect.True(t, a.State == skill.Failed && strings.Join(got, ", ") == want, "%s %q: %v, want %s", a.State, a.Error, got, want)
	w.whole()
}

func TestARunnerThatPanicsOrLiesFailsItsStepAlone(t *testing.T) {
	w := newWorld(t)
	w.run()
	for name, c := range map[string]struct {
		do   skill.Func
		says string
	}{
		"panic":      {func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { panic("boom") }, "panicked: boom"},
		"no object":  {func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { return core.Raw(`[1]`), nil }, "result"},
		"nothing":    {func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { return nil, nil }, "result"},
		"its reason": {func(context.Context, skill.Call, *skill.Hold) (core.Raw, error) { return nil, errors.New("no arm") }, "no arm"},
	} {
		w.load(skill.Skill{Name: "odd"})
		w.fake.on("odd", c.do)
		a := w.over(w.invoke("odd", `{}`).AgentID)
		expect.True(t, a.State == skill.Failed && strings.Contains(a.Error, c.says), "%s: %s %q", name, a.State, a.Error)
	}
	w.whole()
}

func TestAFallbackStandsInForWhatLaterStepsDependOn(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "look"}, skill.Skill{Name: "guess"}, skill.Skill{Name: "take", Dependencies: []string{"look"}})
	failing(w, "look", 99, "")
	w.fake.gives("guess", `{"what":"mug"}`)
	w.fake.gives("take", `{}`)
	w.run()
	a, got := w.composite(skill.Skill{Name: "fetch", Runner: skill.Spec{Steps: []skill.Step{
		{ID: "a", Skill: "look", ErrorPolicy: skill.Fallback, Fallback: "guess"}, {ID: "b", Skill: "take"},
	}}}, `{}`)
	want := "fetch success, fetch/a failed, fetch/a~fallback success, fetch/b success"
	expect.True(t, a.State == skill.Completed && strings.Join(got, ", ") == want, "%s %q: %v, want %s", a.State, a.Error, got, want)
}
