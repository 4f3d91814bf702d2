package ui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// fill records n events of a hundred agents, each a call with its result.
func (a *archive) fill(n int) {
	a.t.Helper()
	none := dag.EventRef{EventID: strings.Repeat("0", 64)}
	var batch []dag.Event
	for i := range n {
		head := dag.Head{TS: dag.At(start.Add(time.Duration(i-n) * time.Millisecond)), AgentID: "scribe", RunID: fmt.Sprint("run-", i/2%100)}
		if i/2%100 != 7 {
			head.AgentID = fmt.Sprint("agent-", i/2%100)
		}
		var body dag.Body = &dag.ToolCall{Server: "exec", Tool: "fs.read", CallID: fmt.Sprint("c-", i/2), Args: core.Raw(`{"path":"a/file/of/some/length.go"}`), RequestedBy: none}
		if i%2 == 1 {
			body = &dag.ToolResult{CallID: fmt.Sprint("c-", i/2), Status: dag.CallOK, Result: core.Raw(`{"text":"` + strings.Repeat("content ", 20) + `"}`)}
		}
		e := expect.Of(dag.NewEvent(head, body))(a.t)
		if batch = append(batch, e); len(batch) == dag.MaxBatch || i == n-1 {
			expect.Of(a.eng.DAG.Emit(a.t.Context(), ada, batch...))(a.t)
			batch = batch[:0]
		}
	}
}

// BenchmarkTimelineFrame is one frame of an agent's timeline that goes on: the
// bell, the rows in sight read again, what stands beside, cells, terminal text;
// in tenants whose records differ in length. SWARMDECK_BENCH_EVENTS sets the
// longer one.
func BenchmarkTimelineFrame(b *testing.B) {
	long := 100_000
	if text := os.Getenv("SWARMDECK_BENCH_EVENTS"); text != "" {
		expect.Of(fmt.Sscan(text, &long))(b)
	}
	for _, events := range []int{10_000, long} {
		a := newArchive(b, nil)
		a.fill(events)
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			r := rigOn(b, a.world(), size[0], size[1], benchTheme(b))
			r.keys("1", "g", "H")
			b.Run(fmt.Sprintf("%d-events/%dx%d", events, size[0], size[1]), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.w.change(func() {})
					r.send(frameMsg{})
					if len(r.m.View().Content) == 0 {
						b.Fatal("empty frame")
					}
				}
			})
			b.Run(fmt.Sprintf("%d-events/%dx%d-key", events, size[0], size[1]), func(b *testing.B) {
				keys := []string{"k", "j"}
				for i := 0; b.Loop(); i++ {
					r.press(keys[i%2])
					_ = r.m.View()
				}
			})
			b.Run(fmt.Sprintf("%d-events/%dx%d-past", events, size[0], size[1]), func(b *testing.B) {
				r.press("t")
				defer r.press("n")
				keys := []string{"k", "j"}
				for i := 0; b.Loop(); i++ {
					r.press(keys[i%2])
					_ = r.m.View()
				}
			})
		}
	}
}
