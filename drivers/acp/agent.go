package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

// agent is one open agent: at most one process and one prompt at a time.
// Nothing that can block is called with mu held.
type agent struct {
	r      *Runtime
	rec    fleet.Agent
	place  place
	unhook func() bool
	// unfollow ends what is told of the link to its host; nil without one.
	unfollow func()

	starting sync.Mutex // one start at a time; taken before mu

	mu        sync.Mutex
	pe        *peer    // until its process is gone or given up
	sess      *session // in that process
	turn      *turn
	keep      keeper.Keeper
	stopStart context.CancelFunc // gives up the start that retry makes
	meeting   bool               // its process was started, and is not known to be of use yet
	crashed   bool               // its last process crashed: the next one is a restart
	want      wants
	backlog   keeper.Backlog
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
	if err := keeper.Take(&a.keep, &a.mu, &a.turn, t); err != nil {
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
	t.close()
	if t.s != nil {
		t.s.pe.proc.Serves(t.Prompt.TaskID, false)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = nil
	if t.s != nil {
		t.s.turn.CompareAndSwap(t, nil)
	}
	a.sleepLater()
}

// begin finds or starts the process and the session for a turn, and sends the
// prompt. It waits while the agent is paused, and for an earlier process to
// be gone.
func (a *agent) begin(t *turn) (*jsonrpc.Call, error) {
	for {
		a.mu.Lock()
		pe, s, wait, meeting := a.pe, a.sess, a.keep.Paused(), a.meeting
		over := a.keep.IsClosed() || a.keep.Stopped
		a.mu.Unlock()
		switch {
		case over || t.Ending() != keeper.Running:
			return nil, keeper.ErrStopped
		case wait != nil:
			if !t.await(wait, a.keep.Closed()) {
				return nil, keeper.ErrStopped
			}
		case pe != nil && (pe.ending() || pe.conn.Err() != nil):
			if !t.await(pe.ended, a.keep.Closed()) {
				return nil, keeper.ErrStopped
			}
		case pe != nil && pe.isFrozen(a): // for others: it works in one of its own
			a.giveUp(pe)
		case pe == nil || meeting:
			if err := a.startFor(t); err != nil {
				return nil, err
			}
		case s == nil || a.place.Fresh && t.s == nil && s.used():
			if err := a.converse(t.Asking, pe); err != nil {
				return nil, err
			}
		default:
			call, err := a.send(t, pe, s)
			if call != nil || err != nil {
				return call, err
			}
		}
	}
}

// await waits for one thing of begin; false when the turn is to end.
func (t *turn) await(ready, closed <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	case <-t.Stop:
	case <-t.Context.Done():
	case <-closed:
	}
	return false
}

// startFor starts the process unless the planned try after a failure has.
func (a *agent) startFor(t *turn) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	a.mu.Lock()
	there := a.pe != nil && !a.pe.ending()
	a.mu.Unlock()
	if there {
		return nil
	}
	return a.start(t.Asking)
}

// start joins a process for the agent.
func (a *agent) start(ctx context.Context) error {
	a.mu.Lock()
	a.keep.Tell(fleet.Starting, "")
	a.mu.Unlock()
	pe, err := a.r.pool.join(ctx, a)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, keeper.ErrStopped):
		return err
	case err != nil:
		a.failed("can't start: ", err)
		return err
	}
	a.pe, a.sess = pe, nil
	a.keep.Lacks = strings.Join(pe.proc.Missing(), ", ")
	a.keep.Quiet()
	if a.crashed {
		a.crashed = false
		a.keep.Restarts++
	}
	a.meeting = true
	a.mu.Unlock()
	if err = a.meet(ctx, pe); err != nil {
		_ = a.r.pool.leave(context.WithoutCancel(ctx), pe, a)
	}
	a.mu.Lock()
	a.meeting = false
	switch {
	case a.pe != pe: // it is gone, which was told
		return cmp.Or(err, keeper.ErrStopped)
	case err != nil && ctx.Err() != nil:
		a.pe, a.sess = nil, nil
		return keeper.ErrStopped
	case err != nil:
		a.pe, a.sess, a.keep.Said = nil, nil, pe.lastLines()
		a.failed("can't be used: ", err)
		return err
	}
	a.keep.Greets = false
	a.keep.Up()
	a.sleepLater()
	return nil
}

