package skill_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
)

// reacting runs what carries out the reactions, until stop is called.
func (w *world) reacting() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := w.skills.Run(ctx); err != nil && ctx.Err() == nil {
			w.T.Errorf("Run: %v", err)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
}

func (w *world) react(pattern, name, params string) skill.Reaction {
	w.T.Helper()
	r := skill.Reaction{Pattern: pattern, Skill: name}
	if params != "" {
		r.Params = core.Raw(params)
	}
	r, made, err := w.skills.React(w.T.Context(), alice, r)
	if err != nil || !made {
		w.T.Fatalf("react: %v, %v", made, err)
	}
	return r
}

func (w *world) publish(topic, payload string) bus.Message {
	w.T.Helper()
	m, err := w.bus.Accept(w.T.Context(), alice, bus.Send{Topic: topic, Payload: core.Raw(payload)})
	if err != nil {
		w.T.Fatal(err)
	}
	return m
}

func (w *world) allTasks() []task.Task {
	w.T.Helper()
	page, err := w.tasks.List(w.T.Context(), home, core.Filter{Size: 100})
	if err != nil {
		w.T.Fatal(err)
	}
	return page.Items
}

func (w *world) dead() []bus.DeadLetter {
	w.T.Helper()
	page, err := w.bus.Dead(w.T.Context(), home, core.Filter{})
	if err != nil {
		w.T.Fatal(err)
	}
	return page.Items
}

func partSchema(names ...string) core.Raw {
	props := map[string]any{}
	for _, n := range names {
		props[n] = map[string]string{"type": "string"}
	}
	return core.MustEncode(map[string]any{"type": "object", "properties": props, "additionalProperties": false})
}

func TestAMessageInvokesASkill(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "make", Tags: []string{"part"}}, skill.Skill{Name: "paint", ParametersSchema: partSchema("part", "seen")})
	w.fake.gives("make", `{"part":"lid"}`)
	w.fake.gives("paint", `{}`)
	r := w.react("part.complete", "paint", `{"part":"${message.payload.part}","seen":"on ${message.topic}"}`)
	w.run()
	defer w.reacting()()
	w.over(w.invoke("make", `{}`).AgentID)
	w.Await("the reaction", func() bool { return len(w.fake.of("paint")) == 1 })
	if got := string(w.fake.of("paint")[0].Params); got != `{"part":"lid","seen":"on part.complete"}` {
		t.Errorf("params %s", got)
	}
	all := w.allTasks()
	if len(all) != 2 {
		t.Fatalf("%d tasks", len(all))
	}
	painted, made := all[0], all[1]
	if painted.ParentTaskID != made.TaskID || painted.TraceID != made.TraceID || painted.CreatedBy != r.ReactionID || painted.CreatedKind != core.Engine {
		t.Errorf("%s", core.MustEncode(painted))
	}
	w.whole()
}

func TestAReactionsParametersAreThePayloadByDefault(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "paint", ParametersSchema: partSchema("part")})
	w.fake.gives("paint", `{}`)
	w.react("part.*", "paint", "")
	w.run()
	defer w.reacting()()
	w.publish("part.made", `{"part":"lid"}`)
	bad := w.publish("part.made", `{"colour":"red"}`)
	w.publish("part.made", `{"part":"cup"}`)
	w.Await("both", func() bool { return len(w.fake.of("paint")) == 2 && len(w.dead()) == 1 })
	if d := w.dead()[0]; d.MessageID != bad.MessageID || d.Reason != bus.ReasonRefused || !strings.Contains(d.Detail, "colour") {
		t.Errorf("%+v", d)
	}
}

