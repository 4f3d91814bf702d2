package dag_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// shelf is a format that keeps records in memory, and hands them on in turn.
type shelf struct {
	all  []dag.Record
	took func()      // after each record that is exported
	gave func(n int) // after each that is imported
}

func (s *shelf) Export(_ context.Context, _ string, records iter.Seq2[dag.Record, error]) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		s.all = append(s.all, rec)
		s.took()
	}
	return nil
}

func (s *shelf) Import(_ context.Context, _ string, each func(dag.Record) error) (dag.Manifest, error) {
	var t dag.Tally
	for i, rec := range s.all {
		t.Add(rec.Event)
		if err := each(rec); err != nil {
			return dag.Manifest{}, err
		}
		s.gave(i + 1)
	}
	return t.Manifest(), nil
}

// TestATransferHoldsFewLargeEvents looks at what an export reads ahead, which it
// goes on with after it was canceled, and at what an import takes in at once.
func TestATransferHoldsFewLargeEvents(t *testing.T) {
	const events, most = 5, 4 // of 1 MiB
	r := newRig(t)
	for i := range events {
		h := r.head("ada", "large")
		id := fmt.Sprint("large-", i)
		h.Nodes = []dag.Node{r.message(id, strings.Repeat("x", 1<<20), dag.RoleUser)}
		r.emit(h, &dag.HistoryAppend{List: "main", MessageRef: id})
	}
	export := func(s *shelf, ctx context.Context) error {
		d := dag.New(dag.Options{Ledger: r.Ledger, Formats: map[string]dag.Format{"shelf": s}})
		_, err := d.Export(ctx, acme, "shelf", "")
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ahead := &shelf{took: cancel}
	expect.Err(t, export(ahead, ctx), context.Canceled, "an export that was canceled after its first event")
	n := len(ahead.all)
	expect.True(t, n <= most, "an export reads %d events of 1 MiB at once, want %d at most", n, most)
	whole := &shelf{took: func() {}}
	r.No(export(whole, t.Context()))

	pass, waiting := 0, 0 // events that the second pass gave and that are not taken in yet
	whole.gave = func(n int) {
		if n == 1 {
			pass++
		}
		f := expect.Of(r.Figures(t.Context(), other))(r.T)
		if pass == 2 {
			waiting = max(waiting, n-int(f.Events))
		}
	}
	d := dag.New(dag.Options{Ledger: r.Ledger, Formats: map[string]dag.Format{"shelf": whole}})
	done := expect.Of(d.Import(t.Context(), core.Caller{Tenant: other, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}, "shelf", ""))(r.T)
	expect.True(t, done.New == events && waiting <= most,
		"an import took %d of %d events in and held %d of 1 MiB at once, want %d at most", done.New, events, waiting, most)
}
