package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/ui/term"
)

// Bounds of what one client may ask for.
const (
	maxChannels = 10       // sessions of one connection, as OpenSSH has it
	maxEnv      = 256      // variables
	maxEnvBytes = 64 << 10 // of all of them

	// Of a terminal: three buffers of its cells are kept, at 120 bytes each.
	maxWidth, maxHeight, maxCells = 800, 400, 64_000
)

// channel is one session of a connection: what its client asked for so far.
// The requests are taken by one goroutine, which never waits for the session.
type channel struct {
	gossh.Channel
	who      Who
	bad      error // why the session can't begin
	env      map[string]string
	envBytes int
	term     string
	has      bool // a terminal
	size     term.Size
	resized  chan term.Size
	goesOn   chan struct{}
	begun    bool
	unread   atomic.Bool // nobody reads the output any more
	pace     *pace       // of a terminal's output, when its client says how much it took
	cancel   context.CancelCauseFunc
	hangUp   func() // ends the connection
}

// open takes a session's requests until its client closes it; begun is told
// when the session begins.
func (s *Server) open(ctx context.Context, conn *gossh.ServerConn, who Who, in gossh.NewChannel, begun func(*Session)) {
	ch, reqs, err := in.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	c := &channel{
		Channel: ch, who: who, env: map[string]string{}, resized: make(chan term.Size, 1), goesOn: make(chan struct{}, 1),
		cancel: cancel, hangUp: func() { _ = conn.Close() },
	}
	var run sync.WaitGroup
	defer run.Wait()
	defer cancel(nil)
	for req := range reqs {
		ok := false
		begin := func() {} // once the request is answered: what it begins may close the channel
		switch req.Type {
		case "env":
			ok = !c.begun && c.variable(req.Payload)
		case "pty-req":
			ok = !c.begun && c.terminal(req.Payload)
		case "window-change":
			ok = c.has && c.resize(req.Payload)
		case "signal":
			c.signal(req.Payload)
		case endOfWrite:
			c.unread.Store(true)
		case drawn:
			var n struct{ Bytes uint64 }
			if c.pace != nil && c.pace.ask == nil && gossh.Unmarshal(req.Payload, &n) == nil {
				c.pace.tookTo(n.Bytes)
			}
		case "exec", "shell":
			var line struct{ Text string }
			if ok = !c.begun && (req.Type == "shell" || gossh.Unmarshal(req.Payload, &line) == nil); ok {
				t := c.session(ctx, s.lim.Stall)
				var over func()
				if over, ok = s.take(t, line.Text); !ok {
					break
				}
				c.begun = true
				begun(t)
				begin = func() { run.Go(func() { s.handle(ctx, c, t, line.Text, over) }) }
			}
		}
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
		begin()
	}
}

// variable keeps one of the client's environment.
func (c *channel) variable(payload []byte) bool {
	var v struct{ Name, Value string }
	if gossh.Unmarshal(payload, &v) != nil || len(c.env) == maxEnv || c.envBytes+len(payload) > maxEnvBytes {
		return false
	}
	c.envBytes += len(payload)
	if v.Name == varVouch {
		c.vouched(v.Value)
		return true
	}
	c.env[v.Name] = v.Value
	return true
}

func (c *channel) terminal(payload []byte) bool {
	var p struct {
		Term             string
		Cols, Rows, W, H uint32
		Modes            string
	}
	if gossh.Unmarshal(payload, &p) != nil || len(p.Term) > 256 {
		return false
	}
	c.has, c.term, c.size = true, p.Term, clamp(p.Cols, p.Rows)
	if p.Cols == 0 || p.Rows == 0 { // a client that does not know yet
		c.size = term.Size{Width: 80, Height: 24}
	}
	return true
}

// resize has the newest size wait; an older one that nobody took is dropped.
func (c *channel) resize(payload []byte) bool {
	var p struct{ Cols, Rows, W, H uint32 }
	if gossh.Unmarshal(payload, &p) != nil {
		return false
	}
	select {
	case <-c.resized:
	default:
	}
	c.resized <- clamp(p.Cols, p.Rows)
	return true
}

// clamp bounds what a client may claim its terminal to be.
func clamp(cols, rows uint32) term.Size {
	w := int(min(max(cols, 1), maxWidth))
	return term.Size{Width: w, Height: int(min(max(rows, 1), maxHeight, maxCells/uint32(w)))}
}

// signal ends a session whose client was told to end, and tells one that was
// suspended that it goes on.
func (c *channel) signal(payload []byte) {
	var p struct{ Name string }
	if gossh.Unmarshal(payload, &p) != nil {
		return
	}
	switch gossh.Signal(p.Name) {
	case gossh.SIGINT, gossh.SIGTERM, gossh.SIGHUP, gossh.SIGQUIT:
		c.cancel(nil)
	case sigContinue:
		loop.Ring(c.goesOn)
	}
}

