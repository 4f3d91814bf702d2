package acp

import (
	"bytes"
	"cmp"
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
	*keeper.Run // Proc and Mask are there once it is ready; Exit is valid after Over, if it ran
	pool        *pool
	place       place

	ready   chan struct{} // closed when it can be used, or has failed to start
	failure error         // why it can't be used, valid after ready
	stopErr error         // valid after Over

	// Set before ready is closed.
	outs [2]*os.File       // its standard output and error
	env  map[string]string // with what its place's refers to
	conn *jsonrpc.Conn
	out  *pipe.Outbox
	can  greeting

	waits atomic.Int32 // requests that wait for a command

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
	defer close(pe.Over)
	defer pe.pool.forget(pe)
	if pe.place.Shared {
		defer func() { pe.place.Lines.Close() }()
	}
	if err := pe.launch(); err != nil {
		pe.failure = err
		close(pe.ready)
		return
	}
	if pe.ending() { // everybody left before it began
		go pe.Stop(cell.Grace{Interrupt: -1})
	}
	var wg sync.WaitGroup
	wg.Go(pe.out.Run)
	drained := core.Side(func() { _ = pe.conn.Run(pe.outs[0]) }, pe.readStderr)
	wg.Go(func() {
		patience := pe.place.patience(pe.pool.r.Patience)
		ctx, stop := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("no answer within %v", patience))
		defer stop()
		if pe.failure = pe.greet(ctx); pe.failure != nil {
			pe.end("it could not be used", cell.Grace{Interrupt: -1})
		}
		close(pe.ready)
	})
	select {
	case <-pe.Proc.Done():
	case <-pe.conn.Done(): // a process that can't be talked to is of no use
		core.Within(pe.Proc.Done(), exitPatience) // its streams ended with it
		pe.end("", cell.Grace{Interrupt: -1})
	}
	core.Within(drained, drainPatience)
	pe.stopErr = pe.Stop(cell.Grace{Interrupt: -1, Terminate: afterGrace})
	core.Within(drained, drainPatience)
	pe.out.Close()
	pe.Proc.CloseIO()
	pe.Exit = pe.Proc.Exit()
	pe.conn.End(fmt.Errorf("process %d %s", pe.Proc.PID(), pe.Exit.Describe()))
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

// launch starts the process. One that agents share has lines of its own to its models,
// which end with it; those of an agent alone are the agent's.
func (pe *peer) launch() error {
	p := &pe.place
	if p.Shared {
		if err := p.Record(pe.hides, pe.overhear); err != nil {
			return err
		}
	}
	var env map[string]string
	var mask *secret.Mask
	proc, said, err := p.Start("", func(spec *cell.Spec, hides *secret.Mask) error {
		env, mask = spec.Env, hides
		return pe.fit(spec)
	})
	if err != nil {
		return err
	}
	in, outs, errs := proc.Streams()
	pe.mu.Lock()
	pe.Proc, pe.Mask, pe.env = proc, mask, env
	pe.outs, pe.out = [2]*os.File{outs, errs}, pipe.NewOutbox(in)
	pe.conn = jsonrpc.New(jsonrpc.Options{Send: pe.out.Put, Handle: pe.handle, Noise: pe.noise, Mask: mask})
	pe.mu.Unlock()
	for _, e := range said {
		pe.Hear(e)
	}
	return nil
}

// fit makes what is about to be started a process that may be several agents'.
func (pe *peer) fit(spec *cell.Spec) error {
	p := &pe.place
	if err := p.reachable(); err != nil {
		return err
	}
	if p.Shared && spec.Wall.Profile == cell.Open {
		spec.Dir = "/" // it works in many directories
		if p.Home != nil {
			spec.Dir = p.Home.Path
		}
	}
	if open := pe.pool.r.Ports; open != nil && p.leadsHere() {
		ports, err := open()
		if err != nil {
			return err
		}
		spec.Wall.Reach = append(slices.Clone(spec.Wall.Reach), ports...)
	}
	spec.Keep.Stdout = false // it is no text
	if p.there != nil {
		return p.there.learn()
	}
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
	if core.Within(pe.Proc.Done(), exitPatience) {
		return died(fmt.Sprintf("process %d %s", pe.Proc.PID(), pe.Proc.Exit().Describe()))
	}
	return err
}

// end stops the process for a reason of ours; the first one counts.
func (pe *peer) end(why string, g cell.Grace) {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	pe.why = cmp.Or(pe.why, why)
	if pe.Proc != nil {
		go pe.Stop(g)
	}
}

// ending reports whether we have asked it to end.
func (pe *peer) ending() bool {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return pe.why != ""
}

// Leaving implements keeper's session.
func (pe *peer) Leaving() bool { return pe.ending() || pe.conn.Err() != nil }

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
	_, paused := pe.paused[a]
	return !core.IsOver(pe.Over) && pe.why == "" && (pe.conn == nil || pe.conn.Err() == nil) && (!pe.frozen || paused)
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
	lines := pe.Mask.Writer(&pipe.Splitter{Max: maxLogLine, Emit: func(line []byte, cut int) {
		pe.noted(pipe.Text(line))
		pe.Hear(fleet.Event{Type: "log", Level: "WARN", Text: pipe.Marked(line, cut)})
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

// Hear gives an event that belongs to no session to every agent.
func (pe *peer) Hear(e fleet.Event) {
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
		pe.Hear(fleet.Event{Type: "log", Level: "WARN", Text: "not a message: " + pipe.Marked(line[:keep], len(line)-keep+cut)})
	}
	return nil
}

// Bounds of what is logged of one line.
const (
	maxLogLine = 64 << 10
	maxNoise   = 1 << 10
)
