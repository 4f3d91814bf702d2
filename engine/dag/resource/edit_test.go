package resource

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// worked records, in a bubble, that ada was told something, called a tool and got a
// result, and returns these events.
func (r *rig) worked() (said, called, got string) {
	r.T.Helper()
	x := dag.NewTranscript("r-1", dag.RunInfo{AgentID: "ada"}, time.Now())
	x.Said(dag.Spoken{Role: dag.RoleUser, Content: []dag.ContentPart{{Type: "text", Text: "build it"}}})
	x.Called("exec", "make", "c-1", core.Raw(`{"target":"all"}`))
	x.Returned("c-1", dag.CallOK, core.Raw(`{"rc":0}`), nil)
	events := expect.Of(x.Finish(true))(r.T)
	events = events[:len(events)-1] // the run goes on
	expect.Of(r.dag.Emit(r.T.Context(), alice, events...))(r.T)
	time.Sleep(time.Second)
	return events[1].EventID, events[2].EventID, events[3].EventID
}

func TestAForkGoesOnFromAnEventAsItWasEdited(t *testing.T) {
	inBubble(t, func(r *rig) {
		said, called, got := r.worked()
		ctx := r.T.Context()
		for _, c := range []struct {
			name, at, edit string
			last           string // line that the fork is told
			kind           dag.Kind
		}{
			{"message", said, `{"text":"test it"}`, `{"user":"test it"}`, dag.KindHistoryAppend},
			{"call", called, `{"args":{"target":"clean"}}`, `{"call":"c-1","tool":"make","args":{"target":"clean"}}`, dag.KindToolCall},
			{"result", got, `{"result":{"rc":2}}`, `{"result":"c-1","status":"ok","output":{"rc":2}}`, dag.KindToolResult},
			{"failure", got, `{"status":"error","error":{"code":"x","message":"no"}}`, `{"result":"c-1","status":"error","output":{"rc":0},"error":"no"}`, dag.KindToolResult},
		} {
			var made Made
			r.people.onFork = func(m Made) error { made = m; return nil }
			none := ""
			f := expect.Of(r.Fork(ctx, alice, ForkRequest{AgentID: "ada", At: c.at, Name: c.name, Task: &none, Edit: core.Raw(c.edit), Reason: "what if"}))(r.T)
			past := expect.Of(r.Past(ctx, acme, made.Origin, f.Dir))(r.T)
			record, _, _ := strings.Cut(past, "</record>")
			expect.True(t, strings.HasSuffix(record, "\n"+c.last+"\n") && strings.Contains(past, "Its last line was changed"), "%s is told:\n%s", c.name, past)
			page := expect.Of(r.dag.Events(ctx, acme, dag.Query{Run: dag.EditRun(f.IntentID), Filter: core.Filter{Agent: c.name}}))(r.T)
			expect.Must(t, len(page.Items) == 4 && page.Items[1].Event.Kind == c.kind, "%s has %d events of its edit", c.name, len(page.Items))
			s := page.Items[2].Event.Body.(*dag.Substitution)
			expect.True(t, s.OriginalEvent.EventID == c.at && s.ReplacementEvent.EventID == page.Items[1].Event.EventID && s.Reason == "what if",
				"%s: %+v", c.name, s)
			// A fork of the fork is told the same, once.
			time.Sleep(time.Second)
			again := expect.Of(r.dag.Conversation(ctx, acme, dag.ConversationQuery{Event: r.says(c.name, "then by "+c.name)}))(r.T)
			lines := strings.Join(again.Lines, "\n")
			if strings.Count(lines, c.last) != 1 || !strings.HasSuffix(lines, c.last+"\n"+`{"user":"then by `+c.name+`"}`) || c.name == "message" && strings.Contains(lines, "build it") {
				t.Errorf("a fork of %s is told:\n%s", c.name, lines)
			}
		}
		// The agent's own past stays.
		own := expect.Of(r.dag.Conversation(ctx, acme, dag.ConversationQuery{Event: got}))(r.T)
		expect.True(t, len(own.Lines) == 3 && strings.Contains(own.Lines[0], "build it"), "ada's own: %v", own.Lines)
	})
}

func TestWhatCantBeEditedIsNamed(t *testing.T) {
	inBubble(t, func(r *rig) {
		began := r.began("r-0")
		said, called, got := r.worked()
		for _, c := range []struct{ at, edit, says string }{
			{began, `{"text":"x"}`, "is a run_started; allowed: a message"},
			{said, `{"args":{}}`, "args: unknown field"},
			{said, `{}`, "text or content is missing"},
			{said, `{"text":7}`, "text: want"},
			{said, `{"content":[{"type":"voice"}]}`, "content[0].type"},
			{called, `{"args":[]}`, "args"},
			{called, `{"args":{"n":9007199254740993}}`, "9007199254740993"},
			{got, `{"status":"fine"}`, "status"},
			{got, `{"text":"x"}`, "text: unknown field"},
			{got, `7`, "edit"},
			{got, `{"result":"` + strings.Repeat("x", 300<<10) + `"}`, "at most"},
		} {
			_, err := r.Plan(r.T.Context(), acme, ForkRequest{AgentID: "ada", At: c.at, Edit: core.Raw(c.edit)})
			expect.True(t, err != nil && strings.Contains(err.Error(), c.says) && core.AsError(err).Details["field"] == "edit",
				"%.60s: %v, want %s", c.edit, err, c.says)
		}
		p, err := r.Plan(r.T.Context(), acme, ForkRequest{AgentID: "ada", At: got, Edit: core.Raw(`{"status":"error","error":{"code":"x","message":"y"}}`)})
		r.No(err)
		expect.True(t, p.Edited != nil && p.Edited.Result.Status == dag.CallError, "%+v", p.Edited)
	})
}