// What was published while nothing ran is reacted to later, and only once: also
// when the engine dies between the task and the acknowledgement.
func TestAReactionIsNeitherLostNorRepeatedOverAKill(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "paint", ParametersSchema: partSchema("part")})
	w.fake.gives("paint", `{}`)
	w.react("part.made", "paint", "")
	w.publish("part.made", `{"part":"lid"}`)
	w.Reopen()
	stop := w.reacting() // the bus does not run: no acknowledgement is written before the end
	w.Await("its task", func() bool { return len(w.allTasks()) == 1 })
	killed := w.Copy()
	stop()
	w.Close()
	w.Path = killed
	w.Open()
	w.load(skill.Skill{Name: "paint", Version: "1.1.0", ParametersSchema: partSchema("part")})
	w.run()
	defer w.reacting()()
	w.publish("part.made", `{"part":"cup"}`)
	w.Await("the second one", func() bool { return len(w.fake.of("paint")) == 2 })
	if all := w.allTasks(); len(all) != 2 {
		t.Errorf("%d tasks of two messages", len(all))
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("%+v", dead)
	}
}

// A reaction that causes its own messages comes to an end.
func TestALoopOfReactionsEnds(t *testing.T) {
	for _, pattern := range []string{"loop.complete", "sys.task.succeeded", "sys.subagent.completed"} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.load(skill.Skill{Name: "turn", Tags: []string{"loop"}})
			w.fake.gives("turn", `{}`)
			w.react(pattern, "turn", `{}`)
			w.run()
			defer w.reacting()()
			w.invoke("turn", `{}`)
			w.Await("the end of the loop", func() bool { return len(w.dead()) == 1 })
			if n := len(w.fake.of("turn")); n != 17 {
				t.Errorf("%d turns, want one and 16 reactions", n)
			}
			if d := w.dead()[0]; !strings.Contains(d.Detail, "a loop") {
				t.Errorf("%+v", d)
			}
			w.whole()
		})
	}
}

// A subagent that sends by itself, without naming its task, is no way around.
func TestALoopThroughASubagentsOwnMessagesEnds(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "turn"})
	w.fake.on("turn", func(ctx context.Context, call skill.Call, _ *skill.Hold) (core.Raw, error) {
		_, err := w.bus.Accept(ctx, alice, bus.Send{Topic: "loop.said", Sender: call.AgentID, Payload: core.Raw(`{}`)})
		return core.Raw(`{}`), err
	})
	w.react("loop.said", "turn", "")
	w.run()
	defer w.reacting()()
	w.invoke("turn", `{}`)
	w.Await("the end of the loop", func() bool { return len(w.dead()) == 1 })
	if n := len(w.fake.of("turn")); n != 17 {
		t.Errorf("%d turns, want one and 16 reactions", n)
	}
}

// One that causes several messages of its own at once ends too.
func TestAStormOfReactionsEnds(t *testing.T) { synctest.Test(t, storm) }

func storm(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "turn", Tags: []string{"loop"}})
	w.fake.gives("turn", `{}`)
	w.react("sys.task.*", "turn", `{}`)
	w.run()
	defer w.reacting()()
	w.invoke("turn", `{}`)
	turns, since := 0, time.Now()
	w.Await("the end of the storm", func() bool {
		if n := len(w.fake.of("turn")); n != turns {
			turns, since = n, time.Now()
		}
		return turns > 0 && time.Since(since) > time.Second
	})
	if turns < 17 || turns > 300 {
		t.Errorf("%d turns", turns)
	}
	if len(w.dead()) == 0 {
		t.Error("nothing says why it ended")
	}
	w.whole()
}

func TestReactionsComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "paint", ParametersSchema: partSchema("part")})
	w.fake.gives("paint", `{}`)
	first := w.react("part.made", "paint", "")
	same, made, err := w.skills.React(t.Context(), alice, skill.Reaction{Pattern: "part.made", Skill: "paint"})
	if err != nil || made || same.ReactionID != first.ReactionID || !same.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("the same again: %+v, %v, %v", same, made, err)
	}
	second := w.react("part.made", "paint", `{"part": "any"}`)
	w.Reopen()
	if all := w.skills.Reactions(home); len(all) != 2 || all[0].ReactionID != first.ReactionID || string(all[1].Params) != `{"part":"any"}` {
		t.Errorf("after a restart: %+v", all)
	}
	w.run()
	defer w.reacting()()
	for _, r := range []skill.Reaction{first, second} {
		if gone, err := w.skills.Unreact(t.Context(), alice, r.ReactionID); err != nil || gone.Pattern != r.Pattern {
			t.Fatalf("%+v, %v", gone, err)
		}
		if _, err := w.skills.Unreact(t.Context(), alice, r.ReactionID); !isCode(err, core.NotFound) {
			t.Errorf("removed twice: %v", err)
		}
	}
	w.Await("their readers to go", func() bool {
		all, err := w.bus.Subscriptions(t.Context(), home)
		return err == nil && len(all) == 0
	})
	w.publish("part.made", `{"part":"lid"}`)
	w.react("part.made", "paint", "")
	w.publish("part.made", `{"part":"cup"}`)
	w.Await("the one that is there again", func() bool { return len(w.fake.of("paint")) == 1 })
	if got := string(w.fake.of("paint")[0].Params); got != `{"part":"cup"}` {
		t.Errorf("reacted to %s", got)
	}
	w.whole()
}

// A reaction goes on though its subscription was removed by hand.
func TestAReactionsSubscriptionComesBack(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "paint"})
	w.fake.gives("paint", `{}`)
	r := w.react("part.made", "paint", "")
	if err := w.bus.Unsubscribe(t.Context(), alice, r.ReactionID); err != nil {
		t.Fatal(err)
	}
	w.run()
	defer w.reacting()()
	w.Await("its subscription", func() bool {
		all, err := w.bus.Subscriptions(t.Context(), home)
		return err == nil && len(all) == 1 && all[0].Open
	})
	w.publish("part.made", `{}`)
	w.Await("the reaction", func() bool { return len(w.fake.of("paint")) == 1 })
	w.whole()
}

func TestReactionsThatMakeNoSenseAreRefused(t *testing.T) {
	w := newWorld(t)
	w.load(skill.Skill{Name: "paint", ParametersSchema: partSchema("part")})
	for _, c := range []struct {
		r     skill.Reaction
		code  core.Code
		field string
	}{
		{skill.Reaction{Pattern: "a..b", Skill: "paint"}, core.InvalidInput, "pattern"},
		{skill.Reaction{Pattern: "a\x00b", Skill: "paint"}, core.InvalidInput, "pattern"},
		{skill.Reaction{Pattern: "a", Skill: "no such"}, core.InvalidInput, "skill"},
		{skill.Reaction{Pattern: "a", Skill: "missing"}, core.NotFound, "skill"},
		{skill.Reaction{Pattern: "a", Skill: "paint", Params: core.Raw(`[]`)}, core.InvalidInput, "params"},
		{skill.Reaction{Pattern: "a", Skill: "paint", Params: core.Raw(`{"part":1}`)}, core.InvalidInput, "params.part"},
		{skill.Reaction{Pattern: "a", Skill: "paint", Params: core.Raw(`{"colour":"red"}`)}, core.InvalidInput, "params.colour"},
		{skill.Reaction{Pattern: "a", Skill: "paint", Params: core.Raw(`{"part":"${params.x}"}`)}, core.InvalidInput, "params.part"},
		{skill.Reaction{Pattern: "a", Skill: "paint", Params: core.Raw(`{"part":"${message"}`)}, core.InvalidInput, "params.part"},
	} {
		_, _, err := w.skills.React(t.Context(), alice, c.r)
		if !isCode(err, c.code) || core.AsError(err).Details["field"] != c.field {
			t.Errorf("%+v: %v (%v)", c.r, err, core.AsError(err).Details)
		}
	}
	if all := w.skills.Reactions(home); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	subs, err := w.bus.Subscriptions(t.Context(), home)
	if err != nil || slices.ContainsFunc(subs, func(s bus.SubscriptionInfo) bool { return s.Durable }) {
		t.Errorf("%+v, %v", subs, err)
	}
}
