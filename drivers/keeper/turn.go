package keeper

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// BeatEvery renews the lease four times a second: it is lost after one.
const BeatEvery = 250 * time.Millisecond

// Bounds of one prompt.
const (
	MaxPending     = 256 // unanswered questions
	MaxPromptLines = 200_000
	MaxPromptBytes = 64 << 20
	MaxPromptTail  = 1000 // lines of its end
	maxTailSize    = 1 << 20
	tailPatience   = 2 * time.Second
)

// Turn is one prompt on its way through an agent, as far as that is the same
// whatever keeps the agent: when it is to end and why, and what is passed on.
type Turn struct {
	Prompt  fleet.Prompt
	Context context.Context // ends with the turn
	Cancel  context.CancelFunc
	Asking  context.Context // ends when the turn is to end
	Stop    <-chan struct{} // closed then
	Gone    <-chan struct{} // closed when it gives the agent free
	Helper  sync.WaitGroup  // works for it; begun before Close, or inside Speak

	drop       context.CancelFunc
	stop, gone chan struct{}

	speaking sync.Mutex // one event at a time, in order; guards what follows
	over     bool       // nothing is passed on any more
	log      pipe.Log[fleet.Event]
	spent    spending

	pending atomic.Int32 // questions that wait
	unheard atomic.Bool  // the agent does not tell of the end of its calls

	mu     sync.Mutex
	how    Ending
	reason string
}

// Base is the turn itself, of what a runtime has around it.
func (t *Turn) Base() *Turn { return t }

// NewTurn begins one.
func NewTurn(ctx context.Context, p fleet.Prompt) *Turn {
	t := &Turn{Prompt: p, stop: make(chan struct{}), gone: make(chan struct{})}
	t.log = pipe.Log[fleet.Event]{Lines: MaxPromptLines, Bytes: MaxPromptBytes, Tail: pipe.Tail[fleet.Event]{Most: MaxPromptTail, Bytes: maxTailSize}}
	t.Stop, t.Gone = t.stop, t.gone
	t.Context, t.Cancel = context.WithCancel(ctx)
	t.Asking, t.drop = context.WithCancel(t.Context)
	return t
}

// Close ends what still belongs to the turn and waits for it: after that
// neither Emit nor Beat is called again.
func (t *Turn) Close() {
	t.Cancel()
	close(t.gone)
	t.speaking.Lock()
	t.passTail()
	t.over = true
	t.speaking.Unlock()
	t.Helper.Wait()
}

// Beat renews the lease until the turn is closed; also is called as often, as
// in Speak, unless something is being passed on right then.
func (t *Turn) Beat(also func()) {
	tick := time.NewTicker(BeatEvery)
	defer tick.Stop()
	for {
		t.Prompt.Beat()
		select {
		case <-t.gone:
			return
		case <-tick.C:
		}
		if also != nil && t.speaking.TryLock() {
			if !t.over {
				also()
			}
			t.speaking.Unlock()
		}
	}
}

// End asks the turn to end; the first reason counts. Questions that are still
// open lose their context: some agents wait for ever for an answer otherwise.
func (t *Turn) End(how Ending, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how != Running {
		return
	}
	t.how, t.reason = how, reason
	t.drop()
	close(t.stop)
}

// Ending says who has asked the turn to end.
func (t *Turn) Ending() Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.how
}

// OnPurpose turns an outcome into that of a turn which was ended on purpose.
func (t *Turn) OnPurpose(out task.Outcome) task.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.how.Outcome(out, t.reason)
}

// Speak has the turn to itself, so that what is passed on keeps its order;
// false when the turn is over, and nothing was done.
func (t *Turn) Speak(do func()) bool {
	t.speaking.Lock()
	defer t.speaking.Unlock()
	if t.over {
		return false
	}
	do()
	return true
}

// Pass hands an event to the prompt, inside Speak. The log's owner keeps its
// own errors: what was said can't be unsaid. A prompt may have only so much of what is
// said and called: of what is past that the last is passed on when the turn is closed.
func (t *Turn) Pass(e fleet.Event) {
	switch e.Type {
	case "usage":
		if !t.spent.more(&e) {
			return
		}
	case "log", "message", "thought", "plan", "diff", "tool_call", "tool_result":
		switch passes, first := t.log.Passes(e, len(e.Text)+len(e.Output)); {
		case first:
			e = fleet.Event{Type: "log", Level: "WARN", Text: fmt.Sprintf(
				"log is cut here: it reached its limit of %d lines or %d MiB for one task; its last lines follow at the end", MaxPromptLines, MaxPromptBytes>>20)}
		case !passes:
			return
		}
	}
	_, _ = t.Prompt.Emit(t.Context, e)
}

