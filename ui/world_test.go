package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/judge/edits"
	"swarmdeck/engine/session"
	"swarmdeck/engine/story"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/trend"
	"swarmdeck/engine/view"
	"swarmdeck/ui/pane/review"
)

const tenant = "t_acme"

var start = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// fakeWorld is an engine in memory. Everything it hands out is a copy or
// immutable.
type fakeWorld struct {
	mu        sync.Mutex
	rev       uint64
	bells     []chan struct{}
	tenants   []string
	agents    []*fleet.Agent
	places    map[string]files.Places // by role
	sessions  []session.Session
	tasks     []task.Task // newest first
	urgent    []uint64    // of them, that need somebody
	approvals []*judge.Approval
	answered  []judge.Approval
	decisions []judge.GateDecision
	events    []audit.Event
	logs      map[string][]task.LogLine
	results   map[string]task.Result
	estop     estop.State
	budgets   []budget.Budget
	shown     []string
	reads     int
	talk
	models
	rec      recordings
	acts     map[string]fleet.Activity
	queued   map[string][]*fleet.Message
	troubles []health.Trouble
	shelf    review.Source // in place of what agents and approvals have
	cluster  cluster.Cluster
	works    review.Work // nil for those of ada, bob and eve
}

// services hands out the world as the services of an engine.
func (w *fakeWorld) services() Services {
	var of review.Source = diffs{noTrees{}, fakeFleet{w}, fakeJudge{w, w.rec.rulings}, w.rec.Comparer}
	if w.shelf != nil {
		of = w.shelf
	}
	works := w.works
	if works == nil {
		works = newWorks()
	}
	return Services{
		Coding: "claude, codex",
		View:   w, Tasks: fakeTasks{w}, Swarm: w, Sessions: fakeSessions{w}, Fleet: fakeFleet{w}, Files: w, Judge: fakeJudge{w, w.rec.rulings},
		Audit: fakeAudit{w}, Skills: fakeSkills{w}, Bus: fakeBus{w}, CAD: fakeCAD{w}, DAG: w.rec.DAG, Forks: w.rec.Forks, Comparer: w.rec.Comparer, Stories: fakeStories{w}, Trends: fakeStories{w}, Diffs: of,
		Works: works,
	}
}

type (
	fakeTasks    struct{ *fakeWorld }
	fakeSessions struct{ *fakeWorld }
	fakeFleet    struct{ *fakeWorld }
	fakeAudit    struct{ *fakeWorld }
	fakeStories  struct{ *fakeWorld }
	fakeSkills   struct{ *fakeWorld }
	fakeBus      struct{ *fakeWorld }
	fakeCAD      struct{ *fakeWorld }
	fakeJudge    struct {
		*fakeWorld
		rulings
	}
)

func id(prefix string, n int) string { return core.NewID(prefix, tenant, uint64(n)) }

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

