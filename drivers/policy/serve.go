package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"swarmdeck/engine/judge"
)

const (
	// lifetime is how many decisions a program that stays makes, and worked
	// how long it may take for them: its bound on the processor counts over
	// its life, so it is started anew well before that.
	lifetime = 500
	worked   = maxCPU * time.Second / 2

	// A program that fails again and again is started more and more seldom.
	firstRest = 200 * time.Millisecond
	mostRest  = 30 * time.Second
)

// servers are the programs that stay, by their name.
type servers struct {
	idle time.Duration

	mu     sync.Mutex
	byName map[string]*server
	closed bool
	ending sync.WaitGroup // of those that were released
}

// server is one program that stays. It answers one question at a time.
type server struct {
	released atomic.Bool   // whoever waits for it looks for another one
	timer    *time.Timer   // ends it when nobody asks
	turn     chan struct{} // holds a token while nobody asks; it guards the rest

	proc   *process
	life   int       // questions that its newest process was asked
	failed int       // lives in a row that ended in a fault
	why    string    // the last did
	until  time.Time // it rests
}

func (s *servers) init(idle time.Duration) { s.byName, s.idle = map[string]*server{}, idle }

// take waits for the turn to ask a program. Its other end is give.
func (s *servers) take(ctx context.Context, name string) (*server, error) {
	for {
		one, err := s.of(name)
		if err != nil {
			return nil, err
		}
		select {
		case <-one.turn:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !one.released.Load() {
			return one, nil
		}
		one.turn <- struct{}{}
	}
}

func (s *servers) give(one *server) {
	one.timer.Reset(s.idle)
	one.turn <- struct{}{}
}

func (s *servers) of(name string) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	one := s.byName[name]
	if one == nil {
		one = &server{turn: make(chan struct{}, 1)}
		one.turn <- struct{}{}
		one.timer = time.AfterFunc(s.idle, func() { s.rest(name, one) })
		s.byName[name] = one
	}
	return one, nil
}

// rest releases a program that nobody asks.
func (s *servers) rest(name string, one *server) {
	select {
	case <-one.turn:
		one.turn <- struct{}{}
		s.release(name, one)
	default: // it is asked just now, and the timer begins anew
	}
}

// release ends a program, after the question that it is at.
func (s *servers) release(name string, only *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byName[name]
	if one == nil || only != nil && one != only {
		return
	}
	delete(s.byName, name)
	one.leave()
	s.ending.Go(one.finish)
}

// leave sends away who waits for it, so that finish need not wait for them.
func (one *server) leave() {
	one.released.Store(true)
	one.timer.Stop()
}

func (one *server) finish() {
	<-one.turn // a question ends by its deadline
	one.end()
	one.turn <- struct{}{}
}

func (s *servers) close() {
	s.mu.Lock()
	all := s.byName
	s.byName, s.closed = nil, true
	s.mu.Unlock()
	for _, one := range all {
		one.leave()
	}
	for _, one := range all {
		one.finish()
	}
	s.ending.Wait()
}

func (r *Runner) Release(p *judge.Program) { r.servers.release(p.Name, nil) }

// ask puts one line to a program that stays and reads one.
func (r *Runner) ask(ctx context.Context, p *judge.Program, input []byte) judge.Reply {
	ctx, late := context.WithTimeout(ctx, r.opt.Deadline)
	defer late()
	one, err := r.servers.take(ctx, p.Name)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return judge.FaultReply(judge.ReasonTimeout, "other decisions kept it busy until the deadline")
	case errors.Is(err, context.Canceled):
		return judge.FaultReply(judge.ReasonError, "the decision was given up")
	case err != nil:
		return judge.FaultReply(judge.ReasonError, err.Error())
	}
	defer r.servers.give(one)
	if one.proc != nil && one.proc.tired() {
		one.end()
	}
	reply, err := r.put(ctx, one, p, input)
	if errors.Is(err, errEnded) && one.life > 1 { // it may have ended long before the question
		reply, err = r.put(ctx, one, p, input)
	}
	switch {
	case err == nil:
		one.failed = 0
	case errors.Is(err, context.Canceled), errors.Is(err, errRests): // that is not its fault
	default:
		one.why = reply.Rationale
		if one.failed++; one.failed > 1 {
			one.until = time.Now().Add(min(firstRest<<min(one.failed-2, 10), mostRest))
		}
	}
	return reply
}

// errRests means that a program is not started yet.
var errRests = errors.New("it rests")

// put is one question to a program, which is started where that is needed and
// ended by an error.
func (r *Runner) put(ctx context.Context, one *server, p *judge.Program, input []byte) (judge.Reply, error) {
	if one.proc == nil {
		if rest := time.Until(one.until); rest > 0 {
			return judge.FaultReply(judge.ReasonError, fmt.Sprintf("it failed %d times in a row, and is started again in %s; the last time %s",
				one.failed, rest.Round(100*time.Millisecond), one.why)), errRests
		}
		var err error
		if one.proc, err = r.stay(ctx, p); err != nil {
			return judge.FaultReply(judge.ReasonError, err.Error()), err
		}
	}
	reply, err := one.proc.turn(ctx, input, r.opt.Deadline)
	reply.Unsandboxed, reply.Stderr = !one.proc.safe, sanitised(one.proc.said.Take())
	one.life = one.proc.done
	if err != nil { // what comes next from it may be the answer to this question
		one.end()
	}
	return reply, err
}

// end kills the process and waits for it.
func (one *server) end() {
	if p := one.proc; p != nil {
		one.proc = nil
		p.end()
	}
}
