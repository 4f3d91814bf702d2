package face

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/trend"
)

func trends() []*Face {
	return []*Face{
		Of[trend.Share]{
			Columns: "NAME:name PROJECT:project WORKING:working WAITING:waiting FAILED:failing TASKS:tasks TOKENS:tokens COST:cost_usd,usd",
			List:    "NAME:12*2k COST:7r TOKENS:6r TASKS:5r WORKING:7/10r WAITING:7r FAILED:6r PROJECT:7/30",
		}.Face(),
	}
}

// TrendLine is one figure of an overview over its span.
type TrendLine struct {
	Name  string
	Chart string // at most as wide as was asked for
	Text  string
	Bad   bool // somebody should look
}

// TrendLines are an overview's figures in words, each beside a chart of at most so many
// cells.
func TrendLines(o *trend.Overview, width int, ascii bool) (lines []TrendLine) {
	now := func(n int64) func(most, sum float64) string {
		return func(most, _ float64) string { return fmt.Sprintf("%d now, most %.0f", n, max(most, float64(n))) }
	}
	tasks := func(_, sum float64) string { return fmt.Sprintf("%.0f tasks", sum) }
	var longest int64
	for i := range o.Points {
		longest = max(longest, o.Points[i].WaitS)
	}
	for _, l := range []struct {
		name string
		of   func(*trend.Point) float64
		text func(most, sum float64) string
		bad  func(sum float64) bool
	}{
		{"working", func(p *trend.Point) float64 { return float64(p.Working) }, now(int64(o.Now.Working)), nil},
		{
			"questions", func(p *trend.Point) float64 { return float64(p.Asking) }, func(most, sum float64) string {
				text := now(int64(o.Now.Asking))(most, sum)
				if longest > 0 {
					text += ", one waited " + Span(time.Duration(longest)*time.Second)
				}
				return text
			},
			func(float64) bool { return o.Now.Asking > 0 },
		},
		{"queue", func(p *trend.Point) float64 { return float64(p.Queued) }, now(o.Now.Queued), nil},
		{"done", func(p *trend.Point) float64 { return float64(p.Done) }, tasks, nil},
		{"failed", func(p *trend.Point) float64 { return float64(p.Failed) }, tasks, func(sum float64) bool { return sum > 0 }},
		{"tokens", func(p *trend.Point) float64 { return float64(p.Tokens) }, func(_, sum float64) string { return cmp.Or(Tokens(int64(sum)), "0") }, nil},
		{"cost", func(p *trend.Point) float64 { return p.CostUSD }, func(_, sum float64) string { return fmt.Sprintf("$%.2f", sum) }, nil},
	} {
		series, most, sum := make([]float64, len(o.Points)), 0.0, 0.0
		for i := range o.Points {
			series[i] = l.of(&o.Points[i])
			most, sum = max(most, series[i]), sum+series[i]
		}
		lines = append(lines, TrendLine{l.name, chart(series, most, width, ascii), l.text(most, sum), l.bad != nil && l.bad(sum)})
	}
	return lines
}

// chart draws a series of figures as bars of one line, at most so many cells wide: where
// there are more figures than cells, a cell has the largest of several.
func chart(series []float64, most float64, width int, ascii bool) string {
	bars := []rune("·▁▂▃▄▅▆▇█")
	if ascii {
		bars = []rune("_.,:-=+*#")
	}
	n := min(len(series), max(width, 0))
	var b strings.Builder
	for i := range n {
		bar := 0
		if v := slices.Max(series[i*len(series)/n : (i+1)*len(series)/n]); v > 0 {
			bar = 1 + int(v/most*float64(len(bars)-2))
		}
		b.WriteRune(bars[bar])
	}
	return b.String()
}
