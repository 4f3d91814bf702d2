package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// story is a run with a request, an answer, a call that is edited, its result,
// and what else the queries ask about.
type story struct {
	*rig
	started, asked, request, answer, call, edited, substitution, result dag.Event
}

func newStory(t testing.TB) *story {
	s := &story{rig: newRig(t)}
	h := s.head("ada", "r-1")
	h.TaskID, h.SessionID = "task-1", "session-1"
	s.started = s.emit(h, &dag.RunStarted{Reason: "user"})
	h = s.head("ada", "r-1")
	h.Nodes = []dag.Node{s.message("m-1", "Build it", dag.RoleUser)}
	s.asked = s.emit(h, &dag.HistoryAppend{List: "main", MessageRef: "m-1"})
	h = s.head("ada", "r-1")
	h.CorrelationID = "turn"
	s.request = s.emit(h, &dag.ModelRequest{Model: "m", Params: core.Raw("{}"), InputRefs: []dag.InputRef{{Message: "m-1"}}})
	h = s.head("ada", "r-1")
	h.CorrelationID = "turn"
	s.answer = s.emit(h, &dag.ModelResponse{RequestID: "req-1", OutputRef: "m-2", Usage: &dag.Usage{PromptTokens: 3, CompletionTokens: 4, TotalTokens: 7}})
	s.call = s.emit(s.head("ada", "r-1"), &dag.ToolCall{Server: "sh", Tool: "exec", CallID: "c-1", Args: core.Raw(`{"cmd":"rm"}`), RequestedBy: ref(s.answer)})
	s.edited = s.emit(s.head("ada", "r-1"), &dag.ToolCall{Server: "sh", Tool: "exec", CallID: "c-1", Args: core.Raw(`{"cmd":"ls"}`), RequestedBy: ref(s.answer)})
	s.substitution = s.emit(s.head("ada", "r-1"), &dag.Substitution{OriginalEvent: ref(s.call), ReplacementEvent: ref(s.edited)})
	s.result = s.emit(s.head("ada", "r-1"), &dag.ToolResult{CallID: "c-1", Status: dag.CallOK, Result: core.Raw(`{"rc":0}`)})
	return s
}

func ids(items []dag.Recorded) (all []string) {
	for _, e := range items {
		all = append(all, e.Event.EventID)
	}
	return all
}

func TestARunIsListedInItsOrderAndAllElseNewestFirst(t *testing.T) {
	s := newStory(t)
	run := []string{s.started.EventID, s.asked.EventID, s.request.EventID, s.answer.EventID, s.call.EventID, s.edited.EventID, s.substitution.EventID, s.result.EventID}
	list := func(q dag.Query) core.Page[dag.Recorded] {
		t.Helper()
		return expect.Of(s.Events(t.Context(), acme, q))(s.T)
	}
	page := list(dag.Query{Run: "r-1"})
	if !slices.Equal(ids(page.Items), run) || page.Info.Total != 8 {
		t.Errorf("%v of %d", ids(page.Items), page.Info.Total)
	}
	for i, e := range page.Items {
		expect.True(t, e.Seq == uint64(i+1) && !e.New, "event %d: seq %d", i, e.Seq)
	}
	newest := slices.Clone(run)
	slices.Reverse(newest)
	for name, q := range map[string]dag.Query{
		"all": {}, "agent": {Filter: core.Filter{Agent: "ada"}}, "task": {Filter: core.Filter{Task: "task-1"}}, "session": {Filter: core.Filter{Session: "session-1"}},
	} {
		expect.Same(t, ids(list(q).Items), newest, name)
	}
	for name, c := range map[string]struct {
		q    dag.Query
		want []string
	}{
		"second page":     {dag.Query{Run: "r-1", Filter: core.Filter{Page: 2, Size: 3}}, run[3:6]},
		"page past end":   {dag.Query{Run: "r-1", Filter: core.Filter{Page: 9, Size: 3}}, nil},
		"kind":            {dag.Query{Filter: core.Filter{Kind: "tool_call"}}, []string{run[5], run[4]}},
		"kind of run":     {dag.Query{Run: "r-1", Filter: core.Filter{Kind: "tool_call"}}, []string{run[4], run[5]}},
		"correlation":     {dag.Query{Correlation: "turn"}, []string{run[3], run[2]}},
		"status":          {dag.Query{Filter: core.Filter{Status: "ok"}}, []string{run[7]}},
		"match":           {dag.Query{Filter: core.Filter{Match: "build IT"}}, []string{run[1]}},
		"since":           {dag.Query{Filter: core.Filter{Since: s.result.TS.Time()}}, []string{run[7]}},
		"until":           {dag.Query{Run: "r-1", Filter: core.Filter{Until: s.asked.TS.Time().Add(time.Microsecond)}}, run[:2]},
		"nobody":          {dag.Query{Filter: core.Filter{Agent: "bob"}}, nil},
		"no such run":     {dag.Query{Run: "r-2"}, nil},
		"other's session": {dag.Query{Filter: core.Filter{Agent: "ada", Session: "session-2"}}, nil},
	} {
		expect.Same(t, ids(list(c.q).Items), c.want, name)
	}
	expect.Is(t, core.AsError(expect.Fault(s.Events(t.Context(), acme, dag.Query{Filter: core.Filter{Kind: "tool"}}))).Code, core.InvalidInput)
}

