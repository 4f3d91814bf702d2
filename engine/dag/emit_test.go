package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestEmittingAgainIsTheSameEvent(t *testing.T) {
	r := newRig(t)
	e := r.event(r.head("ada", "r"), &dag.RunStarted{})
	first := expect.Of(r.Emit(t.Context(), alice, e, e))(r.T)
	again := expect.Of(r.Emit(t.Context(), alice, e))(r.T)
	expect.True(t, first[0].New && !first[1].New && !again[0].New && again[0].Pos == 1 && again[0].Seq == 1 && again[0].RecordedAt == first[0].RecordedAt,
		"%+v %+v", first, again)
	f, err := r.Figures(t.Context(), acme)
	expect.True(t, err == nil && f.Events == 1 && f.Runs == 1, "%+v %v", f, err)
	log, err := r.Ledger.List(t.Context(), acme, core.Filter{Kind: "dag.emitted"})
	expect.True(t, err == nil && log.Info.Total == 1, "%d audit events: %v", log.Info.Total, err)
}

func TestABatchIsTakenWholeOrNotAtAll(t *testing.T) {
	r := newRig(t)
	good := r.event(r.head("ada", "r"), &dag.RunStarted{})
	bad := r.event(r.head("bob", "r"), &dag.RunFinished{})
	_, err := r.Emit(t.Context(), alice, good, bad)
	expect.True(t, core.AsError(err).Code == core.Conflict && strings.Contains(err.Error(), `run r is of agent "ada"`), "%v", err)
	expect.Is(t, expect.Of(r.Figures(t.Context(), acme))(t), (dag.Figures{}))
}

