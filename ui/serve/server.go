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
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/ui/term"
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

	mu      sync.Mutex
	servers []*ssh.Server
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
	who := Who{Name: operator, Role: "admin", Local: true, From: "this machine"}
	return s.add(l, &ssh.Server{
		Handler: func(sess ssh.Session) { s.handle(sess, who) },
	})
}

// add has a server take connections.
func (s *Server) add(l net.Listener, srv *ssh.Server) error {
	signer, err := newHostKey()
	if err != nil {
		return err
	}
	if len(srv.HostSigners) == 0 {
		srv.AddHostKey(signer)
	}
	srv.HandshakeTimeout = handshake
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errors.Join(errors.New("the server has ended"), l.Close())
	}
	s.servers = append(s.servers, srv)
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
	servers := s.servers
	s.servers, s.ended = nil, true
	s.mu.Unlock()
	s.cancel()
	var errs []error
	for _, srv := range servers {
		errs = append(errs, srv.Close())
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
func (s *Server) handle(sess ssh.Session, who Who) {
	done, ok := s.begin()
	if !ok {
		fmt.Fprintln(sess.Stderr(), "swarmdeck: too many sessions; try again later")
		_ = sess.Exit(exitBusy)
		return
	}
	defer done()
	ctx, cancel := context.WithCancel(sess.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	code := s.run(ctx, sess, who, signals(sess, cancel))
	if s.ctx.Err() != nil { // cut off rather than come to its end
		return
	}
	_ = sess.Exit(code)
}

// run carries a session out; a panic in it ends no other.
func (s *Server) run(ctx context.Context, sess ssh.Session, who Who, goesOn <-chan struct{}) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = 1
			fmt.Fprintln(sess.Stderr(), "swarmdeck: this session failed inside")
			if s.opt.Failed != nil {
				s.opt.Failed(fmt.Errorf("a session of %s panicked: %v\n%s", who.Name, r, debug.Stack()))
			}
		}
	}()
	args, err := s.opt.Split(sess.RawCommand())
	if err != nil {
		fmt.Fprintf(sess.Stderr(), "swarmdeck: %v\n", err)
		return 2
	}
	t := &Session{
		Args: args, Getenv: environ(sess.Environ()), Stdin: sess,
		Stdout: sess, Stderr: sess.Stderr(), Who: who,
	}
	if who.Local {
		t.Dir = t.Getenv(varDir)
		if t.Getenv(varSource) != "" {
			t.Stdin = &asking{sess: sess}
		}
	}
	if pty, windows, has := sess.Pty(); has {
		t.Terminal = &term.Remote{Size: clampSize(pty.Window), Resized: sizes(sess, windows)}
		getenv := t.Getenv
		t.Getenv = func(name string) string {
			if name == "TERM" {
				return pty.Term
			}
			return getenv(name)
		}
		if who.Local {
			t.Terminal.Suspend = func() { suspend(ctx, sess, goesOn) }
		}
	}
	return s.opt.Run(ctx, t)
}

// signals ends a session when its client was told to end, and tells when a
// suspended one goes on. It listens until the connection has gone: the library
// waits for whoever asked for signals.
func signals(sess ssh.Session, cancel context.CancelFunc) (goesOn <-chan struct{}) {
	ch, again := make(chan ssh.Signal, 8), make(chan struct{}, 1)
	sess.Signals(ch)
	go func() {
		for {
			select {
			case sig := <-ch:
				switch sig {
				case ssh.SIGINT, ssh.SIGTERM, ssh.SIGHUP, ssh.SIGQUIT:
					cancel()
				case sigContinue:
					select {
					case again <- struct{}{}:
					default:
					}
				}
			case <-sess.Context().Done():
				return
			}
		}
	}()
	return again
}

// suspend stops the client and waits until it goes on.
func suspend(ctx context.Context, sess ssh.Session, goesOn <-chan struct{}) {
	if _, err := sess.SendRequest(doSuspend, false, nil); err != nil {
		return
	}
	select {
	case <-goesOn:
	case <-ctx.Done():
	}
}
