package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const noWrites = `
schema: 1
name: careful
rules:
  - {id: writes, gates: [tool.call], when: 'action.tool == "fs.write"', decision: deny, reason_code: careful.write, risk: high}
  - {id: all, gates: [tool.call], when: "true", decision: approve, reason_code: careful.all, risk: low}
`

// TestRecordedCallsAreAskedAboutAgain has a run with a call that was approved, one
// that a person edited, and one that nobody asked about.
func TestRecordedCallsAreAskedAboutAgain(t *testing.T) {
	e, ctx := policed(t), t.Context()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all []dag.Event
	add := func(b dag.Body, nodes ...dag.Node) dag.EventRef {
		at = at.Add(time.Second)
		ev := expect.Of(dag.NewEvent(dag.Head{TS: dag.At(at), RunID: "r-1", AgentID: "ada", Nodes: nodes}, b))(t)
		all = append(all, ev)
		return dag.EventRef{EventID: ev.EventID}
	}
	started := add(&dag.RunStarted{})
	call := func(id, tool, args string) dag.EventRef {
		return add(&dag.ToolCall{Server: "exec", Tool: tool, CallID: id, Args: core.Raw(args), RequestedBy: started})
	}
	decided := func(call, decision string) {
		id := fmt.Sprint("d-", len(all))
		add(&dag.HistoryAppend{List: dag.ListDecisions, MessageRef: id}, dag.NewNode(&dag.Message{ID: id, Role: dag.RoleSystem, CreatedAt: dag.At(at), Content: []dag.ContentPart{
			{Type: "tool_use", ID: call, Name: "decision", Input: core.Raw(`{"decision":"` + decision + `","reason_code":"x","decided_by":"policy","decision_id":"gd_00000_0000000009"}`)},
		}}))
	}
	call("c-1", "fs.read", `{"path":"a"}`)
	decided("c-1", "approve")
	first := call("c-2", "fs.write", `{"path":"a"}`)
	decided("c-2", "hitl")
	decided("c-2", "approve") // by a person, later
	edited := call("c-2", "fs.write", `{"path":"b"}`)
	add(&dag.Substitution{OriginalEvent: first, ReplacementEvent: edited, Reason: "b"})
	call("c-3", "fs.list", `{}`)
	expect.Of(e.DAG.Emit(ctx, alice, all...))(t)
	proposed, err := e.Judge.Propose(ctx, alice, judge.Proposal{Kind: judge.KindRules, Source: []byte(noWrites), Cases: []byte(strings.Replace(lenientCase, "fs.write", "fs.read", 1))})
	expect.No(t, err)
	replay := func(of *judge.Trial, err error, all bool) string {
		t.Helper()
		if err != nil {
			return err.Error()
		}
		defer of.Close()
		got, err := e.Replay(ctx, alice, "run:r-1", of, all)
		expect.No(t, err)
		var lines []string
		for _, r := range got.Items {
			lines = append(lines, fmt.Sprintf("%s %s→%s %s", r.Tool, r.Was, r.Would, r.RuleID))
		}
		return fmt.Sprintf("%d of %d, %d unjudged: %s", got.Changed, got.Calls, got.Unjudged, strings.Join(lines, ", "))
	}
	const want = "2 of 3, 1 unjudged: fs.write hitl→deny writes, fs.list none→approve all"
	for _, name := range []string{proposed.PolicyID, "careful", "careful@" + proposed.Version[:8]} {
		of, err := e.Judge.Trial(ctx, alice, name)
		expect.Is(t, replay(of, err, false), want, name)
	}
	of, err := e.Judge.TrialOf(alice, []byte(noWrites))
	got := replay(of, err, true)
	expect.True(t, strings.HasPrefix(got, "2 of 3, 1 unjudged: fs.read approve→approve all, "), "%v", got)
	of, err = e.Judge.Trial(ctx, alice, "")
	expect.Has(t, replay(of, err, false), " of 3, ")
	for _, name := range []string{"nosuch", "careful@nosuch"} {
		_, err := e.Judge.Trial(ctx, alice, name)
		expect.True(t, err != nil && strings.Contains(err.Error(), name), "%s: %v", name, err)
	}
	expect.Fails(t, expect.Fault(e.Judge.TrialOf(alice, []byte("rules: 1"))), "what is no policy is tried")
}
