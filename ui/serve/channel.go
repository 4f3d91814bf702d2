package serve

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/ui/term"
)

// Bounds of what one client may ask for.
const (
	maxChannels = 10       // sessions of one connection, as OpenSSH has it
	maxEnv      = 256      // variables
	maxEnvBytes = 64 << 10 // of all of them
	maxSide     = 2000     // cells of a terminal's side
)

// channel is one session of a connection: what its client asked for so far.
// The requests are taken by one goroutine, which never waits for the session.
type channel struct {
	gossh.Channel
	env      map[string]string
	envBytes int
	term     string
	has      bool // a terminal
	size     term.Size
	resized  chan term.Size
	goesOn   chan struct{}
	begun    bool
	unread   atomic.Bool // nobody reads the output any more
}

// open takes a session's requests until its client closes it.
func (s *Server) open(ctx context.Context, who Who, in gossh.NewChannel) {
	ch, reqs, err := in.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &channel{Channel: ch, env: map[string]string{}, resized: make(chan term.Size, 1), goesOn: make(chan struct{}, 1)}
	var run sync.WaitGroup
	defer run.Wait()
	defer cancel()
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
			c.signal(req.Payload, cancel)
		case endOfWrite:
			c.unread.Store(true)
		case "exec", "shell":
			var line struct{ Text string }
			if ok = !c.begun && (req.Type == "shell" || gossh.Unmarshal(req.Payload, &line) == nil); ok {
				c.begun = true
				t := c.session(ctx, who)
				t.Stdout = &outlet{c, t.Stdout, cancel}
				begin = func() { run.Go(func() { s.handle(ctx, c, t, line.Text) }) }
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
	return term.Size{Width: int(min(max(cols, 1), maxSide)), Height: int(min(max(rows, 1), maxSide))}
}

// signal ends a session whose client was told to end, and tells one that was
// suspended that it goes on.
func (c *channel) signal(payload []byte, cancel context.CancelFunc) {
	var p struct{ Name string }
	if gossh.Unmarshal(payload, &p) != nil {
		return
	}
	switch gossh.Signal(p.Name) {
	case gossh.SIGINT, gossh.SIGTERM, gossh.SIGHUP, gossh.SIGQUIT:
		cancel()
	case sigContinue:
		select {
		case c.goesOn <- struct{}{}:
		default:
		}
	}
}

// session is what a client asked for when it asked to begin.
func (c *channel) session(ctx context.Context, who Who) *Session {
	env := c.env
	t := &Session{Getenv: func(name string) string { return env[name] }, Stdin: c.Channel, Stdout: c.Channel, Stderr: c.Stderr(), Who: who}
	if who.Local {
		t.Dir = env[varDir]
		if env[varSource] != "" {
			t.Stdin = &asking{ch: c.Channel}
		}
	}
	if c.has {
		env["TERM"] = c.term
		t.Stdout, t.Stderr = ssh.NewPtyWriter(c.Channel), ssh.NewPtyWriter(c.Stderr())
		t.Terminal = &term.Remote{Size: c.size, Resized: c.resized}
		if who.Local {
			t.Terminal.Suspend = func() { c.suspend(ctx) }
		}
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

// exit tells the client how its command ended.
func (c *channel) exit(code int) {
	_, _ = c.SendRequest("exit-status", false, gossh.Marshal(struct{ Code uint32 }{uint32(code)}))
	_ = c.Close()
}

// outlet is a standard output. One that nobody reads any more ends its command
// at the next write, as a broken pipe does.
type outlet struct {
	c      *channel
	out    io.Writer
	cancel context.CancelFunc
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.c.unread.Load() {
		o.cancel()
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

var _ io.Reader = (*asking)(nil)
