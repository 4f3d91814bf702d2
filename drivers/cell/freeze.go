package cell

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// set changes who wants the cell frozen, makes it so, and says word.
func (i *initial) set(change func(), word string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
	want := i.paused || i.orphan || i.silent
	var err error
	if want {
		i.still.Store(true)
		err = i.freeze()
	} else if i.still.Load() {
		i.still.Store(false)
		i.thaw()
	}
	if word == "" {
		return
	}
	m := message{Kind: word}
	if err != nil {
		m.Error = err.Error()
	}
	_ = send(controlFile, m, -1)
}

// signal sends a signal to every process of the cell but this.
func (i *initial) signal(sig syscall.Signal) {
	if i.order.Spaces {
		_ = unix.Kill(-1, sig)
		return
	}
	for _, p := range descendants(os.Getpid()) {
		p.send(sig)
	}
}

// freezePatience is how long the kernel may take to stop a process.
const freezePatience = 1500 * time.Millisecond

// freeze stops all of the cell. In a name space of its own one call reaches
// every process, those that are just being made too; elsewhere it is repeated
// until no new ones appear.
func (i *initial) freeze() error {
	calm := 0
	for deadline := time.Now().Add(freezePatience); ; time.Sleep(time.Millisecond) {
		i.signal(unix.SIGSTOP)
		moving := i.moving()
		switch {
		case len(moving) > 0:
			calm = 0
		case calm == 1 || i.order.Spaces:
			return nil
		default:
			calm++
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not stopped: %s", describe(moving))
		}
	}
}

// moving are the processes that do not stand still.
func (i *initial) moving() []proc {
	if i.blind {
		return nil
	}
	all := descendants(os.Getpid())
	stopped := map[int]bool{}
	for _, p := range all {
		stopped[p.Parent] = stopped[p.Parent] || p.Stopped()
	}
	return slices.DeleteFunc(all, func(p proc) bool {
		return p.Dead() || frozen(p.PID) || p.State == 'D' && stopped[p.PID] && stopPending(p.PID)
	})
}

// thaw lets the cell go on: children first, so that a shell with job control
// does not take them for stopped jobs.
func (i *initial) thaw() {
	if i.blind {
		i.signal(unix.SIGCONT)
		return
	}
	all := descendants(os.Getpid())
	slices.Reverse(all)
	for _, p := range all {
		p.send(unix.SIGCONT)
	}
}
