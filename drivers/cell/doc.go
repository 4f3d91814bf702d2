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
