package dag_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// TestWhatFollowsFromTheEventsIsProven changes, removes and adds a row of each bucket, and
// changes each counter: reconcile must name the bucket, whether the log has its digests or not.
func TestWhatFollowsFromTheEventsIsProven(t *testing.T) {
	s := newRig(t)
	start := s.emit(s.head("ada", "mine"), &dag.RunStarted{Reason: "user"})
	for i := range 300 { // of which a block is full
		h := s.head("ada", "mine")
		h.CorrelationID = "many"
		s.emit(h, &dag.ToolCall{Server: "sh", Tool: "exec", CallID: string(rune('a' + i%20)), Args: core.Raw(`{}`), RequestedBy: ref(start)})
	}
	everything(t, s)
	s.forged = true
	var buckets []store.Bucket
	counts := map[string]int64{}
	s.No(s.DB.View(t.Context(), acme, func(tx store.Tx) (err error) {
		held := tx.(store.Inventory)
		if buckets, err = held.Buckets(); err != nil {
			return err
		}
		return held.Counters(func(name string, n int64) { counts[name] = n })
	}))
	forge := func(what, bucket string, change, back func(store.Tx) error) {
		t.Helper()
		s.No(s.DB.Update(t.Context(), acme, change))
		found := expect.Of(s.Ledger.Reconcile(t.Context(), acme))(t)
		named := func(subject string) bool { return subject == bucket || bucket == "dag.event" && subject == "dag.index" }
		if !slices.ContainsFunc(found, func(d audit.Delta) bool { return named(d.Subject) }) {
			t.Errorf("%s: %s: %v", bucket, what, found)
		}
		s.No(s.DB.Update(t.Context(), acme, back))
	}
	n := 0
	for _, b := range buckets {
		if !strings.HasPrefix(string(b), "dag.") {
			continue
		}
		n++
		var keys, values [][]byte
		s.No(s.DB.View(t.Context(), acme, func(tx store.Tx) error {
			return tx.Scan(b, nil, nil, false, func(k, v []byte) (bool, error) {
				keys, values = append(keys, bytes.Clone(k)), append(values, bytes.Clone(v))
				return true, nil
			})
		}))
		put := func(k, v []byte) func(store.Tx) error {
			return func(tx store.Tx) error { return tx.Put(b, bytes.Clone(k), bytes.Clone(v)) }
		}
		first, last := 0, len(keys)-1
		other := append(bytes.Clone(values[first]), 1)
		if len(values[first]) > 0 {
			other = bytes.Clone(values[first])
			other[len(other)/2] ^= 1
		}
		drop := func(k []byte) func(store.Tx) error {
			return func(tx store.Tx) error { return tx.Delete(b, bytes.Clone(k)) }
		}
		forge("changed", string(b), put(keys[first], other), put(keys[first], values[first]))
		forge("removed", string(b), drop(keys[last/2]), put(keys[last/2], values[last/2]))
		more := append(bytes.Clone(keys[last]), 7)
		forge("added", string(b), put(more, values[last]), drop(more))
	}
	expect.True(t, n >= 20, "there are %d buckets", n)
	for name := range counts {
		if name == "dag" || strings.HasPrefix(name, "dag.") {
			by := func(by int64) func(store.Tx) error {
				return func(tx store.Tx) error { tx.Add(name, by); return nil }
			}
			forge(name+" counted", "#", by(1), by(-1))
		}
	}
	s.forged = false
}

// everything emits an event of each kind, and resources that come and go.
func everything(t *testing.T, r *rig) {
	for _, v := range vectors(t) {
		e := expect.Of(dag.Parse(v.Event))(t)
		r.No(r.Ledger.Append(t.Context(), alice, func(tx *audit.Tx) error {
			_, err := r.ObserveIn(tx, e)
			return err
		}))
	}
	said := r.message("said", "the same each time", dag.RoleUser)
	vol := dag.NewNode(&dag.Resource{ID: "vol", Kind: dag.ResourceVolume, Name: "vol", Capabilities: []dag.Capability{dag.CanSnapshot}})
	for range 2 {
		for _, run := range []string{"on-1", "on-2"} {
			h := r.head("ada", run)
			h.Nodes = []dag.Node{vol, said}
			r.emit(h, &dag.ResourceAttached{ResourceRef: "vol", Mode: dag.ReadWrite, Mount: "/v"})
		}
		r.emit(r.head("ada", "on-1"), &dag.ResourceDetached{ResourceRef: "vol"})
	}
}
