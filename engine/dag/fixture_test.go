package dag_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/store"
)

const (
	acme  = "t_acme"
	other = "t_other"
)

var alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

// rig is a record over a store of its own.
type rig struct {
	*dag.DAG
	t      testing.TB
	path   string
	db     *store.DB
	ledger *audit.Ledger
	at     time.Time
	full   atomic.Bool // nothing can be written
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "dag.db"), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.open()
	for _, tenant := range []string{acme, other} {
		r.no(r.db.CreateTenant(t.Context(), tenant))
	}
	t.Cleanup(func() { r.no(r.db.Close()) })
	return r
}

func (r *rig) open() {
	r.t.Helper()
	sealer, err := audit.OpenSealer(r.path + ".key")
	r.no(err)
	r.db, err = store.Open(r.path, store.Options{Seal: func(tx store.Tx) error {
		if r.full.Load() {
			return errors.New("the disk is full")
		}
		return sealer.Seal(tx)
	}})
	r.no(err)
	r.ledger = audit.New(r.db, audit.Options{})
	r.DAG = dag.New(dag.Options{Ledger: r.ledger})
}

func (r *rig) no(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// head is the head of the next event of a run, a second after the last.
func (r *rig) head(agent, run string) dag.Head {
	r.at = r.at.Add(time.Second)
	return dag.Head{TS: dag.At(r.at), AgentID: agent, RunID: run}
}

func (r *rig) event(h dag.Head, b dag.Body) dag.Event {
	r.t.Helper()
	e, err := dag.NewEvent(h, b)
	r.no(err)
	return e
}

func (r *rig) emit(h dag.Head, b dag.Body) dag.Event {
	r.t.Helper()
	e := r.event(h, b)
	_, err := r.Emit(r.t.Context(), alice, e)
	r.no(err)
	return e
}

func (r *rig) message(id, text string, role dag.MessageRole) dag.Node {
	return dag.NewNode(&dag.Message{ID: id, Role: role, Content: []dag.ContentPart{{Type: "text", Text: text}}, CreatedAt: dag.At(r.at)})
}

func ref(e dag.Event) dag.EventRef { return dag.EventRef{EventID: e.EventID} }

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := core.Decode(data, &all); err != nil {
		t.Fatal(err)
	}
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
