package acp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// peer is one process of an agent program, with the sessions it holds.
type peer struct {
	pool  *pool
	place place

	ready   chan struct{} // closed when it can be used, or has failed to start
	failure error         // why it can't be used, valid after ready
	ended   chan struct{} // closed when nothing of it is left
	stopErr error         // valid after ended
	exit    cell.Exit     // valid after ended, if it ran

	// Set before ready is closed.
	proc keeper.Process
	outs [2]*os.File       // its standard output and error
	env  map[string]string // with what its place's refers to
	mask *secret.Mask
	conn *jsonrpc.Conn
	out  *pipe.Outbox
	can  greeting

	placeheld []string // variables whose credentials the model proxy puts in

	waits atomic.Int32 // requests that wait for a command
	once  sync.Once

	mu       sync.Mutex
	members  map[*agent]struct{}
	sessions map[string]*session
	early    map[string][]item // for sessions that are not known yet
	opening  int
	why      string // we ended it for this reason; "" while we have not
	paused   map[*agent]struct{}
	frozen   bool
	last     []string // lines that are no messages
}

// run is the life of a process.
func (pe *peer) run() {
	defer close(pe.ended)
	defer pe.pool.forget(pe)
	defer pe.unrecord()
	if err := pe.launch(); err != nil {
		pe.failure = err
		close(pe.ready)
		return
	}
	if e, lacks := keeper.Unheld(pe.proc.Missing()); lacks {
		pe.tell(e)
	}
	if e, has := pe.place.LoggedIn(); has {
		pe.tell(e)
	}
	if e, has := keeper.Placeheld(pe.placeheld); has {
		pe.tell(e)
	}
	if pe.ending() { // everybody left before it began
		go pe.stop(cell.Grace{Interrupt: -1})
	}
	var wg sync.WaitGroup
	wg.Go(pe.out.Run)
	drained := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() { _ = pe.conn.Run(pe.outs[0]) })
	readers.Go(pe.readStderr)
	go func() {
		readers.Wait()
		close(drained)
	}()
	wg.Go(func() {
		patience := pe.place.patience(pe.pool.r.opt.Patience)
		ctx, stop := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("no answer within %v", patience))
		defer stop()
		if pe.failure = pe.greet(ctx); pe.failure != nil {
			pe.end("it could not be used", cell.Grace{Interrupt: -1})
		}
		close(pe.ready)
	})
	select {
	case <-pe.proc.Done():
	case <-pe.conn.Done(): // a process that can't be talked to is of no use
		core.Within(pe.proc.Done(), exitPatience) // its streams ended with it
		pe.end("", cell.Grace{Interrupt: -1})
	}
	core.Within(drained, drainPatience)
	pe.stop(cell.Grace{Interrupt: -1, Terminate: afterGrace})
	core.Within(drained, drainPatience)
	pe.out.Close()
	pe.proc.CloseIO()
	pe.exit = pe.proc.Exit()
	pe.conn.End(fmt.Errorf("process %d %s", pe.proc.PID(), pe.exit.Describe()))
	pe.closeSessions() // a reader may wait for one of their inboxes
	wg.Wait()
	<-drained
	pe.over()
}

const (
	// exitPatience is how long a process may outlive its standard output.
	exitPatience = time.Second
	// drainPatience is how long output is still read after the first process
	// ended while something else holds the pipe.
	drainPatience = time.Second
	// afterGrace is what processes left behind get between SIGTERM and SIGKILL.
	afterGrace = 300 * time.Millisecond
)

func (pe *peer) launch() error {
	if err := pe.place.furnish(); err != nil {
		return err
	}
	spec := pe.place.spec
	if pe.place.Shared && spec.Wall.Profile == cell.Open {
		spec.Dir = "/" // it works in many directories
		if pe.place.home != "" {
			spec.Dir = pe.place.home
		}
	}
	if err := pe.record(&spec); err != nil {
		return err
	}
	if reach := pe.pool.r.opt.Reach; reach != nil && pe.place.leadsHere() {
		ports, err := reach()
		if err != nil {
			return err
		}
		spec.Wall.Reach = append(slices.Clone(spec.Wall.Reach), ports...)
	}
	env, mask, err := pe.pool.r.opt.Secrets(context.Background(), pe.place.tenant, spec.Env)
	if err != nil {
		return err
	}
	env, pe.placeheld = pe.place.lines.Conceal(env)
	spec.Env = env
	spec.Keep = &cell.Keep{Mask: mask} // its standard output is no text
	if t := pe.place.there; t != nil {
		if err := t.learn(); err != nil {
			return err
		}
	}
	proc, _, err := pe.place.machine().start(spec, nil) // it is bound to nothing
	if err != nil {
		return err
	}
	in, outs, errs := proc.Streams()
	pe.mu.Lock()
	defer pe.mu.Unlock()
	pe.env, pe.mask = env, mask
	pe.proc, pe.outs, pe.out = proc, [2]*os.File{outs, errs}, pipe.NewOutbox(in)
	pe.conn = jsonrpc.New(jsonrpc.Options{Send: pe.out.Put, Handle: pe.handle, Noise: pe.noise, Mask: mask})
	return nil
}

// died is the end of a process by itself.
type died string

