package cell

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine/core"
	filerules "swarmdeck/engine/files"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/reach"
)

// Options of NewSupervisor.
type Options struct {
	// Instance names the engine and its data file: the same after a restart, so
	// that Sweep finds what a former engine left, and different for every other
	// engine on the machine. 1-64 characters without "/".
	Instance string
	// Hide are files and directories of the engine's own, which no walled run
	// sees. A name that ends in "*" stands for all that begin so.
	Hide []string
	// Private are directories of the engine's own in which runs may work, beside those
	// of Hide: what lies there no person's tools run.
	Private []string
	// Files tells what the rules say of a run's files. Nil is that there are no
	// rules.
	Files func(Whose) (filerules.Places, error)
	// Scope tells what whoever asked for a task may name. Nil is that all may
	// what this user may.
	Scope func(Whose) (reach.Scope, error)
	// Way takes a connection of a worker that wants to go out, and closes it; it
	// returns when that is over. Nil is no way out for anybody.
	Way func(Conn)
	// Reach takes a connection to one of the ports of Wall.Reach, as Way does. Nil joins
	// it with that port of this machine's loopback.
	Reach func(Conn)
	// Over is told of a run once it is over with all its ways out. Nil is nobody.
	Over func(Whose, string)
	// Held is told of the first deed of each kind that a run was refused, and of what it
	// could have laid for a person's tools to run; the run is not over before it returns.
	// Nil is nobody.
	Held func(Held)
	// Keep is a directory of the engine's own, which it makes, for what inits keep
	// of runs when the engine dies; "" keeps nothing. No walled run may see it.
	Keep string
	// Leased says that cells run only until a time that Hold gives, and freeze then:
	// the data may have another owner.
	Leased bool
	// Program is what is executed as the init of a cell; "" is this program.
	Program string
	// Without leaves layers out, as where the system does not give them; for tests.
	Without []string
}

// Supervisor starts processes and answers for all of them. It is safe for
// concurrent use.
type Supervisor struct {
	opt     Options
	name    string // of this engine among those of the instance
	page    *page
	cgroups *cgroups // nil where there are none
	grace   time.Duration
	end     chan struct{}
	wg      sync.WaitGroup

	mu     sync.Mutex
	closed bool
	mode   mode                  // 0 not known yet
	why    string                // there are no name spaces
	live   map[*Process]struct{} // until nothing of the run is left
	maps   map[uint32]*os.File   // user name spaces by the owner they stand for
	timer  *time.Ticker
	spare  spare
	kept   *os.File // the directory of Options.Keep, nil until it is needed

	lacks func() ([]string, error) // layers that walled runs go without here
}

// NewSupervisor begins supervising.
func NewSupervisor(opt Options) (*Supervisor, error) {
	if opt.Instance == "" || len(opt.Instance) > 64 || strings.ContainsAny(opt.Instance, "/\x00") {
		return nil, core.Invalid("instance", opt.Instance, `1-64 characters without "/"`)
	}
	s := &Supervisor{opt: opt, name: rand.Text(), grace: OrphanGrace, end: make(chan struct{}), live: map[*Process]struct{}{}, maps: map[uint32]*os.File{}}
	s.opt.Program = cmp.Or(opt.Program, "/proc/self/exe")
	s.lacks = sync.OnceValues(s.probe)
	var err error
	if s.page, err = newPage(); err != nil {
		return nil, err
	}
	if !s.without(layerCgroup) {
		s.cgroups = findCgroups(opt.Instance)
	}
	s.timer = time.NewTicker(beatEvery)
	s.timer.Stop()
	s.wg.Go(s.beat)
	return s, nil
}

func (s *Supervisor) without(layer string) bool {
	return slices.Contains(s.opt.Without, layer)
}

var (
	errClosed  = errors.New("the supervisor is closed")
	errNotHeld = errors.New("nothing starts while the lease on the data is not renewed")
)

// Close stops every process that is still running and waits for it.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	procs := make([]*Process, 0, len(s.live))
	for p := range s.live {
		procs = append(procs, p)
	}
	s.mu.Unlock()

	errs := make([]error, len(procs))
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() { errs[i] = p.Stop(Grace{}) })
	}
	wg.Wait()
	s.spare.close()
	s.timer.Stop()
	close(s.end)
	s.wg.Wait()
	s.page.close()
	if s.kept != nil {
		s.kept.Close()
	}
	for _, f := range s.maps {
		f.Close()
	}
	s.cgroups.close()
	return errors.Join(errs...)
}

func (s *Supervisor) register(p *Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	switch {
	case s.opt.Leased && s.page.left() <= 0:
		return errNotHeld
	case !s.opt.Leased && len(s.live) == 0:
		s.page.hold(Lease)
		s.timer.Reset(beatEvery)
	}
	s.live[p] = struct{}{}
	return nil
}

// unregister takes a run out of those that live, and reports whether it was the
// last of its name: an agent may have several processes.
func (s *Supervisor) unregister(p *Process) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, p)
	if len(s.live) == 0 {
		s.timer.Stop()
	}
	for q := range s.live {
		if q.run == p.run {
			return false
		}
	}
	return true
}

func (s *Supervisor) forget(p *Process) {
	if s.unregister(p) && s.opt.Over != nil && p.whose.Tenant != "" {
		s.opt.Over(p.work, p.whose.Name)
	}
}

// inits are the pids of the runs' inits, as this process sees them.
func (s *Supervisor) inits() map[int]*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[int]*Process, len(s.live))
	for p := range s.live {
		all[p.init] = p
	}
	return all
}

// BecomeSubreaper makes this process the parent of every descendant that
// loses its own, so that none escapes where there are no name spaces. Call it
// once, before the first command. It changes the whole process.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// Whose tells whom a run works for. A run without a tenant, or with neither
// agent nor task, is nobody's: the engine takes no orders from it.
type Whose struct {
	Tenant string `allow:"at most 64 bytes without control characters"`
	Agent  string `allow:"at most 128 bytes without control characters"`  // name; "" for a process that several agents share
	Role   string `allow:"at most 4096 bytes without control characters"` // of the agent
	Task   string `allow:"at most 128 bytes without control characters"`  // id, of a task's or a skill's own command
}

func (w Whose) run(name string) operator.Run {
	return operator.Run{Name: name, Tenant: w.Tenant, Agent: w.Agent, Task: w.Task}
}

var _ origin.Runs = (*Supervisor)(nil)

func (s *Supervisor) Self() int { return os.Getpid() }

// Lookup implements origin.Runs: every process of a cell descends from its init.
func (s *Supervisor) Lookup(pid int) (operator.Run, bool) {
	p := s.inits()[pid]
	if p == nil {
		return operator.Run{}, false
	}
	return p.whose, true
}

// maxName bounds what a mark can say, in bytes.
const maxName = 120

// Marked implements origin.Runs: by the name of an init, which that of an
// earlier engine has too, else by the variable.
func (s *Supervisor) Marked(pid int) (operator.Run, bool) {
	mark, _ := ofInit(pid)
	if mark == "" {
		mark = markOf(pid)
	}
	name, ours := strings.CutPrefix(mark, s.opt.Instance+"/")
	if !ours || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return operator.Run{}, ours
	}
	for _, p := range s.inits() {
		if p.run == mark {
			return p.whose, true
		}
	}
	return operator.Run{Name: name}, true
}
