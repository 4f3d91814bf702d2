package exec

import (
	"context"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

// agent is one open agent: at most one process and one prompt at a time.
type agent struct {
	keeper.Agent[*session, *turn]
	mask   atomic.Pointer[secret.Mask] // of its newest process
	wire   *wire                       // nil for one that speaks our lines
	fresh  bool                        // each task is a conversation of its own
	memory keeper.Memory

	// What a cancelled task's process is written, without the newline, and the signal that
	// its group gets beside it, 0 for none. One that does not handle it ends by it and is
	// started again for the next task.
	cancelLine []byte
	interrupts syscall.Signal

	// Guarded by Mu.
	lasting bool        // its command stays alive between prompts
	owed    fleet.Event // what models took while no prompt ran
	talk    conversation
}

var (
	_ fleet.Handle   = (*agent)(nil)
	_ fleet.Listener = (*agent)(nil)
)

// Prompt implements fleet.Handle. An error means that the agent did not take
// the task; whatever happens after that is an outcome.
func (a *agent) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	t := &turn{Turn: keeper.NewTurn(ctx, p), message: p.Message, uri: p.URI, done: make(chan struct{}), pending: map[string]bool{}}
	if err := a.Take(t); err != nil {
		return task.Outcome{}, err
	}
	defer a.release(t)
	t.Helper.Go(func() { t.Beat(nil) })
	var err error
	if t.past, err = t.Past(); err != nil {
		return t.refused(err), nil
	}
	if a.fresh {
		a.Mu.Lock()
		a.talk = conversation{}
		a.Mu.Unlock()
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
	a.Mu.Lock()
	a.Turn = nil
	s := a.Sess
	if s != nil {
		s.turn.CompareAndSwap(t, nil)
	}
	a.Mu.Unlock()
	if s != nil {
		s.Proc.Serves(t.Prompt.TaskID, false)
	}
}

// begin finds or starts the process for a turn and tells it the task.
func (a *agent) begin(t *turn) (s *session, err error) {
	err = a.Await(t.Turn, func() (<-chan struct{}, <-chan time.Time, error) {
		if s := a.Sess; s != nil && s.turns == 1 && s.idleFor() < leaveTime {
			// Many commands give one result and leave: see whether this one does.
			return s.Over, time.After(leaveTime - s.idleFor()), nil
		}
		var err error
		s, err = a.attach(t)
		return nil, nil, err
	})
	if err != nil {
		return nil, err
	}
	s.Proc.Serves(t.Prompt.TaskID, true)
	return s, nil
}

// attach gives the turn a live process; Mu is held.
func (a *agent) attach(t *turn) (*session, error) {
	a.Keep.Quiet()
	if a.Sess == nil {
		if err := a.launch(t); err != nil {
			a.Keep.Barred("can't start: ", err)
			return nil, err
		}
		defer func(s *session) { go s.run() }(a.Sess)
		a.Keep.Up()
	}
	task := taskLine{Type: "task", TaskID: t.Prompt.TaskID, Message: t.message, URI: t.uri, Traceparent: t.Prompt.Traceparent}
	earlier := a.Backlog.Take()
	if a.Sess.turns == 0 && t.past != "" && a.talk.Session == "" {
		task.Past = t.past
		earlier = append(earlier, fleet.Event{Type: "log", Level: "INFO", Text: t.Prompt.Past.Brief})
	}
	t.mu.Lock()
	t.earlier = append(t.earlier, earlier...)
	if a.owed.Tokens > 0 {
		t.earlier, a.owed = append(t.earlier, a.owed), fleet.Event{}
	}
	t.mu.Unlock()
	if t.reused = a.Sess.turns > 0; t.reused {
		a.Sess.Proc.Mark()
	}
	t.lasting = a.lasting
	a.Sess.turns++
	a.Sess.turn.Store(t)
	return a.Sess, a.Sess.begin(task)
}

// late keeps what models did between prompts for the next.
func (a *agent) late(e fleet.Event) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if e.Type == "usage" {
		e.Tokens += a.owed.Tokens
		a.owed = e
		return
	}
	a.Backlog.Add(e)
}

// launch starts the command, for a turn unless that is nil; Mu is held. One that stays
// is told of each later turn's trace with its task.
func (a *agent) launch(t *turn) error {
	parent := ""
	if t != nil {
		parent = t.Prompt.Traceparent
	}
	run, err := a.Launch(parent, func(spec *cell.Spec, mask *secret.Mask) error {
		if a.wire != nil && a.talk.Session != "" {
			spec.Argv = slices.Concat(spec.Argv, a.wire.resume(a.talk.Session))
		}
		a.mask.Store(mask)
		return nil
	})
	if err != nil {
		return err
	}
	a.Sess = newSession(a, run)
	if a.wire != nil {
		a.Sess.heard = a.wire.hear(a.Sess.Hear, a.talk, t.prefix())
	}
	return nil
}

func (a *agent) Tell(callID, text string) error {
	a.Mu.Lock()
	s := a.Sess
	a.Mu.Unlock()
	if s == nil || a.wire != nil {
		return core.Errorf(core.Unavailable, "no process runs that could hear the question")
	}
	return s.tell("a question", questionLine{Type: "question", CallID: callID, Text: text})
}
