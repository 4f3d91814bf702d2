package serve

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// Options are a Server's.
type Options struct {
	// Run carries out a session and returns its exit code. It ends soon after
	// its context does.
	Run func(ctx context.Context, s *Session) int
	// Split cuts the line of a client into words.
	Split func(line string) ([]string, error)
	// MaxSessions bounds the sessions at once; one more is refused. 0 means 64.
	MaxSessions int
	// Failed is told of a session that panicked.
	Failed func(err error)
}

// Server runs sessions. Its methods may be called at any time by anyone.
type Server struct {
	opt    Options
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	settle func(Who) error // of those from elsewhere

	mu      sync.Mutex
	servers []*ssh.Server
	ears    []net.Listener
	ended   bool
	wg      sync.WaitGroup
}

// New makes a server that serves nothing yet.
func New(o Options) *Server {
	if o.MaxSessions == 0 {
		o.MaxSessions = 64
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{opt: o, ctx: ctx, cancel: cancel, slots: make(chan struct{}, o.MaxSessions)}
}

// handshake bounds how long a client may take to say who it is.
const handshake = 10 * time.Second

// Local serves this user's processes by the listener that Listen made, until
// Close. Whoever can open the socket is this user: no other proof is asked for.
func (s *Server) Local(l net.Listener, operator string) error {
	who := Who{Name: operator, Role: "admin", Local: true}
	return s.add(l, &ssh.Server{}, func(ctx ssh.Context) (context.Context, Who) { return ctx, who })
}

// add has a server take connections; who tells whose one is.
func (s *Server) add(l net.Listener, srv *ssh.Server, who func(ssh.Context) (context.Context, Who)) error {
	if len(srv.HostSigners) == 0 {
		signer, err := newHostKey()
		if err != nil {
			return err
		}
		srv.AddHostKey(signer)
	}
	srv.HandshakeTimeout = handshake
	srv.ChannelHandlers = map[string]ssh.ChannelHandler{
		"session": func(_ *ssh.Server, _ *gossh.ServerConn, in gossh.NewChannel, ctx ssh.Context) {
			if done, ok := few(ctx); ok {
				defer done()
				sessions, who := who(ctx)
				s.open(sessions, who, in)
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

// Close ends every session and returns when all of them have. A client is
// told nothing: it sees its connection end without an exit code, and looks for
// who serves next.
func (s *Server) Close() error {
	s.mu.Lock()
	servers, ears := s.servers, s.ears
	s.servers, s.ears, s.ended = nil, nil, true
	s.mu.Unlock()
	s.cancel()
	var errs []error
	for _, srv := range servers {
		errs = append(errs, srv.Close())
	}
	for _, l := range ears { // a server that has not begun to serve yet does not know its own
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.wg.Wait()
	return errors.Join(errs...)
}

// begin takes a place for a session; done gives it back.
func (s *Server) begin() (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return nil, false
	}
	s.wg.Add(1)
	return func() { <-s.slots; s.wg.Done() }, true
}

// exitBusy is the exit code of a client that found no place: temporary
// failure, as in sysexits.h.
const exitBusy = 75

// handle runs one session.
func (s *Server) handle(ctx context.Context, c *channel, t *Session, line string) {
	done, ok := s.begin()
	if !ok {
		fmt.Fprintln(t.Stderr, "swarmdeck: too many sessions; try again later")
		c.exit(exitBusy)
		return
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	code := s.run(ctx, t, line)
	if s.ctx.Err() == nil { // it came to its end rather than being cut off
		c.exit(code)
	}
}

// run carries a session out; a panic in it ends no other.
func (s *Server) run(ctx context.Context, t *Session, line string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = 1
			fmt.Fprintln(t.Stderr, "swarmdeck: this session failed inside")
			if s.opt.Failed != nil {
				s.opt.Failed(fmt.Errorf("a session of %s panicked: %v\n%s", t.Who.Name, r, debug.Stack()))
			}
		}
	}()
	if s.settle != nil && !t.Who.Local {
		if err := s.settle(t.Who); err != nil {
			fmt.Fprintf(t.Stderr, "swarmdeck: %v\n", err)
			return 1
		}
	}
	args, err := s.opt.Split(line)
	if err != nil {
		fmt.Fprintf(t.Stderr, "swarmdeck: %v\n", err)
		return 2
	}
	t.Args = args
	return s.opt.Run(ctx, t)
}

// channels counts the sessions of a connection.
type channels struct{}

// few takes a place for a session among its connection's.
func few(ctx ssh.Context) (done func(), ok bool) {
	ctx.Lock()
	defer ctx.Unlock()
	open, _ := ctx.Value(channels{}).(*atomic.Int32)
	if open == nil {
		open = new(atomic.Int32)
		ctx.SetValue(channels{}, open)
	}
	if open.Add(1) > maxChannels {
		open.Add(-1)
		return nil, false
	}
	return func() { open.Add(-1) }, true
}
