package ui

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/pane/record"
)

// recordings are the agents' record and what the judge says of policies: nothing,
// or what an archive holds.
type recordings struct {
	record.DAG
	record.Forks
	rulings
	record.Comparer
}

type rulings interface {
	Grounds(ctx context.Context, tenant, id string) (judge.Grounds, error)
	Policies(ctx context.Context, tenant string) ([]judge.Policy, error)
	GetPolicy(ctx context.Context, tenant, id string) (judge.PolicyDetail, error)
	Standing(ctx context.Context, tenant string) (judge.Standing, error)
	TryCases(ctx context.Context, by core.Caller, policy string) ([]judge.CaseResult, judge.TestsSummary, error)
	TryBacktest(ctx context.Context, by core.Caller, policy string, last int) (judge.BacktestReport, error)
}

// blank has no record.
type blank struct{}

func (blank) Subject(_ context.Context, _, subject string, q *dag.Query) error {
	return q.Subject(subject)
}

func (blank) Timeline(_ context.Context, _ string, q dag.Query) (core.Page[dag.Moment], error) {
	f, err := q.Check()
	return core.NewPage([]dag.Moment{}, f, 0), err
}

func (blank) FindNode(_ context.Context, _, name string) (dag.NodeRef, error) {
	return dag.NodeRef{}, core.Missing("node", name)
}

func (blank) Get(_ context.Context, _, event string) (dag.Detail, error) {
	return dag.Detail{}, core.Missing("event", event)
}

func (blank) Node(_ context.Context, _ string, ref dag.NodeRef) (dag.NodeInfo, error) {
	return dag.NodeInfo{}, core.Missing("node", ref.ID)
}

func (blank) At(_ context.Context, _, event string) (dag.State, error) {
	return dag.State{}, core.Missing("event", event)
}

func (blank) Around(_ context.Context, _ string, q dag.LineageQuery) (dag.Graph, error) {
	return dag.Graph{}, core.Missing("node", q.Node.ID)
}

func (blank) Plan(_ context.Context, _ string, q resource.ForkRequest) (resource.Proposal, error) {
	return resource.Proposal{}, core.Missing("agent", q.AgentID)
}

func (blank) Compare(_ context.Context, _, a, _ string) (dag.Comparison, error) {
	return dag.Comparison{}, core.Missing("record", a)
}

func (blank) Policies(context.Context, string) ([]judge.Policy, error) { return nil, nil }

func (blank) GetPolicy(_ context.Context, _, id string) (judge.PolicyDetail, error) {
	return judge.PolicyDetail{}, core.Missing("policy", id)
}

func (blank) Standing(context.Context, string) (judge.Standing, error) {
	return judge.Standing{PolicyID: judge.BasePolicy, Name: "default", Version: "abababababababab", Rules: 12}, nil
}

func (blank) TryCases(_ context.Context, _ core.Caller, id string) ([]judge.CaseResult, judge.TestsSummary, error) {
	return nil, judge.TestsSummary{}, core.Missing("policy", id)
}

func (blank) TryBacktest(_ context.Context, _ core.Caller, id string, _ int) (judge.BacktestReport, error) {
	return judge.BacktestReport{}, core.Missing("policy", id)
}

func (blank) Grounds(_ context.Context, _, id string) (judge.Grounds, error) {
	return judge.Grounds{}, core.Missing("decision", id)
}

// still is a clock that stands.
type still struct{ at time.Time }

func (c *still) Now() time.Time { return c.at }

// archive is a real engine whose record and policies the fake world shows.
type archive struct {
	t   testing.TB
	eng *engine.Engine
	clk *still
	at  time.Time // of the next event
}

var ada = core.Caller{Tenant: tenant, Name: "ada", Kind: core.Operator, Door: core.DoorCLI}

// newArchive opens an engine on a fresh store, at the time that the rig's clock
// shows at first.
func newArchive(t testing.TB, programs judge.Programs) *archive {
	t.Helper()
	db, err := store.Open(filepath.Join(t.TempDir(), "record.db"), store.Options{})
	a := &archive{t: t, clk: &still{start.Add(-time.Minute)}, at: start.Add(-2 * time.Minute)}
	a.no(err)
	a.eng, err = engine.Open(t.Context(), engine.Options{Store: db, Clock: a.clk, Programs: programs, Policy: []byte(baseRules), NewTrace: func() string { return trace }})
	a.no(err)
	expect.Of(a.eng.Swarm.CreateTenant(t.Context(), ada, tenant))(a.t)
	t.Cleanup(func() {
		a.eng.Close()
		db.Close()
	})
	return a
}

