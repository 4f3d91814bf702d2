package fleet_test

import (
	"context"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestAnAgentsQuestionWaitsForAPersonAndIsToldTheAnswer(t *testing.T) {
	e := fleet.Event{Type: "tool_request", CallID: "q", Tool: "ask", Intent: "Who?", Asks: &judge.Question{
		Message: "Who?", Schema: core.Raw(`{"properties":{"name":{"type":"string"}},"required":["name"]}`),
	}}
	w, answers := asking(t, e)
	tk := w.assign("bob", "x")
	ap := w.approval()
	if ap.Gate != judge.GateQuestion || ap.Action.Kind != judge.KindQuestion || ap.TaskID != tk.TaskID || ap.Subject.Headline != "answer agent bob's question" {
		t.Errorf("%+v", ap)
	}
	q, err := ap.Question()
	expect.True(t, err == nil && q.Agent == "bob" && q.Message == "Who?", "%+v %v", q, err)
	w.Await("the agent waits", func() bool { return w.agent("bob").Waiting == ap.ApprovalID })
	expect.Of(w.judge.Answer(t.Context(), alice, ap.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`)}))(t)
	a := <-answers
	expect.True(t, a.Decision == "approve" && string(a.Content) == `{"name":"Ada"}`, "%+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "%+v", r)
	if a := w.agent("bob"); a.Waiting != "" {
		t.Errorf("%+v", a)
	}
	w.consistent()
}

// TestACallThatIsTakenBackBeforeAnybodyWasAskedWaitsForNobody has an agent withdraw a call
// before it asks for it, as the two may overtake each other on their way here.
func TestACallThatIsTakenBackBeforeAnybodyWasAskedWaitsForNobody(t *testing.T) {
	w := newWorld(t).run()
	answers := make(chan fleet.ToolAnswer, 2)
	w.rt.does(func(ctx context.Context, h *handle, p fleet.Prompt) (task.Outcome, error) {
		e := write
		e.Type = "tool_request"
		for _, e := range []fleet.Event{{Type: "withdraw", CallID: e.CallID, Text: "it is there already"}, e} {
			a, err := p.Emit(ctx, e)
			if err != nil {
				return task.Outcome{}, err
			}
			answers <- a
		}
		return done(ctx, h, p)
	})
	w.create("bob")
	tk := w.assign("bob", "x")
	<-answers
	a := <-answers
	expect.True(t, a.Decision == "deny" && a.Reason == "withdrawn by bob: it is there already", "%+v", a)
	r := w.result(tk.TaskID)
	expect.True(t, r.Status == task.Succeeded, "%+v", r)
	expect.Is(t, len(w.events("approval.withdrawn")), 1)
	w.consistent()
}
