package serve_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
)

// gate is a server that lets one key in over SSH.
type gate struct {
	t      *testing.T
	addr   string
	key    gossh.Signer
	server *serve.Server

	mu      sync.Mutex
	refused map[serve.Refusal]int
	crowded int
}

func newKey(t *testing.T) gossh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	expect.No(t, err)
	return expect.Of(gossh.NewSignerFromKey(key))(t)
}

func newGate(t *testing.T, o serve.Options, d serve.Door) *gate {
	t.Helper()
	g := &gate{t: t, key: newKey(t), refused: map[serve.Refusal]int{}}
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	g.addr = l.Addr().String()
	o.Split = command.Split
	if o.Run == nil {
		o.Run = func(ctx context.Context, s *serve.Session) int {
			switch s.Args[0] {
			case "stay":
				fmt.Fprintln(s.Stdout, "here")
				<-ctx.Done()
			case "read":
				_, _ = io.Copy(io.Discard, s.Stdin)
			}
			return 0
		}
	}
	g.server = serve.New(o)
	t.Cleanup(func() { _ = g.server.Close() })
	d.HostKey = newKey(t)
	d.Admit = func(_, print, _ string) (serve.Who, error) {
		if print != gossh.FingerprintSHA256(g.key.PublicKey()) {
			return serve.Who{}, errors.New("nobody has this key")
		}
		return serve.Who{Name: "bob", Key: print}, nil
	}
	d.Settle = func(serve.Who) error { return nil }
	if d.Follow == nil {
		d.Follow = func(serve.Who, <-chan struct{}) <-chan struct{} { return nil }
	}
	d.Refused = func(why serve.Refusal, from string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refused[why]++
		expect.True(t, from == "127.0.0.1" || from == "127.0.0.2", "refused %s", from)
	}
	d.Crowded = func(who serve.Who, why error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.crowded++
		expect.True(t, who.Name == "bob" && why != nil, "too many of %+v: %v", who, why)
	}
	expect.No(t, g.server.SSH(l, d))
	return g
}

// dial enters from one of this machine's addresses.
func (g *gate) dial(from string, key gossh.Signer) (*gossh.Client, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	conn, err := d.Dial("tcp", g.addr)
	if err != nil {
		return nil, err
	}
	var told string
	c, chans, reqs, err := gossh.NewClientConn(conn, g.addr, &gossh.ClientConfig{
		User: "bob", Auth: []gossh.AuthMethod{gossh.PublicKeys(key)}, HostKeyCallback: gossh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second,
		BannerCallback: func(text string) error { told += text; return nil },
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w; told %q", err, told)
	}
	client := gossh.NewClient(c, chans, reqs)
	g.t.Cleanup(func() { client.Close() })
	return client, nil
}

func (g *gate) enter(from string) *gossh.Client {
	g.t.Helper()
	return expect.Of(g.dial(from, g.key))(g.t)
}

// run runs a line and returns its exit code and what was told beside it.
func run(c *gossh.Client, line string) (int, string) {
	s, err := c.NewSession()
	if err != nil {
		return -1, err.Error()
	}
	defer s.Close()
	var told bytes.Buffer
	s.Stderr = &told
	if err := s.Run(line); err != nil {
		var exit *gossh.ExitError
		if !errors.As(err, &exit) {
			return -1, told.String() + err.Error()
		}
		return exit.ExitStatus(), told.String()
	}
	return 0, told.String()
}

// stay begins a session that stays.
func (g *gate) stay(c *gossh.Client, terminal bool) (*gossh.Session, *bytes.Buffer) {
	g.t.Helper()
	s := expect.Of(c.NewSession())(g.t)
	var told bytes.Buffer
	out := expect.Of(s.StdoutPipe())(g.t)
	s.Stderr = &told
	if terminal {
		expect.No(g.t, s.RequestPty("xterm", 24, 80, nil))
	}
	expect.No(g.t, s.Start("stay"))
	_, err := io.ReadFull(out, make([]byte, 4))
	expect.No(g.t, err, &told)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return s, &told
}

func (g *gate) count(why serve.Refusal) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused[why]
}

func TestOneKeyTakesNoMoreSessionsThanItMay(t *testing.T) {
	g := newGate(t, serve.Options{Limits: serve.Limits{PerKey: 2}}, serve.Door{})
	c := g.enter("127.0.0.1")
	first, _ := g.stay(c, false)
	g.stay(c, false)
	code, told := run(c, "more")
	expect.True(t, code == 75 && strings.Contains(told, "2 sessions open"), "exit %d, %s", code, told)
	first.Close()
	expect.Await(t, "place for another", func() bool { code, _ := run(c, "more"); return code == 0 })
}

