package cell

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell/pin"
	"swarmdeck/engine/terminal"
)

// Spec says what to start.
type Spec struct {
	Run    string // names the run, for example a task id
	Whose  Whose  // who is behind what its processes ask of the engine
	Argv   []string
	Dir    string // absolute
	Env    map[string]string
	Limits Limits
	// Deadline stops the run this long after its start, with the usual order;
	// 0 is none.
	Deadline time.Duration
	// User runs it as somebody else, which only root may ask for; nil is the
	// engine's own user, or for a walled run of root one that is nobody else.
	User *User
	Wall Wall
	// Keep says what the init keeps for the next engine; nil is nothing.
	Keep *Keep
	// Pinned are the files whose verified copies run in their places.
	Pinned []pin.Pinned
	// Terminal gives it a terminal of this size in the place of the three pipes;
	// nil is none.
	Terminal *terminal.Size
	held     bool // to what whoever asked for it may name, who may write its directory
}

// Start runs a command. It fails with an error that wraps os.ErrNotExist or
// os.ErrPermission when the program can't be found or run.
func (s *Supervisor) Start(spec Spec) (*Process, error) {
	if err := CheckCommand("argv", spec.Argv); err != nil {
		return nil, err
	}
	if err := CheckEnv(spec.Env); err != nil {
		return nil, err
	}
	if err := s.bounded(&spec); err != nil {
		return nil, err
	}
	if info, err := os.Stat(spec.Dir); err != nil {
		return nil, BadDir{err}
	} else if !info.IsDir() {
		return nil, BadDir{&os.PathError{Op: "enter", Path: spec.Dir, Err: syscall.ENOTDIR}}
	}
	if spec.Terminal != nil {
		if err := checkSize(*spec.Terminal); err != nil {
			return nil, err
		}
	}
	path, err := find(spec.Argv[0], spec.Env, spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	spec.Wall.Profile = cmp.Or(spec.Wall.Profile, Worker)
	if err := s.grant(&spec); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	if err := pin.Verify(spec.Pinned); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	p, err := s.launch(path, spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	return p, nil
}

// BadDir tells a missing directory from a missing program.
type BadDir struct{ error }

func (b BadDir) Unwrap() error { return b.error }

// launch tries what the system gives, the best first.
func (s *Supervisor) launch(path string, spec Spec) (*Process, error) {
	var why error
	for _, m := range s.modes() {
		p, err := s.launchAs(m, path, spec)
		told := new(initError)
		switch {
		case err == nil:
			s.settle(m, why)
			return p, nil
		case errors.As(err, told) && (!told.noWall || s.holds(m)), told.said == "" && !forbids(err), m == bare:
			return nil, err
		}
		why = err
	}
	return nil, why
}

// holds tries whether a mode works at all.
func (s *Supervisor) holds(m mode) bool {
	if s.settled() {
		return true
	}
	path, err := lookFor("true")
	if err != nil {
		return false
	}
	p, err := s.launchAs(m, path, Spec{Run: "probe", Argv: []string{"true"}, Dir: "/usr", Wall: Wall{Profile: Reader}})
	if err != nil {
		return false
	}
	defer p.CloseIO()
	s.settle(m, nil)
	return p.Stop(Grace{Interrupt: -1, Terminate: -1}) == nil
}

// probe starts a command that does nothing, for what the wall lacks here.
func (s *Supervisor) probe() ([]string, error) {
	p, err := s.Start(Spec{Run: "probe", Argv: []string{"true"}, Dir: "/usr", Wall: Wall{Profile: Reader}})
	if err != nil {
		return nil, err
	}
	defer p.CloseIO()
	return p.Missing(), p.Stop(Grace{Interrupt: -1, Terminate: -1})
}

func (s *Supervisor) launchAs(m mode, path string, spec Spec) (*Process, error) {
	p := &Process{
		sup: s, run: s.opt.Instance + "/" + spec.Run, whose: spec.Whose.run(spec.Run), work: spec.Whose, wall: spec.Wall, began: time.Now(),
		spaces: m != bare, started: make(chan message, 1), settled: make(chan message, 1), freezing: make(chan struct{}, 1),
		limits: spec.Limits, apart: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}), stop: make(chan struct{}, 1),
	}
	theirs, ours, err := streams(spec.Terminal)
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	p.Stdin, p.Stdout, p.Stderr = ours[0], ours[1], ours[2]
	if err := s.fork(m, path, spec, p, theirs); err != nil {
		ours.close()
		p.clear()
		return nil, err
	}
	theirs.close() // so that the end of the command is the end of its pipes
	go p.live()
	said := <-p.started
	if said.Kind != saidStarted {
		<-p.gone
		p.CloseIO()
		return nil, said.failure()
	}
	s.spare.fill(s, m, spec.Wall.walled())
	p.missing, p.pid = append(p.missing, said.Missing...), p.mainOf(said.PID, m)
	if s.opt.Held != nil && len(p.laid.dirs) > 0 {
		go p.lookAfter()
	}
	if spec.Deadline > 0 {
		p.mu.Lock()
		p.alarm = time.AfterFunc(spec.Deadline, p.expire)
		p.mu.Unlock()
	}
	return p, nil
}

