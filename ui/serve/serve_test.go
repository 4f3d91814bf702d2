package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
)

// room is a server on a socket of its own.
type room struct {
	t      *testing.T
	path   string
	server *serve.Server
}

func newRoom(t *testing.T, o serve.Options) *room {
	t.Helper()
	dir := t.TempDir()
	expect.No(t, os.Chmod(dir, 0o700))
	r := &room{t: t, path: filepath.Join(dir, "s.sock")}
	l := expect.Of(serve.Listen(r.path))(t)
	o.Split = command.Split
	r.server = serve.New(o)
	expect.No(t, r.server.Local(l, "alice"))
	t.Cleanup(func() { _ = r.server.Close() })
	return r
}

func (r *room) attach(ctx context.Context, a serve.Attachment) (int, error) {
	r.t.Helper()
	conn := expect.Of(serve.Dial(ctx, r.path))(r.t)
	if a.Stdout == nil {
		a.Stdout = io.Discard
	}
	if a.Stderr == nil {
		a.Stderr = io.Discard
	}
	return serve.Attach(ctx, conn, a)
}

func TestASessionIsWhatItsClientSaid(t *testing.T) {
	r := newRoom(t, serve.Options{Run: func(_ context.Context, s *serve.Session) int {
		fmt.Fprintf(s.Stdout, "%q in %s, LANG=%s, %s as %s", s.Args, s.Dir, s.Getenv("LANG"), s.Who.Name, s.Who.Role)
		fmt.Fprint(s.Stderr, "beside it")
		return 7
	}})
	var out, errs bytes.Buffer
	code, err := r.attach(t.Context(), serve.Attachment{Line: core.Join([]string{"task", "show me"}), Dir: "/somewhere", Env: []string{"LANG=C.UTF-8"}, Stdout: &out, Stderr: &errs})
	if want := `["task" "show me"] in /somewhere, LANG=C.UTF-8, alice as admin`; code != 7 || err != nil || out.String() != want || errs.String() != "beside it" {
		t.Errorf("exit %d, %v, %q, %q", code, err, out.String(), errs.String())
	}
}

