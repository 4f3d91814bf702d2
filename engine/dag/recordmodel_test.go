package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func spoken(role dag.MessageRole, text string) dag.Spoken {
	return dag.Spoken{Role: role, Content: []dag.ContentPart{{Type: "text", Text: text}}}
}

// of lists a run's events of one kind.
func (r *rig) of(run string, kind dag.Kind) (all []dag.Event) {
	r.T.Helper()
	page := expect.Of(r.Events(r.T.Context(), acme, dag.Query{Run: run, Filter: core.Filter{Size: 100}}))(r.T)
	for _, e := range page.Items {
		if e.Event.Kind == kind {
			all = append(all, e.Event)
		}
	}
	return all
}

func TestAConversationWithAModelIsStatedOnce(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	tools := core.Raw(`[{"name":"exec"}]`)
	talk := []dag.Spoken{spoken(dag.RoleSystem, "be good"), spoken(dag.RoleUser, "build it")}
	call := dag.ContentPart{Type: "tool_use", ID: "c-1", Name: "exec", Input: core.Raw(`{"cmd":"ls"}`)}
	r.No(rec.Asked(ctx, "1", dag.ModelAsk{Model: "m", Params: core.Raw(`{"temperature":0.5}`), Tools: tools, Messages: slices.Clone(talk)}))
	r.No(rec.Answered(ctx, "1", dag.ModelAnswer{
		Status: dag.CallOK, Content: []dag.ContentPart{{Type: "reasoning", Text: "hm"}, call}, FinishReason: "stop",
		Usage: &dag.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120, CachedTokens: 60},
	}))
	r.No(rec.Call(ctx, "acp", "exec", "c-1", core.Raw(`{"cmd":"ls"}`)))
	r.No(rec.Result(ctx, "c-1", dag.CallOK, core.Raw(`{"rc":0}`), nil))
	r.No(rec.Asked(ctx, "title", dag.ModelAsk{Model: "small", Messages: []dag.Spoken{spoken(dag.RoleUser, "build it")}}))
	r.No(rec.Answered(ctx, "title", dag.ModelAnswer{Status: dag.CallOK, Content: []dag.ContentPart{{Type: "text", Text: "A title"}}}))
	talk = append(talk, dag.Spoken{Role: dag.RoleAssistant, Content: []dag.ContentPart{call}}, dag.Spoken{
		Role: dag.RoleTool, Content: []dag.ContentPart{{Type: "tool_result", ToolCallID: "c-1", Output: core.Raw(`"a.txt"`)}},
	})
	r.No(rec.Asked(ctx, "2", dag.ModelAsk{Model: "m", Tools: tools, Messages: talk}))
	r.No(rec.Answered(ctx, "2", dag.ModelAnswer{Status: dag.CallOK, Content: []dag.ContentPart{{Type: "text", Text: "done"}}}))
	r.No(rec.Said(ctx, "main", dag.RoleAssistant, "done"))
	r.No(r.finish(rec, true))

	asked, answered := r.of(rec.RunID(), dag.KindModelRequest), r.of(rec.RunID(), dag.KindModelResponse)
	first, title, second := asked[0].Body.(*dag.ModelRequest), asked[1].Body.(*dag.ModelRequest), asked[2].Body.(*dag.ModelRequest)
	expect.True(t, len(first.InputRefs) == 2 && len(asked[0].Nodes) == 2 && string(first.ToolsSpec) == string(tools), "first: %+v", asked[0])
	expect.True(t, len(title.InputRefs) == 1 && title.InputRefs[0] == first.InputRefs[1] && len(asked[1].Nodes) == 0,
		"a message that is known is stated anew: %+v", asked[1])
	out := answered[0].Body.(*dag.ModelResponse)
	want := []dag.InputRef{{Event: asked[0].EventID}, {Message: out.OutputRef}, second.InputRefs[2]}
	if !slices.Equal(second.InputRefs, want) || len(asked[2].Nodes) != 1 || string(second.ToolsSpec) != `{"same_as":{"event_id":"`+asked[0].EventID+`"}}` {
		t.Errorf("second: %+v %s", second, second.ToolsSpec)
	}
	if out.RequestID != asked[0].EventID || out.ReasoningRef == "" || *out.Usage != (dag.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120, CachedTokens: 60}) {
		t.Errorf("answer: %+v", out)
	}
	called, said := r.of(rec.RunID(), dag.KindToolCall)[0], r.of(rec.RunID(), dag.KindHistoryAppend)
	if b := called.Body.(*dag.ToolCall); b.RequestedBy.EventID != answered[0].EventID || called.CorrelationID != asked[0].CorrelationID {
		t.Errorf("the call comes from %s", b.RequestedBy.EventID)
	}
	expect.Is(t, said[len(said)-1].CorrelationID, asked[2].CorrelationID, "the message comes from")
	s, err := r.Run(ctx, acme, rec.RunID())
	expect.True(t, err == nil && s.Usage.CachedTokens == 60 && len(s.OpenModels) == 0 && s.Model == "m", "%+v %v", s, err)
	steps := expect.Of(r.Lineage(ctx, acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeToolCall, ID: called.EventID}}))(r.T)
	expect.True(t, slices.ContainsFunc(steps.Steps, func(s dag.Step) bool { return s.Node.ID == first.InputRefs[1].Message }),
		"the call's lineage does not lead to what was asked for: %+v", steps.Steps)
}

func TestARequestThatIsCutOffEndsAsInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *rig, rec *run)
		want []string
		how  dag.CallStatus
	}{
		"by its upstream": {func(r *rig, rec *run) {
			r.No(rec.Answered(r.T.Context(), "1", dag.ModelAnswer{Status: dag.CallInterrupted, Error: &dag.Fault{Code: "upstream_lost"}}))
			r.No(r.finish(rec, true))
		}, []string{"run_started", "model_request", "model_response", "interruption", "run_finished"}, dag.CallInterrupted},
		"by the run's end": {func(r *rig, rec *run) {
			r.No(r.finish(rec, false))
			r.No(rec.Answered(r.T.Context(), "1", dag.ModelAnswer{Status: dag.CallOK})) // too late
		}, []string{"run_started", "model_request", "model_response", "interruption", "run_finished"}, dag.CallCanceled},
		"by the engine's death": {func(r *rig, _ *run) {
			r.No(r.DB.Close())
			r.Open()
			r.No(r.Recover(r.T.Context(), acme))
			r.No(r.Recover(r.T.Context(), acme))
		}, []string{"run_started", "model_request", "model_response", "interruption", "run_finished"}, dag.CallInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			rec := r.record()
			r.No(rec.Asked(t.Context(), "1", dag.ModelAsk{Model: "m", Messages: []dag.Spoken{spoken(dag.RoleUser, "hello")}}))
			c.end(r, rec)
			got := r.kinds(rec.RunID())
			expect.Must(t, slices.Equal(got, c.want), "%v", got)
			b := r.of(rec.RunID(), dag.KindModelResponse)[0].Body.(*dag.ModelResponse)
			affects := r.of(rec.RunID(), dag.KindInterruption)[0].Body.(*dag.Interruption).Affects
			expect.True(t, b.Status == c.how && b.Error != nil && b.Error.Code != "" && len(affects) == 1 && affects[0].EventID == b.RequestID,
				"%+v %+v", b, affects)
		})
	}
}