// TestOneKeyTakesNoMoreConnectionsThanItMay has them be without a session,
// from two addresses.
func TestOneKeyTakesNoMoreConnectionsThanItMay(t *testing.T) {
	g := newGate(t, serve.Options{Limits: serve.Limits{PerKey: 2}}, serve.Door{})
	var open []*gossh.Client
	for i := range 10 { // 8 more than sessions
		open = append(open, g.enter([]string{"127.0.0.1", "127.0.0.2"}[i%2]))
	}
	for range 3 {
		_, err := g.dial("127.0.0.2", g.key)
		expect.Must(t, err != nil && strings.Contains(err.Error(), "your key has 10 connections open"), "one too many was told %v", err)
	}
	code, told := run(open[0], "go")
	expect.True(t, code == 0, "one that was let in: exit %d %s", code, told)
	open[0].Close()
	expect.Await(t, "place for another", func() bool { _, err := g.dial("127.0.0.1", g.key); return err == nil })
	g.mu.Lock()
	defer g.mu.Unlock()
	expect.True(t, g.crowded >= 3 && len(g.refused) == 0, "%d were told of, %v as strangers", g.crowded, g.refused)
}

func TestOneAddressTakesNoMoreConnectionsThanItMay(t *testing.T) {
	g := newGate(t, serve.Options{Limits: serve.Limits{PerAddress: 2}}, serve.Door{})
	first := g.enter("127.0.0.2")
	g.enter("127.0.0.2")
	expect.Says(t, expect.Fault(g.dial("127.0.0.2", g.key)), "too many connections from 127.0.0.2", "one too many was told")
	expect.Is(t, g.count(serve.TooMany), 1, "it was not counted")
	g.enter("127.0.0.1") // of others as before
	first.Close()
	expect.Await(t, "place for another", func() bool { _, err := g.dial("127.0.0.2", g.key); return err == nil })
}

func TestWhoFailsTooOftenIsTurnedAwayUnheard(t *testing.T) {
	g := newGate(t, serve.Options{Limits: serve.Limits{Failures: 5}}, serve.Door{})
	stranger := newKey(t)
	for i := range 8 {
		_, err := g.dial("127.0.0.2", stranger)
		expect.Must(t, err != nil, "a stranger was let in")
		expect.True(t, i != 7 || strings.Contains(err.Error(), "try again in a minute"), "the eighth was told %v", err)
		n := i + 1 // its connection is closed a moment after it was told
		expect.Await(t, "count of it", func() bool { return g.count(serve.NoKey)+g.count(serve.TooOften) >= n })
	}
	if g.count(serve.NoKey) < 5 || g.count(serve.TooOften) < 1 {
		t.Errorf("%v", g.refused)
	}
	code, told := run(g.enter("127.0.0.1"), "go")
	expect.True(t, code == 0, "another address: exit %d %s", code, told)
}

func TestATerminalWithoutAKeyIsClosedAndTold(t *testing.T) {
	g := newGate(t, serve.Options{Limits: serve.Limits{Idle: time.Second}}, serve.Door{})
	c := g.enter("127.0.0.1")
	command, _ := g.stay(c, false)
	terminal, told := g.stay(c, true)
	err := terminal.Wait()
	var exit *gossh.ExitError
	expect.True(t, errors.As(err, &exit) && exit.ExitStatus() != 0 && strings.Contains(told.String(), "without a key"), "%v, %q", err, told.String())
	err = command.Signal(gossh.SIGINT)
	expect.True(t, err == nil && command.Wait() == nil, "a command was closed too: %v", err)
}

func TestWhoIsSentAwayIsToldWhy(t *testing.T) {
	gone := make(chan struct{})
	g := newGate(t, serve.Options{}, serve.Door{Follow: func(serve.Who, <-chan struct{}) <-chan struct{} { return gone }})
	s, told := g.stay(g.enter("127.0.0.1"), false)
	close(gone)
	err := s.Wait()
	expect.True(t, err != nil && strings.Contains(told.String(), "connect again"), "%v, %q", err, told.String())
}

