package cad_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const home, abroad = "t_home", "t_abroad"

var (
	alice  = core.Caller{Tenant: home, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	robot  = core.Caller{Tenant: home, Name: "robot", Kind: core.Agent, Door: core.DoorMCP}
	abbott = core.Caller{Tenant: abroad, Name: "abbott", Kind: core.Operator, Door: core.DoorCLI}
)

// world is a controller over a data file, with all that it stands on.
type world struct {
	*enginetest.World
	pool *fakePool
	bare bool // without a pool
	// wrap stands between the engine and its store.
	wrap func(store.Store) store.Store
	// deaths is how many engines may die under an assignment that gets no further.
	deaths int

	judge *judge.Judge
	tasks *task.Table
	swarm *swarm.Swarm
	bus   *bus.Bus
	cad   *cad.Controller
	told  atomic.Pointer[bus.Bus] // work of a crashed engine may still tell that one's
}

func newWorld(t testing.TB, change ...func(*world)) *world {
	w := &world{pool: newPool()}
	for _, c := range change {
		c(w)
	}
	enginetest.New(t, w.options())
	for _, by := range []core.Caller{alice, abbott} {
		expect.Of(w.swarm.CreateTenant(context.Background(), by, by.Tenant))(w.T)
	}
	return w
}

// worldOver is a world over a store that is open.
func worldOver(t testing.TB, st store.Store) *world {
	w := &world{pool: newPool()}
	enginetest.On(t, st, w.options())
	return w
}

func (w *world) options() enginetest.Options {
	return enginetest.Options{Tenants: []string{}, Build: w.build, Over: func(st store.Store) store.Store {
		if w.wrap != nil {
			return w.wrap(st)
		}
		return st
	}, Changed: func(c core.Change) {
		if b := w.told.Load(); b != nil {
			b.Changed(c)
		}
	}}
}

func (w *world) build(e *enginetest.World) {
	w.World = e
	ctx, st := context.Background(), e.Store
	w.told.Store(nil)
	w.judge = expect.Of(judge.New(judge.Options{Ledger: w.Ledger, Tenants: st.Tenants}))(w.T)
	w.tasks = task.New(task.Options{Ledger: w.Ledger})
	w.swarm = expect.Of(swarm.New(ctx, swarm.Options{Store: st, Ledger: w.Ledger, Judge: w.judge, Tasks: w.tasks, Spill: w.Dir, Deaths: w.deaths}))(w.T)
	var p parties
	w.bus = bus.New(bus.Options{Ledger: w.Ledger, Directory: &p, Tenants: st.Tenants})
	w.told.Store(w.bus)
	opt := cad.Options{
		Ledger: w.Ledger, Judge: w.judge, Swarm: w.swarm, Tasks: w.tasks, Bus: w.bus, Dir: filepath.Join(w.Dir, "files"),
		Taken: func(_, id string) bool { return id == "somebody" }, Parameters: env.NewParameters(),
	}
	if !w.bare {
		opt.Pool = w.pool
	}
	w.cad = expect.Of(cad.New(ctx, opt))(w.T)
	p.Parties = w.cad.Parties()
	w.judge.Await(judge.GateCAD, w.cad)
	w.swarm.Runner(cad.KindAssignment, w.cad.Runner())
	w.No(w.swarm.Recover(ctx))
	w.swarm.EStops.Freezer(w.cad)
}

// parties is filled in after the bus is made.
type parties struct{ cad.Parties }

// run starts what waits for answers.
func (w *world) run() { w.Start(w.swarm.Run, w.judge.Run, w.cad.Run) }

// again closes the data file and opens it anew, with no process of before.
func (w *world) again() {
	w.T.Helper()
	w.Close()
	w.pool = newPool()
	w.Open()
}

// agent makes an agent of a role with a workspace of its own.
func (w *world) agent(id, role string) cad.Agent {
	w.T.Helper()
	a, err := w.cad.CreateAgent(context.Background(), alice, cad.CreateAgent{
		AgentID: id, RoleName: role, WorkspaceID: "ws_" + id, Workspace: &cad.CreateWorkspace{},
	})
	expect.No(w.T, err)
	return a
}

// bind has an agent of the fleet act as a CAD agent.
func (w *world) bind(id, fleet string) {
	w.T.Helper()
	expect.Of(w.cad.BindAgent(context.Background(), alice, id, fleet))(w.T)
}

func (w *world) try(id, method, params string) (cad.Done, error) {
	return w.cad.Execute(context.Background(), alice, cad.Operation{AgentID: id, Method: method, Params: core.Raw(params)})
}

func (w *world) do(id, method, params string) cad.Done {
	w.T.Helper()
	done, err := w.try(id, method, params)
	expect.No(w.T, err, id, method)
	return done
}

func (w *world) now(id string) cad.Agent {
	w.T.Helper()
	return expect.Of(w.cad.Agent(context.Background(), home, id))(w.T)
}

func (w *world) space(id string) cad.Workspace {
	w.T.Helper()
	return expect.Of(w.cad.Workspace(context.Background(), home, id))(w.T)
}

func (w *world) ids(workspace string) string {
	w.T.Helper()
	all := expect.Of(w.cad.AllEntities(context.Background(), home, workspace))(w.T)
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ID
	}
	return strings.Join(ids, " ")
}

