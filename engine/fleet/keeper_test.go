package fleet_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// landlord is the scripted runtime with places elsewhere, and a server that
// names its projects.
type landlord struct {
	*runtime

	mu     sync.Mutex
	kept   []string
	gone   []string
	offers []fleet.Offer
	asked  core.Raw
}

func (l *landlord) Keep(_ context.Context, agents []fleet.Agent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range agents {
		l.kept = append(l.kept, a.Name)
	}
	return nil
}

func (l *landlord) Forget(_ context.Context, a fleet.Agent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = append(l.gone, a.Name)
	return nil
}

func (l *landlord) Catalog(_ context.Context, options core.Raw) ([]fleet.Offer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = options
	return l.offers, nil
}

func (l *landlord) Open(ctx context.Context, a fleet.Agent, notify func(fleet.Health)) (fleet.Handle, error) {
	return l.runtime.Open(ctx, a, func(h fleet.Health) {
		h.WorkspaceID = "place-of-" + a.Name
		notify(h)
	})
}

func newLandlord(t *testing.T) (*world, *landlord) {
	l := &landlord{offers: []fleet.Offer{{
		Project: fleet.Project{ID: "p1", Name: "proj", Description: "what\x1b it is"},
		Roles:   []fleet.Role{{ID: "r1", Name: "coder"}, {ID: "r2", Name: "reader"}, {ID: "r3", Name: "bad\nname"}},
	}, {Project: fleet.Project{ID: "p2", Name: "\x1b[2J"}}}}
	w := newWorld(t)
	l.runtime = w.rt
	w.wrap = func(rt fleet.Runtime) fleet.Runtime { return l }
	w.Close()
	w.Open()
	return w, l
}

func (l *landlord) has(list *[]string, names ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Equal(*list, names)
}

func TestARuntimeIsToldWhichAgentsAreLeft(t *testing.T) {
	w, l := newLandlord(t)
	w.run()
	for _, name := range []string{"ann", "bob"} {
		create(t, w, name)
		w.awaitStatus(name, fleet.Idle)
	}
	expect.No(t, w.fleet.Delete(t.Context(), alice, "ann"))
	expect.True(t, l.has(&l.gone, "ann"), "forgotten %q, want ann", l.gone)
	w.Close()
	l.mu.Lock()
	l.kept = nil
	l.mu.Unlock()
	w.Open()
	w.run()
	w.Await("the runtime knows who is left", func() bool { return l.has(&l.kept, "bob") })
	w.Await("the place is shown", func() bool { return w.agent("bob").WorkspaceID == "place-of-bob" })
	w.consistent()
}

func TestProjectsAndRolesAreLearnedFromARuntimesServer(t *testing.T) {
	w, l := newLandlord(t)
	w.run()
	create(t, w, "bob") // it makes up an id for its project
	w.Await("the server's projects are known", func() bool {
		all, err := w.fleet.Projects(t.Context(), home)
		return err == nil && len(all) == 1 && all[0].ID == "p1"
	})
	all, _ := w.fleet.Projects(t.Context(), home)
	roles, err := w.fleet.Roles(t.Context(), home, "proj")
	if err != nil || len(roles) != 2 || roles[0].ID != "r1" || roles[1].Name != "reader" || roles[1].ProjectID != "p1" || strings.Contains(all[0].Description, "\x1b") {
		t.Errorf("projects %+v, roles %+v, %v", all, roles, err)
	}
	expect.Is(t, string(l.asked), `{"at":"here"}`, "asked with", l.asked)
	_, err = w.fleet.Offers(t.Context(), alice, "none", nil)
	expect.True(t, err != nil && strings.HasPrefix(err.Error(), "runtime:"), "an unknown runtime: %v", err)
	w.consistent()
}

func TestAnAgentMayBeBusyWithWhatNobodyGaveIt(t *testing.T) {
	w := newWorld(t).run()
	w.create("bob")
	w.awaitStatus("bob", fleet.Idle)
	w.rt.handle("bob").notify(fleet.Health{Status: fleet.Busy, Reason: "works for somebody else"})
	w.awaitStatus("bob", fleet.Busy)
	_, err := w.fleet.Assign(t.Context(), alice, "bob", "x", "")
	refused(t, err, core.Conflict, "error", "AgentBusyError")
	w.rt.handle("bob").notify(fleet.Health{Status: fleet.Idle})
	w.awaitStatus("bob", fleet.Idle)
	w.result(w.assign("bob", "x").TaskID)
	w.consistent()
}

func create(t *testing.T, w *world, name string) {
	t.Helper()
	_, err := w.fleet.Create(t.Context(), alice, fleet.Create{
		Name: name, Project: "proj", Role: "coder", Command: []string{"agent"}, Options: core.Raw(`{"at":"here"}`),
	})
	expect.No(t, err)
}