// TestOutputThatIsNotReadEndsTheConnection has a client take nothing, which
// would keep a command, and what it holds, for ever.
func TestOutputThatIsNotReadEndsTheConnection(t *testing.T) {
	ended := make(chan error, 1)
	g := newGate(t, serve.Options{Limits: serve.Limits{Stall: 300 * time.Millisecond}, Run: func(ctx context.Context, s *serve.Session) int {
		_, err := s.Stdout.Write(make([]byte, 32<<20))
		ended <- err
		return 1
	}}, serve.Door{})
	c := g.enter("127.0.0.1")
	ch, reqs, err := c.OpenChannel("session", nil)
	expect.No(t, err)
	go gossh.DiscardRequests(reqs)
	ok, err := ch.SendRequest("exec", true, gossh.Marshal(struct{ Line string }{"flood"}))
	expect.Must(t, ok && err == nil, "%v %v", ok, err)
	expect.Fails(t, expect.From(t, ended, "the command waits on"), "all was written")
}

func TestCloseDoesNotWaitForWhoHeedsNothing(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	g := newGate(t, serve.Options{Patience: 100 * time.Millisecond, Run: func(_ context.Context, s *serve.Session) int {
		fmt.Fprintln(s.Stdout, "here")
		<-stop
		return 0
	}}, serve.Door{})
	g.stay(g.enter("127.0.0.1"), false)
	closed := make(chan error, 1)
	go func() { closed <- g.server.Close() }()
	expect.Says(t, expect.From(t, closed, "it waits"), "1 sessions go on")
}

// TestAnEngineThatDoesNotAnswerIsNamed has a listener that accepts, as the
// system does for a process that is stopped, and never says a word.
func TestAnEngineThatDoesNotAnswerIsNamed(t *testing.T) {
	dir := t.TempDir()
	expect.No(t, os.Chmod(dir, 0o700))
	path := filepath.Join(dir, "s.sock")
	l := expect.Of(serve.Listen(path))(t)
	defer l.Close()
	conn := expect.Of(serve.Dial(t.Context(), path))(t)
	_, err := serve.Attach(t.Context(), conn, serve.Attachment{Line: "task list", Stdout: io.Discard, Stderr: io.Discard, Patience: 200 * time.Millisecond})
	expect.True(t, errors.Is(err, serve.ErrSilent) && !errors.Is(err, serve.ErrGone) && strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())),
		"%v", err)
}

// TestAnInterruptIsHeededThoughTheEngineIsNot has an engine whose command
// ignores its end.
func TestAnInterruptIsHeededThoughTheEngineIsNot(t *testing.T) {
	begun, stop := make(chan struct{}), make(chan struct{})
	r := newRoom(t, serve.Options{Patience: 100 * time.Millisecond, Run: func(context.Context, *serve.Session) int {
		close(begun)
		<-stop
		return 0
	}})
	defer close(stop)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	done := make(chan error, 1)
	go func() {
		_, err := r.attach(ctx, serve.Attachment{Patience: time.Second})
		done <- err
	}()
	expect.Err(t, expect.From(t, done, "it waits for ever"), context.Canceled)
}

// TestAThousandSessionsLeaveNothing opens and closes them in batches.
func TestAThousandSessionsLeaveNothing(t *testing.T) {
	g := newGate(t, serve.Options{}, serve.Door{})
	batch := func() {
		c, err := gossh.Dial("tcp", g.addr, &gossh.ClientConfig{
			User: "bob", Auth: []gossh.AuthMethod{gossh.PublicKeys(g.key)}, HostKeyCallback: gossh.InsecureIgnoreHostKey(),
		})
		expect.No(t, err)
		defer c.Close()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				s, err := c.NewSession()
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if i%2 == 0 {
					expect.Is(t, s.RequestPty("xterm", 24, 80, nil), nil)
				}
				if i%3 == 0 { // left in its middle
					expect.Is(t, s.Start("stay"), nil)
				} else if err := s.Run("go"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	batch()
	level := func() (goroutines, files int, heap uint64) {
		open := expect.Of(os.ReadDir("/proc/self/fd"))(t)
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		return runtime.NumGoroutine(), len(open), mem.HeapAlloc
	}
	var goroutines, files int
	var heap uint64
	expect.Await(t, "quiet", func() bool {
		n := goroutines
		goroutines, files, heap = level()
		return n == goroutines
	})
	for range 100 {
		batch()
	}
	expect.Await(t, fmt.Sprintf("no more than %d goroutines, %d files, %d bytes", goroutines, files, heap), func() bool {
		g, f, h := level()
		return g <= goroutines && f <= files && h < heap+1<<20
	})
}