// Ask puts a question to the judge, inside Speak, and hands the answer to answer, which
// may not block. Up to MaxPending may wait; other events go on meanwhile. A denial that
// ends the run ends the turn.
func (t *Turn) Ask(e fleet.Event, answer func(fleet.ToolAnswer)) {
	if t.pending.Add(1) > MaxPending {
		t.pending.Add(-1)
		answer(fleet.ToolAnswer{Decision: "deny", Reason: fmt.Sprintf("%d requests are waiting already", MaxPending)})
		return
	}
	t.Helper.Go(func() {
		ans, err := t.Prompt.Emit(t.Asking, e)
		t.pending.Add(-1)
		ans = Understood(e, ans, err)
		answer(ans)
		if ans.Decision == "abort" {
			t.End(ByAbort, ans.Reason)
		}
	})
}

// Past is what a fork goes on from, "" for none.
func (t *Turn) Past() (string, error) {
	if t.Prompt.Past == nil {
		return "", nil
	}
	text, err := t.Prompt.Past.Text(t.Asking)
	if err != nil {
		return "", fmt.Errorf("read what the fork goes on from: %w", err)
	}
	return text, nil
}

// passTail passes on the end of a log that was cut.
func (t *Turn) passTail() {
	last, gone := t.log.Tail.Take()
	if gone > 0 {
		last = append([]fleet.Event{{Type: "log", Level: "WARN", Text: fmt.Sprintf("%d lines are left out here", gone)}}, last...)
	}
	if len(last) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context), tailPatience)
	defer stop()
	for _, e := range last {
		if _, err := t.Prompt.Emit(ctx, e); err != nil {
			return
		}
	}
}

// Ending says who ended a prompt before its time.
type Ending int

// The endings.
const (
	Running Ending = iota
	ByCancel
	ByAbort // a denial that ends the run
	ByStop
	ByRestart
)

func (e Ending) String() string {
	switch e {
	case ByCancel:
		return "the task was cancelled"
	case ByAbort:
		return "a denial ended the task"
	case ByRestart:
		return "the agent was restarted"
	case ByStop:
		return "the agent was stopped"
	}
	return fmt.Sprintf("ending %d", int(e))
}

// MaxMessage is the longest message of a task's error (requirement 1.6), in
// bytes, and so never more characters.
const MaxMessage = 4096

// Outcome turns an outcome into that of a prompt which was ended on purpose;
// one that was not stays as it is.
func (e Ending) Outcome(out task.Outcome, reason string) task.Outcome {
	why := &task.Error{Message: core.ClipTo(reason, MaxMessage)}
	switch e {
	case Running:
		return out
	case ByAbort:
		out.Status, why.Code = task.Blocked, "approval_denied"
	case ByRestart:
		out.Status, why.Code, why.Retryable = task.Failed, "agent_restarted", true
	default:
		out.Status, why.Code = task.Cancelled, "cancelled"
	}
	out.Error = why
	return out
}

// Failure is the outcome of a prompt that failed for a reason of ours.
func Failure(code, message string, retryable bool) task.Outcome {
	return task.Outcome{Status: task.Failed, Output: core.Raw(`{}`), Error: &task.Error{
		Code: code, Message: core.ClipTo(pipe.Text([]byte(message)), MaxMessage), Retryable: retryable,
	}}
}

// Understood is the judge's answer to a question as an agent is told it: no
// answer is a denial, and a yes has the arguments to act with.
func Understood(asked fleet.Event, ans fleet.ToolAnswer, err error) fleet.ToolAnswer {
	switch {
	case err != nil:
		return fleet.ToolAnswer{Decision: "deny", Reason: core.ClipTo("no decision: "+err.Error(), 1024)}
	case ans.Decision == "approve" && len(ans.Args) == 0:
		ans.Args = asked.Args
	case ans.Decision != "approve" && ans.Decision != "deny" && ans.Decision != "abort":
		return fleet.ToolAnswer{Decision: "deny", Reason: "no decision"}
	}
	return ans
}

// Died is the outcome of a prompt whose process ended so, in these words; one that ended
// well has none.
func Died(exit cell.Exit, message string) (out task.Outcome, failed bool) {
	switch {
	case exit.Limited():
		return Failure("limit_exceeded", message, false), true
	case exit.Signal != 0:
		return Failure("agent_killed", message, true), true
	}
	return out, false
}