func TestAVeryLongConversationFitsIntoTheRecord(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	var talk []dag.Spoken
	for i := range 900 {
		talk = append(talk, spoken(dag.RoleUser, fmt.Sprint("message ", i)))
	}
	talk = append(talk, spoken(dag.RoleUser, strings.Repeat("\x1b", 3<<20)), spoken(dag.RoleUser, strings.Repeat("\x1b", 380<<10)), spoken(dag.RoleUser, strings.Repeat("z", 900<<10)), spoken(dag.RoleUser, strings.Repeat("y", 900<<10)))
	bad := dag.Spoken{Role: dag.RoleTool, Content: []dag.ContentPart{{Type: "tool_result", Output: core.Raw(`nonsense`)}, {Type: "tool_use", Input: core.Raw(`[12345678901234567890]`)}}}
	r.No(rec.Asked(ctx, "1", dag.ModelAsk{Model: "\x00", Params: core.Raw(`[]`), Tools: core.Raw(`"text"`), Messages: append(talk, bad)}))
	r.No(rec.Answered(ctx, "1", dag.ModelAnswer{Status: dag.CallOK, Content: []dag.ContentPart{{Type: "text", Text: strings.Repeat("\xff", 2<<20)}}}))
	r.No(rec.Asked(ctx, "2", dag.ModelAsk{Model: "m"}))
	r.No(rec.Answered(ctx, "2", dag.ModelAnswer{Status: dag.CallOK, Content: []dag.ContentPart{{Type: "text", Text: strings.Repeat("\x01", 384<<10)}}}))
	r.No(r.finish(rec, true))
	b := r.of(rec.RunID(), dag.KindModelRequest)[0].Body.(*dag.ModelRequest)
	expect.Is(t, len(b.InputRefs), 905, "inputs")
	for _, in := range []int{0, 899, 900, 901, 903, 904} {
		n, err := r.Node(ctx, acme, dag.NodeRef{Type: dag.TypeMessage, ID: b.InputRefs[in].Message})
		expect.True(t, err == nil && len(n.Versions) != 0, "input %d: %v", in, err)
	}
}

func TestAConversationOfVeryManyMessagesIsWhole(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	var talk []dag.Spoken
	for i := range 4101 {
		talk = append(talk, spoken(dag.RoleUser, fmt.Sprint("message ", i)))
	}
	asked := func(call string, n int) *dag.ModelRequest {
		t.Helper()
		r.No(rec.Asked(ctx, call, dag.ModelAsk{Model: "m", Messages: slices.Clone(talk[:n])}))
		page := expect.Of(r.Events(ctx, acme, dag.Query{Filter: core.Filter{Kind: "model_request"}}))(r.T)
		return page.Items[0].Event.Body.(*dag.ModelRequest)
	}
	text := func(id string) string {
		t.Helper()
		n := expect.Of(r.Node(ctx, acme, dag.NodeRef{Type: dag.TypeMessage, ID: id}))(r.T)
		return n.Versions[0].Node.Body.(*dag.Message).Content[0].Text
	}
	first := asked("1", 4100).InputRefs
	expect.Must(t, len(first) == 4000 && text(first[0].Message) == "message 0" && text(first[3999].Message) == "message 4099", "%d inputs", len(first))
	const near = 990
	at := near + slices.IndexFunc(first[near:near+20], func(in dag.InputRef) bool { return strings.Contains(text(in.Message), "101 more messages") })
	expect.Must(t, at >= near, "it is not told that some are left out")
	var from, to string
	if _, err := fmt.Sscanf(text(first[at].Message), "… (101 more messages, %s to %s", &from, &to); err != nil ||
		text(from) != fmt.Sprint("message ", at) || text(strings.TrimSuffix(to, ",")) != fmt.Sprint("message ", at+100) ||
		text(first[at-1].Message) != fmt.Sprint("message ", at-1) || text(first[at+1].Message) != fmt.Sprint("message ", at+101) {
		t.Errorf("%v: %s", err, text(first[at].Message))
	}
	next := asked("2", 4101).InputRefs
	expect.True(t, len(next) == 2 && next[0].Event != "" && text(next[1].Message) == "message 4100", "%v", next)
}

func TestALongRunsRequestsStaySmall(t *testing.T) {
	const talks = 1030 // more than are remembered
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	var all sync.WaitGroup
	for i := range talks {
		short := []dag.Spoken{spoken(dag.RoleUser, fmt.Sprint("short ", i))}
		all.Go(func() { _ = rec.Asked(ctx, fmt.Sprint("short ", i), dag.ModelAsk{Model: "m", Messages: short}) })
	}
	all.Wait()
	var talk []dag.Spoken
	for i := range 20 {
		talk = append(talk, spoken(dag.RoleUser, fmt.Sprint("message ", i)))
		r.No(rec.Asked(ctx, fmt.Sprint(i), dag.ModelAsk{Model: "m", Messages: slices.Clone(talk)}))
	}
	talk[0] = spoken(dag.RoleUser, "another beginning")
	r.No(rec.Asked(ctx, "other", dag.ModelAsk{Model: "m", Messages: talk}))
	page := expect.Of(r.Events(ctx, acme, dag.Query{Filter: core.Filter{Kind: "model_request", Size: 21}}))(r.T)
	for i, e := range page.Items { // newest first
		want := 2 // the request before, and what is new
		if i == 0 {
			want = 20
		} else if i == 20 {
			want = 1
		}
		n := len(e.Event.Body.(*dag.ModelRequest).InputRefs)
		expect.True(t, n == want && len(e.Event.Nodes) == 1, "the last but %d has %d inputs, and states %d messages", i, n, len(e.Event.Nodes))
	}
}

