package cad_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestTenantsChooseNamesWithoutEachOther(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	_, err := w.cad.CreateAgent(t.Context(), abbott, cad.CreateAgent{
		AgentID: "ann", RoleName: "designer", WorkspaceID: "ws_ann", Workspace: &cad.CreateWorkspace{},
	})
	expect.No(t, err)
	op := cad.Operation{AgentID: "ann", Method: "entity.create_point", Params: core.Raw(`{"entity_id":"far"}`)}
	expect.Of(w.cad.Execute(t.Context(), abbott, op))(t)
	w.do("ann", "entity.create_point", `{"entity_id":"near"}`)
	expect.True(t, w.ids("ws_ann") == "near" && w.events("tenant.violation") == 0, "%s, %d violations", w.ids("ws_ann"), w.events("tenant.violation"))
}

func TestWhatIsNoAgentIsRefusedByField(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	expect.Of(w.cad.CreateWorkspace(t.Context(), abbott, cad.CreateWorkspace{WorkspaceID: "theirs"}))(t)
	for name, c := range map[string]struct {
		make  cad.CreateAgent
		code  core.Code
		field string
	}{
		"no id":             {cad.CreateAgent{RoleName: "designer", WorkspaceID: "main"}, core.InvalidInput, "agent_id"},
		"an odd id":         {cad.CreateAgent{AgentID: "a b", RoleName: "designer", WorkspaceID: "main"}, core.InvalidInput, "agent_id"},
		"the engine's":      {cad.CreateAgent{AgentID: "broadcast", RoleName: "designer", WorkspaceID: "main"}, core.InvalidInput, "agent_id"},
		"another's name":    {cad.CreateAgent{AgentID: "somebody", RoleName: "designer", WorkspaceID: "main"}, core.Conflict, "agent_id"},
		"a duplicate":       {cad.CreateAgent{AgentID: "ann", RoleName: "designer", WorkspaceID: "main"}, core.Conflict, "agent_id"},
		"no such role":      {cad.CreateAgent{AgentID: "bob", RoleName: "painter", WorkspaceID: "main"}, core.InvalidInput, "role_name"},
		"no such workspace": {cad.CreateAgent{AgentID: "bob", RoleName: "designer", WorkspaceID: "nowhere"}, core.NotFound, "workspace_id"},
		"a foreign one":     {cad.CreateAgent{AgentID: "bob", RoleName: "designer", WorkspaceID: "theirs"}, core.Denied, ""},
		"an odd workspace":  {cad.CreateAgent{AgentID: "bob", RoleName: "designer", WorkspaceID: "../x"}, core.InvalidInput, "workspace_id"},
		"an odd kernel": {
			cad.CreateAgent{AgentID: "bob", RoleName: "designer", WorkspaceID: "w", Workspace: &cad.CreateWorkspace{Kernel: "parasolid"}},
			core.InvalidInput, "kernel",
		},
		"a missing kernel": {
			cad.CreateAgent{AgentID: "bob", RoleName: "designer", WorkspaceID: "w", Workspace: &cad.CreateWorkspace{Kernel: "occt"}},
			core.Unavailable, "kernel",
		},
		"another kernel": {
			cad.CreateAgent{AgentID: "bob", RoleName: "designer", WorkspaceID: "ws_ann", Workspace: &cad.CreateWorkspace{Kernel: "embedded"}},
			core.Conflict, "kernel",
		},
	} {
		_, err := w.cad.CreateAgent(t.Context(), alice, c.make)
		e := core.AsError(err)
		field, _ := e.Details["field"].(string)
		expect.True(t, err != nil && e.Code == c.code && field == c.field, "%s: %v (%s, %s)", name, err, e.Code, field)
	}
	expect.Is(t, w.events("tenant.violation"), 1, "the foreign workspace was not audited")
	page, err := w.cad.Workspaces(t.Context(), home, core.Filter{})
	expect.True(t, err == nil && page.Info.Total == 1, "a refusal made a workspace: %+v, %v", page, err)
	_, err = w.cad.CreateAgent(t.Context(), alice, cad.CreateAgent{AgentID: "bob", RoleName: "modeler", WorkspaceID: "main"})
	expect.True(t, err == nil, "main is there for everybody: %v", err)
	w.sound()
}

func TestAnAgentOfAnotherTenantIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	expect.Err(t, expect.Fault(w.cad.Agent(t.Context(), abroad, "ann")), core.ErrForeign)
	expect.Err(t, expect.Fault(w.cad.Execute(t.Context(), abbott, cad.Operation{AgentID: "ann", Method: "entity.list"})), core.ErrForeign)
	expect.Is(t, code(expect.Fault(w.cad.Execute(t.Context(), alice, cad.Operation{AgentID: "nobody", Method: "entity.list"}))), core.NotFound)
	page, err := w.cad.Agents(t.Context(), abroad, core.Filter{})
	expect.True(t, err == nil && len(page.Items) == 0 && len(w.cad.Live(abroad)) == 0, "%+v, %v", page, err)
	events, err := w.Ledger.List(t.Context(), abroad, core.Filter{Kind: "tenant.violation"})
	expect.True(t, err == nil && events.Info.Total == 2, "audited: %+v, %v", events.Info, err)
}

