package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/host"
)

// How a link is tried for again, and how long its steps may take.
const (
	firstRest   = 250 * time.Millisecond
	longRest    = 15 * time.Second
	stepTime    = 30 * time.Second        // without a word of the other side
	copyTime    = 20 * time.Minute        // of the whole program
	startTime   = 1500 * time.Millisecond // until a start goes on unanswered
	maxReason   = 400                     // bytes
	lookForLost = 200 * time.Millisecond
)

// link is the link to one host, while there is one and while there is none.
//
// Lock order: link.mu, then Process.mu.
type link struct {
	pool  *Pool
	at    place
	h     host.Host
	id    string
	lease time.Duration

	mu      sync.Mutex
	st      host.Link
	session *yamux.Session // nil while there is none
	boot    string         // of the keeper that was linked to last
	program string         // where that has it
	attempt uint64
	heard   time.Time // the newest beat
	changed chan struct{}
	runs    map[string]*Process
	closed  bool
}

func newLink(p *Pool, at place, h host.Host) *link {
	return &link{
		pool: p, at: at, h: h, id: id(h), lease: time.Duration(h.LeaseS) * time.Second,
		st: host.Link{State: host.Connecting, Since: time.Now().UTC()}, changed: make(chan struct{}), runs: map[string]*Process{},
		attempt: uint64(time.Now().UnixNano()), // past that of an earlier link of this engine
	}
}

func (l *link) state() host.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.st
	st.Runs = len(l.runs)
	return st
}

// now notes a state, and tells those who wait for another. The lock is held.
func (l *link) now(state, reason string) {
	if l.st.State != state {
		l.st.Since = time.Now().UTC()
	}
	l.st.State, l.st.Reason = state, core.ClipTo(reason, maxReason)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) set(state, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now(state, reason)
}

// run links until ctx ends.
func (l *link) run(ctx context.Context) error {
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watch.Go(func() { l.giveUp(ctx) })
	for failed := 0; ; failed++ {
		began := time.Now()
		err := l.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.As(err, new(otherVersion)) {
			failed = -1 // its own is begun at once
			continue
		}
		if time.Since(began) > longRest {
			failed = 0
		}
		rest := core.Backoff(failed, firstRest, longRest)
		if core.Within(ctx.Done(), rest/2+rand.N(rest/2)) {
			return nil
		}
	}
}

// close ends what still runs, for this side.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	runs := slices.Collect(maps.Values(l.runs))
	l.now(host.Unlinked, "")
	l.mu.Unlock()
	for _, p := range runs {
		p.lose("was left to its host when the link was given up")
	}
}

// giveUp declares those lost that their host has ended by now: its lease was over
// earlier than it is here.
func (l *link) giveUp(ctx context.Context) {
	tick := time.NewTicker(lookForLost)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		var lost []*Process
		if l.session == nil && len(l.runs) > 0 && time.Since(l.heard) > l.lease+l.pool.opt.Grace {
			lost = slices.Collect(maps.Values(l.runs))
		}
		l.mu.Unlock()
		for _, p := range lost {
			p.lose(fmt.Sprintf("is lost: its host was away for longer than %s", l.lease))
		}
	}
}

// otherVersion is the error of a link to the keeper of another program, which was
// ended.
type otherVersion struct{ error }

// reach runs fn with a connection to the host's keeper, and its first stream, whose
// steps have a deadline. Why the link was lost meanwhile, what leads there says best.
func (l *link) reach(ctx context.Context, fn func(*yamux.Session, *yamux.Stream) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	conn, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	session, err := yamux.Client(conn, wire.Config())
	if err != nil {
		return err
	}
	defer session.Close()
	stream, err := session.OpenStream()
	if err != nil {
		return err
	}
	_ = stream.SetDeadline(time.Now().Add(stepTime))
	if err = fn(session, stream); isLost(err) {
		session.Close()
		conn.Close()
		if said := conn.said(); said != "" {
			err = errors.New(said)
		}
	}
	return err
}

// once is one link, from its beginning to its end.
func (l *link) once(ctx context.Context) error {
	err := l.reach(ctx, func(session *yamux.Session, stream *yamux.Stream) error {
		c := wire.New(stream, wire.MaxFromHost)
		if err := l.greet(ctx, c, session); err != nil {
			return err
		}
		_ = stream.SetWriteDeadline(time.Time{})
		defer func() {
			l.mu.Lock()
			l.session = nil
			l.mu.Unlock()
		}()
		go l.carry(session) // until that ends
		return l.listen(c, stream)
	})
	if ctx.Err() == nil {
		l.failed(err)
	}
	return err
}

// isLost says that an error tells no more than that the link is gone.
func isLost(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, yamux.ErrSessionShutdown, yamux.ErrTimeout, yamux.ErrConnectionReset},
		func(lost error) bool { return errors.Is(err, lost) })
}

// failed notes that there is no link.
func (l *link) failed(err error) {
	why := desk.Text(err.Error(), maxReason)
	if isLost(err) {
		why = "the link is lost"
	}
	l.mu.Lock()
	state := host.Refused
	if len(l.runs) > 0 {
		state = host.Away
	}
	was := l.st.State
	if l.now(state, why); l.closed {
		was = state
	}
	l.mu.Unlock()
	if was != state {
		l.pool.tell(l.at, away(l.at.name, why))
	}
}

