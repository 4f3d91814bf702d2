package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"swarmdeck/ui/term"
)

// ErrGone is in the chain of what Attach returns when the engine went away in
// the middle: whether the command was carried out is unknown, unless ErrUnbegun
// is in the chain too.
var ErrGone = errors.New("the engine went away")

// ErrUnbegun says that the engine was not even asked for the command.
var ErrUnbegun = errors.New("the command has not begun")

// Attachment is a command to run in the engine at the other end.
type Attachment struct {
	Line string   // the command line, quoted
	Dir  string   // this process's directory
	Env  []string // "NAME=value" that the command is to see

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Ahead is what was read of Stdin before.
	Ahead []byte
	// Screen is the terminal that a cockpit is shown on; nil for a command.
	Screen *os.File
	// Lend runs a program of this user's on that terminal; nil runs none.
	Lend func(argv []string) error
	// Login is for another machine's engine; nil for the one of this user here.
	Login *Login

	screen screen // as Screen, or the one behind the session that is passed on
	signer func() (io.ReadWriteCloser, error)
	// Patience is how long the engine may be silent: at the beginning, and once
	// the command was interrupted. 0 means 5 s at the beginning and 10 s later.
	Patience time.Duration
}

// Attach runs a command over a connection that Dial made and returns its exit
// code. The end of ctx interrupts the command as a signal does a local one.
func Attach(ctx context.Context, conn net.Conn, a Attachment) (int, error) {
	defer conn.Close()
	by := time.Now().Add(cmp.Or(a.Patience, beginPatience))
	_ = conn.SetDeadline(by)
	pid := Owner(conn)
	if a.Screen != nil {
		a.screen = &ownScreen{file: a.Screen}
	}
	end := hurry(ctx, conn, pid)
	defer end()
	c, chans, reqs, err := gossh.NewClientConn(conn, "unix", a.Login.config())
	if err != nil {
		return 0, fmt.Errorf("attach to %s: %w", a.Login.name(), unbegun(pid, by, err))
	}
	client := gossh.NewClient(c, chans, reqs)
	defer client.Close()
	if a.signer != nil {
		forwardSigner(client, a.signer)
	}
	ch, in, err := client.OpenChannel("session", nil)
	if err != nil {
		return 0, fmt.Errorf("attach to %s: %w", a.Login.name(), unbegun(pid, by, err))
	}
	r := &remote{a: a, ch: ch, conn: conn, pid: pid, client: client, shown: &Passing{To: a.Stdout}}
	defer r.restore()
	if err := r.begin(by); err != nil {
		return 0, fmt.Errorf("attach to %s: %w", a.Login.name(), err)
	}
	end()
	_ = conn.SetDeadline(time.Time{})
	return r.wait(ctx, in)
}

// heed is how long a command that is interrupted while it begins may take to begin.
const heed = time.Second

// hurry ends the beginning of a command early, until end is called: soon after its
// caller ends, and when the engine's process is stopped, which accepts connections
// all the same.
func hurry(ctx context.Context, conn net.Conn, pid int) (end func()) {
	var mu sync.Mutex
	ended := false
	cut := func(after time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			_ = conn.SetDeadline(time.Now().Add(after))
		}
	}
	stop := context.AfterFunc(ctx, func() { cut(heed) })
	look := time.AfterFunc(stoppedAfter, func() {
		if stopped(pid) {
			cut(0)
		}
	})
	return func() {
		stop()
		look.Stop()
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}
}

// remote is one command that runs at the other end.
type remote struct {
	a      Attachment
	ch     gossh.Channel
	conn   net.Conn
	pid    int // of the engine
	client *gossh.Client
	once   sync.Once // input is sent once
	shown  *Passing  // the screen's output

	silent atomic.Bool // the engine did not answer lately
	dead   atomic.Bool // and was given up
}

// begin asks for everything that the command needs, and then for the command.
func (r *remote) begin(by time.Time) error {
	env := append(r.a.Login.vouch(), varDir+"="+r.a.Dir, varSource+"=asked", varOutput+"=counted")
	env = append(env, r.a.Env...)
	for _, kv := range env[:min(len(env), maxEnv)] {
		name, value, _ := strings.Cut(kv, "=")
		if _, err := r.ch.SendRequest("env", false, gossh.Marshal(struct{ Name, Value string }{name, value})); err != nil {
			return unbegun(r.pid, by, err)
		}
	}
	if r.a.screen != nil {
		if err := r.show(by); err != nil {
			return err
		}
	}
	ok, err := r.ch.SendRequest("exec", true, gossh.Marshal(struct{ Line string }{r.a.Line}))
	switch {
	case err != nil: // it may have been taken, and the answer lost
		return gone(r.pid, by, err)
	case !ok:
		return fmt.Errorf("it ends: %w: %w", ErrGone, ErrUnbegun)
	case r.a.screen != nil:
		r.input()
	}
	return nil
}

