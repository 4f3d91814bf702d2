package terminal

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/drivers/terminal/emulator"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/terminal"
)

const (
	// drainPatience is how long what a program wrote is read after its end.
	drainPatience = 500 * time.Millisecond
	// glance is how often a picture that changes is looked at.
	glance = 50 * time.Millisecond
	// maxWaiting is what may wait for a program that does not read, in bytes.
	maxWaiting = 1 << 20
	// burst is how long a program may keep the emulator at work without a break,
	// which is rest times as long: a flood has a quarter of a processor at most, and
	// keeps what comes of a key waiting for no more than these.
	burst = time.Millisecond
	rest  = 3
)

// session is one program with its terminal.
type session struct {
	*keeper.Run
	a      *agent
	out    *os.File // what it writes
	in     *pipe.Outbox
	screen *emulator.Emulator
	signs  signs
	bell   chan struct{} // one slot: the watch looks
	began  time.Time

	verdict atomic.Pointer[verdict]
	moved   core.Condition // of verdict

	busy bool // the agent was told to be; the watch's own
}

// newSession is for a program that has just started; run follows it.
func newSession(a *agent, run *keeper.Run, from uint64) *session {
	in, out, _ := run.Proc.Streams()
	s := &session{Run: run, a: a, out: out, in: pipe.NewOutboxOf(in, maxWaiting), bell: make(chan struct{}, 1), began: time.Now()}
	s.verdict.Store(&verdict{state: terminal.Working})
	s.screen = emulator.New(a.size, from, emulator.Signals{
		Bell:     func() { s.signs.ring("") },
		Notice:   s.signs.ring,
		Progress: func(on bool) { s.signs.do(func() { s.signs.progress = on }) },
		Hook:     s.signs.heed,
		Prompt:   func(mark byte) { s.signs.do(func() { s.signs.mark = mark }) },
		Reply:    func(data []byte) { _ = s.in.Send(data) }, // a program that does not read misses answers
	})
	return s
}

func (s *session) ring() { loop.Ring(s.bell) }

func (s *session) run() {
	var wg sync.WaitGroup
	wg.Go(s.in.Run)
	drained := core.Side(s.read)
	watch := make(chan struct{})
	wg.Go(func() { s.watch(watch) })

	<-s.Proc.Done()
	s.Finish(drained, drainPatience, 500*time.Millisecond)
	s.in.Close()
	s.Proc.CloseIO()
	<-drained
	close(watch)
	wg.Wait()
	s.Exit = s.Proc.Exit()
	s.moved.Change(func() { s.verdict.Store(&verdict{state: terminal.Ended, touched: s.verdict.Load().touched}) })
	s.screen.Touch()
	s.a.over(s)
	close(s.Over)
	s.a.changes()
}

// Hear takes a line for the log of the prompt that runs, or of the next one.
func (s *session) Hear(e fleet.Event) {
	s.a.Mu.Lock()
	t := s.a.Turn
	if t == nil {
		s.a.Backlog.Add(e)
	}
	s.a.Mu.Unlock()
	if t != nil {
		t.Speak(func() { t.Pass(e) })
	}
}

// read has the emulator understand what the program writes. A flood gets a part of a
// processor: the program waits meanwhile.
func (s *session) read() {
	buf := make([]byte, 4096)
	var work time.Duration
	for {
		asked := time.Now()
		n, err := s.out.Read(buf)
		got := time.Now()
		if got.Sub(asked) > time.Millisecond {
			work = 0
		}
		if n > 0 {
			_, _ = s.screen.Write(buf[:n])
			s.signs.do(func() { s.signs.news = true })
			s.ring()
			s.a.changes()
		}
		if err != nil {
			return
		}
		if work += time.Since(got); work > burst {
			time.Sleep(rest * work)
			work = 0
		}
	}
}

// watch keeps the verdict true.
func (s *session) watch(over <-chan struct{}) {
	next := time.NewTimer(glance)
	defer next.Stop()
	for {
		select {
		case <-s.bell:
			select { // what comes together is looked at once
			case <-time.After(glance):
			case <-over:
				return
			}
		case <-next.C:
		case <-over:
			return
		}
		v := s.signs.judge(time.Now(), s.screen.Tail(8), s.a.own.quiet(), s.prompted)
		was := s.verdict.Load()
		s.moved.Change(func() { s.verdict.Store(&v) }) // time alone may make it enough for who waits
		if was.state != v.state {
			s.screen.Touch()
			s.a.changes()
		}
		s.works(&v)
		next.Reset(max(v.next, glance))
	}
}

// prompted reports whether the screen looks as if the program waited.
func (s *session) prompted() bool {
	if re := s.a.own.prompt; re != nil {
		return re.MatchString(s.screen.Tail(8)) || re.MatchString(s.screen.Before())
	}
	return s.Proc.Foreground() && usualPrompt.MatchString(s.screen.Before())
}

// longWork is how long a program works at what no task asked for until its agent
// takes no task.
const longWork = 2 * time.Second

// works tells the agent's state while no task does.
func (s *session) works(v *verdict) {
	a := s.a
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.Turn != nil || a.Sess != s || s.Ending {
		s.busy = false
		return
	}
	switch busy := v.state == terminal.Working && v.answered && time.Since(v.touched) < longWork; {
	case busy && !s.busy && !s.signs.typedAt().IsZero() && time.Since(s.signs.typedAt()) > longWork:
		s.busy = true
		a.Keep.Tell(fleet.Busy, "")
	case v.state != terminal.Working && s.busy:
		s.busy = false
		a.Keep.Tell(fleet.Idle, "")
	}
}

// typedAt is when something was typed last.
func (s *signs) typedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typed
}

// typeIn hands the program what a terminal sends.
func (s *session) typeIn(data []byte) error {
	s.signs.input(time.Now())
	err := s.in.Send(data)
	s.ring()
	if errors.Is(err, pipe.ErrFull) {
		return core.Errorf(core.Unavailable, "the program does not read what is typed, and too much waits for it")
	}
	return err
}

// until waits until the verdict is as wanted, or the program has ended.
func (s *session) until(ctx context.Context, ok func(v *verdict) bool) error {
	return s.moved.Until(ctx, func() bool {
		v := s.verdict.Load()
		return v.state == terminal.Ended || ok(v)
	})
}
