package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/ca"
	"swarmdeck/drivers/pin"
	"swarmdeck/engine/operator"
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
	// Pinned are the files whose verified copies run in their places.
	Pinned []pin.Pinned
}

// User is an account of the system, taken without its supplementary groups.
type User struct{ UID, GID uint32 }

// Exit is how a run's first process ended.
type Exit struct {
	Code     int            // exit status; 128 + the signal's number when a signal ended it
	Signal   syscall.Signal // 0 unless a signal ended it
	Late     bool           // the deadline had passed
	Duration time.Duration
}

// Process is one run: a first process and whatever it starts. Its methods
// may be called from any goroutine.
type Process struct {
	// Stdin, Stdout and Stderr are our ends of its pipes. Their user closes them.
	Stdin  *os.File
	Stdout *os.File
	Stderr *os.File

	sup      *Supervisor
	run      string // INSTANCE/RUN
	whose    operator.Run
	work     Whose
	ways     sync.WaitGroup // connections that go out
	wall     Wall
	ca       *ca.Authority // of Wall.Inspect
	child    *os.Process   // the cell's init
	init     int           // its pid
	spaces   bool          // all of the run is in a PID name space
	pid      int           // of the first process, as this process sees it
	group    *cgroup
	missing  []string
	began    time.Time
	own      string        // a directory that goes with the run, "" for none
	control  *net.UnixConn // our end of the init's messages
	started  chan message  // one: how the start went
	settled  chan message  // answers to pause and resume
	freezing chan struct{} // held while the run is made to stand still or go on
	done     chan struct{} // closed when the first process has ended
	exit     Exit          // valid after done
	gone     chan struct{} // closed when nothing of the run is left

	stop chan struct{} // held by the Stop that is at work

	mu       sync.Mutex
	stopping bool
	paused   bool
	late     bool
	alarm    *time.Timer
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
	if info, err := os.Stat(spec.Dir); err != nil {
		return nil, BadDir{err}
	} else if !info.IsDir() {
		return nil, BadDir{&os.PathError{Op: "enter", Path: spec.Dir, Err: syscall.ENOTDIR}}
	}
	path, err := find(spec.Argv[0], spec.Env, spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	if spec.Wall.Profile == "" {
		spec.Wall.Profile = Worker
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

func (s *Supervisor) launchAs(m mode, path string, spec Spec) (*Process, error) {
	p := &Process{
		sup: s, run: s.opt.Instance + "/" + spec.Run, whose: spec.Whose.run(spec.Run), work: spec.Whose, wall: spec.Wall, began: time.Now(),
		spaces: m != bare, started: make(chan message, 1), settled: make(chan message, 1), freezing: make(chan struct{}, 1),
		done: make(chan struct{}), gone: make(chan struct{}), stop: make(chan struct{}, 1),
	}
	theirs, ours, err := pipes()
	if err != nil {
		return nil, err
	}
	control, mine, err := line()
	if err != nil {
		theirs.close()
		ours.close()
		return nil, err
	}
	p.Stdin, p.Stdout, p.Stderr, p.control = ours[0], ours[1], ours[2], mine
	theirs = append(theirs, control)
	defer theirs.close()
	p.group = s.cgroups.make()
	if p.child, err = s.fork(m, path, spec, p, theirs); err == nil {
		p.init = p.child.Pid
		if err = s.register(p); err != nil {
			_ = p.child.Kill()
			_, _ = p.child.Wait()
		}
	}
	if err != nil {
		ours.close()
		mine.Close()
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
	p.missing, p.pid = append(p.missing, said.Missing...), p.mainOf(said.PID, m)
	if spec.Deadline > 0 {
		p.mu.Lock()
		p.alarm = time.AfterFunc(spec.Deadline, p.expire)
		p.mu.Unlock()
	}
	return p, nil
}

// fork starts the init of a run, with its files.
func (s *Supervisor) fork(m mode, path string, spec Spec, p *Process, theirs files) (*os.Process, error) {
	for {
		o, more, err := s.order(m, path, spec, p)
		if err != nil {
			return nil, err
		}
		p.missing = o.lacks
		attr := m.attributes(spec.Wall.walled())
		if p.group != nil {
			attr.UseCgroupFD, attr.CgroupFD = true, int(p.group.dir.Fd())
		}
		child, err := os.StartProcess(s.opt.Program, named(p.run, s.name), &os.ProcAttr{
			Dir: "/", Env: []string{"GOGC=off"}, Sys: attr, // it starts faster, and turns it on once the command runs
			Files: append(append(append(files{}, theirs...), more[0], s.page.file), more[1:]...),
		})
		more[0].Close()
		if err != nil && o.Cgroup > 0 && !s.cgroups.distrusted() { // it may be the cgroup that is not allowed
			p.group.remove()
			p.group = nil
			s.cgroups.distrust()
			continue
		}
		return child, err
	}
}

// failure is why an init did not start its command.
func (m message) failure() error {
	if m.Error == "" {
		m.Error = "its init ended before it began"
	}
	return initError{m.Error, m.Errno, m.NoWall}
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

// live follows a cell to its end.
func (p *Process) live() {
	exit := Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL} // unless its init says otherwise
	told := false
	heard := false
	for {
		var m message
		along, err := p.hear(&m)
		if errors.As(err, new(*json.SyntaxError)) {
			continue
		}
		if err != nil {
			break
		}
		switch m.Kind {
		case saidStarted, saidFailed:
			heard = true
			p.started <- m
		case saidExit:
			if !told {
				told = true
				exit = exitOf(m.Status)
				p.finish(exit)
			}
		case saidPaused, saidResumed:
			select {
			case <-p.settled: // nobody waits for an old one
			default:
			}
			p.settled <- m
		case saidConn:
			p.arrive(along, m.Port)
			along = -1
		}
		if along >= 0 {
			_ = unix.Close(along)
		}
	}
	_, _ = p.child.Wait()
	if !told {
		p.finish(exit)
	}
	p.sup.strays(p)
	p.control.Close()
	p.clear()
	close(p.gone)
	p.ways.Wait()
	p.sup.forget(p)
	if !heard {
		p.started <- message{Kind: saidFailed}
	}
}

// hear reads one message of the init, and the descriptor that came along, -1
// for none.
func (p *Process) hear(m *message) (along int, err error) {
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := p.control.ReadMsgUnix(buf, oob)
	if err != nil {
		return -1, err
	}
	return descriptor(oob[:oobn]), json.Unmarshal(buf[:n], m)
}

// clear removes what is a run's beside its processes.
func (p *Process) clear() {
	p.group.remove()
	if p.own != "" {
		_ = os.RemoveAll(p.own)
	}
}

func exitOf(ws syscall.WaitStatus) (e Exit) {
	if ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}
	}
	return Exit{Code: ws.ExitStatus()}
}

// finish notes how the first process ended.
func (p *Process) finish(exit Exit) {
	exit.Duration = time.Since(p.began)
	p.mu.Lock()
	exit.Late = p.late
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.mu.Unlock()
	p.exit = exit
	close(p.done)
}

// tell says what is wanted to the init. One that has gone needs no more.
func (p *Process) tell(w wish) {
	select {
	case <-p.gone:
	default:
		if data, err := json.Marshal(w); err == nil {
			_, _ = p.control.Write(data)
		}
	}
}

func (p *Process) expire() {
	p.mu.Lock()
	p.late = true
	p.mu.Unlock()
	_ = p.Stop(Grace{})
}

// PID is the process id of the first process.
func (p *Process) PID() int { return p.pid }

// Missing are the layers of the wall that this run goes without, because the
// system does not give them.
func (p *Process) Missing() []string { return p.missing }

// Done is closed when the first process has ended. Others of the run may
// still live: Stop ends them.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit waits for the first process to end and tells how it did.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

// Ended reports whether the first process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Began is when the run was started.
func (p *Process) Began() time.Time { return p.began }

// Interrupt sends a signal to the process group of the first process, as a
// terminal would for ctrl-c. It does nothing once that has ended.
func (p *Process) Interrupt(sig syscall.Signal) {
	if !p.Ended() {
		p.tell(wish{Kind: wishGroup, Signal: sig})
	}
}

// CloseIO closes our ends of all three pipes.
func (p *Process) CloseIO() {
	p.Stdin.Close()
	p.Stdout.Close()
	p.Stderr.Close()
}