// events counts the audit events of a type.
func (w *world) events(kind string) (n int) {
	w.T.Helper()
	for seq := uint64(0); ; {
		all := expect.Of(w.Ledger.Since(context.Background(), home, seq, 500))(w.T)
		if len(all) == 0 {
			return n
		}
		for _, e := range all {
			if seq = e.Seq; e.EventType == kind {
				n++
			}
		}
	}
}

// sound checks that the log explains the store, and that each workspace is what
// its journal leads to.
func (w *world) sound() {
	w.T.Helper()
	deltas, err := w.Ledger.Reconcile(context.Background(), home)
	expect.True(w.T, err == nil && len(deltas) == 0, "reconcile: %+v, %v", deltas, err)
	spaces := expect.Of(w.cad.Workspaces(context.Background(), home, core.Filter{Size: 100}))(w.T)
	for _, s := range spaces.Items {
		w.replayed(s)
	}
}

func (w *world) replayed(s cad.Workspace) {
	w.T.Helper()
	entries := expect.Of(w.cad.Journal(context.Background(), home, s.WorkspaceID, 1))(w.T)
	content, err := model.Load(entries)
	expect.No(w.T, err, "replay", s.WorkspaceID)
	var ids []string
	solids := 0
	for e := range content.All() {
		ids = append(ids, e.ID)
		if e.Type == model.Solid {
			solids++
		}
	}
	slices.Sort(ids)
	open := expect.Of(w.cad.Conflicts(context.Background(), home, s.WorkspaceID))(w.T)
	if got := w.ids(s.WorkspaceID); got != strings.Join(ids, " ") || s.EntityCount != len(ids) || s.SolidCount != solids || s.Seq != content.Seq() ||
		s.Conflicts != len(content.Conflicts()) || len(open) != s.Conflicts {
		w.T.Errorf("workspace %+v has %s; its journal leads to %v, seq %d, %d conflicts", s, got, ids, content.Seq(), len(content.Conflicts()))
	}
}

// await waits for a state.
func (w *world) await(what string, is func() bool) {
	w.T.Helper()
	expect.Await(w.T, what, is)
}

// question waits for the one open approval.
func (w *world) question() judge.Approval {
	w.T.Helper()
	var open []judge.Approval
	w.await("an approval", func() bool {
		var err error
		open, err = w.judge.Open(context.Background(), home)
		return err == nil && len(open) == 1
	})
	return open[0]
}

func (w *world) answer(id string, ans judge.Answer) error {
	_, err := w.judge.Answer(context.Background(), alice, id, ans)
	return err
}

// class is the error code of a failed operation, "" for any other error.
func class(err error) cad.ErrorCode {
	var f *cad.OpError
	if errors.As(err, &f) {
		return f.Class
	}
	return ""
}

func code(err error) core.Code {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}
