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
