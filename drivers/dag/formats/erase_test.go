package formats_test

import (
	"path/filepath"
	"testing"

	"swarmdeck/drivers/dag/formats"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
)

func TestAnErasedRecordTravelsUnderItsIDs(t *testing.T) {
	r := newRig(t)
	from := r.tenant()
	r.fill(from, 5, 60)
	whole := filepath.Join(t.TempDir(), "whole")
	expect.Of(r.Export(t.Context(), from.Tenant, "jsonl", whole))(r.t)
	agents := map[string]bool{}
	all := expect.Of(r.Events(t.Context(), from.Tenant, dag.Query{Filter: core.Filter{Size: 100}}))(r.t)
	for _, e := range all.Items {
		agents[e.Event.AgentID] = true
	}
	erased := uint64(0)
	for agent := range agents {
		of := &record.Subject{Name: agent, Task: func(*audit.Tx, string) (record.Whose, bool, error) { return record.NotTheirs, true, nil }}
		next, n, err := r.Erasers()[0].Erase(t.Context(), from, of, nil)
		if r.no(err); next != nil || len(of.Left) > 0 {
			t.Error(next, of.Left)
		}
		erased += uint64(n)
	}
	expect.Must(t, erased >= 5, "%d events were erased", erased)
	d, err := r.ledger.Reconcile(t.Context(), from.Tenant)
	expect.True(t, err == nil && len(d) == 0, "%v %v", d, err)
	now := expect.Of(r.Events(t.Context(), from.Tenant, dag.Query{Filter: core.Filter{Size: 100}}))(r.t)
	for i, e := range now.Items {
		if e.Event.EventID != all.Items[i].Event.EventID || e.Seq != all.Items[i].Seq {
			t.Fatalf("%s became %s", all.Items[i].Event.JSON(), e.Event.JSON())
		}
		if e.Event.Erased != nil {
			_, err := dag.Parse(e.Event.JSON())
			expect.True(t, core.AsError(err).Code == core.InvalidInput, "an erased event can be emitted: %v", err)
		}
	}
	want := r.dump(from.Tenant)
	for name := range formats.All(nil) {
		dest := filepath.Join(t.TempDir(), "out")
		expect.Of(r.Export(t.Context(), from.Tenant, name, dest))(r.t)
		to := r.tenant()
		got, err := r.Import(t.Context(), to, name, dest)
		expect.Must(t, err == nil && got.Erased == erased && got.New == got.Events, "%s: %+v: %v", name, got, err)
		now := r.dump(to.Tenant)
		expect.True(t, now == want, "%s: another record:\n%s", name, firstDifference(want, now))
	}
	// What was erased does not come back with an older export.
	got, err := r.Import(t.Context(), from, "jsonl", whole)
	expect.True(t, err == nil && got.New == 0, "%+v: %v", got, err)
	if now := r.dump(from.Tenant); now != want {
		t.Errorf("an import brought back what was erased:\n%s", firstDifference(want, now))
	}
}
