package exec

import (
	"context"
	"fmt"
	"sync"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/fleet"
)

// Bounds of one prompt's output and questions.
const (
	maxPending     = 256 // unanswered tool requests
	maxPromptLines = 200_000
	maxPromptBytes = 64 << 20
	tailBytes      = 64 << 10 // of the plain output, for a result made of an exit
)

// turn is one prompt on its way through a process.
type turn struct {
	p      fleet.Prompt
	ctx    context.Context // ends with the turn
	cancel context.CancelFunc
	stop   chan struct{} // closed when the turn is to end
	done   chan struct{} // closed when its result is there
	gone   chan struct{} // closed when it gives the agent free
	helper sync.WaitGroup

	// Set before the task is sent.
	reused  bool   // the process has served another turn
	lasting bool   // the agent's processes are known to stay
	before  Census // the process tree of a reused process then

	emitting sync.Mutex // one event at a time, in order; guards what follows
	over     bool       // nothing is passed on any more
	lines    int
	bytes    int

	mu      sync.Mutex
	how     keeper.Ending
	reason  string
	result  *fleet.Event
	broken  error // why the result line is none
	heard   bool  // the agent has said something in this turn
	earlier []fleet.Event
	pending map[string]context.CancelFunc
	tail    []byte
	warning string // last line of stderr
}

func newTurn(ctx context.Context, p fleet.Prompt) *turn {
	t := &turn{p: p, stop: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}), pending: map[string]context.CancelFunc{}}
	t.ctx, t.cancel = context.WithCancel(ctx)
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

// beat renews the lease until the turn is closed.
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
	}
}

// end asks the turn to end; the first reason counts. Questions that are still
// open are answered with a denial: some agents wait for ever otherwise.
func (t *turn) end(how keeper.Ending, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how != keeper.Running {
		return
	}
	t.how, t.reason = how, reason
	for _, drop := range t.pending {
		drop()
	}
	close(t.stop)
}

func (t *turn) ended() keeper.Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.how
}

// settled reports whether the agent has given its result.
func (t *turn) settled() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// emit passes one event on; false when the turn is over.
func (t *turn) emit(e fleet.Event) bool {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if t.over {
		return false
	}
	t.flush()
	t.mu.Lock()
	t.heard = true
	t.mu.Unlock()
	t.pass(e)
	return true
}

// catchUp passes on what the agent said between the turns, unless its own
// next event has already done so.
func (t *turn) catchUp() {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if !t.over {
		t.flush()
	}
}

// flush passes on what the agent said between the turns; emitting is held.
func (t *turn) flush() {
	t.mu.Lock()
	earlier := t.earlier
	t.earlier = nil
	t.mu.Unlock()
	for _, e := range earlier {
		t.pass(e)
	}
}

// pass hands an event to the prompt within the bounds of one prompt. The log's
// owner keeps its own errors: what was said can't be unsaid. emitting is held.
func (t *turn) pass(e fleet.Event) {
	if e.Type == "log" || e.Type == "message" {
		if t.lines > maxPromptLines || t.bytes > maxPromptBytes {
			return
		}
		t.lines++
		t.bytes += len(e.Text)
		if t.lines > maxPromptLines || t.bytes > maxPromptBytes {
			e = fleet.Event{Type: "log", Level: "WARN", Text: fmt.Sprintf(
				"log ends here: it reached its limit of %d lines or %d MiB for one task", maxPromptLines, maxPromptBytes>>20)}
		}
	}
	_, _ = t.p.Emit(t.ctx, e)
}

// note keeps the end of the plain output and the last complaint, for an
// outcome made of an exit.
func (t *turn) note(line string, warning bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if warning {
		if line != "" {
			t.warning = pipe.Clip(line, 256)
		}
		return
	}
	t.tail = append(append(t.tail, line...), '\n')
	if len(t.tail) > 2*tailBytes {
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-tailBytes:]...)
	}
}

// finish takes the result line; the first one counts.
func (t *turn) finish(s *session, e fleet.Event) {
	t.conclude(s, func() { t.result = &e }, e)
}

// spoil takes a line that was to be a result but is none.
func (t *turn) spoil(s *session, err error) {
	t.conclude(s, func() { t.broken = err }, fleet.Event{})
}

func (t *turn) conclude(s *session, set func(), e fleet.Event) {
	t.mu.Lock()
	second := t.result != nil || t.broken != nil
	if !second {
		set()
	}
	t.mu.Unlock()
	if second {
		s.emit(fleet.Event{Type: "log", Level: "WARN", Text: "a second result of the same task was ignored"})
		return
	}
	if e.Type != "" {
		t.emit(e)
	}
	s.lastResult.Store(time.Now().UnixNano())
	close(t.done)
}

// ask puts a tool request to the judge and writes the answer when it is
// there. Any number may wait, up to maxPending; other lines go on meanwhile.
func (t *turn) ask(s *session, e fleet.Event) {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	why := ""
	ctx, drop := context.WithCancel(t.ctx)
	t.mu.Lock()
	t.heard = true
	switch _, twice := t.pending[e.CallID]; {
	case t.over || t.how != keeper.Running || t.result != nil || t.broken != nil:
		why = "the task is over"
	case twice:
		why = "a request with this call_id is waiting already"
	case len(t.pending) >= maxPending:
		why = fmt.Sprintf("%d requests are waiting already", maxPending)
	default:
		t.pending[e.CallID] = drop
	}
	t.mu.Unlock()
	if why != "" {
		drop()
		s.decide(e.CallID, fleet.ToolAnswer{Decision: "deny", Reason: why})
		return
	}
	t.flush()
	t.helper.Go(func() {
		defer drop()
		ans, err := t.p.Emit(ctx, e)
		t.mu.Lock()
		delete(t.pending, e.CallID)
		t.mu.Unlock()
		switch {
		case err != nil:
			ans = fleet.ToolAnswer{Decision: "deny", Reason: pipe.Clip("no decision: "+err.Error(), 1024)}
		case ans.Decision == "approve" && len(ans.Args) == 0:
			ans.Args = e.Args
		case ans.Decision != "approve" && ans.Decision != "deny" && ans.Decision != "abort":
			ans = fleet.ToolAnswer{Decision: "deny", Reason: "no decision"}
		}
		s.decide(e.CallID, ans)
		if ans.Decision == "abort" {
			t.end(keeper.ByAbort, ans.Reason)
		}
	})
}
