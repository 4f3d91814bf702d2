package dag_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// Every kind that a state looks into stands often enough between two states
// that are kept: what is read back later is what it was then.
func TestAStateAsOfThenIsWhatItWasThen(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	then := map[string]core.Raw{}
	var asked dag.Event
	for i := range 120 {
		h := r.head("ada", "long")
		h.CorrelationID = fmt.Sprint("turn-", i/9)
		var b dag.Body
		switch i % 9 {
		case 0:
			b = &dag.ModelRequest{Model: fmt.Sprint("m-", i), Params: core.Raw("{}"), InputRefs: []dag.InputRef{}}
		case 1:
			b = &dag.ModelResponse{RequestID: cmp.Or(asked.EventID, "provider"), OutputRef: "out", Usage: &dag.Usage{PromptTokens: int64(i), CompletionTokens: 1, TotalTokens: int64(i + 1), CachedTokens: 2}}
		case 2:
			m := r.message(fmt.Sprint("msg-", i), "hello", dag.RoleUser)
			h.Nodes = []dag.Node{m}
			b = &dag.HistoryAppend{List: fmt.Sprint("list-", i%2), MessageRef: m.ID()}
		case 3, 4:
			b = &dag.ToolCall{Server: "sh", Tool: "exec", CallID: fmt.Sprint("c-", i), Args: core.Raw(`{"status":"ok","reason":"x","model":{"a":1}}`), RequestedBy: dag.EventRef{EventID: strings.Repeat("0", 64)}}
		case 5:
			b = &dag.ToolResult{CallID: fmt.Sprint("c-", i-1), Status: dag.CallOK, Result: core.Raw(`{"kind":"x","ts":1}`)}
		case 6:
			b = &dag.Interruption{Reason: dag.ReasonTimeout, Affects: []dag.EventRef{}}
		case 7:
			b = &dag.PolicyActivated{PolicyRef: fmt.Sprint("p-", i)}
		default:
			b = &dag.MCPListChanged{Server: "files"}
		}
		switch i {
		case 0:
			b = &dag.RunStarted{Reason: "user"}
		case 119:
			b = &dag.RunFinished{Exit: "error"}
		}
		e := r.event(h, b)
		if e.Kind == dag.KindModelRequest {
			asked = e
		}
		expect.Of(r.Emit(ctx, alice, e))(r.T)
		now := expect.Of(r.Run(ctx, acme, "long"))(r.T)
		then[e.EventID] = core.MustEncode(now)
	}
	for id, want := range then {
		s := expect.Of(r.At(ctx, acme, id))(r.T)
		got := core.MustEncode(s.Run)
		expect.True(t, bytes.Equal(got, want), "as of %s:\n%s\nwas\n%s", id, got, want)
		got = core.MustEncode(s.Agent.Runs[0])
		expect.True(t, bytes.Equal(got, want), "of the agent as of %s:\n%s\nwas\n%s", id, got, want)
	}
}
