package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/terminal"
)

// Process is a run on a host. Its methods may be called from any goroutine.
type Process struct {
	l     *link
	id    string
	start *wire.Start
	began time.Time

	run     string // as in cell.Spec
	whose   cell.Whose
	profile cell.Profile

	ours, theirs [3]*os.File // pipes: what its user has, and what the link has

	begun chan error    // one: how the start went
	done  chan struct{} // closed when the first process has ended
	over  chan struct{} // closed when nobody asks for it any more, or it is lost
	bell  chan struct{} // one slot: there is something to send
	exit  cell.Exit     // valid after done

	mu     sync.Mutex
	turn   *sync.Cond // something below changed
	boot   string     // of the keeper that was asked to begin it; "" not yet
	sure   bool       // that keeper has answered how the start went
	pid    int
	lacks  []string
	items  []wire.Item // that the keeper has not got
	next   uint64      // number of the newest
	sent   int64       // bytes of input
	wrote  int64       // of them, that the process was given
	unread bool        // it ended without having read all
	seen   wire.Seen
	out    [2]stream
	waits  map[uint64]chan error
	ended  bool       // an exit is among what waits in out
	looked wire.Event // how its terminal was last
	held   int        // how often its wall held something
	isOver bool
	ways   map[*far]struct{} // its connections that go out
}

var _ keeper.Screened = (*Process)(nil)

func newProcess(l *link, spec cell.Spec, o keeper.Hosted) (*Process, error) {
	p := &Process{
		l: l, id: rand.Text(), began: time.Now(), begun: make(chan error, 1), done: make(chan struct{}), over: make(chan struct{}), bell: make(chan struct{}, 1), waits: map[uint64]chan error{},
		run: cmp.Or(spec.Run, strings.Join([]string{"agent", spec.Whose.Tenant, spec.Whose.Agent}, ":")), whose: spec.Whose, profile: cmp.Or(spec.Wall.Profile, cell.Worker),
		start: &wire.Start{
			Agent: spec.Whose.Agent, Role: spec.Whose.Role, Argv: spec.Argv, Dir: spec.Dir, Env: spec.Env,
			Limits: wire.LimitsOf(spec.Limits), Profile: string(spec.Wall.Profile), Ports: spec.Wall.Reach,
			Files: o.Files, Whole: o.Whole, Desk: o.Desk, Terminal: spec.Terminal,
		},
	}
	if l.pool.opt.Files != nil && spec.Whose.Tenant != "" {
		rules, err := l.pool.opt.Files(spec.Whose)
		if err != nil {
			return nil, fmt.Errorf("ask for the file rules: %w", err)
		}
		p.start.Guard = rules.Guard
	}
	if spec.Keep != nil && o.Desk == "" {
		p.start.Keep = &wire.Keep{Stdout: spec.Keep.Stdout, Secrets: spec.Keep.Mask.Values()}
	}
	p.turn = sync.NewCond(&p.mu)
	var err error
	p.ours, p.theirs, err = pipe.Streams()
	return p, err
}

func (p *Process) begin() {
	go p.feed()
	var passing sync.WaitGroup
	passing.Go(func() { p.pass(0) })
	passing.Go(func() { p.pass(1) })
	go func() {
		p.attend()
		passing.Wait()
		pipe.CloseAll(p.theirs)
	}()
}

// mayBegin reports whether a keeper that does not know of it may be asked to begin
// it: no other one was.
func (p *Process) mayBegin(boot string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boot == "" || !p.sure && p.boot == boot
}

// feed takes what its user writes, as much as may be on its way.
func (p *Process) feed() {
	buf := make([]byte, wire.Chunk)
	for {
		n, err := p.theirs[0].Read(buf)
		if n > 0 {
			p.mu.Lock()
			p.put(wire.Item{Kind: wire.Input, Data: append([]byte(nil), buf[:n]...)})
			p.sent += int64(n)
			for p.sent-p.wrote >= wire.Window && !p.isOver {
				p.turn.Wait()
			}
			p.mu.Unlock()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				p.want(wire.Item{Kind: wire.InputEnd})
			}
			return
		}
	}
}

// put adds what is wanted; mu is held.
func (p *Process) put(i wire.Item) uint64 {
	p.next++
	i.Seq = p.next
	p.items = append(p.items, i)
	p.ring()
	return i.Seq
}

func (p *Process) ring() { loop.Ring(p.bell) }

// lose declares it over: nothing of it can be heard any more.
func (p *Process) lose(why string) {
	p.mu.Lock()
	if !p.ended && !p.isOver {
		p.ended = true
		p.exit = cell.Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL, Why: why}
		p.unread = p.wrote < p.sent
	}
	p.end()
	p.close()
	p.mu.Unlock()
	p.l.forget(p)
}