// newWorld is a small swarm: four agents, tasks, an open approval of each risk.
func newWorld() *fakeWorld {
	w := &fakeWorld{rec: recordings{blank{}, blank{}, blank{}, blank{}}, tenants: []string{tenant, "t_other"}, logs: map[string][]task.LogLine{}, results: map[string]task.Result{}}
	w.sessions = []session.Session{{SessionID: id("se", 1), TenantID: tenant, Name: "main", State: session.Running, CreatedAt: start.Add(-time.Hour), UpdatedAt: start.Add(-time.Hour)}}
	for i, a := range []fleet.Agent{
		{Name: "changes", Status: fleet.Busy, Role: "reader", Project: "quickstart", LastTask: "what changed since yesterday", TaskID: id("tk", 3)},
		{Name: "large", Status: fleet.Idle, Role: "reader", Project: "quickstart", LastTask: "which files are large"},
		{Name: "scribe", Status: fleet.Busy, Role: "writer", Project: "quickstart", LastTask: "write NOTES.md", TaskID: id("tk", 4), Waiting: id("ap", 1)},
		{Name: "todo", Status: fleet.Failed, Role: "reader", Project: "quickstart", LastTask: "list the TODOs", Reason: "exit status 127: not found"},
	} {
		a.TenantID, a.Runtime, a.WorkspaceID = tenant, "exec", "w_"+a.Name
		a.Command = []string{"sh", "agents/" + a.Name + ".sh"}
		a.CreatedAt, a.UpdatedAt = start.Add(-time.Hour), start.Add(-time.Duration(i+1)*time.Minute)
		w.agents = append(w.agents, &a)
	}
	status := []task.Status{task.Running, task.Queued, task.Running, task.Running, task.Succeeded, task.Failed, task.Cancelled, task.Blocked, task.TimedOut, task.Succeeded}
	for i := len(status); i >= 1; i-- {
		t := task.Task{
			TenantID: tenant, TraceID: trace, TaskID: id("tk", i), SessionID: id("se", 1), Kind: "exec.run", Status: status[i-1], Priority: 50,
			MaxAttempts: 3, Attempt: 1, Title: fmt.Sprintf("go test ./part%d", i), CreatedBy: "ada",
			CreatedAt: start.Add(-time.Duration(20-i) * time.Minute), UpdatedAt: start.Add(-time.Duration(19-i) * time.Minute),
			Input: core.Raw(fmt.Sprintf(`{"argv":["go","test","./part%d"]}`, i)),
		}
		t.StartedAt = t.CreatedAt.Add(time.Second)
		if t.Status.Terminal() {
			t.CompletedAt = t.UpdatedAt
			r := task.Result{TenantID: tenant, TraceID: trace, TaskID: t.TaskID, Status: t.Status, Output: core.Raw(`{"rc":0,"stdout":"ok\n"}`), CompletedAt: t.CompletedAt}
			if t.Status != task.Succeeded {
				r.Error = &task.Error{Code: "exit", Message: "exit status 1"}
			}
			w.results[t.TaskID] = r
		}
		switch i {
		case 3:
			t.Kind, t.Agent, t.Title = "agent.prompt", "changes", "what changed since yesterday"
		case 4:
			t.Kind, t.Agent, t.Title, t.Waiting, t.ApprovalID = "agent.prompt", "scribe", "write NOTES.md", "approval", id("ap", 1)
		}
		w.tasks = append(w.tasks, t)
	}
	for n, line := range []string{"reading the tree", "3 files changed", "\x1b[31mred\x1b[0m and \u202eevil\u202c text"} {
		w.logs["agent:changes"] = append(w.logs["agent:changes"], task.LogLine{Seq: uint64(n + 1), Timestamp: start.Add(-time.Minute), Level: "INFO", Message: line})
		w.logs[id("tk", 1)] = append(w.logs[id("tk", 1)], task.LogLine{Seq: uint64(n + 1), Timestamp: start.Add(-time.Minute), Level: "INFO", Message: line})
	}
	w.approvals = []*judge.Approval{
		approval(1, judge.Medium, "write NOTES.md in the current directory", `{"path":"NOTES.md","text":"three files changed\n"}`),
		approval(2, judge.Low, "list /tmp", `{"argv":["ls","/tmp"]}`),
		approval(3, judge.High, "remove the build directory", `{"argv":["rm","-rf","build"]}`),
	}
	for i := 6; i >= 1; i-- {
		w.events = append(w.events, audit.Event{
			TenantID: tenant, TraceID: trace, EventID: id("ev", i), EventType: "task.queued", Seq: uint64(i), Actor: "ada", Kind: core.Operator, Door: core.DoorCockpit,
			CreatedAt: start.Add(-time.Duration(10-i) * time.Minute), Payload: core.Raw(fmt.Sprintf(`{"subject":"task","id":%q,"state":{"status":"queued"}}`, id("tk", i))),
		})
		w.decisions = append(w.decisions, judge.GateDecision{
			TenantID: tenant, TraceID: trace, TaskID: id("tk", i), DecisionID: id("gd", i), Decision: judge.Approve, ReasonCode: "rule.read_only", Gate: judge.GateStart,
			RuleID: "read-only", PolicyVersion: strings.Repeat("ab", 32), Digest: strings.Repeat("cd", 32), DecidedBy: "policy", Door: core.DoorEngine, CreatedAt: start.Add(-time.Duration(10-i) * time.Minute),
		})
	}
	w.rev = 1
	return w
}

