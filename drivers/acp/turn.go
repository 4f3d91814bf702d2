package acp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// Bounds of one prompt's output.
const (
	maxCalls = 10_000   // tool calls that are followed
	maxHeld  = 64 << 20 // bytes of those that have not ended
	maxFinal = 1 << 20
)

const (
	// talkPause is how long a message may stand still before what there is of
	// it is shown: some agents give their messages no end.
	talkPause = 700 * time.Millisecond
	// talkPiece is how much of one message is gathered for one line of the log.
	talkPiece = 48 << 10
)

// turn is one prompt on its way through an agent.
type turn struct {
	*keeper.Turn

	s      *session    // set before the prompt is sent
	before cell.Census // the process tree then

	// Inside Speak.
	saying string // message or thought
	saidID string
	said   strings.Builder
	saidAt time.Time
	final  strings.Builder // the last message, whole
	seen   int64           // tokens, up to the last prompt's end

	mu        sync.Mutex
	settled   bool // its answer has come
	acts      bool // it has asked for something
	calls     map[string]*call
	held      int            // bytes in calls
	asked     map[string]int // gate ids given, by tool call
	denied    bool           // the last decision was no
	denial    string
	untold    []string // denials whose reason the agent has not heard
	explained int      // prompts that told them
}

func newTurn(ctx context.Context, p fleet.Prompt) *turn {
	return &turn{Turn: keeper.NewTurn(ctx, p), calls: map[string]*call{}, asked: map[string]int{}}
}

// beat renews the lease until the turn is closed, and shows what an agent has
// left unfinished.
func (t *turn) beat() {
	t.Beat(func() {
		if t.said.Len() > 0 && time.Since(t.saidAt) > talkPause {
			t.flush()
		}
		t.unasked()
	})
}

// emit passes one event on; false when the turn is over.
func (t *turn) emit(e fleet.Event) bool {
	return t.Speak(func() {
		if e.Type != "log" && e.Type != "usage" {
			t.flush()
		}
		t.Pass(e)
	})
}

// talk gathers the pieces of a message or thought. One without an id ends when
// something else is said.
func (t *turn) talk(kind, id, text string) {
	if text == "" {
		return
	}
	t.Speak(func() {
		if kind != t.saying || id != "" && id != t.saidID {
			t.flush()
			t.saying, t.saidID = kind, id
			if kind == "message" {
				t.final.Reset()
			}
		}
		t.said.WriteString(text)
		t.saidAt = time.Now()
		if kind == "message" && t.final.Len()+len(text) <= maxFinal {
			t.final.WriteString(text)
		}
		if t.said.Len() > talkPiece {
			t.flush()
		}
	})
}

// flushTalk ends the message under way.
func (t *turn) flushTalk() { t.Speak(t.hush) }

// hush is flushTalk inside Speak.
func (t *turn) hush() {
	t.flush()
	t.saying = ""
}

// flush passes on what there is of a message, inside Speak.
func (t *turn) flush() {
	if t.said.Len() == 0 {
		return
	}
	text := t.said.String()
	t.said.Reset()
	for piece := range keeper.Pieces(text, maxLogLine) { // one block may be larger than a line of the log
		t.Pass(fleet.Event{Type: t.saying, Text: piece})
	}
}

// text is the agent's last message.
func (t *turn) text() (text string) {
	t.Speak(func() { text = t.final.String() })
	return text
}

// idle reports whether the agent has done nothing that could have an effect, as far as it tells.
func (t *turn) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.acts && len(t.calls) == 0
}

// ask puts a question to the judge and hands the answer to answer, which may not block.
// One with the decision "" says that there is none: the turn ends.
func (t *turn) ask(e fleet.Event, answer func(fleet.ToolAnswer)) {
	if !t.Speak(func() { t.askNow(e, answer) }) {
		answer(fleet.ToolAnswer{})
	}
}

// askNow is ask inside Speak.
func (t *turn) askNow(e fleet.Event, answer func(fleet.ToolAnswer)) {
	t.mu.Lock()
	over := t.settled || t.Ending() != keeper.Running
	t.acts = t.acts || !over
	t.mu.Unlock()
	if over {
		answer(fleet.ToolAnswer{})
		return
	}
	t.hush()
	t.Ask(e, func(ans fleet.ToolAnswer) {
		if t.Ending() != keeper.Running && ans.Decision != "abort" {
			ans = fleet.ToolAnswer{}
		}
		t.mu.Lock()
		t.decided(ans.Decision, ans.Reason)
		t.mu.Unlock()
		answer(ans)
	})
}

// unheard notes a denial: the protocol's answer has no place for its reason.
func (t *turn) unheard(title, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reason != "" && len(t.untold) < maxUntold {
		t.untold = append(t.untold, fmt.Sprintf("- %s: %s", core.ClipTo(strings.Join(strings.Fields(title), " "), 200), core.ClipTo(reason, 4096)))
	}
}

// decided remembers the last decision, which tells what a turn that just ends
// has come to; mu is held.
func (t *turn) decided(decision, reason string) {
	if decision != "" {
		t.denied, t.denial = decision != "approve", reason
	}
}
