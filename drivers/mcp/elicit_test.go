package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/expect"
)

// curious is a server whose tool asks what its arguments say, in the way that serves
// both eras, and tells what became of it.
func curious(t *testing.T, era string) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var p mcp.ElicitParams
		if err := core.DecodeStored(core.Raw(r.Params.Arguments), &p); err != nil {
			return nil, err
		}
		if len(r.Params.InputResponses) == 0 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &p}}, nil
		}
		said := r.Params.InputResponses["q"].(*mcp.ElicitResult)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(core.MustEncode(map[string]any{
			"action": said.Action, "content": said.Content, "why": said.Meta[ReasonKey],
		}))}}}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: era >= "2026-07-28"}))
	t.Cleanup(func() { // a stream of what changes stays open
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// asking dispatches a call and returns the approval of what the server asks.
func (h *house) asking(t *testing.T, server, tool, args string) (task.Task, judge.Approval) {
	t.Helper()
	tk, err := h.eng.Swarm.Dispatch(t.Context(), alice, swarm.Dispatch{
		Kind: Kind, Input: core.Raw(fmt.Sprintf(`{"server":%q,"tool":%q,"args":%s}`, server, tool, args)), MaxAttempts: new(int),
	})
	expect.No(t, err)
	var found judge.Approval
	expect.Await(t, "a question of "+server, func() bool {
		open := expect.Of(h.eng.Judge.Open(t.Context(), lab))(t)
		for _, a := range open {
			if a.Gate == judge.GateQuestion && a.TaskID == tk.TaskID {
				found = a
			}
		}
		now, err := h.eng.Tasks.Get(t.Context(), lab, tk.TaskID)
		if err != nil || now.Status.Terminal() || now.Attempt > 0 {
			r, _ := h.eng.Tasks.Result(t.Context(), lab, tk.TaskID)
			t.Fatalf("%+v %+v %v", now, r.Error, err)
		}
		return found.ApprovalID != ""
	})
	return tk, found
}

// over waits for the end of a task.
func (h *house) over(t *testing.T, tk task.Task) task.Result {
	t.Helper()
	ctx := t.Context()
	expect.Of(h.eng.Tasks.Wait(ctx, lab, tk.TaskID, ""))(t)
	return expect.Of(h.eng.Tasks.Result(ctx, lab, tk.TaskID))(t)
}

const wish = `{"message":"Who are\u001b[31m you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":2},"age":{"type":"integer","default":7}},"required":["name"]}}`

func TestAServersQuestionIsAnsweredByAPerson(t *testing.T) {
	h, _ := guests(t)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h.know(t, tools.Server{Name: "curious", URL: curious(t, era)})
			tk, a := h.asking(t, "curious", "ask", wish)
			if a.Subject.Headline != "answer curious's question" || a.Risk != judge.Low || a.Intent != "Who are[31m you?" || a.RequestedKind == core.Operator {
				t.Errorf("%+v", a)
			}
			if now, err := h.eng.Tasks.Get(t.Context(), lab, tk.TaskID); err != nil || now.Waiting != "approval" || now.ApprovalID != a.ApprovalID {
				t.Errorf("%+v %v", now, err)
			}
			_, err := h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"A"}`)})
			expect.Says(t, err, "content.name: 1 characters is not allowed")
			expect.Of(h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`)}))(t)
			if r := h.over(t, tk); r.Status != task.Succeeded || !strings.Contains(string(r.Output), `{\"action\":\"accept\",\"content\":{\"age\":7,\"name\":\"Ada\"},\"why\":null}`) {
				t.Errorf("%s %s %+v", r.Status, r.Output, r.Error)
			}
			a, err = h.eng.Judge.Approval(t.Context(), lab, a.ApprovalID)
			expect.True(t, err == nil && string(a.Content) == `{"age":7,"name":"Ada"}` && !a.UsedAt.IsZero(), "%+v %v", a, err)
			for how, ans := range map[string]judge.Answer{"decline": {Reason: "no"}, "cancel": {Reason: "no", Abort: true}} {
				tk, a := h.asking(t, "curious", "ask", wish)
				expect.Of(h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, ans))(t)
				r := h.over(t, tk)
				expect.True(t, how != "decline" || strings.Contains(string(r.Output), `\"action\":\"decline\"`), "%s %s %+v", how, r.Output, r.Error)
				if how == "cancel" && (r.Error == nil || r.Error.Code != "approval_denied") {
					t.Errorf("%s %s %+v", how, r.Output, r.Error)
				}
			}
		})
	}
}

