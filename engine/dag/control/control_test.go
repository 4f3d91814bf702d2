package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func TestAnIntentIsBroughtAboutStepByStep(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(_ context.Context, j control.Job) (*control.Seen, error) {
			if j.Step == 2 && (len(j.Earlier) != 1 || !strings.Contains(string(j.Earlier[0]), j.IntentID+"/1") || string(j.Args) != `{"n":2}`) {
				t.Errorf("%+v", j)
			}
			return nil, nil
		}
		i := r.intend(alice, control.Spec{TaskID: "task-1", Subject: "resource:vol", Steps: []control.Step{step("make", `{"n":1}`), step("make", `{"n":2}`)}})
		expect.True(t, i.Status == control.Open && r.get(i.IntentID).Why != "", "%+v", i)
		r.run()
		i = r.await(i.IntentID)
		if i.Status != control.Done || i.Steps[1].Status != control.StepDone || string(i.Steps[0].Args) != `{"n":1}` || !strings.Contains(string(i.Steps[1].Result), i.IntentID+"/2") {
			t.Errorf("%+v", i)
		}
		expect.Same(t, r.told(i.IntentID), []string{"run_started", "tool_call make", "tool_call make", "tool_result ok", "tool_result ok", "run_finished success"})
		expect.Same(t, r.world.said(), []string{"probe 1/1", "act 1/1", "probe 1/2", "act 1/2"})
	})
}

func TestWhatIsThereIsNotDoneAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.world.things[i.IntentID+"/1"] = true
		r.run()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Done, "%+v", i)
		expect.Same(t, r.world.said(), []string{"probe 1/1"})
	})
}

func TestAStepIsTriedAgainWithPausesThenTakenBackInReverse(t *testing.T) {
	inBubble(t, func(r *rig) {
		var at []time.Time
		r.world.onAct = func(_ context.Context, j control.Job) (*control.Seen, error) {
			if j.Action == "fail" {
				at = append(at, time.Now())
				return nil, errors.New("the disk is full")
			}
			return nil, nil
		}
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", ""), step("make", ""), step("fail", ""), step("make", "")}})
		r.run()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Failed && strings.Contains(i.Why, "the disk is full") && i.Steps[2].Tries == 3, "%+v", i)
		expect.True(t, len(at) == 3 && at[1].Sub(at[0]) == time.Second && at[2].Sub(at[1]) == 2*time.Second, "tried at %v", at)
		calls := r.world.said()
		got := calls[len(calls)-3:]
		expect.True(t, slices.Equal(got, []string{"undo 1/3", "undo 1/2", "undo 1/1"}) && len(r.world.things) == 0, "%q %v", got, r.world.things)
		want := []string{
			"run_started", "tool_call make", "tool_call make", "tool_call fail", "tool_call make", "tool_result ok", "tool_result ok", "tool_result error",
			"tool_result canceled", "tool_call undo", "tool_call undo", "tool_call undo", "tool_result ok", "tool_result ok", "tool_result ok", "run_finished error",
		}
		expect.Same(t, r.told(i.IntentID), want)
		for n, s := range i.Steps {
			want := []control.StepStatus{control.StepUndone, control.StepUndone, control.StepUndone, control.StepCanceled}[n]
			expect.True(t, s.Status == want, "step %d is %s", n+1, s.Status)
		}
		s, err := r.dag.Run(r.T.Context(), acme, i.IntentID)
		expect.True(t, err == nil && len(s.OpenCalls) == 0, "%+v %v", s, err)
	})
}

func TestAFinalErrorIsNotTriedAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(context.Context, control.Job) (*control.Seen, error) {
			return nil, core.Missing("volume", "vol-9")
		}
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Failed && i.Steps[0].Tries == 1 && i.Steps[0].Error.Code == "NOT_FOUND", "%+v", i)
	})
}

func TestAnEffectHasItsTimeAndMayPanic(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(ctx context.Context, j control.Job) (*control.Seen, error) {
			if j.Action == "hang" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			panic("boo")
		}
		late := r.intend(alice, control.Spec{Steps: []control.Step{step("hang", "")}})
		mad := r.intend(alice, control.Spec{Steps: []control.Step{step("fail", "")}})
		r.run()
		if i := r.await(late.IntentID); i.Status != control.Failed || i.Steps[0].Error.Code != "timeout" || r.told(late.IntentID)[2] != "tool_result timeout" {
			t.Errorf("%+v %q", i, r.told(late.IntentID))
		}
		i := r.await(mad.IntentID)
		expect.True(t, i.Status == control.Failed && strings.Contains(i.Why, "boo"), "%+v", i)
	})
}

