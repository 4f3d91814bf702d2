package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

// agent is one open agent: at most one process and one prompt at a time.
// Nothing that can block is called with Mu held.
type agent struct {
	keeper.Agent[*peer, *turn] // Sess is until its process is gone or given up

	r     *Runtime
	rec   fleet.Agent
	place place

	starting sync.Mutex // one start at a time; taken before Mu

	// Guarded by Mu.
	talk      *session           // in that process
	stopStart context.CancelFunc // gives up the start that retry makes
	meeting   bool               // its process was started, and is not known to be of use yet
	want      wants
	news      []fleet.Event // changes of mode and costs between prompts
	sleeping  *time.Timer   // until its process ends for want of work
}

var (
	_ fleet.Handle  = (*agent)(nil)
	_ fleet.Steerer = (*agent)(nil)
	_ fleet.Chooser = (*agent)(nil)
)

// Prompt implements fleet.Handle. An error means that the agent did not take
// the task; whatever happens after that is an outcome.
func (a *agent) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	t := newTurn(ctx, p)
	if err := a.Take(t); err != nil {
		return task.Outcome{}, err
	}
	defer a.release(t)
	defer context.AfterFunc(ctx, func() { t.End(keeper.ByCancel, keeper.ByCancel.String()) })()
	t.Helper.Go(t.beat)
	call, err := a.begin(t)
	if err != nil {
		return t.Refused(err, func(err error) task.Outcome { return keeper.Failure("agent_start", startReason(err), true) }), nil
	}
	return a.follow(t, call), nil
}

// release ends a turn and frees the agent for the next.
func (a *agent) release(t *turn) {
	t.Close()
	if t.s != nil {
		t.s.pe.Proc.Serves(t.Prompt.TaskID, false)
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Turn = nil
	if t.s != nil {
		t.s.turn.CompareAndSwap(t, nil)
	}
	a.sleepLater()
}

// begin finds or starts the process and the session for a turn, and sends the
// prompt. Until that was taken it looks anew after each step.
func (a *agent) begin(t *turn) (call *jsonrpc.Call, err error) {
	for call == nil && err == nil {
		var step func() error
		err = a.Await(t.Turn, func() (<-chan struct{}, <-chan time.Time, error) {
			switch pe, s := a.Sess, a.talk; {
			case pe != nil && pe.isFrozen(a): // for others: it works in one of its own
				step = func() error { a.giveUp(pe); return nil }
			case pe == nil || a.meeting:
				step = func() error { return a.startFor(t) }
			case s == nil || a.place.Fresh && t.s == nil && s.used():
				step = func() error { return a.converse(t.Asking, pe) }
			default:
				step = func() (err error) { call, err = a.send(t, pe, s); return err }
			}
			return nil, nil, nil
		})
		if err == nil {
			err = step()
		}
	}
	return call, err
}

// startFor starts the process unless the planned try after a failure has.
func (a *agent) startFor(t *turn) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	a.Mu.Lock()
	there := a.Sess != nil && !a.Sess.ending()
	a.Mu.Unlock()
	if there {
		return nil
	}
	return a.start(t.Asking)
}

// start joins a process for the agent.
func (a *agent) start(ctx context.Context) error {
	a.Mu.Lock()
	a.Keep.Tell(fleet.Starting, "")
	a.Mu.Unlock()
	pe, err := a.r.pool.join(ctx, a)
	a.Mu.Lock()
	defer a.Mu.Unlock()
	switch {
	case errors.Is(err, keeper.ErrStopped):
		return err
	case err != nil:
		a.failed("can't start: ", err)
		return err
	}
	a.Sess, a.talk = pe, nil
	a.Began(pe.Proc)
	a.Keep.Quiet()
	a.meeting = true
	a.Mu.Unlock()
	if err = a.meet(ctx, pe); err != nil {
		_ = a.r.pool.leave(context.WithoutCancel(ctx), pe, a)
	}
	a.Mu.Lock()
	a.meeting = false
	switch {
	case a.Sess != pe: // it is gone, which was told
		return cmp.Or(err, keeper.ErrStopped)
	case err != nil && ctx.Err() != nil:
		a.Sess, a.talk = nil, nil
		return keeper.ErrStopped
	case err != nil:
		a.Sess, a.talk, a.Keep.Said = nil, nil, pe.lastLines()
		a.failed("can't be used: ", err)
		return err
	}
	a.Keep.Greets = false
	a.Keep.Up()
	a.sleepLater()
	return nil
}

