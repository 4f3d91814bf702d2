package acp

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// desk is an engine with one real agent.
type desk struct {
	t     *testing.T
	eng   *engine.Engine
	model *model.Server
	by    core.Caller
	name  string
	dir   string
	spent int64 // by all tasks so far
}

func newDesk(t *testing.T, agent func(*testing.T, *model.Server) fleet.Agent) *desk {
	t.Helper()
	d := &desk{t: t, model: serveModel(t), by: core.Caller{Tenant: "t_test", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}}
	a := agent(t, d.model)
	d.name, d.dir = a.Name, a.Dir
	path := filepath.Join(t.TempDir(), "desk.db")
	sealer, err := audit.OpenSealer(path + ".key")
	d.no(err)
	db, err := store.Open(path, store.Options{Seal: sealer.Seal})
	d.no(err)
	runtime, err := NewRuntime(drivertest.Cells(t, cell.Options{}), Options{State: t.TempDir(), Dir: t.TempDir(), Patience: 3 * time.Minute, Models: recorder(t)})
	d.no(err)
	d.eng, err = engine.Open(t.Context(), engine.Options{Store: db, Sealer: sealer, Spill: t.TempDir(), Runtimes: map[string]fleet.Runtime{"acp": runtime}})
	d.no(err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.eng.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		_ = d.eng.Close()
		_ = db.Close()
	})
	_, err = d.eng.Swarm.CreateTenant(t.Context(), d.by, d.by.Tenant)
	d.no(err)
	_, err = d.eng.Fleet.Create(t.Context(), d.by, fleet.Create{
		Name: a.Name, Project: "p", Runtime: "acp", Command: a.Command, Env: a.Env, Dir: a.Dir, Options: a.Options,
	})
	d.no(err)
	waitLong(t, "it is idle", func() bool { return d.agent().Status == fleet.Idle })
	return d
}

func (d *desk) no(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) agent() fleet.Agent {
	a, err := d.eng.Fleet.Agent(context.Background(), d.by.Tenant, d.name)
	d.no(err)
	return a
}

// begin gives the agent a task.
func (d *desk) begin(message string, timeout time.Duration) string {
	d.t.Helper()
	waitLong(d.t, "it is idle", func() bool { return d.agent().Status == fleet.Idle })
	once := 1
	t, err := d.eng.Swarm.Dispatch(d.t.Context(), d.by, swarm.Dispatch{
		Kind: fleet.KindPrompt, Agent: d.name, MaxAttempts: &once, Timeout: timeout,
		Input: core.MustEncode(map[string]string{"agent": d.name, "message": message}),
	})
	d.no(err)
	return t.TaskID
}

// asked is the open approval of a task.
func (d *desk) asked(id string) (found judge.Approval) {
	d.t.Helper()
	waitLong(d.t, "it asks", func() bool {
		open, err := d.eng.Judge.Open(context.Background(), d.by.Tenant)
		d.no(err)
		i := slices.IndexFunc(open, func(a judge.Approval) bool { return a.TaskID == id })
		if i >= 0 {
			found = open[i]
		}
		return i >= 0
	})
	return found
}

func (d *desk) answer(id string, ans judge.Answer) {
	d.t.Helper()
	_, err := d.eng.Judge.Answer(d.t.Context(), d.by, d.asked(id).ApprovalID, ans)
	d.no(err)
}

// story is what the record has of a task.
type story struct {
	status       task.Status
	code         string
	denials      int
	exit         string
	calls        []string // each as its status
	asked        bool     // every one was
	results      int
	interrupted  []string
	told         int // messages to the agent
	answers      int
	spent, known int64 // tokens that were counted, and that its model gave
	unbroken     bool
}

func (d *desk) story(id string) (s story) {
	d.t.Helper()
	ctx := context.Background()
	var t task.Task
	waitLong(d.t, "it is over", func() bool {
		var err error
		t, err = d.eng.Tasks.Get(ctx, d.by.Tenant, id)
		d.no(err)
		return t.Status.Terminal()
	})
	res, err := d.eng.Tasks.Result(ctx, d.by.Tenant, id)
	d.no(err)
	s.status, s.denials, s.asked = res.Status, len(res.Denials), true
	if res.Error != nil {
		s.code = res.Error.Code
	}
	page, err := d.eng.DAG.Events(ctx, d.by.Tenant, dag.Query{Filter: core.Filter{Task: id, Size: 100}, Forward: true})
	d.no(err)
	last, requests := "", map[string]bool{}
	for _, e := range page.Items {
		switch b := e.Event.Body.(type) {
		case *dag.ModelRequest:
			requests[e.Event.EventID] = true
		case *dag.ToolResult:
			s.results++
		case *dag.Interruption:
			if len(b.Affects) == 0 || slices.ContainsFunc(b.Affects, func(r dag.EventRef) bool { return !requests[r.EventID] }) { // else of what is asked in passing, as for a title
				s.interrupted = append(s.interrupted, string(b.Reason))
			}
		case *dag.RunFinished:
			s.exit = b.Exit
		case *dag.ModelResponse:
			if b.Usage != nil {
				s.known += b.Usage.TotalTokens
			}
		case *dag.HistoryAppend:
			m := e.Event.Nodes[0].Body.(*dag.Message)
			switch {
			case b.List == dag.ListMain && m.Role == dag.RoleUser:
				s.told++
			case b.List == dag.ListMain && m.Role == dag.RoleAssistant:
				s.answers++
				last = e.Event.EventID
			case b.List == "usage":
				var u struct {
					Tokens int64 `json:"tokens"`
				}
				d.no(core.DecodeStored(m.Content[0].Input, &u))
				s.spent += u.Tokens
			}
		}
	}
	calls, err := d.eng.DAG.Calls(ctx, d.by.Tenant, dag.Query{Filter: core.Filter{Task: id, Size: 100}})
	d.no(err)
	for _, c := range calls.Items {
		s.calls = append(s.calls, string(c.Status))
	}
	did, err := d.eng.Fleet.Activity(ctx, d.by.Tenant, d.name, time.Time{})
	d.no(err)
	for _, c := range did.Calls {
		s.asked = s.asked && c.Asked
	}
	d.spent += s.spent
	if most := int64(len(d.model.Requests())) * (model.TokensIn + model.TokensOut); d.spent > most { // what it asks between tasks counts for the next
		d.t.Errorf("%d tokens were counted, of at most %d", d.spent, most)
	}
	s.unbroken = last == "" || d.leadsBack(last, page.Items[:slices.IndexFunc(page.Items, func(e dag.Recorded) bool { return e.Event.EventID == last })])
	return s
}