func TestEventsOfAnEffectAreRecordedWithItsEndOrNot(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(_ context.Context, j control.Job) (*control.Seen, error) {
			e, err := dag.NewEvent(dag.Head{TS: dag.At(time.Now()), AgentID: "ada"}, &dag.AgentForked{FromBranch: "main", ToBranch: "b", AtEvent: j.Call})
			r.No(err)
			return &control.Seen{Met: true, Events: []dag.Event{e}}, nil
		}
		one := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		i := r.await(one.IntentID)
		expect.True(t, i.Status == control.Done, "%+v", i)
		two := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}}) // the branch is taken now
		i = r.await(two.IntentID)
		expect.True(t, i.Status == control.Failed && strings.Contains(i.Why, "has a branch") && i.Steps[0].Status == control.StepUndone, "%+v", i)
		forks, err := r.dag.Forks(r.T.Context(), acme, core.Filter{})
		expect.True(t, err == nil && forks.Info.Total == 1, "%+v %v", forks, err)
	})
}

func TestIntentsOfOneSubjectTakeTurns(t *testing.T) {
	inBubble(t, func(r *rig) {
		var order []string
		gate := make(chan struct{})
		r.world.onAct = func(_ context.Context, j control.Job) (*control.Seen, error) {
			order = append(order, j.IntentID)
			<-gate
			return nil, nil
		}
		var ids []string
		for range 3 {
			ids = append(ids, r.intend(alice, control.Spec{Subject: "resource:vol", Steps: []control.Step{step("make", "")}}).IntentID)
		}
		r.run()
		synctest.Wait()
		i := r.get(ids[1])
		expect.True(t, len(order) == 1 && i.Before == ids[0] && strings.Contains(i.Why, "comes first"), "%v %+v", order, i)
		i = r.get(ids[0])
		expect.True(t, i.Epoch != 0 && strings.Contains(i.Why, "works on it"), "%+v", i)
		close(gate)
		for _, id := range ids {
			r.await(id)
		}
		expect.Same(t, order, ids)
	})
}

func TestABadSpecIsRefused(t *testing.T) {
	inBubble(t, func(r *rig) {
		for want, spec := range map[string]control.Spec{
			"steps: 0":                      {AgentID: "ada"},
			"agent_id":                      {Steps: []control.Step{step("make", "")}},
			`steps[0].action: "dance"`:      {AgentID: "ada", Steps: []control.Step{step("dance", "")}},
			"steps[1].args":                 {AgentID: "ada", Steps: []control.Step{step("make", ""), step("make", "[1]")}},
			"subject":                       {AgentID: "ada", Subject: "a\x00b", Steps: []control.Step{step("make", "")}},
			"steps[0].args: n: number 9007": {AgentID: "ada", Steps: []control.Step{step("make", `{"n":9007199254740993}`)}},
			"agent_id: ada can't speak for": {AgentID: "bob", Steps: []control.Step{step("make", "")}},
		} {
			by := alice
			if spec.AgentID == "bob" {
				by = ada
			}
			_, err := r.Intend(r.T.Context(), by, spec)
			expect.True(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", want, err)
		}
		page, err := r.List(r.T.Context(), acme, core.Filter{}, false)
		expect.True(t, err == nil && page.Info.Total == 0, "%+v %v", page, err)
		for _, bad := range []string{"in_1", "in_00000_0000000001"} {
			expect.Fails(t, expect.Fault(r.Get(r.T.Context(), alice, bad)), bad)
		}
	})
}

func TestWithdrawnWorkIsStoppedAndTakenBack(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(ctx context.Context, j control.Job) (*control.Seen, error) {
			if j.Step == 2 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		}
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", ""), step("make", ""), step("make", "")}})
		r.run()
		synctest.Wait()
		_, err := r.Withdraw(r.T.Context(), core.Caller{Tenant: acme, Name: "bob", Kind: core.Agent}, i.IntentID, "")
		expect.True(t, errors.Is(err, core.Kind(core.Denied)), "%v", err)
		expect.Of(r.Withdraw(r.T.Context(), alice, i.IntentID, "not needed"))(r.T)
		i = r.await(i.IntentID)
		if i.Status != control.Canceled || len(r.world.things) > 0 || i.Steps[0].Status != control.StepUndone || i.Steps[1].Status != control.StepUndone || i.Steps[2].Status != control.StepCanceled || !strings.Contains(i.Why, "alice: not needed") {
			t.Errorf("%+v", i)
		}
		got := r.told(i.IntentID)
		expect.True(t, got[5] == "interruption canceled" && got[len(got)-1] == "run_finished error", "%q", got)
		expect.Err(t, expect.Fault(r.Withdraw(r.T.Context(), alice, i.IntentID, "")), core.Kind(core.Conflict))
	})
}

func TestWithdrawnBetweenTries(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(context.Context, control.Job) (*control.Seen, error) { return nil, errors.New("later") }
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		synctest.Wait()
		got := r.get(i.IntentID)
		expect.True(t, got.Why == "later; tried in 1s", "%+v", got)
		expect.Of(r.Withdraw(r.T.Context(), alice, i.IntentID, ""))(r.T)
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Canceled && i.Steps[0].Status == control.StepUndone, "%+v", i)
	})
}