func TestLargeToolResultsAreCutNotLost(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	large := core.MustEncode(map[string]string{"x": strings.Repeat("x", dag.MaxEvent/4-100)})
	turn := dag.Spoken{Role: dag.RoleTool}
	for i := range 6 {
		turn.Content = append(turn.Content, dag.ContentPart{Type: "tool_result", ToolCallID: fmt.Sprintf("c-%d", i), Output: large})
	}
	calls := []dag.ContentPart{}
	for i := range 6 {
		calls = append(calls, dag.ContentPart{Type: "tool_use", ID: fmt.Sprintf("d-%d", i), Name: "write", Input: large})
	}
	for _, call := range []string{"1", "2"} {
		r.No(rec.Asked(ctx, call, dag.ModelAsk{Model: "m", Messages: []dag.Spoken{
			spoken(dag.RoleUser, "do "+call), {Role: turn.Role, Content: slices.Clone(turn.Content)},
		}}))
		r.No(rec.Answered(ctx, call, dag.ModelAnswer{Status: dag.CallOK, Content: slices.Clone(calls)}))
	}
	r.No(r.finish(rec, true))
	asked, answered := r.of(rec.RunID(), dag.KindModelRequest), r.of(rec.RunID(), dag.KindModelResponse)
	expect.Must(t, len(asked) == 2 && len(answered) == 2, "%d requests and %d answers are recorded", len(asked), len(answered))
	first, second := asked[0].Body.(*dag.ModelRequest).InputRefs, asked[1].Body.(*dag.ModelRequest).InputRefs
	expect.True(t, len(first) == 2 && len(second) == 2 && first[1] == second[1], "%v, then %v", first, second)
}

func TestARequestThatDoesNotFitIsEndedByItsAnswer(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	said, bad := spoken(dag.RoleUser, "hello"), dag.Spoken{Role: dag.RoleUser, Content: []dag.ContentPart{{Type: "unheard-of"}}}
	expect.True(t, rec.Asked(ctx, "1", dag.ModelAsk{Model: "m", Messages: []dag.Spoken{said, bad}}) != nil, "nobody is told that something was lost")
	_ = rec.Answered(ctx, "1", dag.ModelAnswer{Status: dag.CallError, Error: &dag.Fault{Code: "x", Message: strings.Repeat("y", dag.MaxEvent)}})
	_ = rec.Asked(ctx, "2", dag.ModelAsk{Model: "m", Messages: []dag.Spoken{said}})
	_ = rec.Answered(ctx, "2", dag.ModelAnswer{Status: dag.CallOK})
	_ = r.finish(rec, true)
	asked, answered := r.of(rec.RunID(), dag.KindModelRequest), r.of(rec.RunID(), dag.KindModelResponse)
	expect.Must(t, len(asked) == 2 && len(answered) == 2, "%d requests and %d answers are recorded", len(asked), len(answered))
	expect.Is(t, len(asked[1].Nodes), 1, "a message of a request that was not recorded is taken for known")
	s, err := r.Run(ctx, acme, rec.RunID())
	expect.True(t, err == nil && s.Status == "finished" && len(s.OpenModels) == 0, "%+v %v", s, err)
}