// show asks for a screen and gives the engine the client's.
func (r *remote) show(by time.Time) error {
	size, err := r.a.screen.size()
	if err != nil {
		return fmt.Errorf("size of the terminal: %w", err)
	}
	ok, err := r.ch.SendRequest("pty-req", true, gossh.Marshal(struct {
		Term                string
		Cols, Rows, Wide, H uint32
		Modes               string
	}{r.a.screen.name(), uint32(size.Width), uint32(size.Height), 0, 0, ""}))
	switch {
	case err != nil:
		return unbegun(r.pid, by, err)
	case !ok:
		return errors.New("the engine gives no screen")
	}
	return r.a.screen.take()
}

// wait passes output on until the command has ended.
func (r *remote) wait(ctx context.Context, in <-chan *gossh.Request) (int, error) {
	var wg sync.WaitGroup
	out := &output{Writer: r.a.Stdout}
	done := make(chan struct{})
	if r.a.screen != nil {
		out.Writer = r.shown
		out.taken = func(n uint64) {
			r.a.screen.await(done)
			_, _ = r.ch.SendRequest(drawn, false, gossh.Marshal(struct{ Bytes uint64 }{n}))
		}
	}
	wg.Go(func() {
		if _, _ = io.Copy(out, r.ch); out.failed != nil {
			_ = r.ch.Close() // else the command waits for somebody to read on
		}
	})
	wg.Go(func() { _, _ = io.Copy(r.a.Stderr, r.ch.Stderr()) })
	wg.Go(func() { r.forward(ctx, done) })
	if r.a.screen != nil || r.a.Login != nil {
		go r.listen(done)
	}
	code, known := 0, false
	for req := range in {
		well := false
		switch req.Type {
		case "exit-status":
			var status struct{ Code uint32 }
			if gossh.Unmarshal(req.Payload, &status) == nil {
				code, known = int(status.Code), true
			}
		case wantInput:
			r.input()
		case doSuspend:
			r.suspend()
		case doRun:
			well = r.lend(req.Payload)
		}
		if req.WantReply {
			_ = req.Reply(well, nil)
		}
	}
	close(done)
	wg.Wait()
	switch {
	case out.failed != nil:
		return 0, fmt.Errorf("write the output: %w", out.failed)
	case known && code == exitMoved && r.a.Login != nil:
		return 0, fmt.Errorf("its tenant has moved: %w: %w", ErrGone, ErrUnbegun)
	case known:
		return code, nil
	}
	r.shown.GiveBack()
	switch {
	case r.dead.Load():
		return 0, silentEngine(r.pid)
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	}
	return 0, ErrGone
}

// output remembers that it could not be written: a failure to read means that
// the engine went away, which is another matter.
type output struct {
	io.Writer
	failed error
	// taken is told how much was written; nil is not.
	taken   func(n uint64)
	n, told uint64
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.failed = err
	}
	if o.n += uint64(n); o.taken != nil && o.n-o.told >= every/2 {
		o.told = o.n
		o.taken(o.n)
	}
	return n, err
}

// interruptPatience is how long an interrupted command may take to end.
const interruptPatience = 10 * time.Second

// forward passes an interrupt and new sizes on until done.
func (r *remote) forward(ctx context.Context, done <-chan struct{}) {
	var resized <-chan term.Size
	if r.a.screen != nil {
		resized = r.a.screen.resized(done)
	}
	for {
		select {
		case <-ctx.Done():
			// A process that is stopped may not even take this in.
			_ = r.conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = r.ch.SendRequest("signal", false, gossh.Marshal(struct{ Name string }{string(gossh.SIGINT)}))
			_ = r.conn.SetWriteDeadline(time.Time{}) // what ends in its own time is still answered
			select {
			case <-done:
			case <-time.After(cmp.Or(r.a.Patience, interruptPatience)):
				_ = r.conn.Close()
			}
			return
		case size := <-resized:
			r.resize(size)
		case <-done:
			return
		}
	}
}

func (r *remote) resize(to term.Size) {
	_, _ = r.ch.SendRequest("window-change", false, gossh.Marshal(struct{ Cols, Rows, Wide, H uint32 }{uint32(to.Width), uint32(to.Height), 0, 0}))
}

// input sends the standard input. The reader can't be stopped: it ends with
// the process, or with its input.
func (r *remote) input() {
	r.once.Do(func() {
		go func() {
			if _, err := r.ch.Write(r.a.Ahead); err != nil {
				return
			}
			from := r.a.Stdin
			if own, is := r.a.screen.(*ownScreen); is {
				from = own
			}
			_, _ = io.Copy(keys{r}, from)
			_ = r.ch.CloseWrite()
		}()
	})
}

// restore gives the screen back.
func (r *remote) restore() {
	if r.a.screen != nil {
		r.a.screen.giveBack()
	}
}
