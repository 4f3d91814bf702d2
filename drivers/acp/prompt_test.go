package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestTheAgentsOwnReasonMakesTheOutcome(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.always("deny")
	for _, c := range []struct {
		acts   string
		status task.Status
		code   string
		retry  bool
	}{
		{"say fine", task.Succeeded, "", false},
		{"stop max_tokens", task.Failed, "agent_limit", true},
		{"stop max_turn_requests", task.Failed, "agent_limit", true},
		{"stop refusal", task.Blocked, "refusal", false},
		{"stop cancelled", task.Cancelled, "cancelled", false},
		{"stop sunset", task.Failed, "agent_protocol", false},
		{"tool execute {}\nsay fine", task.Succeeded, "", false},
		{"tool execute {}\nstop cancelled", task.Succeeded, "", false}, // it is told why, and goes on
		{"fail the model is away", task.Failed, "agent_failed", true},
	} {
		out := s.ends(c.status, c.code, strings.Split(c.acts, "\n")...)
		if out.Error != nil && out.Error.Retryable != c.retry {
			t.Errorf("%s: retryable %v", c.acts, out.Error.Retryable)
		}
	}
}

// TestADenialsReasonReachesTheAgent: the answer to a permission request has no place for
// it, so that it comes as the next prompt, once.
func TestADenialsReasonReachesTheAgent(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	n := 0
	s.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		n++
		return fleet.ToolAnswer{Decision: "deny", Reason: fmt.Sprintf("use the copy %d", n)}, nil
	}
	s.ends(task.Succeeded, "", "tool execute {}", "tool edit {}", "tokens 70", "say fine")
	told := s.of("prompt")
	expect.True(t, len(told) == 1 && strings.Contains(told[0].Text, "- to execute: use the copy 1\n- to edit: use the copy 2\n"), "told %+v", told)
	var spent int64
	for _, e := range s.of("usage") {
		spent += e.Tokens
	}
	expect.Is(t, spent, 70)
	s.forget()
	s.ends(task.Succeeded, "", "say next")
	told = s.of("prompt")
	expect.True(t, len(told) == 0, "told %+v", told)
}

func TestAnApprovalAfterADenialIsNoDenial(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	decisions := []string{"deny", "approve"}
	s.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		d := decisions[0]
		decisions = decisions[1:]
		return fleet.ToolAnswer{Decision: d}, nil
	}
	s.ends(task.Succeeded, "", "tool edit {}", "tool edit {}")
}

func TestAPermissionForGoodIsNeverGiven(t *testing.T) {
	s, _ := newStand(t, traits{Always: true}, settings{})
	s.always("approve")
	s.ends(task.Succeeded, "", "tool execute {}")
	s.heard("log", "only for good")
	s.heard("prompt", "only for good")
}

func TestTheLastMessageIsTheResult(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	chunk := func(id, text string) string {
		if id != "" {
			id = `"messageId":"` + id + `",`
		}
		return `raw {"sessionUpdate":"agent_message_chunk",` + id + `"content":{"type":"text","text":"` + text + `"}}`
	}
	out := s.ends(task.Succeeded, "",
		chunk("", "Fir"), chunk("", "st."), `raw {"sessionUpdate":"tool_call","toolCallId":"c1","title":"look","kind":"read","status":"in_progress"}`,
		chunk("", "Sec"), chunk("", "ond."), chunk("a", "Th"), chunk("a", "ird."))
	expect.Is(t, strings.Join(s.texts("message"), "|"), "First.|Second.|Third.", "messages")
	expect.True(t, out.Text == "Third." && reply(t, out.Output)["text"] == "Third.", "outcome %q %s", out.Text, out.Output)
}

func TestCallsPlansAndThoughtsReachTheLog(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.ends(task.Succeeded, "",
		`raw {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hmm"}}`,
		`raw {"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"completed"},{"content":"leap","priority":"low","status":"pending"}]}`,
		// A call may first be heard of when it is over, and again afterwards.
		`raw {"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"change a","kind":"edit","status":"completed","content":[{"type":"diff","path":"/a","oldText":"one\ntwo\nthree","newText":"one\n2\nthree"}]}`,
		`raw {"sessionUpdate":"tool_call","toolCallId":"c1","title":"change a","kind":"edit","status":"completed","content":[{"type":"diff","path":"/a","oldText":"one\ntwo\nthree","newText":"one\n2\nthree"}]}`,
		`raw {"sessionUpdate":"tool_call","toolCallId":"c2","title":"never ends","kind":"execute","status":"in_progress"}`,
		`raw {"sessionUpdate":"hologram_chunk","content":{"type":"text","text":"from the future"}}`)
	s.heard("thought", "hmm")
	s.heard("plan", "[x] look\n[ ] leap")
	s.heard("diff", "/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three")
	s.heard("log", `unknown update: {"sessionUpdate":"hologram_chunk"`)
	got := s.of("plan")[0].Steps
	expect.True(t, len(got) == 2 && got[0] == (fleet.Step{Text: "look", Status: "completed"}), "steps %+v", got)
	if got := s.of("diff")[0]; got.Path != "/a" || got.CallID != "c1" {
		t.Errorf("diff %+v", got)
	}
	expect.Is(t, len(s.of("diff")), 1, "diffs, want one")
	expect.True(t, len(s.of("message")) == 0, "an unknown update became a message: %q", s.texts("message"))
	results := map[string]string{}
	for _, e := range s.of("tool_result") {
		results[e.CallID] += e.Status + " " + e.Tool + " " + e.Text + " " + e.Error
	}
	expect.Row(t, results, "c1", "ok edit change a ", "c2", "error execute never ends the agent told no end of it")
}

