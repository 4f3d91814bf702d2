// Package origin tells whose process calls: a person's, that of a run of the
// engine, or one of the engine's that no run is known for. It asks the kernel,
// which knows who started whom; nothing counts that a process says of itself.
//
// The engine is the parent of every descendant that loses its own (subreaper),
// and so is the init of a run, so the way up from whatever it started leads to
// the first process of a run or to the engine, whichever session, environment, limits or name spaces a process
// gave itself. What it had another process do that the engine did not start, a
// tmux server or a user service, can't be told from that process's own work.
package origin

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"swarmdeck/engine/operator"
	"swarmdeck/engine/procfs"
)

// Runs are the processes that are kept, by their pids here.
type Runs interface {
	// Self is the pid of the engine.
	Self() int
	// Lookup tells the run whose first process, its init, has this pid.
	Lookup(pid int) (operator.Run, bool)
	// Marked tells the run of this engine's data file that the marks of a process
	// name. A process can change its marks.
	Marked(pid int) (operator.Run, bool)
}

const (
	// maxAbove bounds the processes between a caller and the system's first.
	maxAbove = 1024
	// maxWalks bounds how often the way up is begun anew because somebody on it
	// ended meanwhile.
	maxWalks = 8
)

// Ends of the sentence for who is refused: only a person may, …
const (
	whyEnded    = "and the process that called has ended: whose it was can't be told"
	whyHidden   = "and /proc does not show the processes above this one: whose it is can't be told"
	whyEngine   = "and this process comes from the engine, with no run above it that is known"
	whyMarked   = "and this process comes from a run of an earlier engine"
	whyDeep     = "and too many processes are above this one: whose it is can't be told"
	whyRestless = "and the processes above this one end too fast: whose it is can't be told"
)

// errMoved is that somebody on the way up ended or got another parent.
var errMoved = errors.New("a process ended on the way")

// Find tells where the process with a pid comes from. Alive says whether it is
// still the one that called: the pid is not another's then. A pid that is not
// positive is of a process outside of this PID name space, where nothing of the
// engine's can be.
func Find(runs Runs, pid int, alive func() bool) operator.Origin {
	if pid <= 0 {
		return operator.Origin{Kind: operator.Person}
	}
	unclear := func(why string) operator.Origin {
		return operator.Origin{Kind: operator.Unclear, PID: pid, Why: why}
	}
	caller, err := hold(pid)
	if err != nil {
		return unclear(whyEnded)
	}
	defer caller.close()
	for range maxWalks {
		if !alive() {
			return unclear(whyEnded)
		}
		found, err := walk(runs, caller)
		switch {
		case err == nil:
			found.PID = pid
			return found
		case !errors.Is(err, errMoved):
			return unclear(whyHidden)
		}
	}
	return unclear(whyRestless)
}

// walk goes up from the caller. Each process is held while its parent is looked
// for, and asked again once the parent is held too: a parent that ended between
// would have given its child another, so no pid can stand for a later process.
func walk(runs Runs, caller process) (operator.Origin, error) {
	var mark operator.Run // of the nearest process that has one
	marked := false
	at := caller
	defer func() {
		if at != caller {
			at.close()
		}
	}()
	for range maxAbove {
		if at.pid == runs.Self() {
			return operator.Origin{Kind: operator.Unclear, Run: mark, Why: whyEngine}, nil
		}
		run, first := runs.Lookup(at.pid)
		if !marked {
			mark, marked = runs.Marked(at.pid)
		}
		parent, err := at.parent() // it still is, so the pid meant it until now
		switch {
		case err != nil:
			return operator.Origin{}, errMoved
		case first:
			return operator.Origin{Kind: operator.OfRun, Run: run}, nil
		case parent == 0 && marked:
			return operator.Origin{Kind: operator.Unclear, Run: mark, Why: whyMarked}, nil
		case parent == 0:
			return operator.Origin{Kind: operator.Person}, nil
		}
		above, failed := hold(parent)
		now, err := at.parent()
		switch {
		case err != nil || now != parent:
			if failed == nil {
				above.close()
			}
			return operator.Origin{}, errMoved
		case failed != nil: // it is there and not shown
			return operator.Origin{}, failed
		}
		if at != caller {
			at.close()
		}
		at = above
	}
	return operator.Origin{Kind: operator.Unclear, Run: mark, Why: whyDeep}, nil
}

// process is one that is held: what is read through it is never about another
// process that got its pid later.
type process struct {
	pid int
	dir *os.Root
}

func hold(pid int) (process, error) {
	dir, err := os.OpenRoot("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return process{pid, dir}, nil
}

func (p process) close() { _ = p.dir.Close() }

// parent is the pid of its parent, 0 for one that has none here. It fails once
// the process is gone.
func (p process) parent() (int, error) {
	data, err := p.dir.ReadFile("stat")
	if err != nil {
		return 0, fmt.Errorf("look at process %d: %w", p.pid, err)
	}
	stat, err := procfs.Parse(data)
	if err != nil {
		return 0, fmt.Errorf("look at process %d: %w", p.pid, err)
	}
	return stat.Parent, nil
}
