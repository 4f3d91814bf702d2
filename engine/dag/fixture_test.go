package dag_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
)

const (
	acme  = "t_acme"
	other = "t_other"
)

var alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// rig is a record over a store of its own.
type rig struct {
	*enginetest.World
	*dag.DAG
	at     time.Time
	full   atomic.Bool // nothing can be written
	forged bool        // rows were changed behind the log's back
}

// newRig makes one whose indexes must in the end be what follows from its events.
func newRig(t testing.TB) *rig {
	r := &rig{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	enginetest.New(t, enginetest.Options{Full: r.full.Load, Build: func(w *enginetest.World) {
		r.World = w
		r.DAG = dag.New(dag.Options{Ledger: w.Ledger})
	}})
	t.Cleanup(func() {
		if !r.forged && r.DB != nil {
			r.Proven(acme)
		}
	})
	return r
}

// head is the head of the next event of a run, a second after the last.
func (r *rig) head(agent, run string) dag.Head {
	r.at = r.at.Add(time.Second)
	return dag.Head{TS: dag.At(r.at), AgentID: agent, RunID: run}
}

func (r *rig) event(h dag.Head, b dag.Body) dag.Event {
	r.T.Helper()
	return expect.Of(dag.NewEvent(h, b))(r.T)
}

func (r *rig) emit(h dag.Head, b dag.Body) dag.Event {
	r.T.Helper()
	e := r.event(h, b)
	expect.Of(r.Emit(r.T.Context(), alice, e))(r.T)
	return e
}

func (r *rig) message(id, text string, role dag.MessageRole) dag.Node {
	return dag.NewNode(&dag.Message{ID: id, Role: role, Content: []dag.ContentPart{{Type: "text", Text: text}}, CreatedAt: dag.At(r.at)})
}

func ref(e dag.Event) dag.EventRef { return dag.EventRef{EventID: e.EventID} }

func vectors(t testing.TB) []vector {
	t.Helper()
	data := expect.Of(os.ReadFile("testdata/vectors.json"))(t)
	var all []vector
	expect.No(t, core.Decode(data, &all))
	return all
}

// vector is an event, with the id and edges that any implementation gives it.
type vector struct {
	Name    string   `json:"name"`
	Event   core.Raw `json:"event"`
	EventID string   `json:"event_id"`
	Edges   []string `json:"edges"`
}

func shown(e dag.Edge) string { return fmt.Sprintf("%s %s %s", e.From, e.Type, e.To) }