func TestWhatIsNoQuestionIsDeclinedWithAReason(t *testing.T) {
	h, _ := guests(t)
	h.know(t, tools.Server{Name: "curious", URL: curious(t, eras[1])})
	for args, want := range map[string]string{
		`{"message":"Log in","mode":"url","url":"https://evil.example","elicitationId":"1"}`:                               "mode: \\\"url\\\" is not allowed",
		`{"message":"?","requestedSchema":{"type":"object","properties":{"apiToken":{"type":"string"}}}}`:                  "a secret must not be asked for",
		`{"message":"?","requestedSchema":{"type":"object","properties":{"x":{"type":"string","title":"Your раssword"}}}}`: "a secret must not be asked for",
		fmt.Sprintf(`{"message":%q}`, strings.Repeat("m", judge.MaxQuestion+1)):                                            "at most 4096 bytes",
		`{"message":"?","requestedSchema":{"type":"object","properties":{` + many(21) + `}}}`:                              "21 are not allowed",
	} {
		tk, r := h.ends(t, alice, "curious", "ask", args)
		expect.True(t, r.Status == task.Succeeded && strings.Contains(string(r.Output), `\"action\":\"decline\"`),
			"%.80s: %s %s %+v", args, r.Status, r.Output, r.Error)
		lines, _, err := h.eng.Tasks.Log(t.Context(), lab, tk.TaskID, 0, 100)
		log := string(core.MustEncode(lines))
		expect.True(t, err == nil && strings.Contains(log, want), "%.80s: %s %v", args, log, err)
	}
	open, err := h.eng.Judge.Open(t.Context(), lab)
	expect.True(t, err == nil && len(open) == 0, "%+v %v", open, err)
}

// many are n properties.
func many(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"p%d":{"type":"boolean"}`, i)
	}
	return strings.Join(all, ",")
}

// A server of the era without a way to say whose call it is about.
func TestAQuestionThatMayBeOfSeveralCallsBelongsToNone(t *testing.T) {
	h, _ := guests(t)
	h.know(t, tools.Server{Name: "curious", URL: curious(t, eras[0])})
	first, a := h.asking(t, "curious", "ask", wish)
	second, err := h.eng.Swarm.Dispatch(t.Context(), alice, swarm.Dispatch{Kind: Kind, Input: core.Raw(`{"server":"curious","tool":"ask","args":` + wish + `}`), MaxAttempts: new(int)})
	expect.No(t, err)
	expect.Await(t, "the second runs", func() bool {
		now, err := h.eng.Tasks.Get(t.Context(), lab, second.TaskID)
		return err == nil && now.Status == task.Running
	})
	expect.Of(h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada"}`)}))(t)
	r := h.over(t, first)
	expect.True(t, r.Status == task.Succeeded, "%+v", r.Error)
	var both judge.Approval
	expect.Await(t, "the second question", func() bool {
		open := expect.Of(h.eng.Judge.Open(t.Context(), lab))(t)
		for _, a := range open {
			both = a
		}
		return len(open) == 1
	})
	q, err := both.Question()
	expect.True(t, err == nil && (both.TaskID == "" || both.TaskID == second.TaskID) && (both.TaskID != "" || len(q.Tasks) == 2), "%+v %v", both, err)
	expect.Of(h.eng.Judge.Answer(t.Context(), alice, both.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Bob"}`)}))(t)
	r = h.over(t, second)
	expect.True(t, r.Status == task.Succeeded && strings.Contains(string(r.Output), "Bob"), "%s %+v", r.Output, r.Error)
}

func TestAQuestionEndsWithItsCall(t *testing.T) {
	h, _ := guests(t)
	for _, era := range eras {
		h.know(t, tools.Server{Name: "curious", URL: curious(t, era)})
		tk, a := h.asking(t, "curious", "ask", wish)
		expect.Of(h.eng.Swarm.Cancel(t.Context(), alice, tk.TaskID, "enough"))(t)
		r := h.over(t, tk)
		expect.True(t, r.Status == task.Cancelled, "%+v", r)
		expect.Await(t, "it is void", func() bool {
			now, err := h.eng.Judge.Approval(t.Context(), lab, a.ApprovalID)
			return err == nil && now.Status == judge.Voided
		})
	}
}

func TestARealServersQuestionIsAnswered(t *testing.T) {
	installed := drivertest.InstalledMCP(t)
	h, _ := guests(t)
	bin := filepath.Join(installed, "node_modules", ".bin")
	h.know(t, tools.Server{
		Name: "everything", Command: []string{filepath.Join(bin, "mcp-server-everything")}, Env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH")},
	})
	tk, a := h.asking(t, "everything", "trigger-elicitation-request", "{}")
	expect.True(t, a.Subject.Headline == "answer everything's question" && strings.Contains(string(a.Action.Args), "Your full, legal name"), "%+v", a)
	_, err := h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Content: core.Raw(`{"name":"Ada Lovelace","titledSingleSelectEnum":"hero-3"}`)})
	expect.No(t, err)
	if r := h.over(t, tk); r.Status != task.Succeeded || !strings.Contains(string(r.Output), "Name: Ada Lovelace") || !strings.Contains(string(r.Output), "hero-3") {
		t.Errorf("%s %s %+v", r.Status, r.Output, r.Error)
	}
	tk, a = h.asking(t, "everything", "trigger-elicitation-request", "{}")
	expect.Of(h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Reason: "not from me"}))(t)
	r := h.over(t, tk)
	expect.True(t, r.Status == task.Succeeded && strings.Contains(string(r.Output), "declined"), "%s %s %+v", r.Status, r.Output, r.Error)
}
