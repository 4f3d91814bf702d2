package cell

import (
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"

	"golang.org/x/sys/unix"
)

// tree lists every live or unreaped process of the run, oldest first: in a
// name space or below a subreaper all of them descend from the init.
func (p *Process) tree() []proc {
	select {
	case <-p.gone:
		return nil // the number may be another's by now
	default:
		return descendants(p.init)
	}
}

// left are those that still live.
func (p *Process) left() (list []proc) {
	for _, q := range p.tree() {
		if !q.Dead() {
			list = append(list, q)
		}
	}
	return list
}

// Census is processes by pid, with their start times.
type Census map[int]uint64

// Has reports whether exactly this process is in it.
func (c Census) Has(pid int, start uint64) bool {
	was, ok := c[pid]
	return ok && was == start
}

// Census names the run's processes of this moment.
func (p *Process) Census() Census {
	now := Census{}
	for _, q := range p.tree() {
		now[q.PID] = q.Start
	}
	return now
}

// Prune ends the processes of the run that are not to be kept, and leaves the
// first one alone: SIGTERM, then SIGKILL after the grace. It gives up after
// 5 s. A look misses a process whose parent dies meanwhile, so that two in a row
// have to find none.
func (p *Process) Prune(keep func(pid int, start uint64) bool, grace time.Duration) {
	began, first := time.Now(), true
	for none := 0; none < 2 && time.Since(began) < killPatience; {
		extra := core.Where(p.left(), func(q proc) bool { return q.PID != p.pid && !keep(q.PID, q.Start) })
		if len(extra) == 0 {
			none++
			continue
		}
		if none = 0; first {
			signalAll(extra, unix.SIGTERM)
			first = false
		} else if time.Since(began) > grace {
			signalAll(extra, unix.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func signalAll(list []proc, sig unix.Signal) {
	for _, q := range list {
		q.send(sig)
	}
}

// describe names processes with their states.
func describe(list []proc) string {
	var b strings.Builder
	for i, q := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(q.PID) + " (state " + string(q.State) + ")")
	}
	return b.String()
}