func TestAFailureInOneSessionEndsNoOther(t *testing.T) {
	failed := make(chan error, 1)
	block := make(chan struct{})
	r := newRoom(t, serve.Options{Limits: serve.Limits{Sessions: 2}, Failed: func(err error) { failed <- err }, Run: func(ctx context.Context, s *serve.Session) int {
		switch s.Args[0] {
		case "panic":
			panic("inside")
		case "wait":
			close(block)
			<-ctx.Done()
			return 130
		}
		return 0
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := expect.Later(func() int {
		code, err := r.attach(ctx, serve.Attachment{Line: "wait"})
		expect.Is(t, err, nil)
		return code
	})
	<-block
	var errs bytes.Buffer
	if code, err := r.attach(t.Context(), serve.Attachment{Line: "panic", Stderr: &errs}); code != 1 || err != nil || !strings.Contains(errs.String(), "failed inside") {
		t.Errorf("exit %d, %v, %s", code, err, errs.String())
	}
	err := <-failed
	expect.True(t, strings.Contains(err.Error(), "alice"), "%v", err)
	code, err := r.attach(t.Context(), serve.Attachment{Line: `open "quote`, Stderr: &errs})
	expect.True(t, code == 2 && err == nil, "exit %d, %v", code, err)
	cancel() // an interrupt reaches the command, which says how it ended
	expect.Is(t, <-ended, 130, "exit")
}

func TestMoreSessionsThanAllowedAreRefused(t *testing.T) {
	held := make(chan struct{})
	r := newRoom(t, serve.Options{Limits: serve.Limits{Sessions: 1}, Run: func(ctx context.Context, _ *serve.Session) int {
		close(held)
		<-ctx.Done()
		return 0
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.attach(ctx, serve.Attachment{})
	}()
	<-held
	var errs bytes.Buffer
	code, err := r.attach(t.Context(), serve.Attachment{Stderr: &errs})
	expect.True(t, code == 75 && err == nil && strings.Contains(errs.String(), "too many"), "exit %d, %v, %s", code, err, errs.String())
	cancel()
	<-done
}

func TestAClientIsToldThatTheEngineWentAway(t *testing.T) {
	held := make(chan struct{})
	r := newRoom(t, serve.Options{Run: func(ctx context.Context, s *serve.Session) int {
		fmt.Fprint(s.Stdout, "begun")
		close(held)
		<-ctx.Done()
		return 0
	}})
	go func() {
		<-held
		_ = r.server.Close()
	}()
	code, err := r.attach(t.Context(), serve.Attachment{})
	expect.True(t, errors.Is(err, serve.ErrGone), "exit %d, %v", code, err)
	_, err = os.Stat(r.path)
	expect.True(t, os.IsNotExist(err), "the socket is left: %v", err)
}

// fullDisk takes nothing.
type fullDisk struct{}

var errFull = errors.New("no space")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestOutputThatCantBeWrittenEndsTheCommand has more of it than fits into what
// SSH keeps for a reader that stands still.
func TestOutputThatCantBeWrittenEndsTheCommand(t *testing.T) {
	for _, n := range []int{10, 8 << 20} {
		r := newRoom(t, serve.Options{Run: func(_ context.Context, s *serve.Session) int {
			if _, err := s.Stdout.Write(make([]byte, n)); err != nil {
				return 1
			}
			return 0
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		_, err := r.attach(ctx, serve.Attachment{Stdout: fullDisk{}})
		cancel()
		expect.True(t, errors.Is(err, errFull) && !errors.Is(err, serve.ErrGone), "%d bytes: %v", n, err)
	}
}

func TestADirectoryThatOthersMayEnterIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	expect.No(t, os.Mkdir(dir, 0o755))
	expect.Says(t, expect.Fault(serve.Listen(filepath.Join(dir, "s.sock"))), "0700", "listened")
	expect.Says(t, expect.Fault(serve.Dial(t.Context(), filepath.Join(dir, "s.sock"))), "0700", "dialled")
}

func TestASocketLeftByAKilledEngineIsReplaced(t *testing.T) {
	dir := t.TempDir()
	expect.No(t, os.Chmod(dir, 0o700))
	path := filepath.Join(dir, "s.sock")
	old := expect.Of(net.Listen("unix", path))(t)
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close()
	l := expect.Of(serve.Listen(path))(t)
	l.Close()
}

// TestHostileClientsCostNothingThatStays has clients do what no program of ours
// does; afterwards nothing of them runs.
func TestHostileClientsCostNothingThatStays(t *testing.T) {
	r := newRoom(t, serve.Options{Run: func(_ context.Context, s *serve.Session) int {
		if s.Terminal != nil && (s.Terminal.Width > 2000 || s.Terminal.Height < 1) {
			t.Errorf("a terminal of %dx%d", s.Terminal.Width, s.Terminal.Height)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(s.Stdin, 1<<20))
		return 0
	}})
	before := runtime.NumGoroutine()
	dial := func() net.Conn {
		return expect.Of(serve.Dial(t.Context(), r.path))(t)
	}
	for range 20 {
		conn := dial()
		_, _ = conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n\xff\x00"), 100))
		conn.Close()

		conn = dial()
		c, chans, reqs, err := gossh.NewClientConn(conn, "unix", &gossh.ClientConfig{HostKeyCallback: gossh.InsecureIgnoreHostKey()})
		expect.No(t, err)
		client := gossh.NewClient(c, chans, reqs)
		if ch, _, err := client.OpenChannel("direct-tcpip", nil); err == nil {
			t.Error("a tunnel was opened")
			ch.Close()
		}
		ch, in, err := client.OpenChannel("session", nil)
		expect.No(t, err)
		go gossh.DiscardRequests(in)
		for range 50 {
			_, _ = ch.SendRequest("signal", false, gossh.Marshal(struct{ Name string }{"USR1"}))
			_, _ = ch.SendRequest("env", false, []byte{0xff})
		}
		_, _ = ch.SendRequest("pty-req", true, gossh.Marshal(struct {
			Term       string
			C, R, W, H uint32
			Modes      string
		}{"x", 1 << 31, 0, 0, 0, ""}))
		_, _ = ch.SendRequest("exec", true, gossh.Marshal(struct{ Line string }{"\x00\xff"}))
		for range 50 {
			_, _ = ch.SendRequest("window-change", false, gossh.Marshal(struct{ C, R, W, H uint32 }{1 << 30, 1 << 30, 0, 0}))
		}
		_, _ = ch.Write(make([]byte, 64<<10))
		client.Close()
	}
	expect.Await(t, fmt.Sprintf("no more than %d goroutines", before), func() bool { return runtime.NumGoroutine() <= before })
}
