package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// axis is a timeline in lines: kind, what it begins or ends, how long that took.
func axis(items []dag.Moment) string {
	var b strings.Builder
	for i := range items {
		m := &items[i]
		fmt.Fprintf(&b, "%s %s%s", m.Event.Kind, m.Tool, m.Status)
		if ms, ok := m.Took(); ok {
			fmt.Fprintf(&b, " %dms", ms)
		}
		if m.Message != nil {
			b.WriteString(" " + m.Message.Brief())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestATimelineSaysWhatEachEventBeginsAndEnds(t *testing.T) {
	s := newStory(t)
	s.emit(s.head("ada", "r-1"), &dag.ToolCall{Server: "sh", Tool: "wait", CallID: "c-2", Args: core.Raw(`{}`), RequestedBy: ref(s.answer)})
	want := `run_started running
history_append  user: Build it
model_request ok 1000ms
model_response ok 1000ms
tool_call replaced
tool_call ok 2000ms
substitution 
tool_result execok 2000ms
tool_call open
`
	for _, subject := range []string{"run:r-1", "agent:ada", "task:task-1", "session:session-1"} {
		var q dag.Query
		s.No(q.Subject(subject))
		page := expect.Of(s.Timeline(t.Context(), acme, q))(s.T)
		got := axis(page.Items)
		expect.True(t, got == want, "%s:\n%swant\n%s", subject, got, want)
	}
	s.emit(s.head("ada", "r-1"), &dag.RunFinished{Exit: "error"})
	page := expect.Of(s.Timeline(t.Context(), acme, dag.Query{Run: "r-1", Filter: core.Filter{Page: 10, Size: 1}}))(s.T)
	got := axis(page.Items)
	expect.True(t, got == "run_finished error 9000ms\n" && page.Info.Total == 10, "the end is %q of %d", got, page.Info.Total)
	raw := expect.Of(core.Encode(page.Items[0]))(s.T)
	expect.Has(t, string(raw), `"took_ms":9000,"status_of":"error"}`, "as JSON", raw)
}

func TestAModelRequestThatFailedIsNotOK(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	for _, s := range []dag.CallStatus{dag.CallError, dag.CallOK} {
		r.No(rec.Asked(t.Context(), string(s), dag.ModelAsk{Model: "m"}))
		r.No(rec.Answered(t.Context(), string(s), dag.ModelAnswer{Status: s}))
	}
	r.No(r.finish(rec, false))
	page := expect.Of(r.Timeline(t.Context(), acme, dag.Query{Run: rec.RunID()}))(r.T)
	var got []string
	for _, m := range page.Items[1:5] {
		got = append(got, m.Status)
	}
	expect.Is(t, strings.Join(got, " "), "error error ok ok", "two requests and their responses are", got)
	for _, s := range []dag.CallStatus{dag.CallError, dag.CallOK} {
		page := expect.Of(r.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Kind: string(dag.KindModelResponse), Status: string(s)}}))(r.T)
		expect.True(t, page.Info.Total == 1 && page.Items[0].Event.Body.(*dag.ModelResponse).Status == s, "%d responses are %s", page.Info.Total, s)
	}
}

func TestATimelineIsOfSomething(t *testing.T) {
	for _, name := range []string{"", "run", "run:", "queue:x", "r-1"} {
		var q dag.Query
		expect.Says(t, q.Subject(name), "run:ID, task:ID, agent:NAME, session:ID", name)
	}
}

func TestABareNameIsTheNewestRunOfThatAgent(t *testing.T) {
	s := newStory(t)
	later := s.emit(s.head("ada", "r-2"), &dag.RunStarted{Reason: "user"})
	s.emit(s.head("bob", "r-3"), &dag.RunStarted{Reason: "user"})
	s.emit(s.head("ada", ""), &dag.ResourceAttached{ResourceRef: "vol-1", Mode: dag.ReadWrite})
	var q dag.Query
	s.No(s.Subject(t.Context(), acme, "ada", &q))
	page := expect.Of(s.Timeline(t.Context(), acme, q))(s.T)
	expect.True(t, len(page.Items) == 1 && page.Items[0].Event.EventID == later.EventID, "%+v", page.Items)
	for _, name := range []string{"", "eve", "r-1", "run:", "queue:x"} {
		q := dag.Query{}
		err := s.Subject(t.Context(), acme, name, &q)
		if refused := core.AsError(err); err == nil || refused.Code != core.InvalidInput || refused.Details["field"] != "subject" || !strings.Contains(err.Error(), "agent:NAME, session:ID") {
			t.Errorf("%q: %v", name, err)
		}
	}
	q = dag.Query{}
	s.No(s.Subject(t.Context(), acme, "agent:ada", &q))
	expect.True(t, q.Agent == "ada" && q.Run == "", "%+v", q)
}

func TestATimelineLeavesBookkeepingOutUntilItIsAskedFor(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	var said []string
	for i := range 30 {
		text := fmt.Sprint("step ", i)
		said = append(said, text)
		r.No(rec.Said(ctx, dag.ListMain, dag.RoleAssistant, text))
		r.No(rec.Said(ctx, dag.ListUsage, dag.RoleSystem, "spent"))
	}
	r.No(r.finish(rec, true))
	for name, q := range map[string]dag.Query{"run": {Run: rec.RunID()}, "agent": {Filter: core.Filter{Agent: "ada"}}, "task": {Filter: core.Filter{Task: "task-1"}}} {
		var got []string
		for q.Page, q.Size = 1, 7; ; q.Page++ {
			page := expect.Of(r.Timeline(ctx, acme, q))(t)
			expect.Is(t, page.Info.Total, 32, name, "total")
			for _, m := range page.Items {
				if m.Message != nil {
					got = append(got, m.Message.Text())
				}
			}
			if !page.Info.Next {
				break
			}
		}
		expect.Is(t, strings.Join(got, ", "), strings.Join(said, ", "), name)
		q.Page, q.All = 1, true
		expect.Is(t, expect.Of(r.Timeline(ctx, acme, q))(t).Info.Total, 62, name, "with all")
		q.All, q.Match = false, "spent"
		expect.Is(t, expect.Of(r.Timeline(ctx, acme, q))(t).Info.Total, 0, name, "that says spent")
		q.Match, q.Kind = "", string(dag.KindHistoryAppend)
		expect.Is(t, expect.Of(r.Timeline(ctx, acme, q))(t).Info.Total, 60, name, "of a kind that is named")
	}
}