func (a *archive) no(err error) {
	a.t.Helper()
	expect.No(a.t, err)
}

// tell records an event of the agent scribe, some time after the one before.
func (a *archive) tell(after time.Duration, run string, b dag.Body, nodes ...dag.Node) dag.Event {
	a.t.Helper()
	a.at = a.at.Add(after)
	h := dag.Head{TS: dag.At(a.at), AgentID: "scribe", Nodes: nodes}
	if run != "" {
		h.RunID, h.TaskID, h.SessionID, h.TraceID = run, id("tk", 4), id("se", 1), trace
	}
	switch b.(type) {
	case *dag.ModelRequest, *dag.ModelResponse:
		h.CorrelationID = "turn"
	}
	e := expect.Of(dag.NewEvent(h, b))(a.t)
	expect.Of(a.eng.DAG.Emit(a.t.Context(), ada, e))(a.t)
	return e
}

// say is a message of a run's list.
func (a *archive) say(after time.Duration, run, list, id string, role dag.MessageRole, parts ...dag.ContentPart) dag.Event {
	a.t.Helper()
	m := &dag.Message{ID: id, Role: role, Content: parts, CreatedAt: dag.At(a.at)}
	return a.tell(after, run, &dag.HistoryAppend{List: list, MessageRef: id}, dag.NewNode(m))
}

func text(s string) dag.ContentPart { return dag.ContentPart{Type: "text", Text: s} }

func about(call, object string) dag.ContentPart {
	return dag.ContentPart{Type: "tool_use", ID: call, Name: "decision", Input: core.Raw(object)}
}

func of(e dag.Event) dag.EventRef { return dag.EventRef{EventID: e.EventID} }