func TestACallIsFoundWithItsResult(t *testing.T) {
	s := newStory(t)
	open := s.emit(s.head("ada", "r-1"), &dag.ToolCall{Server: "sh", Tool: "exec", CallID: "c-2", Args: core.Raw("{}"), RequestedBy: ref(s.answer)})
	page, err := s.Calls(t.Context(), acme, dag.Query{Run: "r-1"})
	s.No(err)
	var got []string
	for _, c := range page.Items {
		got = append(got, c.CallEvent+" "+c.Status+" "+c.ResultEvent)
	}
	want := []string{s.call.EventID + " replaced ", s.edited.EventID + " ok " + s.result.EventID, open.EventID + " open "}
	expect.True(t, slices.Equal(got, want) && page.Items[1].DurationMS == 2000, "%v", page.Items)
	for status, n := range map[string]int{"open": 1, "ok": 1, "replaced": 1, "error": 0} {
		for _, run := range []string{"", "r-1"} {
			page, err := s.Calls(t.Context(), acme, dag.Query{Run: run, Filter: core.Filter{Status: status}})
			expect.True(t, err == nil && page.Info.Total == n, "%s of %q: %d %v", status, run, page.Info.Total, err)
		}
	}
	// A result in another run is another call's.
	s.emit(s.head("bob", "r-2"), &dag.ToolResult{CallID: "c-2", Status: dag.CallOK, Result: core.Raw("{}")})
	page, err = s.Calls(t.Context(), acme, dag.Query{Filter: core.Filter{Status: "open"}})
	expect.True(t, err == nil && page.Info.Total == 1, "%+v %v", page, err)
}

func TestALineageLeadsBackToWhatWasSaid(t *testing.T) {
	s := newStory(t)
	found := expect.Of(s.Lineage(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeToolResult, ID: s.result.EventID}}))(s.T)
	var path []string
	for _, x := range found.Steps {
		path = append(path, fmt.Sprintf("%d %s", x.Depth, shown(x.Edge)))
	}
	id := func(e dag.Event) string { return e.EventID }
	want := []string{
		"1 ToolCall:" + id(s.edited) + " RETURNS_RESULT ToolResult:" + id(s.result),
		"2 Event:" + id(s.answer) + " CALLS_TOOL ToolCall:" + id(s.edited),
		"2 Event:" + id(s.edited) + " SUBSTITUTES Event:" + id(s.call),
		"3 Generation:" + id(s.answer) + " DERIVED_FROM Event:" + id(s.request),
		"3 Event:" + id(s.answer) + " CALLS_TOOL ToolCall:" + id(s.call),
		"4 Event:" + id(s.request) + " EVENT_CONSUMES Message:m-1",
		"5 Event:" + id(s.asked) + " EVENT_PRODUCES Message:m-1",
	}
	expect.True(t, slices.Equal(path, want) && !found.More, "more %v\n%s\nwant\n%s", found.More, strings.Join(path, "\n"), strings.Join(want, "\n"))
	short, err := s.Lineage(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: id(s.result)}, Depth: 1})
	expect.True(t, err == nil && len(short.Steps) == 1 && short.More, "%+v %v", short, err)
	down, err := s.Lineage(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeMessage, ID: "m-1"}, Down: true})
	expect.True(t, err == nil && slices.ContainsFunc(down.Steps, func(x dag.Step) bool { return x.Node.ID == id(s.result) && x.Depth == 4 }),
		"%+v %v", down, err)
	_, err = s.Lineage(t.Context(), acme, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeMessage, ID: "m-9"}})
	expect.Is(t, core.AsError(err).Code, core.NotFound)
}

