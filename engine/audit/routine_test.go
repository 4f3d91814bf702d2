package audit_test

import (
	"fmt"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// Each page of what is told is what a walk through the whole log finds, with times and
// without, also once events have left.
func TestWhatIsToldIsListedWithoutBookkeeping(t *testing.T) {
	h := newHouse(t)
	types := []string{"task.queued", "dag.finished", "agent.busy", "judge.outcome", "rows.written", "rows.written"}
	for i := range 60 {
		record(t, h.Ledger, entry(types[i*i%len(types)], fmt.Sprintf("tk_%d", i)))
	}
	half := expect.Of(h.Get(t.Context(), acme, core.NewID(core.EventPrefix, acme, 30)))(t).CreatedAt
	check := func(name string, f core.Filter) {
		t.Helper()
		f.Page, f.Size = 1, 100
		var want []string
		for _, e := range expect.Of(h.List(t.Context(), acme, f))(t).Items {
			if !audit.Routine(e.EventType) {
				want = append(want, e.EventID)
			}
		}
		var got []string
		for f.Size = 7; ; f.Page++ {
			page := expect.Of(h.Told(t.Context(), acme, f))(t)
			expect.Is(t, page.Info.Total, len(want), name, "in all")
			for _, e := range page.Items {
				got = append(got, e.EventID)
			}
			if !page.Info.Next {
				break
			}
		}
		expect.Is(t, fmt.Sprint(got), fmt.Sprint(want), name)
	}
	check("all", core.Filter{})
	check("since", core.Filter{Since: half})
	check("until", core.Filter{Until: half})
	check("none", core.Filter{Since: half.Add(24 * time.Hour)})
	check("a word", core.Filter{Match: "tk_1"})
	expect.Is(t, expect.Of(h.Told(t.Context(), acme, core.Filter{Kind: "rows.written"}))(t).Info.Total, 20, "a kind that is named")
	h.retire(40)
	check("what is left", core.Filter{})
	h.healthy()
}
