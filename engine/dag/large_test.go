package dag_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// allocated is how many KiB fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 10
}

// TestLargeEventsAreReadWhereTheyAreShown counts the bytes that are allocated
// for what shows little of a record of large events.
func TestLargeEventsAreReadWhereTheyAreShown(t *testing.T) {
	const events, size = 16, 512 // KiB
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	params := core.Raw(`{"x":"` + strings.Repeat("y", size<<10) + `"}`)
	for i := range events {
		r.no(rec.Asked(ctx, fmt.Sprint(i), dag.ModelAsk{Model: "m", Params: params}))
		r.no(rec.Answered(ctx, fmt.Sprint(i), dag.ModelAnswer{Status: dag.CallOK}))
	}
	r.no(rec.Said(ctx, "main", dag.RoleUser, "Build it"))
	r.no(rec.Finish(ctx, true))
	newest, err := r.Events(ctx, acme, dag.Query{Filter: core.Filter{Size: 1}})
	r.no(err)
	last := newest.Items[0].Event.EventID
	for _, c := range []struct {
		what string
		most uint64 // events' worth
		read func() error
	}{
		{"a conversation, of which requests are no part", 1, func() error {
			c, err := r.Conversation(ctx, acme, dag.ConversationQuery{Event: last})
			if err == nil && len(c.Lines) != 1 {
				err = fmt.Errorf("it has %d lines", len(c.Lines))
			}
			return err
		}},
		{"whether there was a call", 1, func() error {
			_, err := r.Called(ctx, acme, "ada", 0, 1000)
			return err
		}},
		{"a page of one of the responses, each of a request", 4, func() error {
			p, err := r.Timeline(ctx, acme, dag.Query{Run: rec.RunID(), Filter: core.Filter{Size: 1, Kind: string(dag.KindModelResponse)}})
			if err == nil && (p.Info.Total != events || p.Items[0].From.IsZero()) {
				err = fmt.Errorf("%d responses, the first to a request at %v", p.Info.Total, p.Items[0].From)
			}
			return err
		}},
	} {
		if got := allocated(func() { r.no(c.read()) }); got > c.most*size {
			t.Errorf("%s takes %d KiB of a record of %d events of %d KiB, want %d at most", c.what, got, events, size, c.most*size)
		}
	}
}
