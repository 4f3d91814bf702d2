package keeper

import (
	"fmt"
	"iter"
	"strings"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Bounds of what is kept between prompts.
const (
	MaxBacklog      = 1000 // lines
	maxBacklogBytes = 256 << 10
)

// Backlog keeps what an agent prints while no prompt runs, for the log of the
// next one. Past its bounds the oldest goes, and is counted.
type Backlog struct{ lines pipe.Tail[fleet.Event] }

// Add keeps one more event, as a line of the log.
func (b *Backlog) Add(e fleet.Event) {
	if e.Type != "log" {
		e = fleet.Event{Type: "log", Level: "INFO", Text: e.Text}
	}
	e.Text = core.ClipTo(e.Text, 16<<10)
	b.lines.Most, b.lines.Bytes = MaxBacklog, maxBacklogBytes
	b.lines.Add(e, len(e.Text))
}

// Kept is what Take would give, but for the count of what went.
func (b *Backlog) Kept() []fleet.Event { return b.lines.Kept() }

// Take empties it.
func (b *Backlog) Take() []fleet.Event {
	events, gone := b.lines.Take()
	if gone > 0 {
		events = append([]fleet.Event{{Type: "log", Level: "WARN", Text: fmt.Sprintf("%d lines from between the tasks were dropped", gone)}}, events...)
	}
	return events
}

// Pieces cuts a text into pieces of at most most bytes, each a line of a log.
func Pieces(text string, most int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			piece := core.ClipTo(text, most)
			if len(piece) < len(text) {
				piece = strings.TrimSuffix(piece, "…")
			}
			if !yield(piece) {
				return
			}
			text = text[min(len(piece), len(text)):]
		}
	}
}
