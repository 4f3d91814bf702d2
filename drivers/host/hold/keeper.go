package hold

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/host/wire"
	"swarmdeck/drivers/tree"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// errForget ends the stream of a run that nobody asks for any more.
var errForget = errors.New("nobody asks for it any more")

// holder holds the runs of one engine.
type holder struct {
	dir     string // absolute
	id      string
	digest  string
	boot    string
	program string // path of what runs here
	sup     *cell.Supervisor
	own     *safeopen.Own // what is the keeper's alone
	pins    *pin.Keeper   // of what agents' commands are bound to
	trees   *tree.Desk    // keeps the work trees of agents
	tried   chan struct{} // closed when lacks is known
	lacks   []string
	end     chan struct{} // closed when it is to end
	over    chan struct{} // closed when nothing is left of it
	once    sync.Once
	ways    core.Counts[string] // connections that go out, by run

	order sync.Mutex // one engine's word about all is carried out at a time; before mu

	mu      sync.Mutex
	engine  string
	attempt uint64
	lease   time.Duration
	base    time.Duration // of wire.SinceBoot: when the newest beat that came back had left
	sent    [64]time.Duration
	beats   uint64
	link    *yamux.Session
	leased  bool          // the cells run only until held
	held    time.Duration // of wire.SinceBoot
	runs    map[string]*run
	former  []*former // of engines before this one
}

// hold is the life of a keeper, in whose directory this process is.
func hold(id, digest string) error {
	_, _ = unix.Setsid() // what ends the link's session is not for it
	held, err := lock()
	if err != nil || held == nil {
		return err
	}
	defer held.Close()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := cell.BecomeSubreaper(); err != nil {
		return err
	}
	k := &holder{dir: dir, id: id, digest: digest, boot: rand.Text(), program: program, tried: make(chan struct{}), end: make(chan struct{}), over: make(chan struct{}), lease: time.Minute, base: wire.SinceBoot(), runs: map[string]*run{}}
	hide := []string{socketName, lockName, spoolName, pinsName, epochName, "log"}
	for i, name := range hide {
		hide[i] = filepath.Join(dir, name)
	}
	if k.sup, err = cell.NewSupervisor(cell.Options{Instance: "host-" + id, Hide: hide, Private: []string{dir}, Way: k.carry, Reach: k.carry, Held: k.walled, Leased: true}); err != nil {
		return err
	}
	if k.own, err = safeopen.OwnFiles(filepath.Join(dir, "log"), filepath.Join(dir, spoolName), filepath.Join(dir, pinsName)); err != nil {
		return err
	}
	if k.pins, err = pin.New(pinsName, filepath.Join(pinsName, "runs"), k.own); err != nil {
		return err
	}
	if k.trees, err = tree.NewDesk(k.sup, k.own, filepath.Join(dir, treesName)); err != nil {
		return err
	}
	err = k.live()
	err = errors.Join(err, k.sup.Close())
	close(k.over)
	return err
}

// live takes links until it is to end.
func (k *holder) live() error {
	if _, err := k.sup.Sweep(context.Background()); err != nil { // what a keeper left that was killed
		return err
	}
	if err := errors.Join(os.RemoveAll(spoolName), os.RemoveAll(pinsName), os.MkdirAll(spoolName, 0o700), os.MkdirAll(homesName, 0o711)); err != nil {
		return err
	}
	k.mu.Lock()
	k.allow()
	k.mu.Unlock()
	go k.try()
	_ = os.Remove(socketName)
	in, err := net.Listen("unix", socketName)
	if err != nil {
		return err
	}
	if err := os.Chmod(socketName, 0o600); err != nil {
		return err
	}
	go k.expire()
	go func() {
		<-k.end
		in.Close()
	}()
	for {
		conn, err := in.Accept()
		if err != nil {
			break
		}
		if !own(conn.(*net.UnixConn)) {
			conn.Close()
			continue
		}
		go k.serve(conn)
	}
	return k.endAll(false, func(*run) bool { return true })
}

// try finds out what of the wall this host does not give to an agent's processes; where
// it has none of them, why.
func (k *holder) try() {
	defer close(k.tried)
	for _, l := range k.sup.Layers(context.Background(), cell.Worker, filepath.Join(k.dir, homesName)) {
		if l.Name == "run" && !l.OK {
			k.lacks = []string{l.Name + ": " + l.Detail}
			return
		}
		if l.Needed && !l.OK {
			k.lacks = append(k.lacks, l.Name)
		}
	}
}

// own reports whether somebody of this process's user has come.
func own(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return false
	}
	return int(cred.Uid) == os.Geteuid()
}

