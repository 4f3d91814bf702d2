package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/keyring"
	"swarmdeck/ui/serve"
	"swarmdeck/ui/term"
)

// pair are two engines: who comes to the first is carried out by the second.
type pair struct {
	t      *testing.T
	key    gossh.Signer // of the first
	login  serve.Login
	owner  *serve.Server
	first  *gate
	socket *room

	mu  sync.Mutex
	who []serve.Who // that the second was asked for
}

// newPair has the second engine run sessions.
func newPair(t *testing.T, run func(context.Context, *serve.Session) int) *pair {
	t.Helper()
	p := &pair{t: t, key: newKey(t)}
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	host := newKey(t)
	p.owner = serve.New(serve.Options{Split: command.Split, Run: run})
	expect.No(t, p.owner.SSH(l, serve.Door{
		HostKey: host,
		Admit:   func(string, string, string) (serve.Who, error) { return serve.Who{}, errors.New("nobody has this key") },
		Settle:  func(serve.Who) error { return errors.New("nobody comes here") },
		Peer: func(print string) (string, bool) {
			return "deck1", print == gossh.FingerprintSHA256(p.key.PublicKey())
		},
		Vouched: func(who serve.Who) (serve.Who, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.who = append(p.who, who)
			who.Role = "approver"
			return who, nil
		},
		Follow: func(serve.Who, <-chan struct{}) <-chan struct{} { return nil },
	}))
	t.Cleanup(func() { _ = p.owner.Close() })
	user := uint32(1000)
	p.login = serve.Login{
		To: serve.Peer{Name: "deck2", Address: l.Addr().String(), Key: gossh.FingerprintSHA256(host.PublicKey())},
		As: p.key, Vouch: serve.Vouch{Tenant: "t_acme", Name: "ann", User: &user, Seat: "/dev/pts/3"},
	}
	relay := func(ctx context.Context, s *serve.Session) int {
		login := p.login
		if s.Who.Key != "" {
			login.Vouch = serve.Vouch{Tenant: "t_acme", Name: s.Who.Name, Key: s.Who.Key, Seat: "192.0.2.1"}
		}
		code, err := serve.Relay(ctx, s, login, []string{"LANG=" + s.Getenv("LANG")})
		if err != nil && code != serve.Gone {
			fmt.Fprintf(s.Stderr, "swarmdeck: %v\n", err)
		}
		return code
	}
	p.first = newGate(t, serve.Options{Run: relay}, serve.Door{})
	p.socket = newRoom(t, serve.Options{Run: relay})
	return p
}

// asked are those whom the second engine was asked for.
func (p *pair) asked() []serve.Who {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.who
}

// session opens one at the first engine's door.
func (p *pair) session() (s *gossh.Session, out, errs *bytes.Buffer) {
	p.t.Helper()
	s = expect.Of(p.first.enter("127.0.0.1").NewSession())(p.t)
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	s.Stdout, s.Stderr = out, errs
	return s, out, errs
}

// tell is a command that says who asks, and gives back what it is given.
func tell(_ context.Context, s *serve.Session) int {
	fmt.Fprintf(s.Stdout, "%q for %s of %s as %s from %s by %s, LANG=%s\n", s.Args, s.Who.Name, s.Who.Tenant, s.Who.Role, s.Who.From, s.Who.Peer, s.Getenv("LANG"))
	_, _ = io.Copy(s.Stdout, s.Stdin)
	fmt.Fprint(s.Stderr, "beside it")
	return 7
}

func TestACommandIsCarriedOutByTheOwner(t *testing.T) {
	p := newPair(t, tell)
	big := strings.Repeat("many lines\n", 400_000) // more than any window holds

	s, out, errs := p.session()
	s.Stdin = strings.NewReader(big)
	err := s.Run(`task "show me"`)
	var exit *gossh.ExitError
	expect.True(t, errors.As(err, &exit) && exit.ExitStatus() == 7 && errs.String() == "beside it", "%v, %q", err, errs.String())
	want := `["task" "show me"] for bob of t_acme as approver from 192.0.2.1 by deck1, LANG=` + "\n"
	if got := out.String(); got != want+big {
		t.Errorf("%d bytes, %q", len(got), got[:min(len(got), 200)])
	}

	var local, beside bytes.Buffer
	code, err := p.socket.attach(t.Context(), serve.Attachment{Line: "task list", Env: []string{"LANG=C.UTF-8"}, Stdin: strings.NewReader(big), Stdout: &local, Stderr: &beside})
	want = `["task" "list"] for ann of t_acme as approver from /dev/pts/3 by deck1, LANG=C.UTF-8` + "\n"
	if code != 7 || err != nil || local.String() != want+big || beside.String() != "beside it" {
		t.Errorf("exit %d, %v, %d bytes, %q", code, err, local.Len(), beside.String())
	}
	who := p.asked()
	if len(who) != 2 || who[0].Key != gossh.FingerprintSHA256(p.first.key.PublicKey()) || who[0].User != "" || who[1].User != "uid:1000@deck1" || who[1].Key != "" {
		t.Errorf("%+v", who)
	}
}

