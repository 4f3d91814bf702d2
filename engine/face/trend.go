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
func TrendLines(o *trend.Overview, width int, ascii bool) []TrendLine {
	series := func(of func(*trend.Point) float64) (all []float64, most, sum float64) {
		all = make([]float64, len(o.Points))
		for i := range o.Points {
			all[i] = of(&o.Points[i])
			sum += all[i]
		}
		return all, slices.Max(append(slices.Clone(all), 0)), sum
	}
	line := func(name string, of func(*trend.Point) float64, text func(most, sum float64) string) TrendLine {
		all, most, sum := series(of)
		return TrendLine{Name: name, Chart: Chart(all, width, ascii), Text: text(most, sum)}
	}
	_, longest, _ := series(func(p *trend.Point) float64 { return float64(p.WaitS) })
	failed := line("failed", func(p *trend.Point) float64 { return float64(p.Failed) }, func(_, sum float64) string { return fmt.Sprintf("%.0f tasks", sum) })
	failed.Bad = strings.Trim(failed.Text, " taks") != "0"
	asked := line("questions", func(p *trend.Point) float64 { return float64(p.Asking) }, func(most, _ float64) string {
		text := fmt.Sprintf("%d now, most %.0f", o.Now.Asking, max(most, float64(o.Now.Asking)))
		if wait := max(longest, float64(o.Now.WaitS)); wait > 0 {
			text += ", one waited " + Span(time.Duration(wait)*time.Second)
		}
		return text
	})
	asked.Bad = o.Now.Asking > 0
	return []TrendLine{
		line("working", func(p *trend.Point) float64 { return float64(p.Working) }, func(most, _ float64) string {
			return fmt.Sprintf("%d now, most %.0f", o.Now.Working, max(most, float64(o.Now.Working)))
		}),
		asked,
		line("queue", func(p *trend.Point) float64 { return float64(p.Queued) }, func(most, _ float64) string {
			return fmt.Sprintf("%d now, most %.0f", o.Now.Queued, max(most, float64(o.Now.Queued)))
		}),
		line("done", func(p *trend.Point) float64 { return float64(p.Done) }, func(_, sum float64) string { return fmt.Sprintf("%.0f tasks", sum) }),
		failed,
		line("tokens", func(p *trend.Point) float64 { return float64(p.Tokens) }, func(_, sum float64) string { return cmp.Or(Tokens(int64(sum)), "0") }),
		line("cost", func(p *trend.Point) float64 { return p.CostUSD }, func(_, sum float64) string { return fmt.Sprintf("$%.2f", sum) }),
	}
}

// Chart draws a series of figures as bars of one line, at most so many cells wide: where
// there are more figures than cells, a cell has the largest of several.
func Chart(series []float64, width int, ascii bool) string {
	bars := []rune("·▁▂▃▄▅▆▇█")
	if ascii {
		bars = []rune("_.,:-=+*#")
	}
	n := min(len(series), max(width, 0))
	most := slices.Max(append(slices.Clone(series), 0))
	var b strings.Builder
	for i := range n {
		v := slices.Max(series[i*len(series)/n : (i+1)*len(series)/n])
		bar := 0
		if v > 0 {
			bar = 1 + int(v/most*float64(len(bars)-2))
		}
		b.WriteRune(bars[bar])
	}
	return b.String()
}