// leadsBack reports whether a lineage holds the start of the run and all its calls.
func (d *desk) leadsBack(event string, all []dag.Recorded) bool {
	line, err := d.eng.DAG.Lineage(context.Background(), d.by.Tenant, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: event}, Depth: 100})
	d.no(err)
	seen := map[string]bool{}
	for _, s := range line.Steps {
		seen[s.Node.ID] = true
	}
	for _, e := range all {
		if k := e.Event.Kind; (k == dag.KindRunStarted || k == dag.KindToolCall || k == dag.KindToolResult) && !seen[e.Event.EventID] {
			d.t.Logf("%s does not lead back to a %s", event, k)
			return false
		}
	}
	return true
}

func (s story) check(t *testing.T, what string, status task.Status, exit, calls, interrupted string) {
	t.Helper()
	if testing.Verbose() {
		t.Logf("%s: %+v", what, s)
	}
	if s.status != status || s.exit != exit || strings.Join(s.calls, " ") != calls || s.results != len(s.calls) ||
		strings.Join(s.interrupted, " ") != interrupted || !s.asked || !s.unbroken || s.spent < s.known {
		t.Errorf("%s: %+v", what, s)
	}
}

// TestTheRecordOfRealAgentsIsTrue has each approved, denied with a reason, cancelled,
// killed while it waits and while it works, ended by its time limit, and taken up again.
func TestTheRecordOfRealAgentsIsTrue(t *testing.T) {
	for name, agent := range realAgents() {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, agent)
			file := func(name string) string { return filepath.Join(d.dir, name) }
			exists := func(name string) bool {
				_, err := os.Stat(file(name))
				return err == nil
			}
			kill := func() {
				d.no(syscall.Kill(d.agent().PID, syscall.SIGKILL))
			}

			id := d.begin("RUN: echo hello > "+file("yes"), 0)
			d.answer(id, judge.Answer{Approve: true, Reason: "fine"})
			s := d.story(id)
			if s.check(t, "approved", task.Succeeded, "success", "ok", ""); s.answers == 0 || s.spent == 0 || !exists("yes") {
				t.Errorf("approved: %+v", s)
			}

			id = d.begin("RUN: echo hello > "+file("no"), 0)
			d.answer(id, judge.Answer{Reason: "use the copy"})
			s = d.story(id)
			if s.check(t, "denied", task.Succeeded, "success", "canceled", "approval_denied"); s.denials != 1 || s.told != 2 || exists("no") {
				t.Errorf("denied: %+v", s)
			}

			id = d.begin("RUN: echo hello > "+file("never"), 0)
			d.asked(id)
			_, err := d.eng.Fleet.CancelTask(t.Context(), d.by, d.name)
			d.no(err)
			if s = d.story(id); exists("never") {
				t.Error("a cancelled command ran")
			}
			s.check(t, "cancelled", task.Cancelled, "error", "canceled", "canceled")

			id = d.begin("RUN: echo hello > "+file("dead"), 0)
			asked := d.asked(id)
			kill()
			s = d.story(id)
			if s.check(t, "killed as it waited", task.Failed, "error", "interrupted", "crash"); s.code != "agent_killed" {
				t.Errorf("killed as it waited: %+v", s)
			}
			if a, err := d.eng.Judge.Approval(t.Context(), d.by.Tenant, asked.ApprovalID); err != nil || a.Status != judge.Voided {
				t.Errorf("its approval is %s: %v", a.Status, err)
			}

			id = d.begin("RUN: echo $$ > "+file("pid")+"; sleep 300; echo x >> "+file("pid"), 0)
			d.answer(id, judge.Answer{Approve: true, Reason: "fine"})
			waitLong(t, "the command runs", func() bool { return readPID(file("pid")) > 0 })
			kill()
			s = d.story(id)
			s.check(t, "killed at work", task.Failed, "error", "interrupted", "crash")
			if runs(file("pid")) {
				t.Error("the command outlived its agent")
			}

			id = d.begin("RUN: echo hello > "+file("late"), 20*time.Second)
			if s = d.story(id); exists("late") {
				t.Error("a command ran after its time")
			}
			calls := "timeout"
			if len(s.calls) == 0 { // it had not asked yet, on a busy machine
				calls = ""
			}
			s.check(t, "late", task.TimedOut, "error", calls, "timeout")

			id = d.begin("SAY: still here", 0)
			s = d.story(id)
			if s.check(t, "taken up", task.Succeeded, "success", "", ""); s.answers == 0 {
				t.Errorf("taken up: %+v", s)
			}
			if _, err := d.eng.Audit.Reconcile(t.Context(), d.by.Tenant); err != nil {
				t.Error(err)
			}
		})
	}
}