func approval(n int, risk judge.Risk, intent, args string) *judge.Approval {
	digest, _ := core.Digest(args)
	a := &judge.Approval{
		TenantID: tenant, TraceID: trace, TaskID: id("tk", 4), ApprovalID: id("ap", n), Status: judge.Open, Gate: judge.GateTool,
		Action: judge.Action{Kind: "tool", Tool: "write_file", CallID: "c1", Args: core.Raw(args)}, Agent: judge.AgentRef{Name: "scribe", Role: "writer", Project: "quickstart"},
		Attempt: 1, Intent: intent, Said: intent != "", Risk: risk, ReasonCode: "rule.writes_ask", Rationale: "writing files asks a person", RuleID: "writes-ask", PolicyVersion: strings.Repeat("ab", 32),
		Digest: digest, RequestedBy: "scribe", RequestedKind: core.Agent, CreatedAt: start.Add(-2 * time.Minute), DeadlineAt: start.Add(13 * time.Minute), AtDeadline: "deny",
	}
	a.Subject = reads().Subject(tenant, a.Gate, &a.Action, &a.Agent)
	return a
}

// reads is a judge that only reads what actions are about.
var reads = sync.OnceValue(func() *judge.Judge {
	j, err := judge.New(judge.Options{})
	if err != nil {
		panic(err)
	}
	return j
})

// change applies fn and rings the bells.
func (w *fakeWorld) change(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
	w.rev++
	for _, b := range w.bells {
		select {
		case b <- struct{}{}:
		default:
		}
	}
}

func (w *fakeWorld) Watch(context.Context) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := make(chan struct{}, 1)
	w.bells = append(w.bells, b)
	return b
}

func (w *fakeWorld) Snapshot(t string) *view.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &view.Snapshot{Tenant: t, Tenants: w.tenants, Cluster: w.cluster, Troubles: w.troubles, Revision: w.rev, LogRev: w.rev, Counts: task.Counts{ByStatus: map[task.Status]int64{}}}
	if t != tenant {
		return s
	}
	for i := range w.sessions {
		ses := w.sessions[i]
		s.Sessions = append(s.Sessions, &ses)
	}
	s.Agents, s.Approvals, s.EStop, s.Budgets = slices.Clone(w.agents), slices.Clone(w.approvals), w.estop, w.budgets
	for i := range w.subagents {
		if a := w.subagents[i]; !a.State.Final() {
			s.Subagents = append(s.Subagents, &a)
		}
	}
	for i := range w.makers {
		if a := &w.makers[i]; a.Status != cad.Terminated {
			s.CADAgents = append(s.CADAgents, a)
		}
	}
	s.Bus = w.figures()
	s.Counts.Total = int64(len(w.tasks))
	for i := range w.tasks {
		s.Counts.ByStatus[w.tasks[i].Status]++
	}
	return s
}

func page[T any](w *fakeWorld, all []T, f core.Filter, keep func(T) bool) (core.Page[T], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	f, err := f.Check()
	if err != nil {
		return core.Page[T]{}, err
	}
	var hits []T
	for _, v := range all {
		if keep == nil || keep(v) {
			hits = append(hits, v)
		}
	}
	from := min(f.Offset(), len(hits))
	to := min(from+f.Size, len(hits))
	return core.NewPage(slices.Clone(hits[from:to]), f, len(hits)), nil
}

func one[T any](all []T, kind, want string, name func(T) string) (T, error) {
	for _, v := range all {
		if name(v) == want {
			return v, nil
		}
	}
	var none T
	return none, core.Missing(kind, want)
}

