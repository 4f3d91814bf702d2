package serve

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"swarmdeck/engine/core"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/operator"
)

// Options are a Server's.
type Options struct {
	// Run carries out a session and returns its exit code. It ends soon after
	// its context does.
	Run func(ctx context.Context, s *Session) int
	// Split cuts the line of a client into words.
	Split func(line string) ([]string, error)
	// Find tells where processes of this machine come from; nil takes each for
	// a person's.
	Find Finder
	// Limits are what clients may take.
	Limits Limits
	// Patience is how long Close waits for sessions whose command does not heed
	// its end; 0 means 5 s.
	Patience time.Duration
	// Reads says that a line changes nothing, so that it may be cut off at any time;
	// nil is none.
	Reads func(args []string) bool
	// Failed is told of a session that panicked.
	Failed func(err error)
}

// Server runs sessions. Its methods may be called at any time by anyone.
type Server struct {
	opt    Options
	lim    Limits
	ctx    context.Context
	cancel context.CancelFunc
	door   Door // of those from elsewhere

	mu       sync.Mutex
	servers  []*ssh.Server
	guards   []*guard
	ears     []net.Listener
	sessions int
	byKey    map[string]int         // sessions
	lines    map[*Session]time.Time // those that write, and when they began
	ended    bool
	wg       sync.WaitGroup
}

// New makes a server that serves nothing yet.
func New(o Options) *Server {
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{opt: o, lim: o.Limits.filled(), ctx: ctx, cancel: cancel, byKey: map[string]int{}, lines: map[*Session]time.Time{}}
}

// handshake bounds how long a process of this machine may take to begin.
const handshake = 10 * time.Second

// Local serves this user's processes by the listener that Listen made, until
// Close. Whoever can open the socket is this user: no other proof is asked for.
// Whether a person or a run of the engine calls is asked of the kernel when a
// connection comes, and left to Run to act on.
func (s *Server) Local(l net.Listener, name string) error {
	type cameFrom struct{}
	srv := &ssh.Server{
		HandshakeTimeout: handshake,
		ConnCallback: func(ctx ssh.Context, conn net.Conn) net.Conn {
			ctx.SetValue(cameFrom{}, s.find(conn))
			return conn
		},
	}
	return s.add(l, srv, nil, func(ctx ssh.Context) (context.Context, Who) {
		from, _ := ctx.Value(cameFrom{}).(operator.Origin)
		return ctx, Who{Name: name, Role: "admin", Local: true, Origin: from}
	})
}

// add has a server take connections; g bounds them, nil does not; who tells
// whose one is.
func (s *Server) add(l net.Listener, srv *ssh.Server, g *guard, who func(ssh.Context) (context.Context, Who)) error {
	if len(srv.HostSigners) == 0 {
		signer, err := newHostKey()
		if err != nil {
			return err
		}
		srv.AddHostKey(signer)
	}
	srv.ChannelHandlers = map[string]ssh.ChannelHandler{
		"session": func(_ *ssh.Server, conn *gossh.ServerConn, in gossh.NewChannel, ctx ssh.Context) {
			if done, ok := few(ctx, conn); ok {
				defer done()
				sessions, who := who(ctx)
				s.open(sessions, conn, who, in, func(t *Session) {
					t.Signer = signer(ctx, conn)
					if g != nil {
						g.letIn(ctx)
					}
				})
				return
			}
			_ = in.Reject(gossh.ResourceShortage, "too many sessions in one connection")
		},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errors.Join(errors.New("the server has ended"), l.Close())
	}
	s.servers, s.ears = append(s.servers, srv), append(s.ears, l)
	if g != nil {
		s.guards = append(s.guards, g)
	}
	s.wg.Go(func() { _ = srv.Serve(l) }) // ends at Close
	return nil
}

func newHostKey() (gossh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	return gossh.NewSignerFromKey(key)
}