// fork gives a run its init, with its order.
func (s *Supervisor) fork(m mode, path string, spec Spec, p *Process, theirs files) error {
	for {
		w, err := s.spare.take(s, m, spec.Wall.walled(), p.run)
		if err != nil {
			return err
		}
		p.group = w.group
		s.cgroups.hold(p.group, spec.Limits)
		o, more, err := s.order(m, path, spec, p)
		if err == nil {
			p.missing = o.lacks
			err = s.hand(w, p, append(slices.Clone(theirs), more...))
			more[0].Close()
			if err != nil && w.old { // it may have died while it waited
				w.end()
				p.group.remove()
				continue
			}
		}
		if err != nil {
			w.end()
		}
		return err
	}
}

// hand gives an init its order.
func (s *Supervisor) hand(w *waiting, p *Process, all files) error {
	p.child, p.init, p.control = w.child, w.child.Pid, w.control
	if err := s.register(p); err != nil {
		return err
	}
	if err := sendFiles(w.control, p.run, all); err != nil {
		s.unregister(p)
		return fmt.Errorf("give an init its order: %w", err)
	}
	return nil
}

// mainOf is the first process as this process sees it.
func (p *Process) mainOf(inside int, m mode) int {
	if m == bare {
		return inside
	}
	for _, pid := range childrenOf(p.init) {
		if innerPID(pid) == inside {
			return pid
		}
	}
	return p.init // it has ended already
}

// files are descriptors of a process in the making.
type files []*os.File

func (fs files) close() {
	for _, f := range fs {
		if f != nil {
			f.Close()
		}
	}
}

// pipes are the three of a command: its own ends, then ours.
func pipes() (theirs, ours files, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			theirs.close()
			ours.close()
			return nil, nil, err
		}
		if i > 0 {
			r, w = w, r
		}
		theirs, ours = append(theirs, r), append(ours, w)
	}
	return theirs, ours, nil
}

// line makes the two ends of an init's messages: its own and ours.
func line() (theirs *os.File, ours *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a line to the init: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[0]), "init")
	end := os.NewFile(uintptr(fds[1]), "engine")
	defer end.Close()
	conn, err := net.FileConn(end)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a line to the init: %w", err)
	}
	return theirs, conn.(*net.UnixConn), nil
}

// failure is why an init did not start its command.
func (m message) failure() error {
	return initError{cmp.Or(m.Error, "its init ended before it began"), m.Errno, m.NoWall}
}

// initError is an error that an init told.
type initError struct {
	said   string
	errno  syscall.Errno
	noWall bool
}

func (e initError) Error() string { return e.said }

func (e initError) Is(target error) bool {
	return e.noWall && target == ErrNoWall || e.errno != 0 && !e.noWall && e.errno.Is(target) || target == error(e.errno)
}
