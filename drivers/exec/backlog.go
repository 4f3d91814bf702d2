package exec

import (
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Bounds of what is kept between prompts.
const (
	maxBacklogEvents = 1000
	maxBacklogBytes  = 256 << 10
)

// Backlog keeps what an agent prints while no prompt runs, for the log of the
// next one. Past its bounds the oldest goes, and is counted.
type Backlog struct {
	events  []fleet.Event
	bytes   int
	dropped int
}

// Add keeps one more event, as a line of the log.
func (b *Backlog) Add(e fleet.Event) {
	if e.Type != "log" {
		e = fleet.Event{Type: "log", Level: "INFO", Text: e.Text}
	}
	e.Text = core.ClipTo(e.Text, 16<<10)
	b.events = append(b.events, e)
	b.bytes += len(e.Text)
	for len(b.events) > maxBacklogEvents || b.bytes > maxBacklogBytes {
		b.bytes -= len(b.events[0].Text)
		b.events = b.events[1:]
		b.dropped++
	}
}

// Take empties it.
func (b *Backlog) Take() []fleet.Event {
	events := b.events
	if b.dropped > 0 {
		events = append([]fleet.Event{{
			Type: "log", Level: "WARN",
			Text: fmt.Sprintf("%d lines from between the tasks were dropped", b.dropped),
		}}, events...)
	}
	*b = Backlog{}
	return events
}
