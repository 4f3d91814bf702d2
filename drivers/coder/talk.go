package coder

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/fleet"
)

// maxMessage is how many bytes one line of the log has.
const maxMessage = 48 << 10

// talk is what the agent says to somebody, on its way to the log. A text changes while
// the agent writes it, so it is shown when it stands still or another one begins.
type talk struct {
	say  func(fleet.Event)
	most int // bytes of texts that are held

	base  int            // messages up to this id are older
	last  int            // the newest id of what the agent says
	texts map[int]string // as they are
	told  map[int]string // as they were shown
	held  int            // bytes of texts
	full  bool
	at    time.Time // when the newest has changed
}

func newTalk(base, most int, say func(fleet.Event)) *talk {
	return &talk{say: say, most: most, base: base, last: base, texts: map[int]string{}, told: map[int]string{}}
}

// take notes a message's text; only what the agent says since the base counts.
func (t *talk) take(m message) {
	if m.ID <= t.base || m.Role != "agent" {
		return
	}
	text := tidy(m.Content)
	old, known := t.texts[m.ID]
	if known && old == text {
		return
	}
	more := len(text) - len(old)
	if !known {
		more += 64 // each costs something
	}
	if t.held+more > t.most {
		if !t.full {
			t.full = true
			t.say(fleet.Event{Type: "log", Level: "WARN", Text: fmt.Sprintf("what the agent says from here on is left out: it is more than %d MiB at once", t.most>>20)})
		}
		return
	}
	t.held += more
	t.texts[m.ID] = text
	if m.ID > t.last {
		t.show(t.last)
		t.last = m.ID
	}
	t.at = time.Now()
	if m.ID < t.last {
		t.show(m.ID)
	}
}

// tidy makes valid text of a piece of a terminal's screen.
func tidy(s string) string {
	s = pipe.Text([]byte(s))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// show passes on what a message says that was not passed on yet. A text that
// was changed, not continued, is passed on whole.
func (t *talk) show(id int) {
	text, told := t.texts[id], t.told[id]
	if text == told || text == "" {
		return
	}
	t.told[id] = text
	if told != "" && strings.HasPrefix(text, told) {
		text = strings.TrimLeft(text[len(told):], "\n")
	}
	for piece := range keeper.Pieces(text, maxMessage) {
		t.say(fleet.Event{Type: "message", Text: piece})
	}
}

// showAll passes on everything, in order.
func (t *talk) showAll() {
	for _, id := range slices.Sorted(maps.Keys(t.texts)) {
		t.show(id)
	}
}