func TestWhatCannotBeTakenBackWaitsForAPerson(t *testing.T) {
	inBubble(t, func(r *rig) {
		busy := true
		r.world.onAct = func(_ context.Context, j control.Job) (*control.Seen, error) {
			if j.Step == 2 {
				return nil, core.Errorf(core.Denied, "no")
			}
			return nil, nil
		}
		r.world.onUndo = func(_ context.Context, j control.Job) error {
			if busy && j.Step == 1 {
				return errors.New("busy")
			}
			return nil
		}
		spec := control.Spec{Subject: "resource:vol", Steps: []control.Step{step("make", ""), step("make", "")}}
		a, b := r.intend(alice, spec), r.intend(alice, spec)
		r.run()
		i := r.await(a.IntentID)
		if i.Status != control.Stuck || i.Steps[0].Status != control.StepNotUndone || i.Steps[0].Error.Message != "busy" || r.get(b.IntentID).Before != a.IntentID {
			t.Errorf("%+v", i)
		}
		page, err := r.List(r.T.Context(), acme, core.Filter{Status: string(control.Stuck)}, true)
		expect.True(t, err == nil && page.Info.Total == 1, "%+v %v", page, err)
		busy = false
		expect.Of(r.Retry(r.T.Context(), alice, a.IntentID))(r.T)
		i = r.await(a.IntentID)
		expect.True(t, i.Status == control.Failed && i.Steps[0].Status == control.StepUndone && i.Steps[0].Undos == 2, "%+v", i)
		busy = true
		r.await(b.IntentID)
		expect.Of(r.Withdraw(r.T.Context(), alice, b.IntentID, "it does no harm"))(r.T)
		i = r.await(b.IntentID)
		expect.True(t, i.Status == control.Failed && strings.Contains(i.Why, "does no harm"), "%+v", i)
		for _, id := range []string{a.IntentID, b.IntentID} {
			s, err := r.dag.Run(r.T.Context(), acme, id)
			expect.True(t, err == nil && len(s.OpenCalls) == 0, "%+v %v", s, err)
		}
	})
}

func TestTheNextBeginsWhenWhatIsStuckBeforeItIsGivenUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(_ context.Context, j control.Job) (*control.Seen, error) {
			if j.Args.String() != "{}" {
				return nil, core.Errorf(core.Denied, "no")
			}
			return nil, nil
		}
		r.world.onUndo = func(context.Context, control.Job) error { return errors.New("busy") }
		a := r.intend(alice, control.Spec{Subject: "resource:vol", Steps: []control.Step{step("make", `{"n":1}`)}})
		b := r.intend(alice, control.Spec{Subject: "resource:vol", Steps: []control.Step{step("make", "")}})
		r.run()
		i := r.await(a.IntentID)
		expect.Must(t, i.Status == control.Stuck, "%+v", i)
		time.Sleep(time.Hour) // whatever made the controller look is over
		start := time.Now()
		expect.Of(r.Withdraw(r.T.Context(), alice, a.IntentID, "enough"))(r.T)
		i = r.await(b.IntentID)
		expect.True(t, i.Status == control.Done && time.Since(start) <= time.Second, "after %s: %+v", time.Since(start), i)
	})
}

func TestARetryWantsTheSameAnew(t *testing.T) {
	inBubble(t, func(r *rig) {
		broken := true
		r.world.onAct = func(context.Context, control.Job) (*control.Seen, error) {
			if broken {
				return nil, core.Errorf(core.Conflict, "no")
			}
			return nil, nil
		}
		i := r.intend(alice, control.Spec{Subject: "agent:ada", Steps: []control.Step{step("make", `{"n":1}`)}})
		r.run()
		r.await(i.IntentID)
		broken = false
		again := expect.Of(r.Retry(r.T.Context(), alice, i.IntentID))(r.T)
		done := r.await(again.IntentID)
		expect.True(t, again.IntentID != i.IntentID && done.RetryOf == i.IntentID && done.Status == control.Done && string(done.Steps[0].Args) == `{"n":1}`,
			"%+v", done)
		expect.Err(t, expect.Fault(r.Retry(r.T.Context(), alice, done.IntentID)), core.Kind(core.Conflict))
	})
}

func TestARetryDoesNotWaitForThePause(t *testing.T) {
	inBubble(t, func(r *rig) {
		tries := 0
		r.world.onAct = func(context.Context, control.Job) (*control.Seen, error) {
			if tries++; tries < 5 {
				return nil, errors.New("later")
			}
			return nil, nil
		}
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		start := time.Now()
		synctest.Wait()
		for range 4 {
			expect.Of(r.Retry(r.T.Context(), alice, i.IntentID))(r.T)
			synctest.Wait()
		}
		i = r.get(i.IntentID)
		expect.True(t, i.Status == control.Done && time.Since(start) <= 0, "%+v after %s", i, time.Since(start))
	})
}