func TestWhatContradictsTheRecordIsRefused(t *testing.T) {
	r := newRig(t)
	h := r.head("ada", "r")
	h.Nodes = []dag.Node{
		r.message("m-1", "one", dag.RoleUser),
		dag.NewNode(&dag.Resource{ID: "box", Kind: dag.ResourceContainer, Name: "box", Capabilities: []dag.Capability{}, Imperative: true}),
		dag.NewNode(&dag.Resource{ID: "vol", Kind: dag.ResourceVolume, Name: "vol", Capabilities: []dag.Capability{dag.CanSnapshot, dag.CanRestore}}),
		dag.NewNode(&dag.Snapshot{ID: "ram", ResourceRef: "box", Method: "x", ExternalRef: dag.ExtRef{Kind: "a", ID: "b"}, CreatedAt: dag.At(r.at)}),
		dag.NewNode(&dag.Snapshot{ID: "tar", ResourceRef: "vol", Method: "x", ExternalRef: dag.ExtRef{Kind: "a", ID: "b"}, CreatedAt: dag.At(r.at)}),
	}
	start := r.emit(h, &dag.RunStarted{})
	r.emit(r.head("ada", "past"), &dag.RunFinished{})
	r.emit(r.head("ada", "r"), &dag.ToolResult{CallID: "done", Status: dag.CallOK, Result: core.Raw("{}")})
	r.emit(r.head("ada", ""), &dag.AgentForked{FromBranch: "main", ToBranch: "try", AtEvent: ref(start)})
	other := r.emit(r.head("bob", "b"), &dag.RunStarted{})
	forks := 1
	fork := func(at dag.Event, plan ...dag.VolumePlan) *dag.AgentForked {
		forks++
		return &dag.AgentForked{FromBranch: "main", ToBranch: fmt.Sprint("try", forks), AtEvent: ref(at), VolumePlan: plan}
	}
	changed := r.head("ada", "r")
	changed.Nodes = []dag.Node{r.message("m-1", "two", dag.RoleUser)}
	together := r.head("ada", "")
	together.Nodes = []dag.Node{dag.NewNode(&dag.Snapshot{ID: "core", ResourceRef: "box", Method: "x", ExternalRef: dag.ExtRef{Kind: "a", ID: "b"}, CreatedAt: dag.At(r.at)})}
	for name, c := range map[string]struct {
		head  dag.Head
		body  dag.Body
		field string // "" is allowed
	}{
		"a second start":              {r.head("ada", "r"), &dag.RunStarted{Reason: "user"}, "run_id"},
		"a second end":                {r.head("ada", "past"), &dag.RunFinished{Exit: "error"}, "run_id"},
		"a word after the end":        {r.head("ada", "past"), &dag.MCPListChanged{Server: "s"}, "run_id"},
		"a summary of the end":        {r.head("ada", "past"), &dag.SnapshotMaterialized{SnapshotRef: "s"}, ""},
		"a second result":             {r.head("ada", "r"), &dag.ToolResult{CallID: "done", Status: dag.CallError, Result: core.Raw("{}")}, "call_id"},
		"restored what comes with it": {together, &dag.RestoreAttempted{SnapshotRef: "core", Outcome: dag.OutcomeOK}, "outcome"},
		"another's run":               {r.head("bob", "r"), &dag.MCPListChanged{Server: "s"}, "agent_id"},
		"another message":             {changed, &dag.MCPListChanged{Server: "s"}, "nodes[0].id"},
		"a branch again":              {r.head("ada", ""), &dag.AgentForked{FromBranch: "main", ToBranch: "try", AtEvent: ref(start)}, "to_branch"},
		"a fork at another's":         {r.head("ada", ""), fork(other), "at_event"},
		"kept by nobody":              {r.head("ada", ""), fork(start, dag.VolumePlan{Resource: "box", Mode: dag.PlanKeep}), "volume_plan[0].kept_by"},
		"snapshot of a process":       {r.head("ada", ""), fork(start, dag.VolumePlan{Resource: "vol", Mode: dag.PlanKeep}, dag.VolumePlan{Resource: "box", Mode: dag.PlanSnapshot}), "volume_plan[1].mode"},
		"restored a process":          {r.head("ada", ""), &dag.RestoreAttempted{SnapshotRef: "ram", Outcome: dag.OutcomeOK}, "outcome"},
		"snapshotted a process":       {r.head("ada", ""), &dag.SnapshotCreated{ResourceRef: "box", SnapshotRef: "s", Outcome: dag.OutcomeOK}, "outcome"},
		"restored a volume":           {r.head("ada", ""), &dag.RestoreAttempted{SnapshotRef: "tar", Outcome: dag.OutcomeOK, NewResourceRef: "vol2"}, ""},
		"could not be restored":       {r.head("ada", ""), &dag.RestoreAttempted{SnapshotRef: "ram", Outcome: dag.OutcomeUnsupported}, ""},
		"discarded a process":         {r.head("ada", ""), fork(start, dag.VolumePlan{Resource: "box", Mode: dag.PlanDiscard}), ""},
		"what nobody knows of":        {r.head("eve", ""), &dag.SnapshotCreated{ResourceRef: "x", SnapshotRef: "y", Outcome: dag.OutcomeOK}, ""},
		"a result without call":       {r.head("ada", "r"), &dag.ToolResult{CallID: "none", Status: dag.CallOK, Result: core.Raw("{}")}, ""},
		"the same message again":      {dag.Head{TS: changed.TS, AgentID: "ada", RunID: "r", Nodes: h.Nodes[:1]}, &dag.MCPListChanged{Server: "t"}, ""},
	} {
		_, err := r.Emit(t.Context(), alice, r.event(c.head, c.body))
		if c.field == "" {
			expect.No(t, err, name)
			continue
		}
		if refused := core.AsError(err); refused.Code != core.Conflict || refused.Details["field"] != c.field || refused.Details["event_id"] == "" {
			t.Errorf("%s: %v %v", name, err, refused.Details)
		}
	}
}

