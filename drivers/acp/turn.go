package acp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/exec"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
)

// Bounds of one prompt's output and questions.
const (
	maxPending     = 256 // unanswered questions
	maxPromptLines = 200_000
	maxPromptBytes = 64 << 20
	maxCalls       = 10_000   // tool calls that are followed
	maxHeld        = 64 << 20 // bytes of those that have not ended
	maxFinal       = 1 << 20
)

const (
	// beatEvery renews the lease four times a second: it is lost after one.
	beatEvery = 250 * time.Millisecond
	// talkPause is how long a message may stand still before what there is of
	// it is shown: some agents give their messages no end.
	talkPause = 700 * time.Millisecond
	// talkPiece is how much of one message is gathered for one line of the log.
	talkPiece = 48 << 10
)

// turn is one prompt on its way through an agent.
type turn struct {
	p      fleet.Prompt
	ctx    context.Context // ends with the turn
	cancel context.CancelFunc
	asking context.Context // ends when the turn is to end
	drop   context.CancelFunc
	stop   chan struct{} // closed when the turn is to end
	gone   chan struct{} // closed when it gives the agent free
	helper sync.WaitGroup

	s      *session    // set before the prompt is sent
	before exec.Census // the process tree then

	emitting sync.Mutex // one event at a time, in order; guards what follows
	over     bool       // nothing is passed on any more
	lines    int
	bytes    int
	saying   string // message or thought
	saidID   string
	said     strings.Builder
	saidAt   time.Time
	final    strings.Builder // the last message, whole

	mu      sync.Mutex
	how     keeper.Ending
	reason  string
	settled bool // its answer has come
	pending int
	calls   map[string]*call
	held    int            // bytes in calls
	asked   map[string]int // gate ids given, by tool call
	denied  bool           // the last decision was no
	denial  string
}

func newTurn(ctx context.Context, p fleet.Prompt) *turn {
	t := &turn{p: p, stop: make(chan struct{}), gone: make(chan struct{}), calls: map[string]*call{}, asked: map[string]int{}}
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.asking, t.drop = context.WithCancel(t.ctx)
	return t
}

// close ends what still belongs to the turn and waits for it: after that
// neither Emit nor Beat is called again.
func (t *turn) close() {
	t.cancel()
	close(t.gone)
	t.emitting.Lock()
	t.over = true
	t.emitting.Unlock()
	t.helper.Wait()
}

// beat renews the lease until the turn is closed, and shows what an agent has
// left unfinished.
func (t *turn) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		t.p.Beat()
		select {
		case <-t.gone:
			return
		case <-tick.C:
		}
		if t.emitting.TryLock() { // else it is being passed on right now
			if !t.over && t.said.Len() > 0 && time.Since(t.saidAt) > talkPause {
				t.flush()
			}
			t.emitting.Unlock()
		}
	}
}

// end asks the turn to end; the first reason counts. Questions that are still
// open are answered: some agents wait for ever otherwise.
func (t *turn) end(how keeper.Ending, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how != keeper.Running {
		return
	}
	t.how, t.reason = how, reason
	t.drop()
	close(t.stop)
}

func (t *turn) ended() keeper.Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.how
}

// emit passes one event on; false when the turn is over.
func (t *turn) emit(e fleet.Event) bool {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if t.over {
		return false
	}
	if e.Type != "log" && e.Type != "usage" {
		t.flush()
	}
	t.pass(e)
	return true
}

// pass hands an event to the prompt within the bounds of one prompt. The log's
// owner keeps its own errors: what was said can't be unsaid. emitting is held.
func (t *turn) pass(e fleet.Event) {
	switch e.Type {
	case "usage", "mode":
	default:
		if t.lines > maxPromptLines || t.bytes > maxPromptBytes {
			return
		}
		t.lines++
		t.bytes += len(e.Text) + len(e.Output)
		if t.lines > maxPromptLines || t.bytes > maxPromptBytes {
			e = fleet.Event{Type: "log", Level: "WARN", Text: fmt.Sprintf(
				"log ends here: it reached its limit of %d lines or %d MiB for one task", maxPromptLines, maxPromptBytes>>20)}
		}
	}
	_, _ = t.p.Emit(t.ctx, e)
}

// talk gathers the pieces of a message or thought. One without an id ends when
// something else is said.
func (t *turn) talk(kind, id, text string) {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if t.over {
		return
	}
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
}

// flushTalk ends the message under way.
func (t *turn) flushTalk() {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if !t.over {
		t.flush()
		t.saying = ""
	}
}

// flush passes on what there is of a message; emitting is held.
func (t *turn) flush() {
	if t.said.Len() == 0 {
		return
	}
	text := t.said.String()
	t.said.Reset()
	for len(text) > 0 { // one block may be larger than a line of the log
		piece := clip(text, maxLogLine)
		if len(piece) < len(text) {
			piece = strings.TrimSuffix(piece, "…")
		}
		t.pass(fleet.Event{Type: t.saying, Text: piece})
		text = text[min(len(piece), len(text)):]
	}
}

// text is the agent's last message.
func (t *turn) text() string {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	return t.final.String()
}

// ask puts a question to the judge and hands the answer to answer, which may
// not block. Any number may wait, up to maxPending; updates go on meanwhile.
// An answer with the decision "" says that there is none: the turn ends.
func (t *turn) ask(e fleet.Event, answer func(fleet.ToolAnswer)) {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	t.mu.Lock()
	if t.over || t.settled || t.how != keeper.Running {
		t.mu.Unlock()
		answer(fleet.ToolAnswer{})
		return
	}
	if t.pending >= maxPending {
		t.denied, t.denial = true, fmt.Sprintf("%d questions are waiting already", maxPending)
		t.mu.Unlock()
		answer(fleet.ToolAnswer{Decision: "deny", Reason: t.denial})
		return
	}
	t.pending++
	t.mu.Unlock()
	t.flush()
	t.saying = ""
	t.helper.Go(func() {
		ans, err := t.p.Emit(t.asking, e)
		t.mu.Lock()
		t.pending--
		switch {
		case t.how != keeper.Running && ans.Decision != "abort":
			ans = fleet.ToolAnswer{}
		case err != nil:
			ans = fleet.ToolAnswer{Decision: "deny", Reason: clip("no decision: "+err.Error(), 1024)}
		case ans.Decision == "approve" && len(ans.Args) == 0:
			ans.Args = e.Args
		case ans.Decision != "approve" && ans.Decision != "deny" && ans.Decision != "abort":
			ans = fleet.ToolAnswer{Decision: "deny", Reason: "no decision"}
		}
		t.decided(ans.Decision, ans.Reason)
		t.mu.Unlock()
		answer(ans)
		if ans.Decision == "abort" {
			t.end(keeper.ByAbort, ans.Reason)
		}
	})
}

// decided remembers the last decision, which tells what a turn that just ends
// has come to; mu is held.
func (t *turn) decided(decision, reason string) {
	if decision != "" {
		t.denied, t.denial = decision != "approve", reason
	}
}