// serve is one link.
func (k *holder) serve(conn net.Conn) {
	defer conn.Close()
	session, err := yamux.Server(conn, wire.Config())
	if err != nil {
		return
	}
	defer session.Close()
	first, err := session.AcceptStream()
	if err != nil {
		return
	}
	_ = first.SetReadDeadline(time.Now().Add(patience))
	c := wire.New(first, wire.MaxFromEngine)
	var f wire.Control
	if err := c.ReadAny(&f); err != nil {
		return
	}
	_ = first.SetReadDeadline(time.Time{})
	if f.Hello == nil && f.End == nil {
		return
	}
	if f.End != nil {
		k.ended(c, f.End, nil)
		return
	}
	w, err := k.adopt(f.Hello, session)
	if err != nil {
		w = wire.Welcome{Error: err.Error()}
		if newer := new(newerError); errors.As(err, newer) {
			w.Newer = newer.epoch
		}
	}
	k.mu.Lock()
	kept := slices.Clone(k.former)
	k.mu.Unlock()
	w.Kept = len(kept)
	if c.Send(wire.Control{Welcome: &w}) != nil || err != nil || k.tell(c, kept) != nil {
		return
	}
	by := session
	if w.Version != f.Hello.Version { // it comes to end what is here
		by = nil
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer session.Close()
	all.Go(func() {
		for {
			s, err := session.AcceptStream()
			if err != nil {
				return
			}
			all.Go(func() {
				defer s.Close()
				k.attend(s, session)
			})
		}
	})
	all.Go(func() { k.beat(c, session) })
	for {
		var f wire.Control
		if err := c.ReadAny(&f); err != nil {
			return
		}
		switch {
		case f.Beat > 0:
			k.beaten(&f, session)
		case f.Took != "":
			k.took(f.Took)
		case f.Agents != nil:
			k.order.Lock()
			if k.linked(session) {
				k.tidy(f.Agents)
			}
			k.order.Unlock()
		case f.End != nil:
			k.ended(c, f.End, by)
			return
		}
	}
}

// adopt takes a link in the place of the one before, and ends what the engine
// does not know of.
func (k *holder) adopt(h *wire.Hello, session *yamux.Session) (wire.Welcome, error) {
	core.Within(k.tried, patience)
	k.order.Lock()
	defer k.order.Unlock()
	w := wire.Welcome{Version: wire.Version, Digest: k.digest, Boot: k.boot, Program: k.program}
	if err := k.admit(h.Epoch); err != nil {
		return w, err
	}
	if h.Version != wire.Version {
		return w, nil // the engine ends this keeper, and begins one of its own
	}
	if err := h.Check(); err != nil {
		return w, err
	}
	k.mu.Lock()
	if k.engine == h.Engine && h.Attempt <= k.attempt {
		k.mu.Unlock()
		return w, errors.New("a newer link is there")
	}
	same := k.engine == h.Engine
	old, heard := k.link, k.base
	if k.leased = h.Leased; !same {
		k.held = 0 // what was said to the former owner is not said to this one
	}
	k.engine, k.attempt, k.lease, k.base, k.link = h.Engine, h.Attempt, time.Duration(h.LeaseMS)*time.Millisecond, wire.SinceBoot(), session
	k.allow()
	k.mu.Unlock()
	if old != nil {
		old.Close()
	}
	if !same {
		k.succeed(heard)
	}
	err := k.endAll(false, func(r *run) bool { return !same || !slices.Contains(h.Runs, r.id) })
	if core.IsOver(k.tried) {
		w.Lacks = k.lacks
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.runs {
		w.Runs = append(w.Runs, id)
	}
	return w, err
}

// beat has the engine show that it is there. A link on which nothing comes back
// is none.
func (k *holder) beat(c *wire.Conn, session *yamux.Session) {
	k.mu.Lock()
	every, most := wire.Beats(k.lease)
	if k.leased {
		every = min(every, wire.HoldBeat)
	}
	k.mu.Unlock()
	for {
		k.mu.Lock()
		k.beats++
		n := k.beats
		k.sent[n%uint64(len(k.sent))] = wire.SinceBoot()
		quiet := wire.SinceBoot() - k.base
		mine := k.link == session
		k.mu.Unlock()
		if !mine || quiet > most || c.Send(wire.Control{Beat: n}) != nil {
			session.Close()
			return
		}
		select {
		case <-time.After(every):
		case <-session.CloseChan():
			return
		}
	}
}

// attend is one stream of a run.
func (k *holder) attend(s io.ReadWriter, session *yamux.Session) {
	c := wire.New(s, wire.MaxFromEngine)
	var f wire.FromEngine
	if err := c.Read(&f); err != nil || f.Open == nil {
		return
	}
	if err := f.Open.Check(); err != nil {
		_ = c.Send(wire.FromHost{Opened: &wire.Taken{Error: err.Error()}})
		return
	}
	r := k.find(f.Open, session)
	if r == nil {
		_ = c.Send(wire.FromHost{Opened: &wire.Taken{Error: "there is no such run"}})
		return
	}
	if errors.Is(r.serve(c, f.Open.Seen), errForget) {
		_ = k.endAll(false, func(o *run) bool { return o == r })
	}
}

// find is a run, begun if it is new.
func (k *holder) find(o *wire.Open, session *yamux.Session) *run {
	k.mu.Lock()
	r := k.runs[o.Run]
	if k.link != session { // it is over, and its runs were looked through
		r, o.Start = nil, nil
	}
	if r != nil || o.Start == nil || len(k.runs) >= wire.MaxRuns {
		k.mu.Unlock()
		return r
	}
	engine := k.engine
	r = newRun(o.Run, filepath.Join(k.dir, spoolName))
	k.runs[o.Run] = r
	k.mu.Unlock()
	defer close(r.begun)
	if err := k.awaitHold(engine); err != nil {
		r.failed(err)
		return r
	}
	p, after, err := k.start(o.Run, o.Start)
	if err != nil {
		r.failed(err)
		return r
	}
	r.whole, r.after, r.agent, r.keep = o.Start.Whole, after, o.Start.Agent, o.Start.Keep
	r.begin(p)
	return r
}
