package coder

import (
	"context"
	"sync"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

const (
	// talkPause is how long a message may stand still before it is shown.
	talkPause = 700 * time.Millisecond
	// beginLimit is how soon a task that was taken must show as work.
	beginLimit = 3 * time.Second
	// readyLimit is how long a prompt waits for an agent that is coming back.
	readyLimit = 25 * time.Second

	// sentLate is how long a request may still be on its way whose sender has died.
	sentLate = 2 * time.Second

	// codeFailed is the code of work that the agent says has failed.
	codeFailed = "agent_failed"

	maxHeld = 32 << 20 // bytes of all that an agent says in one turn
)

// turn is one prompt on its way through an agent.
type turn struct {
	*keeper.Turn
	a  *agent
	b  backend
	ws *codersdk.Workspace

	mu      sync.Mutex
	failure *codersdk.WorkspaceAppStatus // the last report says that the work failed
	waiting []codersdk.WorkspaceAppStatus
	left    bool // the engine closes: the work goes on without it

	// Of the loop alone.
	takenUp bool // the agent has the task already
	seen    int  // the newest id of all
	newest  int  // what the task's id is, once it may have been sent; 0 before
	*talk        // since the task
}

// reported takes one of the agent's own reports in.
func (t *turn) reported(s codersdk.WorkspaceAppStatus) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, s)
	t.failure = nil
	if failedState(s.State) {
		t.failure = &s
	}
	return true
}

// Prompt implements fleet.Handle. An error means that the agent did not take
// the task; whatever happens after that is an outcome.
func (a *agent) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	t := &turn{Turn: keeper.NewTurn(ctx, p), a: a, seen: -1}
	t.talk = newTalk(-1, maxHeld, t.pass)
	var err error
	a.change(func() {
		switch {
		case a.closed:
			err = core.Errorf(core.Unavailable, "the agent is closed")
		case a.stopped:
			err = core.Errorf(core.Unavailable, "the agent is stopped")
		case a.turn != nil:
			err = busy(a.rec.Name, "task "+a.turn.Prompt.TaskID)
		default:
			a.turn = t
		}
	})
	if err != nil {
		t.Cancel()
		return task.Outcome{}, err
	}
	t.Helper.Go(func() { t.Beat(nil) })
	defer func() {
		a.change(func() { a.turn = nil })
		t.Close()
	}()
	defer context.AfterFunc(ctx, t.leave)()
	if err := t.begin(); err != nil {
		if ctx.Err() != nil {
			t.leave()
		}
		if t.Ending() != keeper.Running {
			return t.outcome(nil), nil
		}
		return task.Outcome{}, err
	}
	out := t.outcome(t.work())
	if !t.isLeft() {
		if err := t.done(out); err != nil {
			t.pass(fleet.Event{Type: "log", Level: "WARN", Text: err.Error()})
		}
	}
	return out, nil
}

// begin waits until the agent can take the task.
func (t *turn) begin() error {
	a := t.a
	ctx, drop := context.WithCancel(t.Asking)
	defer drop()
	defer context.AfterFunc(a.life, drop)()
	a.mu.Lock()
	paused := a.paused
	a.mu.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ready, stop := context.WithTimeout(ctx, readyLimit)
	defer stop()
	ok := a.await(ready, func() bool { return a.up() && a.apiFault == "" && a.api != "" })
	if !ok {
		return core.Errorf(core.Unavailable, "agent %s can't take the task: %s", a.rec.Name, a.describe())
	}
	a.mu.Lock()
	t.ws = a.ws
	earlier := a.backlog.Take()
	a.mu.Unlock()
	for _, e := range earlier {
		t.pass(e)
	}
	t.b = backendOf(a.site, a.set, t.ws)
	old, err := t.b.log(ctx, t.ws)
	if err != nil {
		a.answers("", err)
		return err
	}
	if t.takenUp = t.find(old); !t.takenUp && t.wasGiven() != nil { // it may be under way still
		if core.Within(ctx.Done(), sentLate) {
			return ctx.Err()
		}
		if old, err = t.b.log(ctx, t.ws); err != nil {
			a.answers("", err)
			return err
		}
		t.takenUp = t.find(old)
	}
	if !t.takenUp {
		for _, m := range old {
			t.base = max(t.base, m.ID)
		}
	}
	t.last, t.seen = t.base, t.base
	status, err := t.b.status(ctx, t.ws)
	if err == nil && t.takenUp {
		t.pass(fleet.Event{Type: "log", Level: "INFO", Text: "taken up: the agent was given this task already, and its status is " + status})
		return nil
	}
	if err == nil && status != "stable" {
		err = busy(a.rec.Name, "its status is "+status)
		a.answers(status, nil)
	} else if err != nil {
		a.answers("", err)
	}
	return err
}

