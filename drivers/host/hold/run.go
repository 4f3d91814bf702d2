package hold

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
)

const (
	// heldBack is how much of a stream may wait before the process is not read
	// any more, while the link is there.
	heldBack = 1 << 20
	// maxInput is what the engine may have sent that the process has not read.
	maxInput = 2 * wire.Window
	// pausePatience bounds a pause and a resume.
	pausePatience = 5 * time.Second
)

// run is one process with what the engine does not know of it yet.
type run struct {
	id     string
	proc   keeper.Process // nil of one that failed to start
	whole  bool           // it is held up rather than a part of its output be left out
	after  func()         // what is left to do once it is over; nil is nothing
	begun  chan struct{}  // closed when proc is there, or never will be
	freeze chan wire.Item
	gone   chan struct{} // closed when nobody asks for it any more

	mu     sync.Mutex
	turn   *sync.Cond // something below changed
	conn   *wire.Conn // the engine's stream; nil while there is none
	items  uint64     // taken
	input  []byte     // to be written
	took   int64      // bytes of input that came
	wrote  int64      // of them, given to the process or never to be
	giving bool       // some is being written, and not counted yet
	deaf   bool       // its input is closed
	told   [2]uint64  // wrote and items that the engine was told
	events []wire.Event
	next   uint64 // number of the newest event
	sent   uint64 // of them, on this stream
	out    [2]spool
	passed [2]int64 // of out, on this stream
	eof    [2]bool
	leased bool // it is ended because the lease is over
	over   bool
	shut   bool // no more input comes

	agent  string
	keep   *wire.Keep    // nil keeps nothing for the next engine
	tasks  []string      // that it is at work on
	exited time.Duration // of wire.SinceBoot; 0 not yet
}

func newRun(id, dir string) *run {
	r := &run{id: id, begun: make(chan struct{}), freeze: make(chan wire.Item, 64), gone: make(chan struct{})}
	r.turn = sync.NewCond(&r.mu)
	for n := range r.out {
		r.out[n] = spool{dir: dir, room: roomOf}
	}
	return r
}

// failed notes that it could not be started.
func (r *run) failed(err error) {
	r.eof = [2]bool{true, true}
	r.tell(wire.Event{Kind: wire.Failed, Failure: desk.Failed(err)})
}

// begin follows a process.
func (r *run) begin(p keeper.Process) {
	r.proc = p
	r.tell(wire.Event{Kind: wire.Started, PID: p.PID(), Lacks: p.Missing()})
	in, out, errs := p.Streams()
	go r.feed(in)
	go r.read(0, out)
	if errs == nil { // it has a terminal
		r.eof[1] = true
		r.tell(wire.Event{Kind: wire.EOF, Stream: 1})
		go r.look(p)
	} else {
		go r.read(1, errs)
	}
	go r.settle()
	go r.wait()
}

// tell adds an event.
func (r *run) tell(e wire.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	e.Seq = r.next
	r.events = append(r.events, e)
	r.turn.Broadcast()
}

// mayWait is how much of a stream may wait; mu is held. While the link is there what
// is not taken holds the process up, as a pipe would.
func (r *run) mayWait() int64 {
	switch {
	case r.conn != nil:
		return heldBack
	case r.whole:
		return roomOf - wire.Chunk
	}
	return math.MaxInt64
}

// read keeps one stream.
func (r *run) read(n int, from *os.File) {
	buf := make([]byte, wire.Chunk)
	for {
		r.mu.Lock()
		for r.out[n].pending() >= r.mayWait() && !r.over {
			r.turn.Wait()
		}
		r.mu.Unlock()
		got, err := from.Read(buf)
		r.mu.Lock()
		r.out[n].write(buf[:got])
		if err != nil {
			r.eof[n] = true
		}
		e := wire.Event{Kind: wire.EOF, Stream: n}
		e.Out[n] = r.out[n].end
		r.turn.Broadcast()
		r.mu.Unlock()
		if err != nil {
			r.tell(e)
			return
		}
	}
}

func (r *run) ends() [2]int64 { return [2]int64{r.out[0].end, r.out[1].end} }

// wait tells how the first process ended, once what it had written by then is
// read.
func (r *run) wait() {
	exit := r.proc.Exit()
	in, out, errs := r.proc.Streams()
	unread := 0
	if errs != nil { // of a terminal it would be what it shows
		unread, _ = pipe.Pending(in)
	}
	r.mu.Lock()
	for errs != nil && unread == 0 && r.giving && !r.over { // an empty pipe holds no writer up
		r.turn.Wait()
	}
	r.exited = wire.SinceBoot()
	e := wire.Event{Kind: wire.Exited, Code: exit.Code, Signal: int(exit.Signal), Overran: exit.Overran, Lease: r.leased, Read: r.wrote - int64(unread)}
	until := r.ends()
	for n, f := range []*os.File{out, errs} {
		if f == nil {
			continue
		}
		left, _ := pipe.Pending(f)
		until[n] += int64(left)
	}
	for n := range until {
		for !r.eof[n] && r.out[n].end < until[n] && !r.over {
			r.turn.Wait()
		}
	}
	e.Out = r.ends()
	r.mu.Unlock()
	r.tell(e)
}

