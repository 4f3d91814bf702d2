package dag

import (
	"context"
	"iter"
)

// Format is a shape that a record is exported to and imported from, without
// loss.
type Format interface {
	// Export writes records, in their order, to a place that does not exist yet.
	Export(ctx context.Context, dest string, records iter.Seq2[Record, error]) error
	// Import reads records in their order. It is called twice in an import: to
	// look at everything, and to take it in.
	Import(ctx context.Context, src string, each func(Record) error) error
}

// Record is an event as it travels.
type Record struct {
	Pos   uint64 `json:"pos"` // in the record it comes from
	Seq   uint64 `json:"seq"` // in its stream
	Event Event  `json:"event"`
	Edges []Edge `json:"edges"` // all of its edges, RUN_HAS_EVENT among them
}
