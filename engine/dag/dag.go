// Package dag keeps the agents' canonical record (model 4): immutable events,
// and the nodes and typed edges that follow from them.
//
// An event is a JSON object. Its event_id is the lower-case hex sha256 of the
// RFC 8785 form of the whole object without event_id, so that emitting the
// same event twice is one event, and a changed one is another. The nodes that
// an event introduces, and edges beyond those that its kind implies, travel
// inside it as "nodes" and "edges": the events alone are the record, and all
// else can be made again from them.
//
// Events with a run_id form that run's stream, others the stream of their
// agent, or the tenant's. A stream is linear: its events have the seqs 1, 2, 3
// in the order of their arrival. The whole tenant's events are numbered in one
// order too, their pos, which time travel goes by.
//
// What the model leaves open, and how it is here:
//
//   - Beside the fields of its kind every event may have parent, correlation_id,
//     task_id, session_id, trace_id, nodes and edges.
//   - References to events and nodes that are not here yet are kept: a part of
//     a record can be imported before the rest. What can be checked, is.
//   - The model's two nodes called Snapshot are Snapshot (of a resource) and
//     RunSnapshot (the cached summary of a run, which snapshot_materialized
//     tells of).
//   - A model_response may have status, error and duration_ms, its usage
//     cached_tokens. An input of a model_request that is an earlier model_request
//     stands for all of that one's inputs, and tools_spec {"same_as": EventRef}
//     for its tools: a conversation is stated once. A part that is too long for
//     an event is its beginning with its size and sha256.
//   - What is no event kind of its own is a history_append whose list says what
//     it is: "main" is the conversation, "decisions" are about tool calls, "files"
//     what changed on disk, "plan", "diff", "mode" and "attention" what their names
//     say.
//   - What an event holds can be erased. It stays then under its id, with its
//     references and edges, and says so: "erased" has the id as a sha256.
//   - Facts do not change: a Message, Snapshot or RunSnapshot that is stated
//     again must say the same. Other nodes have versions over time.
package dag

import (
	"context"

	"swarmdeck/engine/audit"
)

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	// Formats are what records are exported to and imported from, by name.
	Formats map[string]Format
	// Sources are what else events are imported from, by name.
	Sources map[string]Source
}

// DAG is the record of every tenant. Its methods may be called from any
// goroutine; it keeps nothing in memory.
type DAG struct {
	ledger  *audit.Ledger
	formats map[string]Format
	sources map[string]Source
}

// New makes the record over a ledger. It reads nothing and starts nothing.
func New(opt Options) *DAG {
	opt.Ledger.Register(indexes{}, blocks{})
	return &DAG{ledger: opt.Ledger, formats: opt.Formats, sources: opt.Sources}
}

// view reads a consistent snapshot.
func (d *DAG) view(ctx context.Context, tenant, what string, fn func(reader) error) error {
	return audit.Explain(what, d.ledger.View(ctx, tenant, func(tx *audit.Tx) error { return fn(reader{tx}) }))
}

// Figures count a tenant's record.
type Figures struct {
	Events int64 `json:"events"`
	Nodes  int64 `json:"nodes"` // events among them
	Edges  int64 `json:"edges"`
	Runs   int64 `json:"runs"`
}

// Figures counts a tenant's record, without a scan.
func (d *DAG) Figures(ctx context.Context, tenant string) (Figures, error) {
	var f Figures
	err := d.view(ctx, tenant, "count the record", func(r reader) error {
		f = Figures{r.Counter(countEvents), r.Counter(countNames), r.Counter(countEdges), r.Counter(countRuns)}
		return nil
	})
	return f, err
}