// session is what a client asked for when it asked to begin. Its output ends
// the connection when it stands still for longer than stall.
func (c *channel) session(ctx context.Context, stall time.Duration) *Session {
	env, who := c.env, c.who
	if who.Peer != "" && who.Tenant == "" && c.bad == nil {
		c.bad = fmt.Errorf("vouch: engine %s names nobody", who.Peer)
	}
	out, errs := io.Writer(c.Channel), io.Writer(c.Stderr())
	if !who.Local {
		stop := func() { c.cancel(errStalled); c.hangUp() }
		out, errs = &timed{out, stall, stop}, &timed{errs, stall, stop}
	}
	t := &Session{Getenv: func(name string) string { return env[name] }, Stdin: c.Channel, Who: who}
	if who.Local {
		t.Dir = env[varDir]
	}
	if (who.Local || who.Peer != "") && env[varSource] != "" {
		t.Stdin = &asking{ch: c.Channel}
	}
	if c.has {
		env["TERM"] = c.term
		t.Terminal = &term.Remote{Size: c.size, Resized: c.resized}
		switch {
		case who.Peer != "": // it says what the terminal behind it has taken
			c.pace = newPace(out, nil)
			c.pace.limit = ahead
		case !who.Local: // what every client answers, whether it knows it or not (RFC 4254 section 5.4)
			c.pace = newPace(out, func() bool {
				_, err := c.SendRequest("keepalive@openssh.com", true, nil)
				return err == nil
			})
		case env["SSH_CONNECTION"] != "": // its terminal is behind an sshd
			r := &replies{Reader: t.Stdin, came: make(chan struct{}, 1)}
			t.Stdin = r
			c.pace = newPace(out, func() bool { return r.question(ctx, c.pace) })
		case env[varOutput] != "":
			c.pace = newPace(out, nil)
		}
		if c.pace != nil {
			out, t.Terminal.Full, t.Terminal.Drained = c.pace, c.pace.Full, c.pace.room
		}
		if who.Local || who.User != "" {
			t.Terminal.Suspend = func() { c.suspend(ctx) }
		}
		if who.Local {
			t.Terminal.Run = c.lend
		}
	}
	out = &outlet{c, out}
	t.Stdout, t.Stderr, t.out, t.errs = out, errs, out, errs
	if c.has {
		t.Stdout, t.Stderr = ssh.NewPtyWriter(out), ssh.NewPtyWriter(errs)
	}
	return t
}

// suspend stops the client and waits until it goes on.
func (c *channel) suspend(ctx context.Context) {
	if _, err := c.SendRequest(doSuspend, false, nil); err != nil {
		return
	}
	select {
	case <-c.goesOn:
	case <-ctx.Done():
	}
}

// lend has the client give its terminal to a program, and waits for that.
func (c *channel) lend(argv []string) error {
	well, err := c.SendRequest(doRun, true, core.MustEncode(argv))
	if err == nil && !well {
		err = errors.New("it failed, or could not be started")
	}
	return err
}

// follow ends the session when its client is to be sent away, and the connection
// soon after.
func (c *channel) follow(ctx context.Context, gone <-chan struct{}) {
	if gone == nil {
		return
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-gone:
			c.cancel(errLeave) // a cockpit gives the screen back
			time.AfterFunc(farewell, c.hangUp)
		}
	}()
}

// exit tells the client how its command ended.
func (c *channel) exit(code int) {
	_, _ = c.SendRequest("exit-status", false, gossh.Marshal(struct{ Code uint32 }{uint32(code)}))
	_ = c.Close()
}

// outlet is a standard output. One that nobody reads any more ends its command
// at the next write, as a broken pipe does.
type outlet struct {
	c   *channel
	out io.Writer
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.c.unread.Load() {
		o.c.cancel(nil)
		return 0, io.ErrClosedPipe
	}
	return o.out.Write(p)
}

// asking is an input that asks for itself when it is first read.
type asking struct {
	ch   gossh.Channel
	once sync.Once
}

func (a *asking) Read(p []byte) (int, error) {
	a.once.Do(func() { _, _ = a.ch.SendRequest(wantInput, false, nil) })
	return a.ch.Read(p)
}

// timed ends what stands still in a write.
type timed struct {
	io.Writer
	after time.Duration
	stop  func()
}

func (w *timed) Write(p []byte) (int, error) {
	defer time.AfterFunc(w.after, w.stop).Stop()
	return w.Writer.Write(p)
}

// waking is an input that puts the end of its session off.
type waking struct {
	io.Reader
	after time.Duration
	timer *time.Timer
}

func (r *waking) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.timer.Reset(r.after)
	}
	return n, err
}

var _ io.Reader = (*asking)(nil)
