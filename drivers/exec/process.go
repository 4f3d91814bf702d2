package exec

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what to start.
type Spec struct {
	Run    string // names the run in the mark, for example a task id
	Argv   []string
	Dir    string // absolute
	Env    map[string]string
	Limits Limits
	// Deadline stops the run this long after its start, with the usual order;
	// 0 is none.
	Deadline time.Duration
	// User runs it as somebody else, which only root may ask for; nil is the
	// engine's own user.
	User *User
}

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

	sup  *Supervisor
	pid  int
	mark string
	tag  uint64
	// tagged says that the tag is in force, so that it alone finds the run.
	tagged bool
	began  time.Time
	done   chan struct{} // closed when the first process has been reaped
	exit   Exit          // valid after done

	stop chan struct{} // held by the Stop that is at work

	mu       sync.Mutex
	known    map[int]uint64 // start times of the run's processes when last seen
	stopping bool
	paused   bool
	late     bool
	alarm    *time.Timer
}

// Start runs a command. It fails with an error that wraps os.ErrNotExist or
// os.ErrPermission when the program can't be found or run.
func (s *Supervisor) Start(spec Spec) (*Process, error) {
	if err := checkCommand("argv", spec.Argv); err != nil {
		return nil, err
	}
	if err := checkEnv(spec.Env); err != nil {
		return nil, err
	}
	if info, err := os.Stat(spec.Dir); err != nil {
		return nil, badDir{err}
	} else if !info.IsDir() {
		return nil, badDir{&os.PathError{Op: "enter", Path: spec.Dir, Err: syscall.ENOTDIR}}
	}
	path, err := find(spec.Argv[0], spec.Env, spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	p := &Process{
		sup: s, mark: s.instance + "/" + spec.Run, tag: s.tagBase | s.lastRun.Add(1)&0xffffffff,
		done: make(chan struct{}), known: map[int]uint64{}, stop: make(chan struct{}, 1),
	}
	if err := p.launch(path, spec); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	return p, nil
}

// badDir tells a missing directory from a missing program.
type badDir struct{ error }

func (b badDir) Unwrap() error { return b.error }

func (p *Process) launch(path string, spec Spec) error {
	var files [6]*os.File // child's and our end of stdin, stdout, stderr
	shut := func(list ...*os.File) {
		for _, f := range list {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			shut(files[:]...)
			return err
		}
		if i == 0 {
			files[0], files[3] = r, w
		} else {
			files[i], files[3+i] = w, r
		}
	}
	child, err := p.sup.fork(path, spec.Argv, &os.ProcAttr{
		Dir: spec.Dir, Env: environ(spec.Env, p.mark), Files: files[:3], Sys: spec.User.attributes(),
	}, func(pid int) error {
		p.pid, p.began = pid, time.Now()
		if first, ok := look(pid); ok {
			p.known[pid] = first.start
		}
		if err := p.sup.register(p); err != nil {
			return err
		}
		p.tagged = setTag(pid, p.tag)
		err := spec.Limits.apply(pid)
		if spec.User != nil && errors.Is(err, unix.EPERM) {
			return nil // the root of some containers may not limit other users
		}
		return err
	})
	shut(files[:3]...)
	if err != nil {
		p.sup.forgetMain(p)
		p.sup.forget(p)
		shut(files[3:]...)
		return err
	}
	p.Stdin, p.Stdout, p.Stderr = files[3], files[4], files[5]
	go p.wait(child)
	if spec.Deadline > 0 {
		p.mu.Lock()
		p.alarm = time.AfterFunc(spec.Deadline, p.expire)
		p.mu.Unlock()
	}
	return nil
}

func (p *Process) wait(child *os.Process) {
	state, err := child.Wait()
	exit := Exit{Code: -1, Duration: time.Since(p.began)}
	if err == nil {
		ws := state.Sys().(syscall.WaitStatus)
		exit.Code = ws.ExitStatus()
		if ws.Signaled() {
			exit.Signal = ws.Signal()
			exit.Code = 128 + int(exit.Signal)
		}
	}
	p.mu.Lock()
	exit.Late = p.late
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.mu.Unlock()
	p.exit = exit
	p.sup.forgetMain(p)
	close(p.done)
}

func (p *Process) expire() {
	p.mu.Lock()
	p.late = true
	p.mu.Unlock()
	_ = p.Stop(Grace{})
}

// PID is the process id of the first process.
func (p *Process) PID() int { return p.pid }

// Done is closed when the first process has ended. Others of the run may
// still live: Stop ends them.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit waits for the first process to end and tells how it did.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

func (p *Process) reaped() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Interrupt sends a signal to the run's process group, as a terminal would
// for ctrl-c. It does nothing once the first process has ended.
func (p *Process) Interrupt(sig syscall.Signal) {
	if !p.reaped() {
		// The group's id can't be another's while its leader is not reaped.
		_ = unix.Kill(-p.pid, sig)
	}
}

// CloseIO closes our ends of all three pipes.
func (p *Process) CloseIO() {
	p.Stdin.Close()
	p.Stdout.Close()
	p.Stderr.Close()
}
