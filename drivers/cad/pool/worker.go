package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

// state is what a worker's place in the pool is used for; Pool.mu guards it.
type state int

const (
	leased state = iota // or about to be started by who leases it
	idle
	leaving
)

// worker is one process. Its lessee has it alone, but for what is said to be
// guarded.
type worker struct {
	tenant, kernel string
	places         places

	// guarded by Pool.mu
	state state
	since time.Time // when it became idle
	clock *time.Timer

	// Seqs is the newest entry that it has of each workspace, used when it was
	// last needed. They are read under Pool.mu while it is idle.
	seqs map[string]int
	used map[string]time.Time

	leases int // that are over

	proc  *cell.Process // nil before it began
	conn  *jsonrpc.Conn
	out   *pipe.Outbox
	heard chan struct{} // closed when its stderr has been read to its end
	ended chan struct{} // closed when nothing is left of it

	mu   sync.Mutex
	end  ending // how we have ended it
	last string // line of its stderr

	telling  sync.Mutex // held while progress is told
	progress func(percent float64, stage string)
	call     uint64 // whose progress that is
}

// ending is how a process is ended.
type ending int

const (
	goesOn ending = iota
	asked         // its stdin is closed, so that it can put things away
	killed
)

// suits reports that a worker is better than another for a workspace: it has
// more of it, or it has less of others.
func (w *worker) suits(than *worker, workspace string) bool {
	if have, has := w.seqs[workspace], than.seqs[workspace]; have != has {
		return have > has
	}
	return len(w.seqs) < len(than.seqs)
}

func (w *worker) stopClock() {
	if w.clock != nil {
		w.clock.Stop()
	}
}

// begin starts the process and greets it, unless it runs. Fresh says that it
// was tried; a worker that ended while it was idle is not fresh.
func (w *worker) begin(ctx context.Context, p *Pool) (fresh bool, err error) {
	if w.proc != nil {
		if w.lost() {
			return false, w.blame("idleness")
		}
		return false, nil
	}
	spec, err := p.spec(w)
	if err != nil {
		return true, err
	}
	proc, err := p.opt.Supervisor.Start(spec)
	if err != nil {
		return true, core.Errorf(core.Unavailable, "start a CAD worker: %v", err)
	}
	p.mu.Lock()
	w.proc, w.out = proc, pipe.NewOutboxOf(proc.Stdin, 2*env.MaxLine)
	w.conn = jsonrpc.New(jsonrpc.Options{Send: w.out.Put, Handle: w.handle, Noise: w.noise, MaxLine: 2 * env.MaxLine})
	closed := p.closed
	p.mu.Unlock()
	go w.live(p)
	if closed {
		w.kill()
	}
	if err := w.greet(ctx, p); err != nil {
		w.kill()
		<-w.ended
		return true, err
	}
	return true, nil
}

