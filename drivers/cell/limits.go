package cell

import (
	"fmt"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limits bounds what a run may take. A zero field leaves the engine's own limit
// in place. No unprivileged process can raise them again.
type Limits struct {
	// Of each process alone.
	CPU    uint64 // seconds of processor time; SIGXCPU, then SIGKILL past it
	Memory uint64 // bytes of address space; allocations fail past it
	Files  uint64 // open descriptors
	Core   uint64 // bytes of a core dump; see DefaultLimits
	Size   uint64 // bytes of one written file; SIGXFSZ past it
	// Processes of the run's user, with their threads. It does not bind root.
	Processes uint64

	// Of the run as a whole, where its cgroup can be bounded; Layers tells whether
	// it can. Zero is Memory and Processes here.
	RunMemory    uint64 // bytes that are in use, its /tmp and what of files is kept for it too; past it all of it is ended
	RunProcesses uint64 // with their threads; none more can be started past it
}

// DefaultLimits suits work of any kind: a day of processor time (the longest
// time-out of a task), 4,096 descriptors, files up to 16 GiB, no core dumps, and
// as a whole 4,096 processes and three quarters of the machine's memory. Address
// space has no default, because several language runtimes reserve far more of it
// than they ever use.
func DefaultLimits() Limits {
	l := Limits{CPU: 24 * 60 * 60, Files: 4096, Size: 16 << 30, RunProcesses: 4096}
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) == nil {
		l.RunMemory = uint64(machine.Totalram) * uint64(machine.Unit) / 4 * 3
	}
	return l
}

// apply sets the limits on this process, which hands them on to the command.
// Core dumps are always bounded by Core, because a crash of an agent must not
// fill the disk. Those that would bind this process itself come later: through.
func (l Limits) apply() error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
		always   bool
	}{
		{"processor time", unix.RLIMIT_CPU, l.CPU, false},
		{"open files", unix.RLIMIT_NOFILE, l.Files, false},
		{"core size", unix.RLIMIT_CORE, l.Core, true},
		{"file size", unix.RLIMIT_FSIZE, l.Size, false},
	} {
		if r.value == 0 && !r.always {
			continue
		}
		slack := uint64(0)
		if r.resource == unix.RLIMIT_CPU {
			slack = 5 // seconds between SIGXCPU and SIGKILL
		}
		var old syscall.Rlimit
		err := syscall.Getrlimit(r.resource, &old)
		if err == nil { // never asks for more than the process already may
			// By package syscall, which does not undo it for its children then.
			err = syscall.Setrlimit(r.resource, &syscall.Rlimit{Cur: min(r.value, old.Max), Max: min(r.value+slack, old.Max)})
		}
		if err != nil {
			return fmt.Errorf("limit %s to %d: %w", r.name, r.value, err)
		}
	}
	return nil
}

// LimitWord is the first argument by which this program becomes one that is
// limited in what this program itself needs more of.
const LimitWord = "-cell-limits"

// through is the command line of a command with such limits.
func (l Limits) through(path string, argv []string) (string, []string) {
	if l.Memory == 0 && l.Processes == 0 {
		return path, argv
	}
	return "/proc/self/exe", append([]string{
		"swarmdeck", LimitWord, strconv.FormatUint(l.Memory, 10), strconv.FormatUint(l.Processes, 10), path,
	}, argv...)
}

// limited becomes the program that its arguments name: bytes of address space,
// processes, the program's path and its command line. Between the limits and
// the program nothing is allocated. It returns only when that failed, with the
// exit status.
func limited(args []string, env []string) int {
	const failed = 126
	if len(args) < 4 {
		return failed
	}
	memory, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return failed
	}
	processes, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return failed
	}
	path, err := unix.BytePtrFromString(args[2])
	if err != nil {
		return failed
	}
	argv, err := syscall.SlicePtrFromStrings(args[3:])
	if err != nil {
		return failed
	}
	vars, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return failed
	}
	for _, r := range [...]struct {
		what  uintptr
		value uint64
	}{{unix.RLIMIT_NPROC, processes}, {unix.RLIMIT_AS, memory}} {
		if r.value == 0 {
			continue
		}
		bound := [2]uint64{r.value, r.value}
		if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, r.what, uintptr(unsafe.Pointer(&bound)), 0, 0, 0); errno != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, failed, 0, 0)
		}
	}
	unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&vars[0])))
	unix.RawSyscall(unix.SYS_EXIT_GROUP, failed, 0, 0)
	return failed
}