// end closes over; mu is held.
func (p *Process) end() {
	if p.isOver {
		return
	}
	p.isOver = true
	close(p.over)
	for seq, w := range p.waits {
		delete(p.waits, seq)
		w <- nil
	}
	if p.closeWays() {
		go p.l.pool.gone(p)
	}
	p.turn.Broadcast()
}

func (p *Process) Streams() (stdin, stdout, stderr *os.File) { return p.ours[0], p.ours[1], p.ours[2] }

func (p *Process) CloseIO() {
	pipe.CloseAll(p.ours)
	p.mu.Lock()
	p.end()
	p.close()
	p.mu.Unlock()
	p.l.forget(p)
}

func (p *Process) Done() <-chan struct{} { return p.done }

func (p *Process) Ended() bool { return core.IsOver(p.done) }

func (p *Process) Exit() cell.Exit {
	<-p.done
	return p.exit
}

// PID implements keeper.Process: it is the host's number.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

func (p *Process) Missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lacks
}

func (p *Process) Loose() string { return cell.Loose(p.profile, p.Missing(), nil) }

func (p *Process) Unread() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unread
}

func (p *Process) Serves(task string, on bool) {
	if p.start.Keep != nil {
		p.want(wire.Item{Kind: wire.Serve, Task: task, On: on})
	}
}

func (p *Process) Interrupt(sig syscall.Signal) {
	p.want(wire.Item{Kind: wire.Signal, Signal: int(sig)})
}

// Resize implements keeper.Screened. Where the link is away it takes effect when it is
// back.
func (p *Process) Resize(to terminal.Size) error {
	p.want(wire.Item{Kind: wire.Resize, Size: to})
	return nil
}

func (p *Process) Unseen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looked.Unseen
}

func (p *Process) Foreground() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looked.Foreground
}

func (p *Process) Mark() { p.want(wire.Item{Kind: wire.Mark}) }

func (p *Process) Prune(grace time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), stopPatience)
	defer stop()
	_ = p.ask(ctx, wire.Item{Kind: wire.Prune, TerminateMS: grace.Milliseconds()})
}

func (p *Process) want(i wire.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isOver {
		p.put(i)
	}
}

// ask wants something and waits for the answer.
func (p *Process) ask(ctx context.Context, i wire.Item) error {
	w := make(chan error, 1)
	p.mu.Lock()
	if p.isOver {
		p.mu.Unlock()
		return nil
	}
	seq := p.put(i)
	p.waits[seq] = w
	p.mu.Unlock()
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waits, seq)
		p.mu.Unlock()
		return ctx.Err()
	}
}

// Bounds of what is waited for.
const (
	pausePatience = 2 * time.Second
	stopPatience  = 5 * time.Second // past the steps of a stop, or for a link
)

// Pause implements keeper.Process. Where the link is away it takes effect when it
// is back.
func (p *Process) Pause(ctx context.Context) error { return p.settle(ctx, wire.Pause) }

func (p *Process) Resume(ctx context.Context) error { return p.settle(ctx, wire.Resume) }

func (p *Process) settle(ctx context.Context, what string) error {
	if p.Ended() {
		return core.Errorf(core.Conflict, "%s: it is ending", what)
	}
	if !p.l.isUp() {
		p.want(wire.Item{Kind: what})
		return fmt.Errorf("%s: not in effect before the link is back: %w", what, p.l.available())
	}
	ctx, stop := context.WithTimeout(ctx, pausePatience)
	defer stop()
	if err := p.ask(ctx, wire.Item{Kind: what}); err != nil {
		return fmt.Errorf("%s on host %s: %w", what, p.l.at.name, err)
	}
	if p.Ended() {
		return core.Errorf(core.Conflict, "%s: it is ending", what)
	}
	return nil
}

// Stop implements keeper.Process. What can't be reached soon is given up here: it
// ends there as soon as the link is back, or with the lease.
func (p *Process) Stop(g cell.Grace) error {
	part := func(d, or time.Duration) int64 {
		return max(cmp.Or(d, or).Milliseconds(), -1)
	}
	i := wire.Item{Kind: wire.Stop, InterruptMS: part(g.Interrupt, defaultGrace), TerminateMS: part(g.Terminate, defaultGrace)}
	wait := time.Duration(max(i.InterruptMS, 0)+max(i.TerminateMS, 0))*time.Millisecond + 2*stopPatience
	if !p.l.isUp() {
		wait = stopPatience
	}
	ctx, stop := context.WithTimeout(context.Background(), wait)
	defer stop()
	err := p.ask(ctx, i)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		return fmt.Errorf("stop on host %s: %w", p.l.at.name, err)
	}
	p.lose("was given up: its host could not be told to end it, which ends it when its lease of " + p.l.lease.String() + " is over")
	return fmt.Errorf("stop on host %s: it ends there when the link is back, within %s: %w", p.l.at.name, p.l.lease, ctx.Err())
}

// defaultGrace is cell.Grace's.
const defaultGrace = 1500 * time.Millisecond