// Close ends every session and returns when all of them have, or with an error
// when some command does not heed its end. A client is told nothing: it sees
// its connection end without an exit code, and looks for who serves next.
func (s *Server) Close() error {
	s.mu.Lock()
	servers, ears, guards := s.servers, s.ears, s.guards
	s.servers, s.ears, s.guards, s.ended = nil, nil, nil, true
	s.mu.Unlock()
	var errs []error
	for _, l := range ears { // whoever comes now looks for another engine
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.drain()
	s.cancel()
	for _, srv := range servers {
		if err := srv.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, g := range guards { // nor does it know those that have not said who they are
		g.end()
	}
	if !core.Within(core.Side(s.wg.Wait), s.opt.Patience) {
		s.mu.Lock()
		errs = append(errs, fmt.Errorf("%d sessions go on %s after they were to end", s.sessions, s.opt.Patience))
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// begin takes a place for a session; done gives it back. Else refused is what
// to tell the client.
func (s *Server) begin(key string) (done func(), refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case key != "" && s.byKey[key] >= s.lim.PerKey:
		return nil, fmt.Sprintf("your key has %d sessions open, as many as one may; end one, or try again later", s.byKey[key])
	case s.sessions >= s.lim.Sessions:
		return nil, "too many sessions; try again later"
	}
	s.sessions++
	s.byKey[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions--
		if s.byKey[key]--; s.byKey[key] == 0 {
			delete(s.byKey, key)
		}
	}, ""
}

// exitBusy is the exit code of a client that found no place: temporary
// failure, as in sysexits.h.
const exitBusy = 75

// Moved is what Run returns for a session of which it did nothing, as another engine has
// what it is about: its client looks for that one.
const Moved = -3

// exitMoved is the exit code that tells it, to another engine alone.
const exitMoved = 76

// Gone is what Run returns for a session whose engine went away: its client sees
// what it sees when this one does, an end without an exit code.
const Gone = -2

// handle runs one session.
func (s *Server) handle(ctx context.Context, c *channel, t *Session, line string, over func()) {
	defer over()
	done, refused := s.begin(t.Who.Proof())
	if refused != "" {
		fmt.Fprintf(t.Stderr, "swarmdeck: %s\n", refused)
		c.exit(exitBusy)
		return
	}
	code := s.attend(ctx, c, t, line)
	done() // before the client knows: its next session finds the place
	switch {
	case s.ctx.Err() != nil: // it was cut off rather than having come to its end
	case code == Gone:
		_ = c.Close()
	case code == Moved:
		c.exit(exitMoved)
	default:
		c.exit(code)
	}
}

// attend runs a session that has a place.
func (s *Server) attend(ctx context.Context, c *channel, t *Session, line string) int {
	defer context.AfterFunc(s.ctx, func() { c.cancel(nil) })()
	if t.Terminal != nil && s.lim.Idle > 0 && !t.Who.Local {
		late := closing(fmt.Sprintf("closed after %s without a key", s.lim.Idle))
		keys := &waking{Reader: t.Stdin, after: s.lim.Idle, timer: time.AfterFunc(s.lim.Idle, func() { c.cancel(late) })}
		defer keys.timer.Stop()
		t.Stdin = keys
	}
	code := s.run(ctx, c, t, line)
	if why, ok := context.Cause(ctx).(closing); ok && why != errStalled {
		fmt.Fprintf(t.Stderr, "swarmdeck: %v\n", why)
		if code >= 0 {
			code = max(code, 1)
		}
	}
	return code
}

// run carries a session out; a panic in it ends no other.
func (s *Server) run(ctx context.Context, c *channel, t *Session, line string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = 1
			fmt.Fprintln(t.Stderr, "swarmdeck: this session failed inside")
			if s.opt.Failed != nil {
				s.opt.Failed(fmt.Errorf("a session of %s panicked: %v\n%s", t.Who.Name, r, debug.Stack()))
			}
		}
	}()
	err := c.bad
	if err == nil && !t.Who.Local {
		err = s.door.settle(&t.Who)
	}
	if err != nil {
		fmt.Fprintf(t.Stderr, "swarmdeck: %v\n", err)
		return 1
	}
	if !t.Who.Local {
		c.follow(ctx, s.door.Follow(t.Who, ctx.Done()))
	}
	args, err := s.opt.Split(line)
	if err != nil {
		fmt.Fprintf(t.Stderr, "swarmdeck: %v\n", err)
		return 2
	}
	t.Args, t.Line = args, line
	return s.opt.Run(ctx, t)
}

// channels are the sessions of a connection.
type channels struct {
	mu   sync.Mutex
	open int
	late *time.Timer // ends a connection that has none
}

// few takes a place for a session among its connection's.
func few(ctx ssh.Context, conn *gossh.ServerConn) (done func(), ok bool) {
	ctx.Lock()
	all, _ := ctx.Value(channels{}).(*channels)
	if all == nil {
		all = &channels{late: time.AfterFunc(lull, func() { _ = conn.Close() })}
		ctx.SetValue(channels{}, all)
		context.AfterFunc(ctx, func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			all.late.Stop()
		})
	}
	ctx.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == maxChannels {
		return nil, false
	}
	all.open++
	all.late.Stop()
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.open--; all.open == 0 && ctx.Err() == nil {
			all.late.Reset(lull)
		}
	}, true
}

// A line that began less than young ago has as long as grace to come to its end when
// the engine does: of a write that is cut off its caller can't tell whether it happened.
const (
	young = 2 * time.Second
	grace = 2 * time.Second
)

// take takes a session down, before its client is told that the line was taken, until
// over is called once it was told how it ended. Not ok is that no session begins any more.
func (s *Server) take(t *Session, line string) (over func(), ok bool) {
	writes := t.Terminal == nil
	if args, err := s.opt.Split(line); writes && err == nil && s.opt.Reads != nil {
		writes = !s.opt.Reads(args)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.wg.Add(1)
	if writes {
		s.lines[t] = time.Now()
	}
	return func() {
		s.mu.Lock()
		delete(s.lines, t)
		s.mu.Unlock()
		s.wg.Done()
	}, true
}

// drain waits for the writes that have just begun.
func (s *Server) drain() {
	brisk := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, began := range s.lines {
			if time.Since(began) < young {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(grace); brisk() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}
