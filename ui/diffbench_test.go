package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/review"
)

// millionLines is a stored diff of 1,000,000 lines in 100 files.
func millionLines() string {
	var b strings.Builder
	for f := range 100 {
		fmt.Fprintf(&b, "diff --git a/dir/file%d.go b/dir/file%d.go\n--- a/dir/file%d.go\n+++ b/dir/file%d.go\n@@ -1,7500 +1,7500 @@ func main() {\n", f, f, f, f)
		for i := range 2500 {
			fmt.Fprintf(&b, " \tx := list[%d] // context\n-\tif err := read(ctx, %d, \"old\"); err != nil {\n+\tif err := load(ctx, %d, \"new\"); err != nil {\n \t\treturn err\n", i, i, i)
		}
	}
	return b.String()
}

// BenchmarkDiffKey moves through a stored diff of 1,000,000 lines with the whole cockpit,
// from a key to the text of the frame that shows where it led, with the reading of the
// lines there; first is the time to the first screen.
func BenchmarkDiffKey(b *testing.B) {
	s := &diffShelf{texts: map[string]string{"x": millionLines()}}
	for _, keys := range []string{"j", "ctrl+f", "]", "}"} {
		b.Run(keys, func(b *testing.B) {
			w := newWorld()
			w.shelf = s
			r := rigOn(b, w, 200, 50, benchTheme(b))
			at := time.Now()
			r.m.openItem(pane.Item{Kind: review.DiffName, ID: "x"})
			r.do(r.m.sync())
			if !strings.Contains(r.m.View().Content, "list") {
				b.Fatal("no diff is shown")
			}
			all := time.Since(at)
			var took []time.Duration
			for b.Loop() {
				at := time.Now()
				r.press(keys)
				_ = r.m.View()
				took = append(took, time.Since(at))
			}
			b.ReportMetric(float64(all.Microseconds()), "µs/all-read")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/key-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/key-p99")
		})
	}
}