// greet waits until the process is ready.
func (w *worker) greet(ctx context.Context, p *Pool) error {
	ctx, stop := context.WithTimeoutCause(ctx, p.opt.Start, fmt.Errorf("no answer within %v", p.opt.Start))
	defer stop()
	var hello struct {
		Data struct {
			Kernel  string `json:"kernel"`
			Version string `json:"kernel_version"`
		} `json:"data"`
	}
	if err := w.conn.Call(ctx, "system.hello", struct{}{}, &hello); err != nil {
		if errors.Is(err, jsonrpc.ErrClosed) {
			err = w.blame("its start")
		}
		return core.Errorf(core.Unavailable, "CAD worker with kernel %s: %v", w.kernel, err)
	}
	if hello.Data.Kernel != w.kernel {
		return core.Errorf(core.Unavailable, "CAD worker: asked for kernel %s, it has %q", w.kernel, hello.Data.Kernel)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kernel(w.kernel).version = hello.Data.Version
	return nil
}

// live is the life of the process.
func (w *worker) live(p *Pool) {
	defer p.wg.Done()
	defer close(w.ended)
	var wg, readers sync.WaitGroup
	wg.Go(w.out.Run)
	drained := make(chan struct{})
	readers.Go(func() { _ = w.conn.Run(w.proc.Stdout) })
	readers.Go(w.listen)
	go func() {
		readers.Wait()
		close(drained)
	}()
	select {
	case <-w.proc.Done():
	case <-w.conn.Done(): // a process that can't be talked to is of no use
		w.leave()
	}
	_ = w.proc.Stop(cell.Grace{Interrupt: -1, Terminate: -1})
	core.Within(drained, drainPatience)
	w.out.Close()
	w.proc.CloseIO()
	w.conn.End(errEnded)
	wg.Wait()
	<-drained
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(w)
}

const (
	// leavePatience is how long a process that is asked to end may take.
	leavePatience = 2 * time.Second
	// drainPatience is how long output is still read after the process has
	// ended, and how long it is waited for after its output has.
	drainPatience = time.Second
)

// leave gives a process the time to end by itself that it has.
func (w *worker) leave() {
	w.mu.Lock()
	how := w.end
	w.mu.Unlock()
	patience := drainPatience
	switch how {
	case killed:
		return
	case asked:
		w.out.Close()
		patience = leavePatience
	}
	core.Within(w.proc.Done(), patience)
}

// kill ends the process, whatever it does.
func (w *worker) kill() { w.finish(killed) }

// ask lets the process end by itself.
func (w *worker) ask() { w.finish(asked) }

func (w *worker) finish(how ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != goesOn || w.proc == nil {
		return
	}
	w.end = how
	w.conn.End(errEnded)
}

var errEnded = errors.New("it was ended")

// lost reports a process that can't be used any more.
func (w *worker) lost() bool {
	select {
	case <-w.proc.Done():
		return true
	default:
		return w.conn.Err() != nil
	}
}

// blame says how the process was lost during something.
func (w *worker) blame(during string) error {
	why := w.conn.Err()
	how := fmt.Sprint(why)
	if why == nil || why == jsonrpc.ErrClosed { // nothing but the end of its output, so its exit says more
		patience := time.After(drainPatience)
		select {
		case <-w.proc.Done():
			how = w.proc.Exit().Describe()
			select { // what it said last may still be on its way
			case <-w.heard:
			case <-patience:
			}
		case <-patience:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != "" {
		how += "; it said: " + w.last
	}
	return core.Errorf(core.Unavailable, "the CAD worker (process %d) was lost during %s: %s", w.proc.PID(), during, how)
}

// listen keeps the newest line of the process's stderr.
func (w *worker) listen() {
	defer close(w.heard)
	lines := &pipe.Splitter{Max: maxWords, Emit: func(line []byte, _ int) {
		if text := strings.TrimSpace(pipe.Text(line)); text != "" {
			w.mu.Lock()
			if !strings.HasPrefix(w.last, "fatal error:") && !strings.HasPrefix(w.last, "panic:") {
				w.last = text // what follows those is only where it was
			}
			w.mu.Unlock()
		}
	}}
	defer lines.Close() // before it counts as heard
	_, _ = io.Copy(lines, w.proc.Stderr)
}

const maxWords = 500 // bytes of a line that is quoted

// noise takes a line that is no message, which our own program never sends.
func (w *worker) noise(line []byte, cut int) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	w.mu.Lock()
	w.end = killed
	w.mu.Unlock()
	keep := min(len(line), maxWords)
	return fmt.Errorf("it sent what is no message (%d bytes): %s", len(line)+cut, pipe.Text(line[:keep]))
}

// handle takes notifications; there are no requests.
func (w *worker) handle(r *jsonrpc.Request) {
	if r.Wants() {
		r.Fail(jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s is not known here", r.Method))
		return
	}
	if r.Method != "$/progress" {
		return
	}
	var p struct {
		ID      uint64  `json:"id"`
		Percent float64 `json:"percent"`
		Stage   string  `json:"stage"`
	}
	if jsonrpc.Decode(r.Params, &p) != nil || !(p.Percent >= 0 && p.Percent <= 100) {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	if w.progress != nil && p.ID == w.call {
		w.progress(p.Percent, pipe.Text([]byte(p.Stage[:min(len(p.Stage), maxWords)])))
	}
}

// resident is how much memory the process holds, in bytes; 0 when it can't be
// told.
func (w *worker) resident() uint64 {
	if w.proc == nil {
		return 0
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(w.proc.PID()) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}