func TestAnAgentGoesThroughTheStatesOfTheSeed(t *testing.T) {
	w := newWorld(t)
	a := w.agent("ann", "designer")
	expect.True(t, a.Status == cad.Idle && a.OperationCount == 0 && a.CreatedAt != 0 && a.Shown() == "idle", "%+v", a)
	reached, on := make(chan bool), make(chan bool)
	w.pool.on(func(context.Context, *fakeWorker, cad.Call) error { close(reached); <-on; return nil }, nil)
	over := expect.Later(func() error { _, err := w.try("ann", "entity.create_point", `{"width":-1}`); return err })
	<-reached
	a = w.now("ann")
	expect.True(t, a.Status == cad.Working && a.Operation == "entity.create_point" && a.Shown() == "working", "meanwhile %+v", a)
	info := w.cad.Info(home)
	expect.True(t, info.Working == 1 && info.Agents == 1 && info.MaxConcurrent == 10, "%+v", info)
	close(on)
	expect.Is(t, class(<-over), cad.InvalidParameters)
	w.pool.on(nil, nil)
	if a := w.now("ann"); a.Status != cad.Failing || a.Shown() != "failed" || a.ErrorCount != 1 || len(a.ErrorLog) != 1 || !strings.Contains(a.ErrorLog[0], "INVALID_GEOMETRY") {
		t.Errorf("after a failure %+v", a)
	}
	w.do("ann", "entity.create_point", `{}`)
	if a := w.now("ann"); a.Status != cad.Idle || a.OperationCount != 2 || a.SuccessCount != 1 || a.CreatedEntities[0] != "ws_ann_point_1" || a.LastActive < a.CreatedAt {
		t.Errorf("after a success %+v", a)
	}
	a, err := w.cad.ShutdownAgent(t.Context(), alice, "ann")
	expect.True(t, err == nil && a.Status == cad.Terminated && a.Shown() == "offline", "%+v, %v", a, err)
	expect.Is(t, code(expect.Fault(w.cad.ShutdownAgent(t.Context(), alice, "ann"))), core.Conflict, "terminated twice")
	expect.Is(t, code(expect.Fault(w.try("ann", "entity.list", `{}`))), core.Conflict, "a terminated agent works")
	expect.True(t, len(w.cad.Live(home)) == 0 && !w.cad.Parties().Known(home, "ann"), "it is still there")
	w.again()
	a = w.now("ann")
	expect.True(t, a.Status == cad.Terminated && a.OperationCount == 2, "after a restart %+v", a)
	w.sound()
}

func TestAShutdownDuringAnOperationStoresNothingOfIt(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	w.pool.on(nil, func(context.Context, *fakeWorker, cad.Call) error {
		_, err := w.cad.ShutdownAgent(context.Background(), alice, "ann")
		return err
	})
	expect.Is(t, code(expect.Fault(w.try("ann", "entity.create_point", `{}`))), core.Conflict)
	s := w.space("ws_ann")
	expect.True(t, s.Seq == 1 && s.EntityCount == 0, "%+v", s)
	w.sound()
}

func TestRecordsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "designer")
	for i := range 300 {
		w.do("ann", "entity.create_point", `{}`)
		if i < 30 {
			_, err := w.try("ann", "entity.create_point", `{"width":-1}`)
			expect.Must(t, err != nil, "no error")
		}
	}
	a := w.now("ann")
	if len(a.CreatedEntities) != 256 || a.CreatedCount != 300 || a.CreatedEntities[255] != "ws_ann_point_300" || len(a.ErrorLog) != 20 || a.ErrorCount != 30 || a.OperationCount != 330 {
		t.Errorf("%d created, %d errors: %+v", len(a.CreatedEntities), len(a.ErrorLog), a.OperationCount)
	}
	w.sound()
}

func TestHowManyWorkAtOnceIsBounded(t *testing.T) {
	w := newWorld(t)
	w.pool.most = 10
	for _, n := range []int{0, 51, -1} {
		_, err := w.cad.SetMaxConcurrent(t.Context(), alice, n)
		expect.True(t, code(err) == core.InvalidInput && core.AsError(err).Details["field"] == "max_concurrent_agents", "%d: %v", n, err)
	}
	info, err := w.cad.SetMaxConcurrent(t.Context(), alice, 2)
	expect.Must(t, err == nil && info.MaxConcurrent == 2, "%v %v", info, err)
	on, in := make(chan bool), make(chan bool, 10)
	w.pool.on(func(context.Context, *fakeWorker, cad.Call) error { in <- true; <-on; return nil }, nil)
	over := make(chan error, 5)
	for i := range 5 {
		id := fmt.Sprint("a", i)
		w.agent(id, "designer")
		go func() { _, err := w.try(id, "entity.create_point", `{}`); over <- err }()
	}
	<-in
	<-in
	info = w.cad.Info(home)
	expect.True(t, info.Working == 2 && len(in) == 0, "%d work", info.Working)
	expect.Of(w.cad.SetMaxConcurrent(t.Context(), alice, 3))(t)
	<-in // one more is let in
	close(on)
	for range 5 {
		expect.No(t, <-over)
	}
	w.again()
	info = w.cad.Info(home)
	expect.True(t, info.MaxConcurrent == 3, "after a restart %+v", info)
	w.sound()
}