func TestDestructiveIntentsOfAgentsPassTheJudge(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.run()
		small := r.intend(ada, control.Spec{Steps: []control.Step{step("wipe", `{"small":true}`)}})
		never := r.intend(ada, control.Spec{Steps: []control.Step{step("make", ""), step("wipe", `{"never":true}`)}})
		i := r.await(small.IntentID)
		expect.True(t, i.Status == control.Done && i.Decision != "", "%+v", i)
		i = r.await(never.IntentID)
		expect.True(t, i.Status == control.Failed && strings.Contains(i.Why, "rule never") && i.Steps[0].Status == control.StepCanceled, "%+v", i)
		if got := r.told(never.IntentID); !slices.Equal(got, []string{"run_started", "tool_call make", "tool_call wipe", "interruption approval_denied", "tool_result canceled", "tool_result canceled", "run_finished error"}) {
			t.Errorf("%q", got)
		}
		var asked [3]control.Intent
		for n := range asked {
			asked[n] = r.intend(ada, control.Spec{Subject: "resource:vol", Steps: []control.Step{step("wipe", "")}})
		}
		free := r.intend(alice, control.Spec{Subject: "resource:vol", Steps: []control.Step{step("wipe", "")}})
		if i := r.await(free.IntentID); i.Status != control.Done { // nobody waits behind a question
			t.Errorf("%+v", i)
		}
		synctest.Wait()
		open, err := r.judge.Open(r.T.Context(), acme)
		r.No(err)
		expect.Must(t, len(open) == 3 && open[0].Gate == judge.GateIntent && strings.Contains(open[0].Intent, "ada wants wipe of resource:vol"), "%+v", open)
		slices.SortFunc(open, func(a, b judge.Approval) int { return strings.Compare(a.Action.CallID, b.Action.CallID) })
		_, err = r.judge.Answer(r.T.Context(), alice, open[0].ApprovalID, judge.Answer{Approve: true, Reason: "ok", Edit: core.Raw(`{"steps":[]}`)})
		expect.True(t, err != nil, "an edit was taken")
		expect.Of(r.judge.Answer(r.T.Context(), alice, open[0].ApprovalID, judge.Answer{Approve: true, Reason: "ok"}))(r.T)
		expect.Of(r.judge.Answer(r.T.Context(), alice, open[1].ApprovalID, judge.Answer{Reason: "too much"}))(r.T)
		expect.Of(r.Withdraw(r.T.Context(), ada, asked[2].IntentID, ""))(r.T)
		for n, want := range []control.Status{control.Done, control.Failed, control.Canceled} {
			i := r.await(asked[n].IntentID)
			expect.True(t, i.Status == want && (n != 1 || strings.Contains(i.Why, "too much")), "%d: %+v", n, i)
		}
		open, err = r.judge.Open(r.T.Context(), acme)
		expect.True(t, err == nil && len(open) == 0, "%+v %v", open, err)
	})
}

func TestAVoidedQuestionEndsItsIntent(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.run()
		i := r.intend(ada, control.Spec{Steps: []control.Step{step("wipe", "")}})
		synctest.Wait()
		r.void()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Failed && strings.Contains(i.Why, "voided: its task ended"), "%+v", i)
	})
}

func TestIntentsAreListed(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ids []string
		for n := range 25 {
			ids = append(ids, r.intend(alice, control.Spec{AgentID: []string{"ada", "bob"}[n%2], Steps: []control.Step{step("make", "")}}).IntentID)
		}
		page, err := r.List(r.T.Context(), acme, core.Filter{Page: 2, Size: 10}, false)
		expect.True(t, err == nil && page.Info.Total == 25 && len(page.Items) == 10 && page.Items[0].IntentID == ids[14], "%+v %v", page, err)
		page, err = r.List(r.T.Context(), acme, core.Filter{Agent: "bob", Page: 2, Size: 10}, true)
		expect.True(t, err == nil && page.Info.Total == 12 && len(page.Items) == 2 && page.Items[1].IntentID == ids[1], "%+v %v", page, err)
		r.run()
		for _, id := range ids {
			r.await(id)
		}
		page, err = r.List(r.T.Context(), acme, core.Filter{}, true)
		expect.True(t, err == nil && page.Info.Total == 0 && len(page.Items) == 0, "%+v %v", page, err)
		page, err = r.List(r.T.Context(), acme, core.Filter{Page: 9, Size: 10}, false)
		expect.True(t, err == nil && page.Info.Total == 25 && len(page.Items) == 0, "%+v %v", page, err)
	})
}
