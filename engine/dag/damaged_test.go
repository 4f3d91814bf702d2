package dag_test

import (
	"slices"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestADamagedEventIsNamedAndHidesNoOther(t *testing.T) {
	for name, row := range map[string][]byte{
		"no event":  append(make([]byte, 24), `{"kind":"none"}`...),
		"no JSON":   append(make([]byte, 24), `{"kind":`...),
		"too short": []byte("short"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for range 3 {
				r.emit(r.head("ada", "run-1"), &dag.HistoryAppend{List: "main", MessageRef: "m"})
			}
			r.forged = true
			r.No(r.DB.Update(t.Context(), acme, func(tx store.Tx) error { return tx.Put("dag.event", record.Seq(2), row) }))
			var unread []string
			d := dag.New(dag.Options{Ledger: audit.New(r.Store, audit.Options{Unread: func(_, noun string, err error) {
				for _, one := range core.DamagedIn(err) {
					unread = append(unread, noun+": "+one.Noun+" "+one.Key)
				}
			}})})
			for what, q := range map[string]dag.Query{
				"all": {}, "of a run": {Run: "run-1"}, "of an agent": {Filter: core.Filter{Agent: "ada"}},
				"narrowed": {Filter: core.Filter{Agent: "ada", Match: "kind"}},
			} {
				unread = nil
				page := expect.Of(d.Events(t.Context(), acme, q))(r.T)
				var found []uint64
				for _, e := range page.Items {
					found = append(found, e.Pos)
				}
				if slices.Sort(found); !slices.Equal(found, []uint64{1, 3}) || !slices.Equal(unread, []string{"dag: event number 2"}) {
					t.Errorf("%s: %v, unread %q", what, found, unread)
				}
			}
		})
	}
}
