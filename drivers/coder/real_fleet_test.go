package coder

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const freely = `
schema: 1
name: test
rules:
  - {id: all, gates: [task.start, agent.delete, result], when: "true", decision: approve, reason_code: ok, risk: low, rationale: fine}
`

var alice = core.Caller{Tenant: "t_home", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// realFleet is a whole engine with agents of this runtime alone.
func realFleet(t *testing.T, dir string) *engine.Engine {
	t.Helper()
	db := expect.Of(store.Open(filepath.Join(dir, "data.db"), store.Options{}))(t)
	r := expect.Of(New(Options{State: filepath.Join(dir, "workspaces")}))(t)
	e, err := engine.Open(context.Background(), engine.Options{
		Store: db, Policy: []byte(freely), Runtimes: map[string]fleet.Runtime{"coder": r}, Spill: filepath.Join(dir, "spill"),
	})
	expect.No(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := e.Run(ctx)
		expect.True(t, err == nil || ctx.Err() != nil, "%v", err)
	}()
	end := func() {
		stop()
		<-ended
		expect.Is(t, errors.Join(e.Close(), r.Close(), db.Close()), nil)
	}
	t.Cleanup(end)
	return e
}

func awaitAgent(t *testing.T, e *engine.Engine, name string, ok func(a fleet.Agent) bool) (a fleet.Agent) {
	t.Helper()
	expect.Await(t, "agent "+name, func() bool {
		a = expect.Of(e.Fleet.Agent(context.Background(), alice.Tenant, name))(t)
		return ok(a)
	})
	return a
}

func is(s fleet.AgentStatus) func(fleet.Agent) bool {
	return func(a fleet.Agent) bool { return a.Status == s }
}

// The seed's operations, through the engine.
func TestRealFleetFromCreationToDeletion(t *testing.T) {
	ctx := context.Background()
	d := realCoder(t)
	m := newMachine(t, d, nil)
	e := realFleet(t, t.TempDir())
	expect.Of(e.Swarm.CreateTenant(ctx, alice, alice.Tenant))(t)
	rec := m.record(t, settings{})
	ask := fleet.Create{Name: m.name, Project: m.project, Role: "reviewer", Runtime: "coder", Options: rec.Options, Task: "say first"}
	expect.Of(e.Fleet.Create(ctx, alice, ask))(t)
	a := awaitAgent(t, e, m.name, func(a fleet.Agent) bool { return a.Status == fleet.Idle && a.LastStatus == task.Succeeded })
	expect.Is(t, a.WorkspaceID, m.workspace(t).ID.String(), "workspace")
	_, err := e.Fleet.Create(ctx, alice, ask)
	expect.True(t, core.AsError(err).Details["error"] == "AgentAlreadyExistsError", "a second one of the name: %v", err)
	expect.Await(t, "both roles", func() bool {
		roles, err := e.Fleet.Roles(ctx, alice.Tenant, m.project)
		return err == nil && len(roles) == 2 && roles[0].Name == "coder" && len(roles[0].ID) == 36
	})
	for _, c := range []struct {
		q    core.Filter
		want int
	}{{core.Filter{Status: "idle", Match: m.project}, 1}, {core.Filter{Status: "failed"}, 0}, {core.Filter{Kind: "coder", Page: 2}, 0}} {
		page, err := e.Fleet.Agents(ctx, alice.Tenant, c.q)
		expect.True(t, err == nil && len(page.Items) == c.want, "%+v: %d agents, %v", c.q, len(page.Items), err)
	}

	expect.Of(e.Fleet.Assign(ctx, alice, m.name, "say up\nhang", ""))(t)
	awaitAgent(t, e, m.name, is(fleet.Busy))
	_, err = e.Fleet.Assign(ctx, alice, m.name, "say no", "")
	expect.True(t, core.AsError(err).Details["error"] == "AgentBusyError", "a task for a busy agent: %v", err)
	lines := func() string {
		page := expect.Of(e.Fleet.Log(ctx, alice.Tenant, m.name, core.Filter{Size: 50}))(t)
		var list []string
		for _, l := range page.Items {
			list = append(list, l.Message)
		}
		slices.Reverse(list)
		return strings.Join(list, "|")
	}
	expect.Await(t, "the newest line", func() bool { return strings.HasSuffix(lines(), "|up") })
	expect.Of(e.Fleet.CancelTask(ctx, alice, m.name))(t)
	awaitAgent(t, e, m.name, func(a fleet.Agent) bool { return a.Status == fleet.Idle && a.LastStatus == task.Cancelled })
	expect.Is(t, lines(), "say first|first|say up\nhang|up", "log")
	history, err := e.Fleet.History(ctx, alice.Tenant, m.name, core.Filter{})
	expect.True(t, err == nil && len(history.Items) == 2 && history.Items[0].Message == "say up\nhang" && history.Items[0].Status == task.Cancelled,
		"history %+v %v", history, err)

	expect.Of(e.Fleet.Stop(ctx, alice, m.name))(t)
	awaitAgent(t, e, m.name, is(fleet.Offline))
	expect.Await(t, "the workspace to stop", func() bool { return m.workspace(t).LatestBuild.Status == "stopped" })
	expect.Of(e.Fleet.Start(ctx, alice, m.name))(t)
	awaitAgent(t, e, m.name, is(fleet.Idle))
	expect.No(t, e.Fleet.Delete(ctx, alice, m.name))
	m.awaitGone(t)
	deltas, err := e.Reconcile(ctx, alice.Tenant)
	expect.True(t, err == nil && len(deltas) == 0, "unexplained %+v, %v", deltas, err)
}

// The workspace, and with it the agent, outlives the engine.
func TestRealFleetFindsItsWorkspaceAgain(t *testing.T) {
	ctx := context.Background()
	d := realCoder(t)
	m := newMachine(t, d, nil)
	dir := t.TempDir()
	rec := m.record(t, settings{})
	t.Run("first", func(t *testing.T) {
		e := realFleet(t, dir)
		expect.Of(e.Swarm.CreateTenant(ctx, alice, alice.Tenant))(t)
		expect.Of(e.Fleet.Create(ctx, alice, fleet.Create{Name: m.name, Project: m.project, Runtime: "coder", Options: rec.Options}))(t)
		awaitAgent(t, e, m.name, is(fleet.Idle))
	})
	id := m.workspace(t).ID
	m.role.report("idle", "while nobody listened")
	t.Run("second", func(t *testing.T) {
		e := realFleet(t, dir)
		awaitAgent(t, e, m.name, is(fleet.Idle))
		expect.True(t, m.workspace(t).ID == id && m.workspace(t).LatestBuild.BuildNumber == 1, "it has another workspace or build")
		tk := expect.Of(e.Fleet.AssignWhenReady(ctx, alice, m.name, "say hello", "", 10*time.Second))(t)
		awaitAgent(t, e, m.name, func(a fleet.Agent) bool { return a.LastTaskID == tk.TaskID && a.LastStatus == task.Succeeded })
		page, err := e.Fleet.Log(ctx, alice.Tenant, m.name, core.Filter{Size: 10})
		expect.True(t, err == nil && len(page.Items) >= 3 && page.Items[2].Message == "idle: while nobody listened", "log %+v %v", page.Items, err)
		expect.No(t, e.Fleet.Delete(ctx, alice, m.name))
	})
	m.awaitGone(t)
}
