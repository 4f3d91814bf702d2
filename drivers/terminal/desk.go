package terminal

import (
	"context"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/terminal"
)

// changes wakes whoever waits for another picture.
func (a *agent) changes() {
	a.seen.Lock()
	defer a.seen.Unlock()
	if a.asked {
		close(a.changed)
		a.changed, a.asked = make(chan struct{}), false
	}
}

func (a *agent) Changed() <-chan struct{} {
	a.seen.Lock()
	defer a.seen.Unlock()
	a.asked = true
	return a.changed
}

func (a *agent) Screen(known uint64, back int) *terminal.Screen {
	a.Mu.Lock()
	s, size := a.shown, a.size
	a.Mu.Unlock()
	if s == nil {
		return &terminal.Screen{Size: size, State: terminal.Ended}
	}
	pic := s.screen.Screen(known, back)
	if pic == nil {
		return nil
	}
	pic.State = s.verdict.Load().state
	pic.Runs = pic.State != terminal.Ended && !s.Proc.Ended()
	pic.Unseen = pic.Runs && s.Proc.Unseen()
	pic.Title = s.Mask.String(pic.Title)
	masked(pic, s.Mask)
	return pic
}

func (a *agent) Rev() uint64 {
	if s := a.newest(); s != nil {
		return s.screen.Rev()
	}
	return 0
}

func (a *agent) Unseen() bool {
	s := a.newest()
	return s != nil && !s.Proc.Ended() && s.Proc.Unseen()
}

// newest is the session whose picture is shown; nil before the first.
func (a *agent) newest() *session {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.shown
}

// masked takes values of secrets from a picture, also those that go on in the next line.
func masked(pic *terminal.Screen, mask *secret.Mask) {
	if mask == nil {
		return
	}
	texts := core.Map(pic.Lines, func(l terminal.Line) string { return l.Text() })
	put := func(i int, text string) {
		text = core.ClipTo(text, pic.Cols)
		pic.Lines[i] = terminal.Line{{Text: text, Cells: len(text)}}
		texts[i] = ""
	}
	for i, text := range texts {
		if clean := mask.String(text); clean != text {
			put(i, clean)
		}
	}
	for i := range len(texts) - 1 {
		if both := texts[i] + texts[i+1]; both != "" && mask.String(both) != both {
			put(i, "[secret]")
			put(i+1, "[secret]")
		}
	}
}

func (a *agent) Begin(ctx context.Context) error {
	for {
		a.Mu.Lock()
		err := a.Keep.Takes(nil)
		var wait <-chan struct{}
		switch {
		case err != nil:
		case a.Keep.Paused() != nil:
			err = core.Errorf(core.Conflict, "the agent is paused")
		case a.Sess != nil && (a.Sess.Ending || a.Sess.Proc.Ended()):
			wait = a.Sess.Over
		case a.Sess == nil:
			err = a.launch("")
		}
		a.Mu.Unlock()
		if wait == nil {
			a.changes()
			return err
		}
		select {
		case <-wait:
		case <-a.Keep.Closed():
			return keeper.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *agent) Type(in []terminal.Input) error {
	a.Mu.Lock()
	s, paused := a.Sess, a.Keep.Paused() != nil
	a.Mu.Unlock()
	switch {
	case s == nil || s.Proc.Ended():
		return core.Errorf(core.Unavailable, "no program runs in the terminal")
	case paused:
		return core.Errorf(core.Conflict, "the agent is paused")
	}
	data, err := s.screen.Keys(in)
	if err != nil || len(data) == 0 {
		return err
	}
	return s.typeIn(data)
}

func (a *agent) Masked(text string) string {
	if s := a.newest(); s != nil {
		return s.Mask.String(text)
	}
	return text
}

func (a *agent) Resize(to terminal.Size) error {
	to = to.Bounded()
	a.Mu.Lock()
	same := a.size == to
	a.size = to
	s := a.Sess
	a.Mu.Unlock()
	if same || s == nil || s.Proc.Ended() {
		return nil
	}
	s.screen.Resize(to)
	a.changes()
	return s.Proc.Resize(to)
}