// meet opens the agent's session in a process that has just started, in its mode: what
// can't do that can't be used.
func (a *agent) meet(ctx context.Context, pe *peer) error {
	if err := a.converse(ctx, pe); err != nil {
		return err
	}
	a.mu.Lock()
	s := a.sess
	a.mu.Unlock()
	if s == nil || s.pe != pe {
		return keeper.ErrStopped
	}
	return s.adjust(ctx)
}

// converse opens the session, in the mode that was asked for.
func (a *agent) converse(ctx context.Context, pe *peer) error {
	patience := a.place.patience(a.r.opt.Patience)
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer stop()
	s, err := a.open(ctx, pe)
	if err != nil {
		return err
	}
	a.mu.Lock()
	old := a.sess
	stale := a.pe != pe
	if !stale {
		a.sess = s
	}
	a.mu.Unlock()
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
	a.mu.Lock()
	if a.pe != pe || a.sess != s || a.keep.Paused() != nil || a.keep.Stopped || a.keep.IsClosed() {
		a.mu.Unlock()
		return nil, nil
	}
	t.s, t.before = s, before
	earlier := append(a.backlog.Take(), a.news...)
	a.news = nil
	s.turn.Store(t)
	s.prompts.Add(1)
	a.mu.Unlock()
	pe.proc.Serves(t.Prompt.TaskID, true)
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
	if t.Prompt.Past == nil || s.told.Load() {
		return "", nil
	}
	text, err := t.Prompt.Past.Text(t.Asking)
	if err != nil {
		return "", fmt.Errorf("read what the fork goes on from: %w", err)
	}
	return text, nil
}

// now is the turn that it works on, if any.
func (a *agent) now() *keeper.Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn == nil {
		return nil
	}
	return a.turn.Turn
}

// mask hides what its process was given.
func (a *agent) mask() *secret.Mask {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pe == nil {
		return nil
	}
	return a.pe.mask
}

// hear takes what belongs to no place in a turn: it goes to the log of the
// prompt that runs, or of the next one.
func (a *agent) hear(e fleet.Event) {
	a.mu.Lock()
	t := a.turn
	a.mu.Unlock()
	if t != nil && t.emit(e) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if (e.Type == "mode" || e.Type == "usage") && len(a.news) < maxNews { // these are more than lines of a log
		a.news = append(a.news, e)
		return
	}
	a.backlog.Add(e)
}

// maxNews bounds what is kept between prompts beside the log.
const maxNews = 100

// giveUp leaves a process without waiting for its end.
func (a *agent) giveUp(pe *peer) {
	a.mu.Lock()
	if a.pe == pe {
		a.pe, a.sess = nil, nil
	}
	a.mu.Unlock()
	go func() { _ = a.r.pool.leave(context.Background(), pe, a) }()
}

func (a *agent) Interrupt() { keeper.Interrupt(&a.mu, &a.turn) }

// Stop implements fleet.Handle. Prompts are refused until Restart.
func (a *agent) Stop(ctx context.Context) error {
	return a.keep.Stop(&a.mu, func() error { return a.endProcess(ctx, keeper.ByStop) })
}

// Restart implements fleet.Handle. The process starts again with the next
// prompt, as after Open.
func (a *agent) Restart(ctx context.Context) error {
	return a.keep.Restart(&a.mu, func() error { return a.endProcess(ctx, keeper.ByRestart) }, func() error {
		a.crashed, a.keep.Greets = false, true
		return a.place.machine().available()
	})
}

func (a *agent) Close() error {
	a.mu.Lock()
	a.keep.Close()
	a.mu.Unlock()
	a.unhook()
	if a.unfollow != nil {
		a.unfollow()
	}
	defer a.place.lines.Close()
	return a.endProcess(context.Background(), keeper.ByStop)
}

// endProcess ends the prompt and leaves the process, which ends too unless
// others share it.
func (a *agent) endProcess(ctx context.Context, why keeper.Ending) error {
	a.mu.Lock()
	a.keep.Quiet()
	t := a.turn
	if a.stopStart != nil {
		a.stopStart()
	}
	a.mu.Unlock()
	if t != nil {
		t.End(why, why.String())
	}
	a.starting.Lock() // a start under way is being given up
	a.mu.Lock()
	pe := a.pe
	a.pe, a.sess = nil, nil
	a.mu.Unlock()
	a.starting.Unlock()
	if pe == nil {
		return nil
	}
	if t != nil && pe.isShared() { // let the agent end the prompt by itself
		select {
		case <-t.Gone:
		case <-time.After(a.r.opt.Grace):
		case <-ctx.Done():
		}
	}
	return a.r.pool.leave(ctx, pe, a)
}