// meet opens the agent's session in a process that has just started, in its mode: what
// can't do that can't be used.
func (a *agent) meet(ctx context.Context, pe *peer) error {
	if err := a.converse(ctx, pe); err != nil {
		return err
	}
	a.Mu.Lock()
	s := a.talk
	a.Mu.Unlock()
	if s == nil || s.pe != pe {
		return keeper.ErrStopped
	}
	return s.adjust(ctx)
}

// converse opens the session, in the mode that was asked for.
func (a *agent) converse(ctx context.Context, pe *peer) error {
	patience := a.place.patience(a.r.Patience)
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer stop()
	s, err := a.open(ctx, pe)
	if err != nil {
		return err
	}
	a.Mu.Lock()
	old := a.talk
	stale := a.Sess != pe
	if !stale {
		a.talk = s
	}
	a.Mu.Unlock()
	if old != nil {
		pe.drop(old)
	}
	if stale {
		pe.drop(s)
	}
	return nil
}

// send tells the agent the task; nil and no error when things have changed
// meanwhile.
func (a *agent) send(t *turn, pe *peer, s *session) (*jsonrpc.Call, error) {
	if err := s.adjust(t.Asking); err != nil {
		return nil, err
	}
	past, err := s.past(t)
	if err != nil {
		return nil, err
	}
	before := pe.census()
	a.Mu.Lock()
	if a.Sess != pe || a.talk != s || a.Keep.Paused() != nil || a.Keep.Stopped || a.Keep.IsClosed() {
		a.Mu.Unlock()
		return nil, nil
	}
	t.s, t.before = s, before
	earlier := append(a.Backlog.Take(), a.news...)
	a.news = nil
	s.turn.Store(t)
	s.prompts.Add(1)
	a.Mu.Unlock()
	pe.Proc.Serves(t.Prompt.TaskID, true)
	for _, e := range earlier {
		t.emit(e)
	}
	call := pe.conn.Start(promptMethod, s.prompt(t, past, t.Prompt))
	if past != "" {
		s.told.Store(true)
		s.keep()
		t.emit(fleet.Event{Type: "log", Level: "INFO", Text: t.Prompt.Past.Brief})
	}
	return call, nil
}

// past is what a fork is told before its prompt, once in a session. The
// protocol offers to fork a session at its end, and to load it whole; neither
// is the state at an event, so that it is told as text.
func (s *session) past(t *turn) (string, error) {
	if s.told.Load() {
		return "", nil
	}
	return t.Past()
}

// mask hides what its process was given.
func (a *agent) mask() *secret.Mask {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.Sess == nil {
		return nil
	}
	return a.Sess.Mask
}

// hear takes what belongs to no place in a turn: it goes to the log of the
// prompt that runs, or of the next one.
func (a *agent) hear(e fleet.Event) {
	a.Mu.Lock()
	t := a.Turn
	a.Mu.Unlock()
	if t != nil && t.emit(e) {
		return
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if (e.Type == "mode" || e.Type == "usage") && len(a.news) < maxNews { // these are more than lines of a log
		a.news = append(a.news, e)
		return
	}
	a.Backlog.Add(e)
}

// maxNews bounds what is kept between prompts beside the log.
const maxNews = 100

// giveUp leaves a process without waiting for its end.
func (a *agent) giveUp(pe *peer) {
	a.Mu.Lock()
	if a.Sess == pe {
		a.Sess, a.talk = nil, nil
	}
	a.Mu.Unlock()
	go func() { _ = a.r.pool.leave(context.Background(), pe, a) }()
}

// leave ends the prompt and leaves the process, which ends too unless
// others share it.
func (a *agent) leave(ctx context.Context, why keeper.Ending) error {
	a.Mu.Lock()
	a.Keep.Quiet()
	t := a.Turn
	if a.stopStart != nil {
		a.stopStart()
	}
	a.Mu.Unlock()
	if t != nil {
		t.End(why, why.String())
	}
	a.starting.Lock() // a start under way is being given up
	a.Mu.Lock()
	pe := a.Sess
	a.Sess, a.talk = nil, nil
	a.Mu.Unlock()
	a.starting.Unlock()
	if pe == nil {
		return nil
	}
	if t != nil && pe.isShared() { // let the agent end the prompt by itself
		select {
		case <-t.Gone:
		case <-time.After(a.Grace):
		case <-ctx.Done():
		}
	}
	return a.r.pool.leave(ctx, pe, a)
}
