// Package cell starts every process of the engine and keeps a wall around it.
//
// A run is a cell: the command, whatever it starts, and above them a small init
// of ours, which is this program executed anew (Entered). What a Supervisor
// promises, on Linux:
//   - nothing of a run outlives it, whatever it does: the init is the first
//     process of a PID name space, so that the kernel ends all the rest with it;
//   - Pause stands still all of it, and Stop ends all of it;
//   - when the engine dies, stands still for longer than Lease, or may have lost its
//     right to the data (Hold), the init freezes its cell; a dead engine's cell ends after OrphanGrace, or as soon as the
//     next engine sweeps;
//   - a profile holds what a program can reach (Profile), in layers: name
//     spaces, Landlock, seccomp, resource limits, a cgroup. Each is used where
//     the system gives it, and Layers tells what is missing.
//
// Where the system allows no name spaces, the init is a subreaper and a cgroup,
// if there may be one, holds the run together; a worker then has no sockets, changes
// no modes and times, and can tell whether a file that it names is there.
//
// What no cell holds: holes of the kernel, and what a person with the right to
// change the engine's own files does.
package cell

import (
	"swarmdeck/engine/core"
	filerules "swarmdeck/engine/files"
)

// Profile is how much of the machine a run can reach.
type Profile string

const (
	// Worker reads the system, writes its directory, a home of its own and
	// /tmp, and has no network but the way out that it is given.
	Worker Profile = "worker"
	// Reader is a worker that can't write its directory and has no way out.
	Reader Profile = "reader"
	// Open reaches what the engine's own user reaches. It is still one cell:
	// it is paused and ended as a whole.
	Open Profile = "open"
)

// ParseProfile reads a profile's name; "" is Worker.
func ParseProfile(field, name string) (Profile, error) {
	switch p := Profile(name); p {
	case "":
		return Worker, nil
	case Worker, Reader, Open:
		return p, nil
	}
	return "", core.Invalid(field, name, "reader, worker or open")
}

// Wall is what a run can reach beside its directory. Paths are absolute.
type Wall struct {
	Profile Profile // "" is Worker
	// Home is a directory that is kept as the run's HOME; "" is an empty one
	// that goes with the run. Open runs have the engine's own unless it is given.
	Home string
	// Told gives it to read what the words of its command name, for commands
	// that an operator has written down.
	Told bool
	// Work gives it to write the directories that the words of its command name,
	// but those of the system.
	Work bool
	// Tmp is a directory that is its /tmp; "" is an empty one that goes with it.
	Tmp string
	// Read, Write and Hide are further places: to be read, to be written too,
	// and not to be there. Hide wins over what lies around it, and what is
	// named within it wins over it.
	Read, Write, Hide []string
	// More are further places that a person has named, which can't be the
	// engine's own.
	More filerules.Places
	// Guard are names at the top of shared directories that it can't change, beside those
	// of package guarded. The rules of the run say which.
	Guard []string
	// Named gives a reader's user a name, in a list of users that holds nobody
	// else: some programs do not start without. Workers always have one.
	Named bool
	// Inspect gives a worker an authority of its own that it trusts, by which what
	// it says within TLS can be read on the way out.
	Inspect bool
	// Reach are ports of the engine's loopback that lead there from the cell's.
	Reach []int
}

// walled reports a run that does not reach everything.
func (w Wall) walled() bool { return w.Profile != Open }

// CheckInspect reports a run that can't be looked into: a reader has no way out,
// and an open one takes its own.
func CheckInspect(field string, p Profile, inspect bool) error {
	if inspect && p != Worker && p != "" {
		return core.Invalid(field, true, "only of a worker, not of "+string(p))
	}
	return nil
}