func TestTwoQuestionsAboutOneCallHaveIDsOfTheirOwn(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.always("approve")
	s.ends(task.Succeeded, "", "twice")
	var ids []string
	for _, e := range s.of("tool_request") {
		ids = append(ids, e.CallID)
	}
	var ended []string
	for _, e := range s.of("tool_result") {
		ended = append(ended, e.CallID+" "+e.Status+" "+string(e.Output))
	}
	expect.True(t, strings.Join(ids, ",") == "same,same#2" && strings.Join(ended, ",") == `same ok {"output":"done"},same#2 ok {"output":"done"}`,
		"asked %q, ended %q", ids, ended)
}

func TestTokensAndCostAreCountedOnce(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	sum := func() (tokens int64, cost float64) {
		for _, e := range s.of("usage") {
			tokens += e.Tokens
			cost += e.CostUSD
		}
		s.forget()
		return
	}
	context := `raw {"sessionUpdate":"usage_update","used":80,"size":1000,"cost":{"amount":%,"currency":"USD"}}`
	request := func(n int) string {
		return fmt.Sprintf(`raw {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":%d}}}`, n)
	}
	for _, c := range []struct {
		acts   []string
		tokens int64
		cost   float64
	}{
		{[]string{"tokens 100"}, 100, 0},
		{[]string{"tokens 100"}, 100, 0}, // each turn's own
		{[]string{"tokens 40"}, 40, 0},
		{[]string{"quota 200 40"}, 240, 0},
		{[]string{strings.Replace(context, "%", "0.25", 1), strings.Replace(context, "%", "0.5", 1)}, 160, 0.5},
		{[]string{strings.Replace(context, "%", "0.75", 1), "tokens 90"}, 90, 0.25}, // better figures than the contexts
		{[]string{strings.Replace(context, "%", "0.5", 1), "tokens 90"}, 90, 0.5},   // the sum began anew
		{[]string{request(30), request(20)}, 50, 0},
		{[]string{request(30), request(20), "tokens 60"}, 60, 0},
		{[]string{request(30), request(20), "tokens 20"}, 50, 0}, // of the last request alone
		{[]string{request(-5), "tokens -5"}, 0, 0},
		{[]string{`raw {"sessionUpdate":"usage_update","cost":{"amount":9,"currency":"CHF"}}`}, 0, 0},
	} {
		s.ends(task.Succeeded, "", c.acts...)
		tokens, cost := sum()
		expect.True(t, tokens == c.tokens && cost == c.cost, "%q: %d tokens and %g USD, want %d and %g", c.acts, tokens, cost, c.tokens, c.cost)
	}
}

func TestACancelAnswersOpenQuestionsAsCancelled(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	done := s.start("tool execute {}", "say survived", "hang")
	expect.Await(t, "it asks", func() bool { return len(s.of("tool_request")) == 1 })
	pid := s.now().PID
	s.handle.Interrupt()
	out := s.wait(done)
	expect.True(t, out.Status == task.Cancelled && s.now().PID == pid, "outcome %+v by process %d, was %d", out, s.now().PID, pid)
	for _, e := range s.of("tool_result") {
		expect.True(t, e.Status == "error" && e.Error == "canceled", "result %+v", e)
	}
}

func TestALinkGoesWithThePrompt(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	out, err := s.handle.Prompt(context.Background(), fleet.Prompt{
		TaskID: "tk_00000_0000000001", Message: "say hello", URI: "https://example.org/a", Emit: s.emit, Beat: func() {},
	})
	expect.True(t, err == nil && out.Text == "link https://example.org/a", "%+v, %v", out, err)
}

func TestArgumentsThatCantBeJudgedAreShownAsSuch(t *testing.T) {
	c := &call{title: "t", input: core.Raw(`{"a":1,"a":2}`)}
	expect.Has(t, string(c.args()), "unreadable", "args")
}

// TestWhatIsSaidToAnAgentAtWorkIsItsNextPrompt: the protocol has no other way.
func TestWhatIsSaidToAnAgentAtWorkIsItsNextPrompt(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.say = []*fleet.Message{{Text: "say one"}, {Text: "say two\nsay three", URI: "file:///x"}}
	out := s.ends(task.Succeeded, "", "say first")
	expect.Is(t, out.Text, "link file:///x", "the outcome is that of the last prompt")
	got := s.texts("message")
	expect.True(t, strings.Join(got, " ") == "first one two three link file:///x", "said %q", got)
	got = s.texts("prompt")
	expect.True(t, len(got) == 2 && got[1] == "say two\nsay three", "told %q", got)
	expect.Err(t, s.handle.(fleet.Steerer).Hears(), fleet.ErrNextPrompt, "it hears at once")
	s.say = []*fleet.Message{{Text: "say no"}}
	s.ends(task.Blocked, "refusal", "stop refusal")
	expect.Is(t, len(s.say), 1, "an agent that refused was told more")
}
