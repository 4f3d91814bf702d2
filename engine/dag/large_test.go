package dag_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
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
	const events, size = 16, 128 // KiB
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	params := core.Raw(`{"x":"` + strings.Repeat("y", size<<10) + `"}`)
	for i := range events {
		r.No(rec.Asked(ctx, fmt.Sprint(i), dag.ModelAsk{Model: "m", Params: params}))
		r.No(rec.Answered(ctx, fmt.Sprint(i), dag.ModelAnswer{Status: dag.CallOK}))
	}
	r.No(rec.Said(ctx, "main", dag.RoleUser, "Build it"))
	r.No(r.finish(rec, true))
	newest := expect.Of(r.Events(ctx, acme, dag.Query{Filter: core.Filter{Size: 1}}))(r.T)
	last := newest.Items[0].Event.EventID
	for _, c := range []struct {
		what string
		most uint64 // events' worth
		read func() error
	}{
		{"a conversation, of which requests are no part", 4, func() error {
			c, err := r.Conversation(ctx, acme, dag.ConversationQuery{Event: last})
			if err == nil && len(c.Lines) != 1 {
				err = fmt.Errorf("it has %d lines", len(c.Lines))
			}
			return err
		}},
		{"whether there was a call", 4, func() error {
			_, err := r.Called(ctx, acme, "ada", 0, 1000)
			return err
		}},
		{"a page of one of the responses, each of a request", 8, func() error {
			p, err := r.Timeline(ctx, acme, dag.Query{Run: rec.RunID(), Filter: core.Filter{Size: 1, Kind: string(dag.KindModelResponse)}})
			if err == nil && (p.Info.Total != events || p.Items[0].From.IsZero()) {
				err = fmt.Errorf("%d responses, the first to a request at %v", p.Info.Total, p.Items[0].From)
			}
			return err
		}},
	} {
		got := allocated(func() { r.No(c.read()) })
		expect.True(t, got <= c.most*size, "%s takes %d KiB of a record of %d events of %d KiB, want %d at most", c.what, got, events, size, c.most*size)
	}
}

// TestAShortTimelineHoldsLittleOfLargeEvents has a run in which everything is
// large, and compares what its rows say.
func TestAShortTimelineHoldsLittleOfLargeEvents(t *testing.T) {
	const turns, size = 5, 128 // KiB
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	long := strings.Repeat("y", size<<10)
	object := core.Raw(`{"x":"` + long + `"}`)
	for i := range turns {
		id := fmt.Sprint(i)
		r.No(rec.Said(ctx, "main", dag.RoleUser, id+long))
		r.No(rec.Asked(ctx, id, dag.ModelAsk{Model: "m", Params: object, Messages: []dag.Spoken{spoken(dag.RoleUser, long)}}))
		r.No(rec.Answered(ctx, id, dag.ModelAnswer{Status: dag.CallOK, Content: []dag.ContentPart{{Type: "text", Text: long}}}))
		r.No(rec.Call(ctx, "acp", "exec", id, object))
		r.No(rec.Result(ctx, id, dag.CallOK, object, nil))
	}
	r.No(r.finish(rec, true))
	q := dag.Query{Run: rec.RunID(), Filter: core.Filter{Size: 100}}
	whole := expect.Of(r.Timeline(ctx, acme, q))(r.T)
	q.Short = true
	var short core.Page[dag.Moment]
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc >> 10
	}
	before := held()
	short = expect.Of(r.Timeline(ctx, acme, q))(r.T)
	got := held()
	expect.True(t, got <= before+4*size, "%d rows hold %d KiB, want %d at most", len(short.Items), got-before, 4*size)
	for i := range whole.Items {
		w, s := &whole.Items[i], &short.Items[i]
		if w.Brief() != s.Brief() || len(w.Brief()) > 4<<10 {
			t.Errorf("a %s says %d bytes, in short %d", w.Event.Kind, len(w.Brief()), len(s.Brief()))
		}
		if w.Message != nil && w.Message.Brief() != s.Message.Brief() || w.Status != s.Status || w.From != s.From || w.Until != s.Until {
			t.Errorf("a %s is in short %+v", w.Event.Kind, s)
		}
		if _, err := core.Encode(s); core.AsError(err).Code != core.Internal {
			t.Errorf("a short %s as JSON: %v", s.Event.Kind, err)
		}
	}
}

// TestALineageLooksThroughEachEventOnce counts the bytes that are allocated for
// steps between a few requests with a thousand inputs each.
func TestALineageLooksThroughEachEventOnce(t *testing.T) {
	const inputs, requests = 1000, 4
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	var talk []dag.Spoken
	for i := range inputs {
		talk = append(talk, spoken(dag.RoleUser, fmt.Sprint("message ", i)))
	}
	for i := range requests { // none goes on where another ended, so each names its inputs
		r.No(rec.Asked(ctx, fmt.Sprint(i), dag.ModelAsk{Model: "m", Messages: talk[i:]}))
	}
	r.No(r.finish(rec, true))
	all := r.of(rec.RunID(), dag.KindModelRequest)
	whole := 0
	for _, e := range all {
		whole += len(e.Canonical()) >> 10
	}
	from := dag.NodeRef{Type: dag.TypeEvent, ID: all[requests-1].EventID}
	said := dag.NodeRef{Type: dag.TypeMessage, ID: all[0].Body.(*dag.ModelRequest).InputRefs[inputs-1].Message}
	for _, c := range []struct {
		what string
		read func() (steps int, err error)
	}{
		{"a lineage", func() (int, error) {
			l, err := r.Lineage(ctx, acme, dag.LineageQuery{Node: from})
			return len(l.Steps), err
		}},
		{"what came of a message", func() (int, error) {
			l, err := r.Lineage(ctx, acme, dag.LineageQuery{Node: said, Down: true})
			return len(l.Steps), err
		}},
		{"a graph", func() (int, error) {
			g, err := r.Around(ctx, acme, dag.LineageQuery{Node: from, Most: 400, Depth: 5})
			return len(g.Nodes), err
		}},
	} {
		steps := 0
		got := allocated(func() {
			steps = expect.Of(c.read())(r.T)
		})
		most := uint64(128 * whole)
		expect.True(t, got <= most && steps >= 200, "%s of %d steps takes %d KiB of a record of %d KiB, want %d at most", c.what, steps, got, whole, most)
	}
}
