package bus

import (
	"slices"

	"swarmdeck/engine/bus"
	"swarmdeck/ui/screen"
)

// place is where a message stands in its conversation.
type place uint8

const (
	alone   place = iota // or the first of a conversation
	between              // more of the conversation follows
	last
)

// lead are the lines before what follows the first of a conversation.
func (p place) lead(g *screen.Glyphs) string {
	switch p {
	case between:
		return string(g.Branch) + string(g.Horizontal) + " "
	case last:
		return string(g.LastBranch) + string(g.Horizontal) + " "
	}
	return ""
}

// threads lays messages, which come oldest first, out newest first, and those
// of one conversation together in their order where the newest of them stands.
func threads(messages []bus.Message) []line {
	talks := map[string][]int{}
	for i := range messages {
		if id := messages[i].CorrelationID; id != "" {
			talks[id] = append(talks[id], i)
		}
	}
	lines := make([]line, 0, len(messages))
	for _, m := range slices.Backward(messages) {
		id := m.CorrelationID
		talk := talks[id]
		if id == "" || len(talk) == 1 {
			lines = append(lines, line{m, alone})
			continue
		}
		for n, i := range talk {
			at := between
			switch n {
			case 0:
				at = alone
			case len(talk) - 1:
				at = last
			}
			lines = append(lines, line{messages[i], at})
		}
		talks[id] = nil
	}
	return lines
}