// TestInputIsLeftToTheClientUntilTheOwnerReadsIt has a command that wants none.
func TestInputIsLeftToTheClientUntilTheOwnerReadsIt(t *testing.T) {
	p := newPair(t, func(context.Context, *serve.Session) int { return 0 })
	read := make(chan struct{}, 1)
	code, err := p.socket.attach(t.Context(), serve.Attachment{Line: "x", Stdin: readerFunc(func([]byte) (int, error) {
		read <- struct{}{}
		return 0, io.EOF
	})})
	expect.True(t, code == 0 && err == nil && len(read) == 0, "exit %d, %v, read %d", code, err, len(read))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestATerminalIsTheOwnersBytesAndSizes(t *testing.T) {
	sizes := make(chan term.Size, 4)
	p := newPair(t, func(ctx context.Context, s *serve.Session) int {
		if s.Terminal == nil || s.Getenv("TERM") != "xterm-256color" {
			return 3
		}
		sizes <- s.Terminal.Size
		fmt.Fprint(s.Stdout, "\x1b[?1049h\x1b[Hone\ntwo\r\n\r")
		key := make([]byte, 1)
		if _, err := s.Stdin.Read(key); err != nil || key[0] != 'q' {
			return 4
		}
		for range 2 {
			select {
			case size := <-s.Terminal.Resized:
				sizes <- size
				fmt.Fprint(s.Stdout, "\nsized")
			case <-ctx.Done():
				return 5
			}
		}
		fmt.Fprint(s.Stdout, "\x1b[?1049l")
		return 0
	})
	s, out, _ := p.session()
	expect.No(t, s.RequestPty("xterm-256color", 24, 80, nil))
	keys := expect.Of(s.StdinPipe())(t)
	expect.No(t, s.Start(""))
	expect.Is(t, <-sizes, term.Size{Width: 80, Height: 24})
	_, _ = keys.Write([]byte("q"))
	for _, want := range []term.Size{{Width: 200, Height: 50}, {Width: 100, Height: 30}} {
		expect.No(t, s.WindowChange(want.Height, want.Width))
		expect.Is(t, <-sizes, want)
	}
	expect.No(t, s.Wait())
	want := "\x1b[?1049h\x1b[Hone\r\ntwo\r\n\r\r\nsized\r\nsized\x1b[?1049l"
	expect.True(t, out.String() == want, "%q\nwant %q", out.String(), want)
}

// TestAScreenWaitsForTheTerminalBehindIt has a terminal that takes nothing: the
// owner is told, and shows nothing that would be old when it is seen.
func TestAScreenWaitsForTheTerminalBehindIt(t *testing.T) {
	written := make(chan int, 1)
	p := newPair(t, func(ctx context.Context, s *serve.Session) int {
		n := 0
		for !s.Terminal.Full() {
			m, _ := s.Stdout.Write(make([]byte, 1<<10))
			n += m
			select { // a frame's time
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return 1
			}
		}
		written <- n
		<-s.Terminal.Drained
		return 0
	})
	ch, reqs, err := p.first.enter("127.0.0.1").OpenChannel("session", nil)
	expect.No(t, err)
	answer := make(chan struct{})
	ended := make(chan uint32, 1)
	go func() {
		for req := range reqs {
			if req.Type == "exit-status" {
				ended <- uint32(req.Payload[3])
			}
			if req.WantReply {
				<-answer
				_ = req.Reply(false, nil)
			}
		}
	}()
	if ok, err := ch.SendRequest("pty-req", true, gossh.Marshal(struct {
		Term       string
		C, R, W, H uint32
		Modes      string
	}{"xterm", 80, 24, 0, 0, ""})); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ok, err := ch.SendRequest("shell", true, nil)
	expect.Must(t, ok && err == nil, "%v %v", ok, err)
	select {
	case n := <-written:
		expect.True(t, n <= 16<<10, "%d bytes are under way", n)
	case <-time.After(2 * time.Minute):
		t.Fatal("it never waits")
	}
	close(answer)
	expect.Is(t, expect.From(t, ended, "it waits on"), 0, "exit")
}

func TestTheOwnerHasAnswersSignedWhereTheOperatorSits(t *testing.T) {
	p := newPair(t, func(_ context.Context, s *serve.Session) int {
		if s.Signer == nil {
			return 2
		}
		conn, err := s.Signer()
		if err != nil {
			fmt.Fprint(s.Stderr, err)
			return 3
		}
		defer conn.Close()
		fmt.Fprintln(conn, "sign this")
		said, err := io.ReadAll(conn)
		fmt.Fprintf(s.Stdout, "%s", said)
		if err != nil {
			return 4
		}
		return 0
	})
	client := p.first.enter("127.0.0.1")
	asked := client.HandleChannelOpen("forwarded-streamlocal@openssh.com")
	ok, _, err := client.SendRequest("streamlocal-forward@openssh.com", true, gossh.Marshal(struct{ Path string }{"/tmp/" + keyring.SignerPrefix + "x"}))
	expect.Must(t, ok && err == nil, "%v %v", ok, err)
	go func() {
		for in := range asked {
			ch, reqs, err := in.Accept()
			if err != nil {
				return
			}
			go gossh.DiscardRequests(reqs)
			line := make([]byte, 64)
			n, _ := ch.Read(line)
			fmt.Fprintf(ch, "signed: %s", line[:n])
			ch.Close()
		}
	}()
	s := expect.Of(client.NewSession())(t)
	expect.Is(t, string(expect.Of(s.Output("approve"))(t)), "signed: sign this\n")

	unsigned, _, _ := p.session() // of who forwards no socket
	var exit *gossh.ExitError
	err = unsigned.Run("approve")
	expect.True(t, errors.As(err, &exit) && exit.ExitStatus() == 2, "%v", err)
}

// TestAnEngineThatIsNotWhatIsKnownOfItIsRefused tries each end's wrong key.
func TestAnEngineThatIsNotWhatIsKnownOfItIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*serve.Login)
		says  string
	}{
		"its key is another":     {func(l *serve.Login) { l.To.Key = gossh.FingerprintSHA256(newKey(t).PublicKey()) }, "its key is SHA256:"},
		"it does not know ours":  {func(l *serve.Login) { l.As = newKey(t) }, "unable to authenticate"},
		"nobody listens there":   {func(l *serve.Login) { l.To.Address = "127.0.0.1:1" }, "reach engine deck2"},
		"nobody is vouched for":  {func(l *serve.Login) { l.Vouch = serve.Vouch{} }, "tenant_id"},
		"a user with a key also": {func(l *serve.Login) { l.Vouch.Key = l.To.Key }, "one of both"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, tell)
			c.spoil(&p.login)
			var errs bytes.Buffer
			code, err := p.socket.attach(t.Context(), serve.Attachment{Line: "x", Stderr: &errs})
			if code != 75 || err != nil || !strings.Contains(errs.String(), c.says) || !strings.Contains(errs.String(), "has not begun") || len(p.asked()) != 0 {
				t.Errorf("exit %d, %v, %q", code, err, errs.String())
			}
		})
	}
}

