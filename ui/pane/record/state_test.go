package record

import (
	"testing"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

func TestOneOfAThingIsNotMany(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n, want := range map[uint64][]string{
		1: {"1 event:", ", 1 event, the last", "and 1 more open call\n"},
		2: {"2 events:", ", 2 events, the last", "and 2 more open calls\n"},
	} {
		r := dag.RunState{RunID: "r-1", Status: "running", Events: n, LastAt: dag.At(now), OpenUnlisted: int64(n)}
		s := &dag.State{TS: dag.At(now), Run: &r, Agent: &dag.GroupState{ID: "ada", Events: n, Runs: []dag.RunState{r, r}}}
		var out pane.Paras
		state(pane.Env{Now: now, Glyphs: screen.ASCII()}, s, &out)
		text := ""
		for _, para := range out {
			text += para.Text + "\n"
			for _, row := range para.Rows {
				text += row.Text + "\n"
			}
		}
		for _, word := range want {
			expect.Has(t, text, word, n, "no")
		}
	}
}
