package terminal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/terminal/emulator"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/engine/terminal"
)

const (
	// startPatience is how long a program may take until it waits for the first time;
	// then the task is typed whatever it does.
	startPatience = 15 * time.Second
	// standing is how long the screen of a program stands still that is taken to wait,
	// though it shows no prompt, for its first task.
	standing = 3 * time.Second
	// pasteGap lies between a paste and the enter behind it: programs take one that
	// comes together with it as a part of the text.
	pasteGap = 100 * time.Millisecond
	// deaf is after how long a program that waits without having shown anything of a
	// task is done with it.
	deaf = 5 * time.Second
	// maxScreen is what of the screen's text is in a result, in bytes.
	maxScreen = 64 << 10
)

// turn is one prompt on its way through a program.
type turn struct{ *keeper.Turn }

// Prompt implements fleet.Handle. An error means that the agent did not take
// the task; whatever happens after that is an outcome.
func (a *agent) Prompt(ctx context.Context, p fleet.Prompt) (task.Outcome, error) {
	t := &turn{keeper.NewTurn(ctx, p)}
	if err := a.Take(t); err != nil {
		return task.Outcome{}, err
	}
	defer func() {
		t.Close()
		a.Mu.Lock()
		a.Turn = nil
		a.Mu.Unlock()
	}()
	t.Helper.Go(func() { t.Beat(nil) })
	message := p.Message
	if p.URI != "" {
		message += "\n" + p.URI
	}
	past, err := t.Past()
	if err != nil {
		return t.refused(err), nil
	}
	if past != "" {
		message = past + "\n\n" + message
	}
	s, err := a.begin(t)
	if err != nil {
		return t.refused(err), nil
	}
	s.Proc.Serves(p.TaskID, true)
	defer s.Proc.Serves(p.TaskID, false)
	if err := a.put(t, s, message); err != nil {
		return a.finished(t, s, err), nil
	}
	return a.finished(t, s, a.follow(t, s)), nil
}

// begin finds or starts the program, and waits until it waits.
func (a *agent) begin(t *turn) (s *session, err error) {
	var earlier []fleet.Event
	err = a.Await(t.Turn, func() (_ <-chan struct{}, _ <-chan time.Time, err error) {
		if a.Sess == nil {
			err = a.launch(t.Prompt.Traceparent)
		}
		if s = a.Sess; err == nil {
			earlier = a.Backlog.Take()
		}
		return nil, nil, err
	})
	if err != nil {
		return nil, err
	}
	t.Speak(func() {
		for _, e := range earlier {
			t.Pass(e)
		}
	})
	return s, a.ready(t, s)
}

// ready waits until the program waits for input, or stands still.
func (a *agent) ready(t *turn, s *session) error {
	ctx, stop := context.WithDeadline(t.Asking, s.began.Add(startPatience))
	defer stop()
	err := s.until(ctx, func(v *verdict) bool {
		return v.state == terminal.Waits || v.by == byNothing && time.Since(s.began) > standing && time.Since(v.touched) > standing
	})
	if err != nil && t.Asking.Err() != nil {
		t.End(keeper.ByCancel, keeper.ByCancel.String())
		return keeper.ErrStopped
	}
	return nil
}

// put types the task.
func (a *agent) put(t *turn, s *session, message string) error {
	text := emulator.Pasted(message, s.screen.Pastes())
	if err := s.typeIn([]byte(text)); err != nil {
		return err
	}
	select {
	case <-time.After(pasteGap):
	case <-t.Stop:
	}
	return s.typeIn([]byte("\r"))
}

