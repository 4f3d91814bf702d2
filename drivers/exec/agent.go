package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

// agent is one open agent: at most one process and one prompt at a time.
//
// Lock order: agent.mu, then turn.mu, Supervisor's and Process's own. Nothing that can
// block is called with mu held, except the start of a process.
type agent struct {
	sup    *cell.Supervisor
	opt    RuntimeOptions
	tenant string
	spec   cell.Spec
	mask   atomic.Pointer[secret.Mask] // of its newest process
	unhook func() bool
	// unfollow ends what is told of the link to its host; nil without one.
	unfollow func()
	models   *modelproxy.Lines // nil when it is not recorded
	home     *home.Home        // nil for none that is kept
	host     string            // that it runs on; "" for this machine

	mu      sync.Mutex
	sess    *session // until its process, output and leftovers are gone
	turn    *turn
	keep    keeper.Keeper
	lasting bool        // its command stays alive between prompts
	crashed bool        // its last process crashed: the next one is a restart
	backlog Backlog     // output while no prompt runs
	owed    fleet.Event // what models took then
}

var (
	_ fleet.Handle   = (*agent)(nil)
	_ fleet.Listener = (*agent)(nil)
)

// Prompt implements fleet.Handle. An error means that the agent did not take
// the task; whatever happens after that is an outcome.
func (a *agent) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	t := newTurn(ctx, p)
	if err := keeper.Take(&a.keep, &a.mu, &a.turn, t); err != nil {
		return task.Outcome{}, err
	}
	defer a.release(t)
	t.Helper.Go(func() { t.Beat(nil) })
	if p.Past != nil {
		var err error
		if t.past, err = p.Past.Text(t.Asking); err != nil {
			return t.refused(fmt.Errorf("read what the fork goes on from: %w", err)), nil
		}
	}
	for {
		s, err := a.begin(t)
		if err != nil {
			return t.refused(err), nil
		}
		if out, again := a.follow(t, s); !again {
			return out, nil
		}
	}
}

// release ends a turn and frees the agent for the next.
func (a *agent) release(t *turn) {
	t.Close()
	a.mu.Lock()
	a.turn = nil
	s := a.sess
	if s != nil {
		s.turn.CompareAndSwap(t, nil)
	}
	a.mu.Unlock()
	if s != nil {
		s.proc.Serves(t.Prompt.TaskID, false)
	}
}

// begin finds or starts the process for a turn and tells it the task. It
// waits while the agent is paused, and for an earlier process to be gone.
func (a *agent) begin(t *turn) (*session, error) {
	for {
		a.mu.Lock()
		var wait <-chan struct{}
		var limit <-chan time.Time
		switch {
		case a.keep.IsClosed() || a.keep.Stopped || t.Ending() != keeper.Running:
			a.mu.Unlock()
			return nil, errStopped
		case a.keep.Paused() != nil:
			wait = a.keep.Paused()
		case a.sess != nil && (a.sess.ending || a.sess.proc.Ended()):
			wait = a.sess.ended
		case a.sess != nil && a.sess.turns == 1 && a.sess.idleFor() < leaveTime:
			// Many commands give one result and leave: see whether this one does.
			wait, limit = a.sess.ended, time.After(leaveTime-a.sess.idleFor())
		}
		if wait == nil {
			s, err := a.attach(t)
			a.mu.Unlock()
			if err == nil {
				s.proc.Serves(t.Prompt.TaskID, true)
			}
			return s, err
		}
		a.mu.Unlock()
		select {
		case <-wait:
		case <-limit:
		case <-t.Stop:
			return nil, errStopped
		case <-t.Context.Done():
			return nil, errStopped
		case <-a.keep.Closed():
			return nil, errStopped
		}
	}
}

var errStopped = errors.New("ended before it began")

