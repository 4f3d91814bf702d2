package keeper

import (
	"context"
	"os"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/terminal"
)

// Process is a run as its agent sees it, on whichever machine that is.
type Process interface {
	// Streams are this side's ends of its pipes.
	Streams() (stdin, stdout, stderr *os.File)
	// CloseIO closes them. It stands at the end, after Stop.
	CloseIO()

	Done() <-chan struct{} // closed when its first process has ended
	Ended() bool
	Exit() cell.Exit
	// Unread reports, once it has ended, that it left input unread beside what is
	// in the pipe.
	Unread() bool
	PID() int          // of its first process, where it runs
	Missing() []string // layers of the wall that it goes without
	Loose() string     // why the wall may let more through than it promises, as cell.Loose has it

	// Serves is cell.Process's.
	Serves(task string, on bool)
	Interrupt(sig syscall.Signal)
	// Mark remembers which processes it consists of, and Prune ends those that
	// have come since.
	Mark()
	Prune(grace time.Duration)

	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Stop(g cell.Grace) error
}

// Screened is a process with a terminal.
type Screened interface {
	Process
	// Resize gives the terminal another size.
	Resize(to terminal.Size) error
	// Unseen reports whether the program reads a line that the terminal does not show,
	// and Foreground whether the first process, or one of its group, is what its keys
	// reach.
	Unseen() bool
	Foreground() bool
}

var _ Screened = (*Here)(nil)

// Hosts run processes on other machines.
type Hosts interface {
	// Start begins a run there, with a terminal if spec has one. Its directory is one there, "" for one of the
	// agent's own; of its wall the profile counts.
	Start(tenant, host string, spec cell.Spec, o Hosted) (Screened, error)
	// Available reports why nothing can be started there now.
	Available(tenant, host string) error
	// Program is where this program is there; "" is not known.
	Program(tenant, host string) string
	// Follow has tell called when the link comes, with nil, and when it goes. It must
	// not block.
	Follow(tenant, host string, tell func(error)) (stop func())
}

// Hosted is what is said of a run on another machine beside what it is.
type Hosted struct {
	// Files are those there that must be as they were judged; copies of what runs of
	// them run.
	Files []judge.File
	// Whole has it held up rather than a part of its output be left out, where there
	// is no room for it while its link is away.
	Whole bool
	// Desk has one request of an engine answered, in the place of a command.
	Desk Desk
}

// Desk says who answers a request; "" is nobody.
type Desk string

// The desks.
const (
	Files Desk = "files" // for the agent's files: package workdir
	Trees Desk = "tree"  // for its work tree: package tree of the drivers
)

// Here is a process of this machine.
type Here struct {
	*cell.Process
	mark cell.Census
}

// NewHere makes it of a run.
func NewHere(p *cell.Process) *Here { return &Here{Process: p} }

func (*Here) Unread() bool { return false }

func (h *Here) Mark() { h.mark = h.Census() }

func (h *Here) Prune(grace time.Duration) { h.Process.Prune(h.mark.Has, grace) }