func (w fakeTasks) List(_ context.Context, t string, f core.Filter) (core.Page[task.Task], error) {
	return page(w.fakeWorld, w.tasks, f, func(k task.Task) bool {
		return t == tenant && core.Wants(f.Status, string(k.Status)) && core.Wants(f.Agent, k.Agent) && (f.Match == "" || strings.Contains(k.Title, f.Match))
	})
}

// Urgent: none, so that tests know the order.
func (w fakeTasks) Urgent(context.Context, string, []string) ([]uint64, error) { return w.urgent, nil }

func (w fakeTasks) ListFrom(ctx context.Context, t string, head []uint64, f core.Filter) (core.Page[task.Task], error) {
	if len(head) == 0 || f.Narrows() {
		return w.List(ctx, t, f)
	}
	w.mu.Lock()
	all := slices.Clone(w.tasks)
	w.mu.Unlock()
	core.Sort(all, func(a, b task.Task) int {
		at := func(t *task.Task) int {
			if i := slices.Index(head, t.Seq()); i >= 0 {
				return i
			}
			return len(head)
		}
		return at(&a) - at(&b)
	})
	return page(w.fakeWorld, all, f, nil)
}

func (w fakeTasks) Get(_ context.Context, _, want string) (task.Task, error) {
	return one(w.tasks, "task", want, func(t task.Task) string { return t.TaskID })
}

func (w fakeTasks) Result(_ context.Context, _, want string) (task.Result, error) {
	if r, ok := w.results[want]; ok {
		return r, nil
	}
	return task.Result{}, core.Missing("result", want)
}

func (w *fakeWorld) Why(_ context.Context, _, want string) (swarm.Reason, error) {
	return swarm.Reason{TaskID: want, Kind: "capacity", Text: "all slots are taken"}, nil
}

func (w fakeTasks) Log(_ context.Context, _, stream string, from uint64, n int) ([]task.LogLine, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.logs[stream]
	i := min(int(from), len(all))
	return slices.Clone(all[i:min(i+n, len(all))]), uint64(len(all)), nil
}

func (w fakeSessions) Get(_ context.Context, _, want string) (session.Session, error) {
	return one(w.sessions, "session", want, func(s session.Session) string { return s.SessionID })
}

func (w fakeSessions) List(_ context.Context, _ string, f core.Filter) (core.Page[session.Session], error) {
	return page(w.fakeWorld, w.sessions, f, nil)
}

func (w fakeFleet) History(_ context.Context, _, name string, f core.Filter) (core.Page[fleet.HistoryItem], error) {
	return page(w.fakeWorld, []fleet.HistoryItem{{Message: "work of " + name, Status: task.Succeeded, CreatedAt: start.Add(-time.Hour), TaskID: id("tk", 9)}}, f, nil)
}

func (w *fakeWorld) Approval(_ context.Context, _, want string) (judge.Approval, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.approvals {
		if a.ApprovalID == want {
			return *a, nil
		}
	}
	return one(w.answered, "approval", want, func(a judge.Approval) string { return a.ApprovalID })
}

func (w *fakeWorld) Card(ctx context.Context, tenant, want string) (judge.Approval, error) {
	a, err := w.Approval(ctx, tenant, want)
	a.Around = &judge.Around{
		Behind: []string{"task " + a.TaskID + ": running write NOTES.md", "agent scribe, and 2 in its queue"},
		Spent:  &judge.Spent{Tokens: 45600, CostUSD: 0.12},
		Past:   []judge.Precedent{{ApprovalID: id("ap", 90), Status: judge.Refused, By: "bob", At: start.Add(-time.Hour), Reason: "not now", Came: "failed"}},
	}
	if strings.Contains(string(a.Action.Args), "NOTES.md") {
		a.Changes = []edits.Change{{Path: "NOTES.md", Diff: diff.Unified("NOTES.md", "two files changed\n", "three files changed\n", 1<<16), Args: []string{"/text"}}}
	}
	return a, err
}

func (w *fakeWorld) Statement(_ context.Context, _ core.Caller, id string, ans judge.Answer) (judge.Statement, bool, error) {
	digest, err := core.Digest(ans.Edit)
	return judge.Statement{Approval: id, Digest: digest}, false, err
}

