package record

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// TestABarFitsWhateverTimesARecordClaims has times that go back, that are
// decades apart, and that are out of sight.
func TestABarFitsWhateverTimesARecordClaims(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	years := func(n int) time.Time { return now.AddDate(n, 0, 0) }
	for _, c := range []struct {
		name              string
		event, from, till time.Time
		axis              axis
		want              int // cells
	}{
		{"forward", years(0), years(-1), time.Time{}, axis{years(-1), years(0)}, 30},
		{"it ends before it began", years(-1), years(0), time.Time{}, axis{years(-1), years(0)}, 30},
		{"its end is before it", years(0), time.Time{}, years(-1), axis{years(-1), years(0)}, 30},
		{"decades", years(0), years(-60), time.Time{}, axis{years(-60), years(0)}, 30},
		{"the later half of decades", years(0), years(-40), time.Time{}, axis{years(-80), years(0)}, 30},
		{"centuries back", years(-400), years(0), time.Time{}, axis{years(-400), years(0)}, 30},
		{"out of a short sight", years(0), years(-60), time.Time{}, axis{years(-60), years(-60).Add(1)}, 30},
	} {
		m := &dag.Moment{}
		m.Event.TS = dag.At(c.event)
		if !c.from.IsZero() {
			m.From = dag.At(c.from)
		}
		if !c.till.IsZero() {
			m.Until = dag.At(c.till)
		}
		p := NewTimeline(nil, nil)
		p.axis = c.axis
		line := p.bar(&pane.Env{Now: now, Glyphs: screen.ASCII()}, m, 30)
		n := utf8.RuneCountInString(line)
		expect.True(t, n == c.want && (c.name != "the later half of decades" || strings.Count(line, " ") == 14), "%s: %d cells: %q", c.name, n, line)
	}
}

// TestARowOfALargeEventIsShort counts the bytes that are allocated for rows of
// which a screen shows the beginning.
func TestARowOfALargeEventIsShort(t *testing.T) {
	const size = 1 << 20
	parts := []dag.ContentPart{{Type: "text", Text: strings.Repeat("x", size)}}
	m := &dag.Message{ID: "m", Role: dag.RoleUser, Content: parts}
	none := dag.EventRef{EventID: strings.Repeat("0", 64)}
	for _, b := range []dag.Body{
		&dag.HistoryAppend{List: "main", MessageRef: "m"},
		&dag.ModelResponse{RequestID: none.EventID, OutputRef: "m"},
		&dag.ModelRequest{Model: "m", Params: core.Raw(`{}`), InputRefs: []dag.InputRef{{Message: "m"}}},
	} {
		m.CreatedAt = dag.At(time.Unix(0, 0))
		h := dag.Head{TS: m.CreatedAt, AgentID: "ada", RunID: "r", CorrelationID: "c", Nodes: []dag.Node{dag.NewNode(m)}}
		e := expect.Of(dag.NewEvent(h, b))(t)
		row := dag.Moment{Recorded: dag.Recorded{Event: e}, Message: m}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, says := what(&row)
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		expect.True(t, got <= size/16 && len(says) >= 1<<10 && len(says) <= 2<<10, "a row of a %s of 1 MiB says %d bytes and takes %d", e.Kind, len(says), got)
	}
}