// story tells of a run of scribe in which everything happens: it thinks, asks,
// is edited, is refused, and forks.
func (a *archive) story() {
	const ms = time.Millisecond
	a.tell(0, "", &dag.ResourceAttached{ResourceRef: "vol-work", Mode: dag.ReadWrite, Mount: "/work"}, dag.NewNode(&dag.Resource{
		ID: "vol-work", Kind: dag.ResourceFile, Name: "the working directory", Capabilities: []dag.Capability{dag.CanSnapshot, dag.CanRestore, dag.CanFork},
		Scope: &dag.Scope{AgentID: "scribe"},
	}))
	a.tell(500*ms, "r-1", &dag.RunStarted{Reason: "user"})
	a.say(3*ms, "r-1", "main", "m-1", dag.RoleUser, text("write NOTES.md: what changed?"))
	ask := a.tell(40*ms, "r-1", &dag.ModelRequest{Model: "gpt-x", Params: core.Raw(`{"temperature":0}`), InputRefs: []dag.InputRef{{Message: "m-1"}}})
	answer := a.tell(2300*ms, "r-1", &dag.ModelResponse{RequestID: ask.EventID, OutputRef: "m-2", FinishReason: "tool_calls", Usage: &dag.Usage{PromptTokens: 900, CompletionTokens: 120, TotalTokens: 1020}},
		dag.NewNode(&dag.Message{ID: "m-2", Role: dag.RoleAssistant, Content: []dag.ContentPart{{Type: "reasoning", Text: "I look first"}, text("I list the files.")}, CreatedAt: dag.At(a.at)}))
	list := a.tell(10*ms, "r-1", &dag.ToolCall{Server: "exec", Tool: "fs.list", CallID: "c-1", Args: core.Raw(`{"path":"."}`), RequestedBy: of(answer)})
	a.say(2*ms, "r-1", "decisions", "d-1", dag.RoleSystem, about("c-1", `{"decision":"approve","reason_code":"tool.read","decided_by":"policy","rule_id":"tool.read"}`))
	a.tell(120*ms, "r-1", &dag.ToolResult{CallID: "c-1", Status: dag.CallOK, Result: core.Raw(`{"entries":["a.go","b.go","c.go"]}`)})
	write := a.tell(900*ms, "r-1", &dag.ToolCall{Server: "exec", Tool: "fs.write", CallID: "c-2", Args: core.Raw(`{"path":"NOTES.md","text":"3 files"}`), RequestedBy: of(answer)})
	a.say(2*ms, "r-1", "decisions", "d-2", dag.RoleSystem, about("c-2", `{"decision":"hitl","reason_code":"tool.write","decided_by":"policy","rule_id":"tool.write","approval_id":"`+id("ap", 1)+`"}`))
	a.say(12*time.Second, "r-1", "decisions", "d-3", dag.RoleSystem, about("c-2", `{"decision":"approve","reason_code":"operator.edited","decided_by":"ada"}`))
	edited := a.tell(1*ms, "r-1", &dag.ToolCall{Server: "exec", Tool: "fs.write", CallID: "c-2", Args: core.Raw(`{"path":"notes/NOTES.md","text":"3 files"}`), RequestedBy: of(write)})
	a.tell(0, "r-1", &dag.Substitution{OriginalEvent: of(write), ReplacementEvent: of(edited), Reason: "keep it in notes"})
	a.tell(30*ms, "r-1", &dag.ToolResult{CallID: "c-2", Status: dag.CallOK, Result: core.Raw(`{"wrote":"notes/NOTES.md"}`)})
	rm := a.tell(400*ms, "r-1", &dag.ToolCall{Server: "exec", Tool: "exec.run", CallID: "c-3", Args: core.Raw(`{"argv":["rm","-rf","build"]}`), RequestedBy: of(answer)})
	a.say(1*ms, "r-1", "decisions", "d-4", dag.RoleSystem, about("c-3", `{"decision":"deny","reason_code":"operator.denied","decided_by":"bob","rationale":"not the build"}`))
	a.tell(1*ms, "r-1", &dag.ToolResult{CallID: "c-3", Status: dag.CallCanceled, Result: core.Raw(`{}`), Error: &dag.Fault{Code: "approval_denied", Message: "the call was cut off"}})
	a.tell(0, "r-1", &dag.Interruption{Reason: dag.ReasonApprovalDenied, Affects: []dag.EventRef{of(rm)}})
	a.tell(2*time.Second, "", &dag.AgentForked{FromBranch: "main", ToBranch: "careful", AtEvent: of(list)}, dag.NewNode(&dag.Subagent{ID: "scribe-2", ParentAgentID: "scribe"}))
	a.say(300*ms, "r-1", "main", "m-3", dag.RoleAssistant, text("Done: 3 files changed."))
	a.tell(5*ms, "r-1", &dag.RunFinished{Exit: "success"})
}

// baseRules stand in for the embedded ones, whose version is no matter here.
const baseRules = `schema: 1
name: default
rules:
  - {id: all, gates: [task.start, tool.call, result], when: "true", decision: hitl, reason_code: ask, risk: medium, rationale: A person decides.}
`

const mildRules = `schema: 1
name: mild
rules:
  - {id: writes, gates: [tool.call], when: 'action.tool == "fs.write"', decision: approve, reason_code: mild.write, risk: low, rationale: Notes are harmless.}
  - {id: all, gates: [task.start, tool.call, result], when: "true", decision: hitl, reason_code: mild.ask, risk: medium, rationale: A person decides.}
`

// propose keeps a policy with as many cases that pass and fail.
func (a *archive) propose(by core.Caller, name string, pass, fail int) judge.Policy {
	a.t.Helper()
	cases := ""
	for i := range pass + fail {
		want := "approve"
		if i >= pass {
			want = "deny"
		}
		cases += fmt.Sprintf(`{"name":"case %d","input":{"action":{"tool":"fs.write","args":{"n":%d}}},"expect":{"decision":%q}}`+"\n", i+1, i, want)
	}
	p, err := a.eng.Judge.Propose(a.t.Context(), by, judge.Proposal{Kind: judge.KindRules, Name: name, Source: []byte(mildRules), Cases: []byte(cases)})
	a.no(err)
	return p
}

// world is the fake world with this archive in it.
func (a *archive) world() *fakeWorld {
	w := newWorld()
	w.rec = recordings{a.eng.DAG, a.eng.Resources, a.eng.Judge, a.eng}
	return w
}