func (w *fakeWorld) Shown(_ context.Context, _ core.Caller, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown = append(w.shown, id)
	return nil
}

func (w *fakeWorld) Decision(_ context.Context, _, want string) (judge.GateDecision, error) {
	return one(w.decisions, "decision", want, func(d judge.GateDecision) string { return d.DecisionID })
}

func (w *fakeWorld) Decisions(_ context.Context, _ string, f core.Filter) (core.Page[judge.GateDecision], error) {
	return page(w, w.decisions, f, nil)
}

func (w fakeAudit) Get(_ context.Context, _, want string) (audit.Event, error) {
	return one(w.events, "event", want, func(e audit.Event) string { return e.EventID })
}

func (w fakeAudit) List(_ context.Context, _ string, f core.Filter) (core.Page[audit.Event], error) {
	return page(w.fakeWorld, w.events, f, nil)
}

func (w fakeAudit) Told(ctx context.Context, tenant string, f core.Filter) (core.Page[audit.Event], error) {
	return w.List(ctx, tenant, f)
}

// Overview is of a busy span, in which nobody was here for an hour.
func (w fakeStories) Overview(_ context.Context, tenant, span string) (trend.Overview, error) {
	o := trend.Overview{TenantID: tenant, Over: span, At: start, Now: trend.Figures{Working: 2, Waiting: 1, Failing: 1, Queued: 3, Asking: 2, WaitS: 240}, AwaySince: start.Add(-time.Hour), AwayUntil: start}
	for i := range int64(60) {
		o.Points = append(o.Points, trend.Point{
			Span: span, Figures: trend.Figures{Working: int(i % 9), Asking: int(i / 15), Queued: i * i % 17, WaitS: 4 * i}, Done: i % 3, Failed: i / 58, Tokens: i * 1000, CostUSD: float64(i) / 100,
		})
	}
	for i, name := range []string{"scout", "scribe", "a-name-that-is-rather-long"} {
		o.Agents = append(o.Agents, trend.Share{Spent: trend.Spent{Name: name, Project: "demo", Tasks: int64(9 - i), Tokens: int64(90000 >> i), CostUSD: 3.5 / float64(i+1)}, Working: i % 2, Waiting: (i + 1) % 2})
	}
	o.Projects = []trend.Share{{Spent: trend.Spent{Name: "demo", Tasks: 24, Tokens: 157500, CostUSD: 6.42}, Working: 1, Waiting: 2}}
	return o, nil
}

// Story is of one turn, and of what a person did.
func (w fakeStories) Story(_ context.Context, _ string, q story.Query) ([]story.Line, bool, error) {
	at := func(n int) time.Time { return q.Since.Add(time.Duration(n) * time.Minute) }
	one := 1
	return []story.Line{
		{At: at(1), What: "did", Agent: "scout", Text: "ada: paused scout", Noun: "audit", ID: id(core.EventPrefix, 1)},
		{At: at(2), What: story.Turn, Agent: "scout", TaskID: id(core.TaskPrefix, 1), Text: "Mend the parser: failed, took 3m0s, 4210 tokens, $0.12", Bad: true, Noun: "task", ID: id(core.TaskPrefix, 1)},
		{At: at(3), What: "ran", Agent: "scout", Text: "read_file parse.go", Times: 4, Noun: "event", ID: "e-1"},
		{At: at(4), What: "edited", Agent: "scout", Text: "parse.go +12 -3", Added: 12, Removed: 3, Noun: "event", ID: "e-2"},
		{At: at(5), What: "tests", Agent: "scout", Text: "go test ./...: exit 1", Exit: &one, Bad: true, Noun: "event", ID: "e-3"},
		{At: at(6), What: "answered", Agent: "scout", Text: "git push origin: denied by ada: not today", Bad: true, Noun: "approval", ID: id(core.ApprovalPrefix, 1)},
	}, true, nil
}