// greet finds out whom the link leads to, and what is still there.
func (l *link) greet(ctx context.Context, c *wire.Conn, session *yamux.Session) error {
	mine, err := l.pool.digest()
	if err != nil {
		return err
	}
	epoch, err := l.pool.epoch(ctx, l.at.tenant)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.attempt++
	hello := wire.Hello{Version: wire.Version, Engine: l.pool.engine, Epoch: epoch, Leased: l.pool.opt.Leased, Attempt: l.attempt, LeaseMS: l.lease.Milliseconds(), Runs: slices.Collect(maps.Keys(l.runs))}
	l.mu.Unlock()
	if err := c.Send(wire.Control{Hello: &hello}); err != nil {
		return err
	}
	var f wire.Control
	if err := c.ReadAny(&f); err != nil {
		return err
	}
	w := f.Welcome
	if w == nil {
		return fmt.Errorf("the host's keeper does not answer: %w", wire.ErrFrame)
	}
	if w.Newer > 0 {
		l.replaced()
	}
	if w.Error != "" {
		return errors.New(desk.Text(w.Error, maxReason))
	}
	if w.Version != wire.Version || w.Digest != mine.digest {
		if err := end(c, wire.End{Epoch: epoch}); err != nil {
			return err
		}
		return otherVersion{errors.New("the keeper of another version was there")}
	}
	if err := w.Check(); err != nil {
		return err
	}
	if err := l.collect(ctx, c, w.Kept); err != nil {
		return err
	}
	l.mu.Lock()
	var lost []*Process
	for id, p := range l.runs {
		if !slices.Contains(w.Runs, id) && !p.mayBegin(w.Boot) {
			lost = append(lost, p)
		}
	}
	l.boot, l.program, l.heard, l.session, l.st.Lacks = w.Boot, w.Program, time.Now(), session, w.Lacks
	l.now(host.Up, "")
	l.mu.Unlock()
	for _, p := range lost {
		p.lose("is lost: its host does not have it any more")
	}
	agents := []string{}
	if l.pool.opt.Agents != nil {
		agents = append(agents, l.pool.opt.Agents(l.at.tenant, l.at.name)...)
	}
	if err := c.Send(wire.Control{Agents: agents}); err != nil {
		return err
	}
	l.pool.tell(l.at, nil)
	return nil
}

// end has a keeper end all that it holds, and waits for that.
func end(c *wire.Conn, e wire.End) error {
	if err := c.Send(wire.Control{End: &e}); err != nil {
		return err
	}
	for {
		var f wire.Control
		if err := c.ReadAny(&f); err != nil {
			return err
		}
		if f.Ended != nil {
			if f.Ended.Error != "" {
				return errors.New(desk.Text(f.Ended.Error, maxReason))
			}
			for c.ReadAny(&f) == nil { // it ends, and the link with it
			}
			return nil
		}
	}
}

// listen answers the keeper's beats until there are none.
func (l *link) listen(c *wire.Conn, stream *yamux.Stream) error {
	_, most := wire.Beats(l.lease)
	for {
		_ = stream.SetReadDeadline(time.Now().Add(most))
		var f wire.Control
		if err := c.ReadAny(&f); err != nil {
			return err
		}
		if f.Beat == 0 {
			continue
		}
		l.mu.Lock()
		l.heard = time.Now()
		l.mu.Unlock()
		if err := c.Send(l.pool.answer(f.Beat)); err != nil {
			return err
		}
	}
}

func (l *link) available() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil {
		return away(l.at.name, l.st.Reason)
	}
	return nil
}

// start begins a process there. One that its host has not answered for soon is
// taken to have begun: it says itself if it has not.
func (l *link) start(spec cell.Spec, o keeper.Hosted) (*Process, error) {
	l.mu.Lock()
	switch {
	case l.session == nil || l.closed:
		defer l.mu.Unlock()
		return nil, away(l.at.name, l.st.Reason)
	case len(l.runs) >= wire.MaxRuns:
		defer l.mu.Unlock()
		return nil, core.Errorf(core.Unavailable, "host %s holds %d processes already", l.at.name, len(l.runs))
	}
	p, err := newProcess(l, spec, o)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	l.runs[p.id] = p
	l.mu.Unlock()
	l.pool.came(p)
	p.begin()
	select {
	case err = <-p.begun:
	case <-p.over:
		err = errors.New(p.Exit().Describe())
	case <-time.After(startTime):
	}
	if err != nil {
		p.CloseIO()
		return nil, fmt.Errorf("start %s on host %s: %w", strings.ToValidUTF8(spec.Argv[0], "?"), l.at.name, err)
	}
	return p, nil
}

// forget is told of a process that is over.
func (l *link) forget(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, p.id)
	if l.st.State == host.Away && len(l.runs) == 0 {
		l.now(host.Refused, l.st.Reason)
	}
}

// linked waits for a session other than last; nil once the process is over.
func (l *link) linked(p *Process, last *yamux.Session) *yamux.Session {
	for {
		l.mu.Lock()
		s, changed := l.session, l.changed
		l.mu.Unlock()
		if s != nil && s != last {
			return s
		}
		select {
		case <-changed:
		case <-p.over:
			return nil
		}
	}
}

// isUp reports whether there is a link now.
func (l *link) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != nil
}