func (d died) Error() string { return string(d) }

// blame puts why the process ended in the place of the call that it broke.
func (pe *peer) blame(err error) error {
	if !errors.Is(err, jsonrpc.ErrClosed) {
		return err
	}
	pe.mu.Lock()
	why := pe.why
	pe.mu.Unlock()
	if why == notOne {
		return errors.New(why)
	}
	if core.Within(pe.proc.Done(), exitPatience) {
		return died(fmt.Sprintf("process %d %s", pe.proc.PID(), pe.proc.Exit().Describe()))
	}
	return err
}

// end stops the process for a reason of ours; the first one counts.
func (pe *peer) end(why string, g cell.Grace) {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	if pe.why == "" {
		pe.why = why
	}
	if pe.proc != nil {
		go pe.stop(g)
	}
}

// ending reports whether we have asked it to end.
func (pe *peer) ending() bool {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return pe.why != ""
}

// stop ends the whole process tree, once; others wait for it.
func (pe *peer) stop(g cell.Grace) {
	pe.once.Do(func() { pe.stopErr = pe.proc.Stop(g) })
}

func (pe *peer) closeSessions() {
	pe.mu.Lock()
	sessions := pe.sessions
	pe.sessions, pe.early = map[string]*session{}, map[string][]item{}
	pe.mu.Unlock()
	for _, s := range sessions {
		s.close()
	}
}

// over tells the agents that their process is gone.
func (pe *peer) over() {
	pe.mu.Lock()
	members, why := pe.members, pe.why
	pe.members = map[*agent]struct{}{}
	pe.mu.Unlock()
	if pe.failure != nil {
		return // whoever waits for it learns that
	}
	for a := range members {
		a.over(pe, why)
	}
}

// welcomes reports whether an agent could work in this process; pool.mu is held.
func (pe *peer) welcomes(a *agent) bool {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	select {
	case <-pe.ended:
		return false
	default:
	}
	_, paused := pe.paused[a]
	return pe.why == "" && (pe.conn == nil || pe.conn.Err() == nil) && (!pe.frozen || paused)
}

func (pe *peer) admit(a *agent) {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	pe.members[a] = struct{}{}
}

// dismiss takes an agent out with its sessions, and reports whether it was the
// last. The caller closes the sessions.
func (pe *peer) dismiss(a *agent) (last bool, sessions []*session) {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	delete(pe.members, a)
	delete(pe.paused, a)
	for id, s := range pe.sessions {
		if s.a == a {
			delete(pe.sessions, id)
			sessions = append(sessions, s)
		}
	}
	if last = len(pe.members) == 0; last && pe.why == "" {
		pe.why = "nobody needs it any more" // at once, so that nobody joins
	}
	return last, sessions
}

// readStderr passes complaints on to the agents of this process.
func (pe *peer) readStderr() {
	lines := pe.mask.Writer(&pipe.Splitter{Max: maxLogLine, Emit: func(line []byte, cut int) {
		pe.noted(pipe.Text(line))
		pe.tell(fleet.Event{Type: "log", Level: "WARN", Text: pipe.Marked(line, cut)})
	}})
	defer lines.Close()
	_, _ = io.Copy(lines, pe.outs[1])
}

// noted keeps the last lines that a process wrote beside its messages.
func (pe *peer) noted(line string) {
	if line = strings.TrimSpace(core.ClipTo(line, 300)); line == "" {
		return
	}
	pe.mu.Lock()
	defer pe.mu.Unlock()
	if pe.last = append(pe.last, line); len(pe.last) > maxLast {
		pe.last = pe.last[1:]
	}
}

// maxLast is how many of them there are.
const maxLast = 5

func (pe *peer) lastLines() string {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return strings.Join(pe.last, "\n")
}

// tell gives an event that belongs to no session to every agent.
func (pe *peer) tell(e fleet.Event) {
	pe.mu.Lock()
	members := pe.agents()
	pe.mu.Unlock()
	for _, a := range members {
		a.hear(e)
	}
}

// agents are its members by name; pe.mu is held.
func (pe *peer) agents() []*agent {
	return slices.SortedFunc(maps.Keys(pe.members), func(a, b *agent) int { return strings.Compare(a.rec.Name, b.rec.Name) })
}

// noise takes a line that is no message. One that was too long is only lost
// when it was an update: a request or an answer would be waited for, for ever.
func (pe *peer) noise(line []byte, cut int) error {
	head := bytes.TrimSpace(line[:min(len(line), 4096)])
	if cut > 0 && bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"jsonrpc"`)) &&
		!bytes.Contains(head, []byte(`"`+acp.ClientMethodSessionUpdate+`"`)) {
		return fmt.Errorf("the agent sent a message of %d bytes; at most %d are read", len(line)+cut, jsonrpc.MaxLine)
	}
	if len(head) > 0 {
		keep := min(len(line), maxNoise)
		pe.noted(pipe.Text(line[:keep]))
		pe.tell(fleet.Event{Type: "log", Level: "WARN", Text: "not a message: " + pipe.Marked(line[:keep], len(line)-keep+cut)})
	}
	return nil
}

// Bounds of what is logged of one line.
const (
	maxLogLine = 64 << 10
	maxNoise   = 1 << 10
)
