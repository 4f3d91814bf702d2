package cell

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// idle is how long an init waits for a run before it is ended.
const idle = 30 * time.Second

// spare keeps one init waiting, so that a run need not wait for this large
// program to start. It is made once a run has shown what works, and what is not
// used goes: an engine at rest has none.
type spare struct {
	mu     sync.Mutex
	ready  *waiting
	making bool
	closed bool
	timer  *time.Timer
}

// waiting is an init without a run.
type waiting struct {
	mode    mode
	walled  bool
	child   *os.Process
	control *net.UnixConn // our end of its messages
	group   *cgroup       // it is in; nil where there are none
	old     bool          // it has waited
}

func (w *waiting) fits(m mode, walled bool) bool {
	return w != nil && w.mode == m && w.walled == walled
}

// end has it leave, and waits for that.
func (w *waiting) end() {
	w.control.Close()
	_, _ = w.child.Wait()
}

// drop is end for one that no run will have.
func (w *waiting) drop() {
	w.end()
	w.group.remove()
}

// take is an init for a run: the one that waits, else a new one.
func (k *spare) take(s *Supervisor, m mode, walled bool, run string) (*waiting, error) {
	k.mu.Lock()
	w := k.ready
	if w.fits(m, walled) && len(run) <= maxRun {
		k.ready = nil
		k.mu.Unlock()
		return w, nil
	}
	k.mu.Unlock()
	return s.spawn(m, walled, run)
}

// fill starts the next one, in the background.
func (k *spare) fill(s *Supervisor, m mode, walled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Reset(idle)
	} else {
		k.timer = time.AfterFunc(idle, k.drop)
	}
	if k.ready.fits(m, walled) || k.making || k.closed {
		return
	}
	if w := k.ready; w != nil { // of another kind than what is started now
		k.ready = nil
		s.wg.Go(w.drop)
	}
	k.making = true
	s.wg.Go(func() {
		w, err := s.spawn(m, walled, waitingFor(s.opt.Instance))
		k.mu.Lock()
		k.making = false
		if err == nil && !k.closed {
			w.old = true
			k.ready, w = w, nil
		}
		k.mu.Unlock()
		if err == nil && w != nil {
			w.drop()
		}
	})
}

// drop ends the one that waits.
func (k *spare) drop() {
	k.mu.Lock()
	w := k.ready
	k.ready = nil
	k.mu.Unlock()
	if w != nil {
		w.drop()
	}
}

// close has no more made.
func (k *spare) close() {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.mu.Unlock()
	k.drop()
}

// spawn starts an init that waits for its order.
func (s *Supervisor) spawn(m mode, walled bool, run string) (*waiting, error) {
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("start an init: %w", err)
	}
	defer nothing.Close()
	theirs, ours, err := line()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	w := &waiting{mode: m, walled: walled, control: ours, group: s.cgroups.make()}
	start := func() error {
		attr := m.attributes(walled)
		if w.group != nil {
			attr.UseCgroupFD, attr.CgroupFD = true, int(w.group.dir.Fd())
		}
		w.child, err = os.StartProcess(s.opt.Program, named(run, s.name), &os.ProcAttr{
			Dir: "/", Env: []string{"GOGC=off"}, Sys: attr, // it starts faster, and turns it on once the command runs
			Files: []*os.File{nothing, nothing, nothing, theirs, s.page.file},
		})
		return err
	}
	if start() != nil && w.group != nil {
		w.group.remove()
		w.group = nil
		if start() == nil { // the system let a cgroup be made, and no process into it
			s.cgroups.distrust()
		}
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	return w, nil
}