func TestTheStateAsOfAnEventIsThatOfThen(t *testing.T) {
	s := newStory(t)
	s.emit(s.head("ada", "r-2"), &dag.RunStarted{})
	s.emit(s.head("ada", "r-1"), &dag.RunFinished{Exit: "success"})
	at := func(e dag.Event) dag.State {
		t.Helper()
		return expect.Of(s.At(t.Context(), acme, e.EventID))(s.T)
	}
	first := at(s.started)
	if first.Run.Status != "running" || first.Run.Events != 1 || len(first.Messages) != 0 || first.Task.ID != "task-1" || first.Session.ID != "session-1" {
		t.Errorf("%+v", first)
	}
	mid := at(s.edited)
	if len(mid.Run.OpenCalls) != 1 || mid.Run.OpenCalls[0].EventID != s.edited.EventID || mid.Run.Usage.TotalTokens != 7 || mid.Run.Model != "m" ||
		len(mid.Messages) != 1 || mid.Messages[0].ID != "m-1" || mid.Run.Kinds[dag.KindToolCall] != 2 || mid.Run.LastResult != "" {
		t.Errorf("%+v", mid.Run)
	}
	last := at(s.result)
	if len(last.Run.OpenCalls) != 0 || last.Run.LastResult != dag.CallOK || last.Run.Status != "running" || len(last.Agent.Runs) != 1 || last.Agent.Events != 8 {
		t.Errorf("%+v", last)
	}
}

func TestAStateIsTheFoldOfTheEventsHoweverLongTheRun(t *testing.T) {
	r := newRig(t)
	var batch []dag.Event
	for i := range 300 {
		h := r.head("ada", "long")
		var b dag.Body = &dag.MCPListChanged{Server: "files"}
		switch i % 3 {
		case 0:
			b = &dag.ToolCall{Server: "sh", Tool: "exec", CallID: fmt.Sprint(i / 6), Args: core.Raw("{}"), RequestedBy: dag.EventRef{EventID: strings.Repeat("0", 64)}}
		case 1:
			b = &dag.ToolResult{CallID: fmt.Sprint(i / 3), Status: dag.CallTimeout, Result: core.Raw("{}")}
		}
		batch = append(batch, r.event(h, b))
	}
	all := expect.Of(r.Emit(t.Context(), alice, batch...))(r.T)
	open := map[string]string{}
	for i, e := range batch {
		switch b := e.Body.(type) {
		case *dag.ToolCall:
			open[b.CallID] = e.EventID
		case *dag.ToolResult:
			delete(open, b.CallID)
		}
		s := expect.Of(r.At(t.Context(), acme, e.EventID))(r.T)
		expect.Must(t, s.Run.Events == uint64(i+1) && s.Run.Head == e.EventID && s.Seq == all[i].Seq && len(s.Run.OpenCalls) == len(open),
			"%d: %d events, %d open calls, want %d", i, s.Run.Events, len(s.Run.OpenCalls), len(open))
		for _, c := range s.Run.OpenCalls {
			expect.Must(t, open[c.CallID] == c.EventID, "%d: call %s is open by %s, want %s", i, c.CallID, c.EventID, open[c.CallID])
		}
	}
}