func TestWhatCouldNotBeWrittenIsStatedAgain(t *testing.T) {
	said := []dag.Spoken{spoken(dag.RoleUser, "rm -rf /"), spoken(dag.RoleUser, "please"), spoken(dag.RoleUser, "now")}
	for name, lose := range map[string]func(r *rig, rec *run, ask func(string, int) error) error{
		"as another had stated it otherwise": func(r *rig, rec *run, ask func(string, int) error) error {
			id := rec.RunID() + "/1"
			r.emitted("other", "eve", &dag.HistoryAppend{List: "main", MessageRef: id}, r.message(id, "mine", dag.RoleUser))
			return ask("1", 2)
		},
		"as the disk was full": func(r *rig, rec *run, ask func(string, int) error) error {
			r.full.Store(true)
			defer r.full.Store(false)
			return ask("1", 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			rec := r.record()
			ctx := t.Context()
			ask := func(call string, n int) error {
				return rec.Asked(ctx, call, dag.ModelAsk{Model: "m", Tools: core.Raw(`[{"name":"exec"}]`), Messages: slices.Clone(said[:n])})
			}
			expect.Must(t, lose(r, rec, ask) != nil, "nothing was lost")
			_ = rec.Answered(ctx, "1", dag.ModelAnswer{Status: dag.CallOK})
			_ = ask("2", 3)
			_ = rec.Answered(ctx, "2", dag.ModelAnswer{Status: dag.CallOK})
			_ = r.finish(rec, true)
			asked := r.of(rec.RunID(), dag.KindModelRequest)
			expect.Must(t, len(asked) == 1, "%d requests", len(asked))
			b := asked[0].Body.(*dag.ModelRequest)
			expect.True(t, len(b.InputRefs) == 3 && string(b.ToolsSpec) == `[{"name":"exec"}]`, "%+v %s", b.InputRefs, b.ToolsSpec)
			for _, in := range b.InputRefs {
				n, err := r.Node(ctx, acme, dag.NodeRef{Type: dag.TypeMessage, ID: in.Message})
				expect.True(t, err == nil && len(n.Versions) != 0, "input %+v is not in the record: %v", in, err)
			}
		})
	}
}

func TestDecisionsLeadToTheirCalls(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	decide := func(call, decision string) {
		r.No(r.Ledger.Append(ctx, core.Self(acme, "judge"), func(tx *audit.Tx) error {
			return rec.DecideIn(tx, call, core.Raw(`{"decision":"`+decision+`","decided_by":"alice"}`))
		}))
	}
	r.No(rec.Call(ctx, "acp", "exec", "c-1", core.Raw(`{}`)))
	decide("c-1", "hitl")
	decide("c-1", "approve")
	decide("unheard-of", "deny")
	r.No(rec.Result(ctx, "c-1", dag.CallOK, nil, nil))
	r.No(r.finish(rec, true))
	decide("c-1", "approve") // of a run that has ended
	all := r.of(rec.RunID(), dag.KindHistoryAppend)
	expect.Must(t, len(all) == 3 && len(all[2].Edges) == 0, "%d decisions", len(all))
	call := r.of(rec.RunID(), dag.KindToolCall)[0]
	for _, e := range all[:2] {
		m := e.Nodes[0].Body.(*dag.Message)
		if p := m.Content[0]; p.ID != "c-1" || p.Name != "decision" || e.Body.(*dag.HistoryAppend).List != dag.ListDecisions || e.Edges[0].To.ID != call.EventID {
			t.Errorf("%+v", e)
		}
	}
}

func TestRunsThatGoOnAreToldOfNotices(t *testing.T) {
	r := newRig(t)
	over := r.record()
	ctx := t.Context()
	r.No(r.finish(over, true))
	live := r.record()
	r.No(r.Ledger.Append(ctx, core.Self(acme, "judge"), func(tx *audit.Tx) error {
		return r.NotifyIn(tx, &dag.MCPListChanged{Server: "s"}, &dag.MCPResourceUpdated{Server: "s", URI: "resource://x", Hash: "h"})
	}))
	r.No(r.finish(live, true))
	expect.Same(t, r.kinds(live.RunID()), []string{"run_started", "mcp.resource_list_changed", "mcp.resource_updated", "run_finished"})
	got := r.kinds(over.RunID())
	expect.True(t, len(got) == 2, "%v", got)
}
