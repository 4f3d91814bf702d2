package formats_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// source makes random sequences of events: all kinds, with references to what
// came before and to what never came, and hostile texts.
type source struct {
	*rand.Rand
	at     time.Time
	ids    []string // events so far
	n      int
	forked int
}

func newSource(seed uint64) *source {
	return &source{Rand: rand.New(rand.NewPCG(seed, 7)), at: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

func pick[T any](s *source, all ...T) T { return all[s.IntN(len(all))] }

func (s *source) name(kind string) string { return fmt.Sprintf("%s-%d", kind, s.IntN(6)) }

func (s *source) fresh(kind string) string {
	s.n++
	return fmt.Sprintf("%s-%d", kind, s.n)
}

// id is an earlier event's, or one that never came.
func (s *source) id() string {
	if len(s.ids) == 0 || s.IntN(10) == 0 {
		return fmt.Sprintf("%064x", s.Uint64())
	}
	return s.ids[max(0, len(s.ids)-1-s.IntN(30))]
}

func (s *source) ref() dag.EventRef { return dag.EventRef{EventID: s.id()} }

var texts = []string{"", "plain", "Grüße", "\u2028\u2029", "tab\tnew\nline", "\"quoted\" \\ back", "emoji 🙂", "\x00nul", "\u202ertl", `{"/":"x"}`, "</script>", "\ufeff"}

// object is a random JSON object, with names that formats trip over.
func (s *source) object(depth int) core.Raw {
	m := map[string]any{}
	for range s.IntN(4) {
		name := pick(s, "a", "/", "é", "\ue000", "🙂", "z", "", "event_id", "\n") + pick(s, "", "", fmt.Sprint(s.IntN(3)))
		switch s.IntN(6) {
		case 0:
			m[name] = pick(s, texts...)
		case 1:
			m[name] = s.IntN(1<<30) - 1<<29
		case 2:
			m[name] = pick(s, 0.1, 1e-7, 1e21, -0.5, 5e-324, 1.7976931348623157e308)
			if m[name] == 1e21 || m[name] == 1.7976931348623157e308 {
				m[name] = 1e15
			}
		case 3:
			m[name] = []any{nil, true, pick(s, texts...)}
		case 4:
			if depth > 0 {
				m[name] = s.object(depth - 1)
			}
		case 5:
			m[name] = map[string]any{"/": map[string]any{"bytes": "AA"}}
		}
	}
	return core.MustEncode(m)
}

func (s *source) head(run bool) dag.Head {
	s.at = s.at.Add(time.Duration(s.IntN(2_000_000)) * time.Microsecond)
	n := s.IntN(5)
	h := dag.Head{TS: dag.At(s.at), AgentID: fmt.Sprintf("agent-%d", n%3)}
	if run {
		h.RunID = fmt.Sprintf("run/%d", n)
		h.AgentID = fmt.Sprintf("agent-%d", n%3)
	}
	h.CorrelationID = pick(s, "", "corr-1", "corr-2")
	h.TaskID, h.SessionID = pick(s, "", "task-1", "task-2"), pick(s, "", "session-1")
	if s.IntN(5) == 0 {
		h.Parent = &dag.EventRef{EventID: s.id()}
	}
	return h
}

func (s *source) time() dag.Time {
	return dag.At(s.at.Add(time.Duration(s.IntN(20_000_000)-10_000_000) * time.Microsecond))
}

// event is the next event; the record may refuse it.
func (s *source) event() (dag.Event, error) {
	kinds := dag.Kinds()
	kind := kinds[s.IntN(len(kinds))]
	h := s.head(true)
	if s.IntN(4) == 0 {
		h.Nodes = append(h.Nodes, s.node())
	}
	if s.IntN(6) == 0 {
		h.Edges = append(h.Edges, s.edge())
	}
	body := s.body(kind, &h)
	return dag.NewEvent(h, body)
}

func (s *source) body(kind dag.Kind, h *dag.Head) dag.Body {
	switch kind {
	case dag.KindModelRequest:
		h.CorrelationID = pick(s, "corr-1", "corr-2")
		return &dag.ModelRequest{Model: "m", Params: s.object(1), InputRefs: []dag.InputRef{{Message: s.name("msg")}, {Event: s.id()}}}
	case dag.KindModelResponse:
		b := &dag.ModelResponse{
			RequestID: pick(s, "provider-1", s.id()), OutputRef: s.name("msg"), ReasoningRef: pick(s, "", s.name("msg")), FinishReason: pick(s, "", "stop"),
			Usage: &dag.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3, CachedTokens: int64(s.IntN(2))}, DurationMS: int64(s.IntN(9)),
		}
		if s.IntN(3) == 0 {
			b.Status, b.Error, b.StreamRef = dag.CallInterrupted, &dag.Fault{Code: "crash", Message: pick(s, texts...), Details: s.object(1)}, &dag.ExtRef{Kind: "file", ID: "x"}
		}
		return b
	case dag.KindHistoryAppend:
		m := dag.NewNode(&dag.Message{ID: s.fresh("new"), Role: dag.RoleTool, CreatedAt: h.TS, Content: []dag.ContentPart{
			{Type: "text", Text: pick(s, texts...)},
			{Type: "tool_result", ToolCallID: "c", Output: s.object(1)},
			{Type: "tool_use", ID: "c", Name: "exec", Input: s.object(1)},
			{Type: "image_url", URL: "data:,x", Detail: pick(s, "", "low")},
			{Type: "reasoning", Text: pick(s, texts...)},
		}})
		h.Nodes = append(h.Nodes, m)
		return &dag.HistoryAppend{List: "main", MessageRef: m.ID()}
	case dag.KindToolCall:
		return &dag.ToolCall{Server: "runtime", Tool: "exec", CallID: s.name("call"), Args: s.object(2), RequestedBy: s.ref()}
	case dag.KindToolResult:
		b := &dag.ToolResult{CallID: s.name("call"), Status: pick(s, dag.CallOK, dag.CallError, dag.CallTimeout, dag.CallCanceled, dag.CallInterrupted), Result: s.object(2)}
		if b.Status != dag.CallOK {
			b.Error = &dag.Fault{Code: "x", Message: pick(s, texts...)}
		}
		return b
	case dag.KindMCPResourceUpdated:
		return &dag.MCPResourceUpdated{Server: "files", URI: "resource://" + s.name("u"), Summary: pick(s, texts...)}
	case dag.KindMCPListChanged:
		return &dag.MCPListChanged{Server: "files"}
	case dag.KindPolicyActivated:
		return &dag.PolicyActivated{PolicyRef: s.name("policy"), Notes: pick(s, texts...)}
	case dag.KindInterruption:
		return &dag.Interruption{Reason: pick(s, dag.Reasons()...), Affects: []dag.EventRef{s.ref(), s.ref()}}
	case dag.KindSubstitution:
		return &dag.Substitution{OriginalEvent: s.ref(), ReplacementEvent: dag.EventRef{EventID: fmt.Sprintf("%064x", s.Uint64())}}
	case dag.KindAgentForked:
		h.RunID = ""
		s.forked++
		h.Nodes = append(h.Nodes, dag.NewNode(&dag.Subagent{ID: s.fresh("sub"), ParentAgentID: h.AgentID}))
		return &dag.AgentForked{
			FromBranch: "main", ToBranch: fmt.Sprintf("try %d", s.forked), AtEvent: s.ref(),
			VolumePlan: []dag.VolumePlan{pick(s,
				dag.VolumePlan{Resource: s.name("res"), Mode: dag.PlanDiscard},
				dag.VolumePlan{Resource: s.name("res"), Mode: dag.PlanKeep, KeptBy: "main"},
				dag.VolumePlan{Resource: s.name("res"), Mode: dag.PlanSnapshot, SnapshotRef: &dag.ExtRef{Kind: "tree", ID: "sha256:00"}},
			)},
		}
	case dag.KindRunStarted:
		return &dag.RunStarted{Reason: "user"}
	case dag.KindRunFinished:
		if s.IntN(3) > 0 {
			return &dag.MCPListChanged{Server: "files"}
		}
		return &dag.RunFinished{
			Exit: "success", SummaryRef: &dag.ExtRef{Kind: "file", ID: s.fresh("sum")},
			Network: []dag.HostUse{{Host: "api.example", Port: 443, Connections: 2, Sent: 10, Received: 1 << 40}, {Host: "others", Refused: 1}},
		}
	case dag.KindSnapshotMaterialized:
		return &dag.SnapshotMaterialized{SnapshotRef: s.name("rs")}
	}
	if s.IntN(2) == 0 {
		h.RunID = ""
	}
	switch kind {
	case dag.KindSnapshotCreated:
		return &dag.SnapshotCreated{ResourceRef: s.name("res"), SnapshotRef: s.name("snap"), Outcome: pick(s, dag.OutcomeOK, dag.OutcomeError)}
	case dag.KindResourceAttached:
		return &dag.ResourceAttached{ResourceRef: s.name("res"), Mode: pick(s, dag.ReadOnly, dag.ReadWrite), Mount: pick(s, "", "/data")}
	case dag.KindResourceDetached:
		return &dag.ResourceDetached{ResourceRef: s.name("res")}
	case dag.KindLivenessProbe:
		if h.RunID == "" {
			h.AgentID = ""
		}
		return &dag.LivenessProbe{ResourceRef: s.name("res"), Status: dag.Alive}
	}
	if s.IntN(2) == 0 {
		return &dag.RestoreAttempted{SnapshotRef: s.name("snap"), Outcome: dag.OutcomeOK, NewResourceRef: s.name("res")}
	}
	return &dag.RestoreAttempted{SnapshotRef: s.name("snap"), Outcome: dag.OutcomeUnsupported}
}

func (s *source) node() dag.Node {
	var n dag.Node
	switch s.IntN(5) {
	case 0:
		n = dag.NewNode(&dag.Resource{
			ID: s.name("res"), Kind: dag.ResourceFile, Name: "x", Capabilities: []dag.Capability{dag.CanSnapshot},
			Scope: &dag.Scope{AgentID: s.name("agent")}, Metadata: s.object(1),
		})
	case 1:
		n = dag.NewNode(&dag.Policy{ID: s.name("policy"), Kind: dag.PolicyProposal, Place: dag.Place{Path: "p.py"}, Docstring: pick(s, texts...)})
	case 2:
		n = dag.NewNode(&dag.Handle{ID: s.name("handle"), ResourceRef: s.name("res"), Provider: "docker", ProviderID: "x"})
	case 3:
		n = dag.NewNode(&dag.Snapshot{ID: s.fresh("newsnap"), ResourceRef: s.name("res"), Method: "fs_copy", ExternalRef: dag.ExtRef{Kind: "dir", ID: "/x"}, CreatedAt: dag.At(s.at)})
	case 4:
		n = dag.NewNode(&dag.RunSnapshot{ID: s.fresh("rs"), ContentRef: dag.ExtRef{Kind: "file", ID: "x"}})
	}
	if s.IntN(3) == 0 {
		n.Valid = dag.Valid{From: dag.At(s.at.Add(-time.Minute)), To: s.time()}
	}
	return n
}

func (s *source) edge() dag.Edge {
	res, agent := dag.NodeRef{Type: dag.TypeResource, ID: s.name("res")}, dag.NodeRef{Type: dag.TypeAgent, ID: s.name("agent")}
	e := pick(s,
		dag.Edge{Type: dag.OwnsResource, From: agent, To: res},
		dag.Edge{Type: dag.MountsResource, From: dag.NodeRef{Type: dag.TypeContainer, ID: s.name("box")}, To: res, Attrs: dag.Attrs{Mount: "/m", Mode: dag.ReadOnly}},
		dag.Edge{Type: dag.DerivedFrom, From: dag.NodeRef{Type: dag.TypeMessage, ID: s.name("msg")}, To: dag.NodeRef{Type: dag.TypeEvent, ID: s.id()}},
		dag.Edge{Type: dag.HasSubresource, From: dag.NodeRef{Type: dag.TypeResource, ID: "whole"}, To: res},
	)
	if s.IntN(3) == 0 {
		e.Valid = dag.Valid{From: dag.At(s.at.Add(-time.Minute)), To: dag.At(s.at.Add(time.Minute))}
	}
	return e
}