func TestOwnersAndMountsAreThoseOfTheTimeAskedFor(t *testing.T) {
	r := newRig(t)
	start := r.at
	at := func(sec int) dag.Time { return dag.At(start.Add(time.Duration(sec) * time.Second)) }
	own := func(sec int, agent string) {
		h := dag.Head{TS: at(sec), AgentID: "ada", RunID: "r", Nodes: []dag.Node{dag.NewNode(&dag.Resource{
			ID: "vol", Kind: dag.ResourceVolume, Name: "by " + agent, Capabilities: []dag.Capability{}, Scope: &dag.Scope{AgentID: agent},
		})}}
		r.emit(h, &dag.MCPListChanged{Server: fmt.Sprint(sec)})
	}
	own(10, "ada")
	own(20, "bob")
	r.emit(dag.Head{TS: at(30), AgentID: "ada", RunID: "r"}, &dag.ResourceAttached{ResourceRef: "vol", Mode: dag.ReadWrite, Mount: "/a"})
	r.emit(dag.Head{TS: at(40), AgentID: "ada", RunID: "r"}, &dag.ResourceAttached{ResourceRef: "vol", Mode: dag.ReadOnly, Mount: "/b"})
	r.emit(dag.Head{TS: at(45), AgentID: "eve"}, &dag.ResourceAttached{ResourceRef: "vol", Mode: dag.ReadOnly})
	r.emit(dag.Head{TS: at(50), AgentID: "ada", RunID: "r"}, &dag.ResourceDetached{ResourceRef: "vol"})
	r.emit(dag.Head{TS: at(55)}, &dag.LivenessProbe{ResourceRef: "vol", Status: dag.Dead})
	for sec, want := range map[int]string{
		5:  "",
		15: "by ada Agent:ada unknown",
		25: "by bob Agent:bob unknown",
		35: "by bob Agent:bob unknown Run:r rw /a",
		42: "by bob Agent:bob unknown Run:r ro /b",
		47: "by bob Agent:bob unknown Run:r ro /b Agent:eve ro ",
		52: "by bob Agent:bob unknown Agent:eve ro ",
		60: "by bob Agent:bob dead Agent:eve ro ",
	} {
		res := expect.Of(r.Resources(t.Context(), acme, dag.TimeQuery{At: at(sec)}))(r.T)
		got := ""
		for _, x := range res.Items {
			got = fmt.Sprintf("%s %s %s", x.Resource.Name, x.Owners[0], x.Liveness.Status)
			for _, m := range x.Mounts {
				got += fmt.Sprintf(" %s %s %s", m.Holder, m.Mode, m.Mount)
			}
		}
		expect.Is(t, got, want, "at", sec)
		mounts := expect.Of(r.Mounts(t.Context(), acme, dag.TimeQuery{At: at(sec)}))(r.T)
		n := strings.Count(want, " r")
		expect.True(t, len(mounts.Items) == n, "at %d: %d mounts, want %d", sec, len(mounts.Items), n)
	}
	page, err := r.Resources(t.Context(), acme, dag.TimeQuery{At: at(60), Filter: core.Filter{Agent: "eve", Kind: "docker_volume", Match: "BOB"}})
	expect.True(t, err == nil && page.Info.Total == 1, "%+v %v", page, err)
	if page, err := r.Mounts(t.Context(), acme, dag.TimeQuery{At: at(47), Run: "r"}); err != nil || page.Info.Total != 1 || page.Items[0].Until != at(50) {
		t.Errorf("%+v %v", page, err)
	}
}

func TestPoliciesAndForksHaveTheirHistory(t *testing.T) {
	r := newRig(t)
	propose := r.head("ada", "r")
	propose.Nodes = []dag.Node{dag.NewNode(&dag.Policy{ID: "p-1", Kind: dag.PolicyProposal, Place: dag.Place{Path: "p.py"}})}
	r.emit(propose, &dag.MCPListChanged{Server: "approval-policy"})
	first := r.emit(r.head("ada", ""), &dag.PolicyActivated{PolicyRef: "p-1"})
	r.emit(r.head("ada", ""), &dag.PolicyActivated{PolicyRef: "p-2"})
	page := expect.Of(r.Policies(t.Context(), acme, core.Filter{}))(r.T)
	var got []string
	for _, p := range page.Items {
		got = append(got, fmt.Sprintf("%s %s active=%v known=%v", p.PolicyID, p.Change, p.Active, p.Policy != nil))
	}
	want := []string{"p-2 activated active=true known=false", "p-1 activated active=false known=true", "p-1 proposed active=false known=true"}
	expect.True(t, slices.Equal(got, want), "%v", got)
	expect.Is(t, expect.Of(r.At(t.Context(), acme, first.EventID))(t).Policy, "p-1")

	fork := func(agent, to, sub string, at dag.Event) dag.Event {
		h := r.head(agent, "")
		h.Nodes = []dag.Node{dag.NewNode(&dag.Subagent{ID: sub, ParentAgentID: agent})}
		return r.emit(h, &dag.AgentForked{FromBranch: "main", ToBranch: to, AtEvent: ref(at)})
	}
	one := fork("ada", "try", "ada-2", first)
	begun := r.emit(r.head("ada-2", "r-2"), &dag.RunStarted{})
	fork("ada-2", "deep", "ada-3", begun)
	forks, err := r.Forks(t.Context(), acme, core.Filter{})
	expect.True(t, err == nil && forks.Info.Total == 2 && forks.Items[1].ToBranch == "try" && forks.Items[1].EventID == one.EventID, "%+v %v", forks, err)
	all := expect.Of(r.Ancestry(t.Context(), acme, "ada-3"))(r.T)
	agents := map[string]int{}
	for _, a := range all {
		if a.Node.Type == dag.TypeAgent {
			agents[a.Node.ID] = a.Depth
		}
	}
	expect.Row(t, agents, "ada-2", 1, "ada", 2)
	branch, err := r.Ancestry(t.Context(), acme, "ada/try")
	expect.True(t, err == nil && len(branch) == 2, "%+v %v", branch, err)
	expect.Is(t, core.AsError(expect.Fault(r.Ancestry(t.Context(), acme, "nobody"))).Code, core.NotFound)
}
