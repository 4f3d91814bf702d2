package resource

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
)

const acme = "t_acme"

var alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// rig is the service over a store of its own, with agents and resources that
// are made up.
type rig struct {
	*enginetest.World
	*Resources
	dag    *dag.DAG
	people *people
	shelf  *shelf
}

// inBubble runs a test on fake time. Agent ada is there and has no directory.
func inBubble(t *testing.T, fn func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{people: &people{all: map[string]Agent{}}, shelf: &shelf{things: map[string]string{}, kept: map[string]string{}}}
		enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) {
			r.World = w
			r.dag = dag.New(dag.Options{Ledger: w.Ledger})
			intents := control.New(control.Options{Ledger: w.Ledger, DAG: r.dag, Tenants: w.DB.Tenants})
			var err error
			r.Resources, err = New(Options{Ledger: w.Ledger, DAG: r.dag, Intents: intents, Agents: r.people, Drivers: map[string]Driver{"shelf": r.shelf}})
			w.No(err)
			w.Start(intents.Run)
		}})
		r.people.add("ada")
		fn(r)
		r.Proven(acme)
	})
}

// began records, in a bubble, that a run of ada began, and returns that event.
func (r *rig) began(run string) string {
	r.T.Helper()
	e := expect.Of(dag.NewEvent(dag.Head{TS: dag.At(time.Now()), RunID: run, AgentID: "ada"}, &dag.RunStarted{Reason: "user"}))(r.T)
	expect.Of(r.dag.Emit(r.T.Context(), alice, e))(r.T)
	time.Sleep(time.Second)
	return e.EventID
}

// says records, in a bubble, what an agent was told in a run of its own, and returns
// that event.
func (r *rig) says(agent, text string) string {
	r.T.Helper()
	at := dag.At(time.Now())
	m := dag.NewNode(&dag.Message{ID: text, Role: dag.RoleUser, Content: []dag.ContentPart{{Type: "text", Text: text}}, CreatedAt: at})
	e := expect.Of(dag.NewEvent(dag.Head{TS: at, RunID: text, AgentID: agent, Nodes: []dag.Node{m}}, &dag.HistoryAppend{List: "main", MessageRef: text}))(r.T)
	expect.Of(r.dag.Emit(r.T.Context(), alice, e))(r.T)
	time.Sleep(time.Second)
	return e.EventID
}

// attachThing gives ada a thing of the shelf, and returns the resource's id.
func (r *rig) attachThing(name string) string {
	r.T.Helper()
	r.shelf.put(name, "one")
	v := expect.Of(r.Attach(r.T.Context(), alice, Attachment{AgentID: "ada", Target: "shelf:" + name}))(r.T)
	return v.ID
}

// fork forks ada without a task.
func (r *rig) fork(at, name string, plan map[string]Choice) (Forked, error) {
	none := ""
	return r.Fork(r.T.Context(), alice, ForkRequest{AgentID: "ada", At: at, Name: name, Task: &none, Plan: plan})
}

// people are agents that are made up.
type people struct {
	mu  sync.Mutex
	all map[string]Agent

	onFork func(Made) error // set by tests: what Fork comes to
}

func (p *people) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = Agent{Name: name, CreatedAt: time.Now()}
}

func (p *people) Agent(_ context.Context, _, name string) (Agent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.all[name]
	if !ok {
		return a, core.Missing("agent", name)
	}
	return a, nil
}

func (p *people) Fork(_ context.Context, _ core.Caller, m Made) error {
	if p.onFork != nil {
		if err := p.onFork(m); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, taken := p.all[m.Name]
	if taken && (a.Forked == nil || a.Forked.Intent != m.Origin.Intent) {
		return core.Errorf(core.Conflict, "name: there is an agent %s already", m.Name)
	}
	if !taken {
		p.all[m.Name] = Agent{Name: m.Name, Dir: m.Dir, CreatedAt: time.Now(), Forked: &m.Origin}
	}
	return nil
}

func (p *people) Check(context.Context, string, Made) error { return nil }

func (p *people) Undo(_ context.Context, _, name, intent string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.all[name]; a.Forked != nil && a.Forked.Intent == intent {
		delete(p.all, name)
	}
	return nil
}

func (p *people) Assign(context.Context, core.Caller, string, string, string) error { return nil }

// shelf looks after things that are made up: each is a word.
type shelf struct {
	mu     sync.Mutex
	things map[string]string // by name
	kept   map[string]string // by snapshot

	takes atomic.Int64 // nanoseconds of a snapshot
}

func (s *shelf) put(name, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.things[name] = word
}

func (s *shelf) Look(_ context.Context, name string) (dag.Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.things[name]; !ok {
		return dag.Resource{}, core.Missing("thing", name)
	}
	return dag.Resource{
		ID: "thing-" + name, Kind: dag.ResourceFile, Name: name, Metadata: Metadata("shelf", "", nil),
		Capabilities: []dag.Capability{dag.CanSnapshot, dag.CanRestore, dag.CanFork},
	}, nil
}

func (s *shelf) Probe(context.Context, dag.Resource) (dag.Liveness, error) { return dag.Alive, nil }

// Snapshot takes its time, in a bubble.
func (s *shelf) Snapshot(_ context.Context, _, id string, r dag.Resource, last *dag.ExtRef) (Taken, error) {
	time.Sleep(time.Duration(s.takes.Load()))
	s.mu.Lock()
	defer s.mu.Unlock()
	word := s.things[r.Name]
	if last != nil && s.kept[last.ID] == word {
		return Taken{Method: "fs_copy", Ref: *last, Consistency: "crash_consistent"}, nil
	}
	s.kept[id] = word
	return Taken{Method: "fs_copy", Ref: dag.ExtRef{Kind: "shelf", ID: id}, Consistency: "crash_consistent", Size: int64(len(word))}, nil
}

func (s *shelf) Restore(ctx context.Context, _, _ string, from dag.Snapshot, r dag.Resource, dest string) (dag.Resource, error) {
	if dest == "" {
		dest = r.Name
	}
	s.mu.Lock()
	word, ok := s.kept[from.ExternalRef.ID]
	s.mu.Unlock()
	if !ok {
		return dag.Resource{}, core.Missing("snapshot", from.ID)
	}
	s.put(dest, word)
	return s.Look(ctx, dest)
}

func (s *shelf) Undo(_ context.Context, _, _ string, _ dag.Resource, dest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.things, dest)
	return nil
}

func (s *shelf) Drop(_ context.Context, _ string, from dag.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, from.ExternalRef.ID)
	return nil
}

func (s *shelf) Sweep(context.Context, string) error { return nil }