// find looks for the task in the conversation, where an engine before this one may have
// sent it.
func (t *turn) find(all []message) bool {
	g := t.wasGiven()
	if g == nil {
		return false
	}
	for _, m := range all {
		if m.ID > g.Base && m.Role == "user" && tidy(m.Content) == tidy(t.Prompt.Message) {
			t.base = m.ID
			return true
		}
	}
	return false
}

// wasGiven is what an engine before this one noted of the task; nil for nothing.
func (t *turn) wasGiven() *given {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	if g := t.a.mem.Given; g != nil && g.TaskID == t.Prompt.TaskID && g.Attempt == t.Prompt.Attempt {
		return g
	}
	return nil
}

// give notes that the agent is about to be given the task.
func (t *turn) give() error {
	t.newest = t.base + 1
	t.a.change(func() {
		t.a.mem.Given = &given{TaskID: t.Prompt.TaskID, Attempt: t.Prompt.Attempt, Base: t.base}
	})
	return t.a.keep()
}

// done notes that what was given has come to an end. One that was cut off from here is
// no longer looked for.
func (t *turn) done(out task.Outcome) error {
	a := t.a
	whole := out.Status == task.Succeeded || out.Error != nil && out.Error.Code == codeFailed
	a.change(func() {
		a.mem.Heard = a.mem.Heard.after(t.ws.LatestBuild.ID.String(), max(t.seen, t.newest))
		switch g := a.mem.Given; {
		case g == nil:
		case !whole:
			a.mem.Given = nil
		default:
			over := *g
			over.Done = true
			a.mem.Given = &over
		}
	})
	return a.keep()
}

// leave ends the turn and lets the work go on: the next engine takes it up.
func (t *turn) leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
	t.End(keeper.ByStop, "the engine closes")
}

func (t *turn) isLeft() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left
}

// outcome is what the task has come to.
func (t *turn) outcome(err error) task.Outcome {
	fail := func(status task.Status, code, text string, retry bool) task.Outcome {
		return task.Outcome{Status: status, Error: &task.Error{Code: code, Message: core.ClipTo(text, 4096), Retryable: retry}}
	}
	switch how := t.Ending(); {
	case t.isLeft():
		return fail(task.Cancelled, "cancelled", "the engine closes; the work goes on", false)
	case how == keeper.ByCancel:
		return fail(task.Cancelled, "cancelled", "the task was cancelled", false)
	case how == keeper.ByStop:
		return fail(task.Failed, "agent_stopped", "the agent was stopped", true)
	case how == keeper.ByRestart:
		return fail(task.Failed, "agent_restarted", "the agent was restarted", true)
	}
	t.mu.Lock()
	failure := t.failure
	t.mu.Unlock()
	switch {
	case err != nil:
		return fail(task.Failed, "agent_lost", core.AsError(err).Message, true)
	case failure != nil:
		return fail(task.Failed, codeFailed, "the agent reports a failure"+because(failure.Message), false)
	}
	return task.Outcome{Status: task.Succeeded, Output: core.MustEncode(map[string]string{"text": core.ClipTo(t.texts[t.last], 256<<10)})}
}

// showReports passes on what the agent has reported.
func (t *turn) showReports() {
	t.mu.Lock()
	list := t.waiting
	t.waiting = nil
	t.mu.Unlock()
	for _, s := range list {
		level, text := showReport(s)
		t.pass(fleet.Event{Type: "log", Level: level, Text: text})
		if failedState(s.State) {
			t.pass(fleet.Event{Type: "attention", Text: text})
		}
	}
}

// pass hands an event to the prompt within the bounds of one prompt.
func (t *turn) pass(e fleet.Event) { t.Speak(func() { t.Pass(e) }) }