// feed writes its input.
func (r *run) feed(in *os.File) {
	for {
		r.mu.Lock()
		for len(r.input) == 0 && !r.over && !r.shut {
			r.turn.Wait()
		}
		if r.over || len(r.input) == 0 {
			over := r.over
			r.mu.Unlock()
			if !over {
				in.Close()
			}
			return
		}
		part := r.input[:min(len(r.input), 4<<10)]
		r.giving = true
		r.mu.Unlock()
		n, err := in.Write(part)
		r.mu.Lock()
		r.giving = false
		r.wrote += int64(n)
		if r.input = r.input[n:]; err != nil {
			r.deaf = true
			r.input = nil
		}
		r.turn.Broadcast()
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// settle pauses and resumes it, in the order in which that was asked for.
func (r *run) settle() {
	for {
		select {
		case i := <-r.freeze:
			ctx, stop := context.WithTimeout(context.Background(), pausePatience)
			do := r.proc.Pause
			if i.Kind == wire.Resume {
				do = r.proc.Resume
			}
			r.answer(i, do(ctx))
			stop()
		case <-r.gone:
			return
		}
	}
}

func (r *run) answer(i wire.Item, err error) {
	r.tell(wire.Event{Kind: wire.Answer, Item: i.Seq, Failure: desk.Failed(err)})
}

// take does what the engine wants, once for each item.
func (r *run) take(i wire.Item) error {
	if err := i.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	switch {
	case r.over:
		r.mu.Unlock()
		return errReplaced
	case i.Seq <= r.items:
		r.mu.Unlock()
		return nil
	case i.Seq != r.items+1:
		r.mu.Unlock()
		return fmt.Errorf("item %d after item %d", i.Seq, r.items)
	case i.Kind == wire.Input && len(r.input)+len(i.Data) > maxInput:
		r.mu.Unlock()
		return errors.New("more input than may be on its way")
	}
	r.items = i.Seq
	r.shut = r.shut || i.Kind == wire.InputEnd
	if i.Kind == wire.Serve {
		r.tasks = slices.DeleteFunc(r.tasks, func(t string) bool { return t == i.Task })
		if i.On && len(r.tasks) < wire.MaxTasks {
			r.tasks = append(r.tasks, i.Task)
		}
	}
	if i.Kind == wire.Input {
		r.took += int64(len(i.Data))
		if !r.deaf {
			r.input = append(r.input, i.Data...)
		}
	}
	r.turn.Broadcast()
	r.mu.Unlock()
	if r.proc == nil {
		if i.Kind != wire.Input && i.Kind != wire.InputEnd {
			r.answer(i, nil)
		}
		return nil
	}
	switch i.Kind {
	case wire.Pause, wire.Resume:
		select {
		case r.freeze <- i:
		default:
			r.answer(i, errors.New("too much is asked of it at once"))
		}
	case wire.Stop:
		go func() { r.answer(i, r.proc.Stop(graceOf(i))) }()
	case wire.Signal:
		r.proc.Interrupt(unix.Signal(i.Signal))
	case wire.Resize:
		if p, is := r.proc.(keeper.Screened); is {
			_ = p.Resize(i.Size)
		}
	case wire.Mark:
		r.proc.Mark()
	case wire.Prune:
		go func() {
			r.proc.Prune(time.Duration(i.TerminateMS) * time.Millisecond)
			r.answer(i, nil)
		}()
	}
	return nil
}

func graceOf(i wire.Item) cell.Grace {
	part := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	return cell.Grace{Interrupt: part(i.InterruptMS), Terminate: part(i.TerminateMS)}
}

// end ends all of it at once, as soon as it has begun.
func (r *run) end(lease bool) error {
	<-r.begun
	r.mu.Lock()
	r.leased = r.leased || lease && (r.proc == nil || !r.proc.Ended())
	r.mu.Unlock()
	if r.proc == nil {
		return nil
	}
	return r.proc.Stop(cell.Grace{Interrupt: -1, Terminate: -1})
}

// drop ends it and forgets what it said.
func (r *run) drop(lease bool) error {
	err := r.end(lease)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return err
	}
	r.over = true
	close(r.gone)
	r.conn = nil
	r.turn.Broadcast()
	if r.proc != nil {
		r.proc.CloseIO()
	}
	for n := range r.out {
		r.out[n].close()
	}
	if r.after != nil {
		r.after()
	}
	return err
}