func TestAnAgentSpeaksForItselfAlone(t *testing.T) {
	r := newRig(t)
	ada := core.Caller{Tenant: acme, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
	expect.Of(r.Emit(t.Context(), ada, r.event(r.head("ada", "r"), &dag.RunStarted{})))(t)
	expect.Is(t, core.AsError(expect.Fault(r.Emit(t.Context(), ada, r.event(r.head("bob", "r2"), &dag.RunStarted{})))).Code, core.Denied)
}

func TestATenantHasItsOwnRecord(t *testing.T) {
	r := newRig(t)
	e := r.emit(r.head("ada", "r"), &dag.RunStarted{})
	expect.Is(t, core.AsError(expect.Fault(r.Get(t.Context(), other, e.EventID))).Code, core.NotFound)
	page, err := r.Events(t.Context(), other, dag.Query{})
	expect.True(t, err == nil && page.Info.Total == 0, "%+v %v", page, err)
}

func TestStreamsStayLinearUnderManyEmitters(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				h := dag.Head{TS: dag.At(r.at), AgentID: "ada", RunID: fmt.Sprint("r-", i%3)}
				e, err := dag.NewEvent(h, &dag.MCPListChanged{Server: fmt.Sprint(g, "-", i)})
				if err == nil {
					_, err = r.Emit(t.Context(), alice, e)
				}
				expect.Is(t, err, nil)
			}
		})
	}
	wg.Wait()
	total := 0
	for i := range 3 {
		for page := 1; ; page++ {
			found := expect.Of(r.Events(t.Context(), acme, dag.Query{Run: fmt.Sprint("r-", i), Filter: core.Filter{Page: page, Size: 50}}))(r.T)
			for k, e := range found.Items {
				expect.Must(t, e.Seq == uint64((page-1)*50+k+1), "run %d: seq %d at %d", i, e.Seq, k)
				total++
			}
			if !found.Info.Next {
				break
			}
		}
	}
	expect.Is(t, total, 320)
}

func TestAnEventIsFoundByItsBeginning(t *testing.T) {
	s := newStory(t)
	for _, n := range []int{8, 9, 13, 64} {
		expect.Is(t, expect.Of(s.Find(t.Context(), acme, s.call.EventID[:n]))(t), s.call.EventID, n)
	}
	for _, bad := range []string{"", "abc", "zzzzzzzz", "ABCDEF00", "../../../../"} {
		expect.Is(t, core.AsError(expect.Fault(s.Find(t.Context(), acme, bad))).Code, core.InvalidInput, bad)
	}
	for name, want := range map[string]string{
		"Message:m-1": "Message:m-1", "m-1": "Message:m-1", s.call.EventID[:10]: "Event:" + s.call.EventID, "ada": "Agent:ada", "r-1": "Run:r-1",
		"ToolCall:" + s.call.EventID[:8]: "ToolCall:" + s.call.EventID,
	} {
		ref, err := s.FindNode(t.Context(), acme, name)
		expect.True(t, err == nil && ref.String() == want, "%s: %s %v", name, ref, err)
	}
	for _, bad := range []string{"nobody", "Planet:x", "", strings.Repeat("x", 5000)} {
		expect.Is(t, core.AsError(expect.Fault(s.FindNode(t.Context(), acme, bad))).Code, core.NotFound, bad)
	}
}

// Whatever travels together is held against each other, in either order.
func TestARestoreIsHeldAgainstWhatComesAfterIt(t *testing.T) {
	r := newRig(t)
	stated := r.head("ada", "")
	stated.Nodes = []dag.Node{
		dag.NewNode(&dag.Resource{ID: "box", Kind: dag.ResourceContainer, Name: "box", Capabilities: []dag.Capability{}, Imperative: true}),
		dag.NewNode(&dag.Snapshot{ID: "ram", ResourceRef: "box", Method: "x", ExternalRef: dag.ExtRef{Kind: "a", ID: "b"}, CreatedAt: dag.At(r.at)}),
	}
	_, err := r.Emit(t.Context(), alice,
		r.event(r.head("ada", ""), &dag.RestoreAttempted{SnapshotRef: "ram", Outcome: dag.OutcomeOK}),
		r.event(stated, &dag.ResourceAttached{ResourceRef: "box", Mode: dag.ReadWrite}))
	refused := core.AsError(err)
	expect.True(t, refused.Code == core.Conflict && refused.Details["field"] == "outcome", "%v", err)
}

func TestEveryResourceOfAnEventIsThere(t *testing.T) {
	r := newRig(t)
	h := r.head("ada", "")
	for _, id := range []string{"a", "b", "c"} {
		h.Nodes = append(h.Nodes, dag.NewNode(&dag.Resource{ID: id, Kind: dag.ResourceFile, Name: id, Capabilities: []dag.Capability{}}))
	}
	r.emit(h, &dag.ResourceAttached{ResourceRef: "d", Mode: dag.ReadWrite})
	page := expect.Of(r.Resources(t.Context(), acme, dag.TimeQuery{At: dag.At(r.at.Add(time.Hour))}))(r.T)
	var ids []string
	for _, res := range page.Items {
		ids = append(ids, res.ID)
	}
	slices.Sort(ids)
	expect.Is(t, strings.Join(ids, " "), "a b c d", "there are")
}