// follow waits until the program is done with the task, has ended, or the task is
// to end. It passes on what the program asks for meanwhile.
func (a *agent) follow(t *turn, s *session) error {
	typed, asked := time.Now(), ""
	for {
		var v *verdict
		ctx, stop := context.WithTimeout(t.Asking, time.Second)
		err := s.until(ctx, func(now *verdict) bool {
			v = now
			return v.word != asked && v.word != "" || v.by == byBell && asked != v.said+"!" || a.done(v, typed)
		})
		stop()
		v = s.verdict.Load()
		switch {
		case t.Asking.Err() != nil:
			return a.interrupt(t, s)
		case v.state == terminal.Ended:
			return nil
		case a.done(v, typed):
			if v.word == hookFailed {
				return errors.New(cmp.Or(v.said, "the program says that it failed"))
			}
			return nil
		case err != nil: // look again
		case v.by == byBell && asked != v.said+"!":
			asked = v.said + "!"
			t.asks(s.Mask.String(cmp.Or(v.said, "its terminal rang")))
		default:
			if asked = v.word; v.word == hookWaits {
				t.asks(s.Mask.String(cmp.Or(v.said, "it waits for input")))
			}
		}
	}
}

// done reports whether the program is done with what was typed at a time.
func (a *agent) done(v *verdict, typed time.Time) bool {
	switch {
	case v.by == byHook:
		return v.word == hookDone || v.word == hookFailed
	case v.state != terminal.Waits || v.by != byPrompt:
		return false
	}
	return v.touched.After(typed) || time.Since(typed) > deaf
}

// asks tells that a person is wanted.
func (t *turn) asks(text string) {
	t.Speak(func() { t.Pass(fleet.Event{Type: "attention", Text: core.ClipTo(text, 500)}) })
}

// interrupt cancels what the program does; if it does not wait again in time it is
// ended.
func (a *agent) interrupt(t *turn, s *session) error {
	t.End(keeper.ByCancel, keeper.ByCancel.String()) // unless it was ended for another reason
	if !a.ToEnd(s, t.Ending()) {
		typed := time.Now()
		_ = s.typeIn(a.own.interrupt()) // full: then it is ended
		ctx, stop := context.WithTimeout(context.Background(), a.Grace)
		defer stop()
		if s.until(ctx, func(v *verdict) bool {
			return v.state == terminal.Waits && v.by != byBell && (v.touched.After(typed) || v.by == byHook)
		}) == nil {
			return nil
		}
		a.Mu.Lock()
		s.Ending = true
		a.Mu.Unlock()
	}
	t.Cancel() // its end must not wait for a log that does not move
	s.Stop(cell.Grace{Interrupt: -1, Terminate: 300 * time.Millisecond})
	<-s.Over
	return nil
}

// finished makes the outcome of a turn: the last screen is what came of it.
func (a *agent) finished(t *turn, s *session, err error) task.Outcome {
	if s.verdict.Load().state == terminal.Ended {
		<-s.Over
	}
	text := ""
	if pic := a.Screen(0, 0); pic != nil {
		text = core.Cut(pic.Text(), maxScreen)
	}
	t.Speak(func() {
		if text != "" {
			t.Pass(fleet.Event{Type: "message", Text: text})
		}
	})
	out := task.Outcome{Status: task.Succeeded, Text: text}
	result := map[string]any{"screen": text}
	select {
	case <-s.Over:
		result["rc"] = s.Exit.Code
		message := "the program " + s.Exit.Describe()
		if how, died := keeper.Died(s.Exit, message); died {
			out = how
		} else if s.Exit.Code != 0 {
			out = keeper.Failure("agent_exit", message, false)
		}
	default:
		a.Mu.Lock()
		a.Keep.Well()
		a.Mu.Unlock()
	}
	if err != nil {
		out = keeper.Failure("agent_failed", s.Mask.String(err.Error()), false)
	}
	out.Output = core.MustEncode(result)
	return t.OnPurpose(out)
}

// refused makes the outcome of a turn that no program took.
func (t *turn) refused(err error) task.Outcome {
	return t.Refused(err, func(err error) task.Outcome { return keeper.Failure("start_failed", err.Error(), false) })
}
