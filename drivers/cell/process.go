package cell

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell/ca"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/procfs"
)

// Exit is how a run's first process ended.
type Exit struct {
	Code     int            // exit status; 128 + the signal's number when a signal ended it
	Signal   syscall.Signal // 0 unless a signal ended it
	Late     bool           // the deadline had passed
	Overran  uint64         // bytes of memory that the run as a whole was bounded to, when it took more and was ended for it
	Duration time.Duration
	Why      string // of a run on another machine that is lost: says so, as Describe does
}

// Process is one run: a first process and whatever it starts. Its methods
// may be called from any goroutine.
type Process struct {
	// Stdin, Stdout and Stderr are our ends of its pipes. Their user closes them.
	// Of a run with a terminal the first two are our end of that, and the third is nil.
	Stdin  *os.File
	Stdout *os.File
	Stderr *os.File

	sup      *Supervisor
	run      string // INSTANCE/RUN
	whose    operator.Run
	work     Whose
	ways     sync.WaitGroup  // connections that go out
	deeds    map[string]bool // that were refused, and told of; live's own
	told     chan Held       // that are to be told of
	telling  sync.WaitGroup
	wall     Wall
	laid     laid
	ca       *ca.Authority // of Wall.Inspect
	child    *os.Process   // the cell's init
	init     int           // its pid
	spaces   bool          // all of the run is in a PID name space
	keeps    bool          // the init does, when this process dies
	pid      int           // of the first process, as this process sees it
	group    *cgroup
	limits   Limits
	apart    chan struct{} // closed when the init is out of the group
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

// live follows a cell to its end.
func (p *Process) live() {
	exit := Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL} // unless its init says otherwise
	told := false
	heard, apart, first := false, false, 0
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
			heard, first = true, m.PID
			p.started <- m
		case saidApart:
			if !apart {
				apart = true
				p.sup.cgroups.boundProcesses(p.group, p.limits, 0)
				close(p.apart)
			}
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
		case saidRefused:
			p.refused(m)
		}
		if along >= 0 {
			_ = unix.Close(along)
		}
	}
	_, _ = p.child.Wait()
	if !told {
		p.finish(exit)
	}
	p.sup.strays(p, first)
	p.control.Close()
	p.clear()
	p.heardAll() // what a run tried is known once it is over
	if p.sup.opt.Held != nil {
		p.tellLaid()
	}
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
	if exit.Signal == unix.SIGKILL {
		exit.Overran = p.group.overran()
	}
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

// Dying reports whether the first process has ended or is about to, which is so
// before anybody can notice that its descriptors are closed. Done comes later.
func (p *Process) Dying() bool {
	if p.Ended() || unix.Kill(p.pid, 0) == unix.ESRCH {
		return true
	}
	s, err := procfs.Read(p.pid)
	return err == nil && (s.Dead() || s.Exiting)
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

// Streams are our ends of its pipes.
func (p *Process) Streams() (stdin, stdout, stderr *os.File) { return p.Stdin, p.Stdout, p.Stderr }

// CloseIO closes our ends of all three pipes, or of the terminal.
func (p *Process) CloseIO() {
	p.Stdin.Close()
	p.Stdout.Close()
	p.Stderr.Close()
}
