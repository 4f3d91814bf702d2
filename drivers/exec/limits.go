package exec

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits bounds what each process of a run may take. A zero field leaves the
// engine's own limit in place. The kernel applies them per process, not per
// run, and no unprivileged process can raise them again.
type Limits struct {
	CPU    uint64 // seconds of processor time; SIGXCPU, then SIGKILL past it
	Memory uint64 // bytes of address space; allocations fail past it
	Files  uint64 // open descriptors
	Core   uint64 // bytes of a core dump; see DefaultLimits
	Size   uint64 // bytes of one written file; SIGXFSZ past it
}

// DefaultLimits suits work of any kind: a day of processor time (the longest
// time-out of a task), 4,096 descriptors, files up to 16 GiB, no core dumps.
// Address space has no default, because several language runtimes reserve
// far more of it than they ever use.
func DefaultLimits() Limits {
	return Limits{CPU: 24 * 60 * 60, Files: 4096, Size: 16 << 30}
}

// tagResource carries the run's mark. A limit is inherited by every
// descendant, can't be raised without privilege, survives an emptied
// environment and stays readable on a zombie. This one only bounds real-time
// threads, which we never start, and at our values it bounds nothing at all.
const tagResource = unix.RLIMIT_RTTIME

// apply sets the limits on a process that has just started. Core dumps are
// always bounded by Core, because a crash of an agent must not fill the disk.
func (l Limits) apply(pid int) error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
		always   bool
	}{
		{"processor time", unix.RLIMIT_CPU, l.CPU, false},
		{"address space", unix.RLIMIT_AS, l.Memory, false},
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
		if err := lower(pid, r.resource, r.value, slack); err != nil {
			return fmt.Errorf("limit %s to %d: %w", r.name, r.value, err)
		}
	}
	return nil
}

// setTag marks a process and all that it will start. It fails where the
// engine itself runs under somebody's tag without the privilege to raise it;
// the environment still marks the run then.
func setTag(pid int, tag uint64) bool {
	return unix.Prlimit(pid, tagResource, &unix.Rlimit{Cur: tag, Max: tag}, nil) == nil && tagOf(pid) == tag
}

// lower sets a limit, but never asks for more than the process already may.
// Slack lies between the limit and the hard one behind it.
func lower(pid, resource int, value, slack uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return err
	}
	return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(value, old.Max), Max: min(value+slack, old.Max)}, nil)
}

// tagOf reads the mark of a process; 0 when it can't be read.
func tagOf(pid int) uint64 {
	var l unix.Rlimit
	if unix.Prlimit(pid, tagResource, nil, &l) != nil {
		return 0
	}
	return l.Max
}