func TestTheOwnersEndIsWhatAnEnginesIs(t *testing.T) {
	begun := make(chan struct{}, 2)
	p := newPair(t, func(ctx context.Context, s *serve.Session) int {
		fmt.Fprint(s.Stdout, "begun")
		begun <- struct{}{}
		<-ctx.Done()
		return 0
	})
	s, out, _ := p.session()
	expect.No(t, s.Start("x"))
	local := expect.Later(func() error {
		_, err := p.socket.attach(t.Context(), serve.Attachment{Line: "x"})
		return err
	})
	<-begun
	<-begun
	_ = p.owner.Close()
	err := <-local
	expect.True(t, errors.Is(err, serve.ErrGone) && !errors.Is(err, serve.ErrUnbegun), "%v", err)
	var missing *gossh.ExitMissingError
	err = s.Wait()
	expect.True(t, errors.As(err, &missing) && out.String() == "begun", "%v, %q", err, out.String())
}

func TestWhatEndsASessionEndsItAtTheOwnerToo(t *testing.T) {
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	p := newPair(t, func(ctx context.Context, _ *serve.Session) int {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return 130
	})
	s, _, _ := p.session()
	expect.No(t, s.Start("x"))
	<-begun
	expect.No(t, s.Signal(gossh.SIGINT))
	<-ended
	var exit *gossh.ExitError
	err := s.Wait()
	expect.True(t, errors.As(err, &exit) && exit.ExitStatus() == 130, "%v", err)
	s, _, _ = p.session()
	expect.No(t, s.Start("x"))
	<-begun
	_ = p.first.server.Close() // a door goes away
	<-ended
}

// TestAHundredRelaysLeaveNothing ends them in every way.
func TestAHundredRelaysLeaveNothing(t *testing.T) {
	p := newPair(t, func(ctx context.Context, s *serve.Session) int {
		if s.Args[0] == "stay" {
			<-ctx.Done()
			return 1
		}
		return tell(ctx, s)
	})
	batch := func() {
		c := expect.Of(p.first.dial("127.0.0.1", p.first.key))(t)
		defer c.Close()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				s, err := c.NewSession()
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if i%2 == 0 {
					_ = s.RequestPty("xterm", 24, 80, nil)
				}
				if i%3 == 0 {
					_ = s.Start("stay")
				} else {
					s.Stdin = strings.NewReader("some")
					_ = s.Run("go")
				}
			})
		}
		all.Wait()
	}
	batch()
	quiet := 0
	expect.Await(t, "quiet", func() bool {
		n := quiet
		quiet = runtime.NumGoroutine()
		return n == quiet
	})
	for range 20 {
		batch()
	}
	expect.Await(t, fmt.Sprintf("no more than %d goroutines", quiet), func() bool { return runtime.NumGoroutine() <= quiet })
}