// attach gives the turn a live process; mu is held.
func (a *agent) attach(t *turn) (*session, error) {
	a.keep.Quiet()
	if a.sess == nil {
		if err := a.launch(t.Prompt.Traceparent); err != nil {
			a.keep.Fail("can't start: " + startError(err).Message)
			return nil, err
		}
		defer func(s *session) { go s.run() }(a.sess)
		a.keep.Tell(fleet.Idle, "")
	}
	task := taskLine{Type: "task", TaskID: t.Prompt.TaskID, Message: t.Prompt.Message, URI: t.Prompt.URI, Traceparent: t.Prompt.Traceparent}
	earlier := a.backlog.Take()
	if a.sess.turns == 0 && t.past != "" {
		task.Past = t.past
		earlier = append(earlier, fleet.Event{Type: "log", Level: "INFO", Text: t.Prompt.Past.Brief})
	}
	line, err := core.Encode(task)
	if err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	t.mu.Lock()
	t.earlier = append(t.earlier, earlier...)
	if a.owed.Tokens > 0 {
		t.earlier, a.owed = append(t.earlier, a.owed), fleet.Event{}
	}
	t.mu.Unlock()
	if t.reused = a.sess.turns > 0; t.reused {
		a.sess.proc.Mark()
	}
	t.lasting = a.lasting
	a.sess.turns++
	a.sess.turn.Store(t)
	if err := a.sess.send(line); err != nil {
		return nil, err
	}
	return a.sess, nil
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

// late keeps what models did between prompts for the next.
func (a *agent) late(e fleet.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Type == "usage" {
		e.Tokens += a.owed.Tokens
		a.owed = e
		return
	}
	a.backlog.Add(e)
}

// launch starts the command, for a turn of a trace unless parent is ""; mu is
// held. One that stays is told of each later turn's trace with its task.
func (a *agent) launch(parent string) error {
	spec := a.spec
	if a.home != nil {
		if err := a.home.Furnish(); err != nil {
			return err
		}
		if e, has := a.home.LoggedIn(); has {
			a.backlog.Add(e)
		}
	}
	spec.Env = cell.Traced(spec.Env, parent)
	env, mask, err := a.opt.Secrets(context.Background(), a.tenant, spec.Env)
	if err != nil {
		return err
	}
	var held []string
	spec.Env, held = a.models.Conceal(env)
	a.mask.Store(mask)
	spec.Keep = &cell.Keep{Stdout: true, Mask: mask}
	proc, err := a.start(spec)
	if err != nil {
		return err
	}
	if a.crashed {
		a.crashed = false
		a.keep.Restarts++
	}
	a.sess = newSession(a, proc, mask)
	a.keep.Lacks = strings.Join(proc.Missing(), ", ")
	if e, lacks := keeper.Unheld(proc.Missing()); lacks {
		a.backlog.Add(e)
	}
	if e, has := keeper.Placeheld(held); has {
		a.backlog.Add(e)
	}
	return nil
}

func (a *agent) Tell(callID, text string) error {
	a.mu.Lock()
	s := a.sess
	a.mu.Unlock()
	if s == nil {
		return core.Errorf(core.Unavailable, "no process runs that could hear the question")
	}
	line, err := core.Encode(questionLine{Type: "question", CallID: callID, Text: text})
	if err != nil {
		return fmt.Errorf("encode a question: %w", err)
	}
	return s.send(line)
}

func (a *agent) Interrupt() { keeper.Interrupt(&a.mu, &a.turn) }

// Pause implements fleet.Handle. An agent without a process is paused by
// being told: a prompt or a restart then waits for Resume.
func (a *agent) Pause(ctx context.Context) error {
	return keeper.Pause(ctx, &a.keep, &a.mu, &a.sess)
}

func (a *agent) Resume(ctx context.Context) error {
	return keeper.Resume(ctx, &a.keep, &a.mu, &a.sess)
}

// Stop implements fleet.Handle. Prompts are refused until Restart.
func (a *agent) Stop(ctx context.Context) error {
	return a.keep.Stop(&a.mu, func() error { return a.endProcess(ctx, keeper.ByStop) })
}

// Restart implements fleet.Handle. The command runs again with the next
// prompt, as after Open.
func (a *agent) Restart(ctx context.Context) error {
	return a.keep.Restart(&a.mu, func() error { return a.endProcess(ctx, keeper.ByRestart) }, func() error {
		a.lasting, a.crashed = false, false
		return a.available()
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
	defer a.models.Close()
	return a.endProcess(context.Background(), keeper.ByStop)
}

// endProcess ends the prompt and the process, and waits until both are gone.
func (a *agent) endProcess(ctx context.Context, why keeper.Ending) error {
	a.mu.Lock()
	a.keep.Quiet()
	t, s := a.turn, a.sess
	if s != nil {
		s.ending = true
	}
	if t != nil {
		t.End(why, why.String())
	}
	a.mu.Unlock()
	if s == nil {
		return nil
	}
	return keeper.Ended(ctx, func() error {
		s.stop(cell.Grace{Interrupt: 500 * time.Millisecond, Terminate: time.Second})
		return s.errs
	}, s.ended)
}
