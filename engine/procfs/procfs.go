// Package procfs reads what Linux says of a process in /proc/PID/stat, see
// proc_pid_stat(5). Elsewhere nothing can be read.
package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Stat is a process or one of its threads at one moment. PID and Start together
// name it for ever; a pid alone may be given to another process.
type Stat struct {
	PID, Parent    int
	Group, Session int
	Start          uint64 // clock ticks since the system started
	State          byte   // R S D T t Z X I …
	Exiting        bool   // it ends or has ended; its descriptors close after that
}

// exiting is PF_EXITING of the kernel's include/linux/sched.h.
const exiting = 4

// Dead reports whether it has ended and only waits to be reaped.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// Stopped reports whether it waits to be continued.
func (s Stat) Stopped() bool { return s.State == 'T' || s.State == 't' }

// Read looks at a process. It fails when there is none.
func Read(pid int) (Stat, error) { return ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") }

// ReadFile reads a stat file, of a process or a thread.
func ReadFile(path string) (Stat, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Stat{}, err
	}
	s, err := Parse(data)
	if err != nil {
		return Stat{}, fmt.Errorf("read %s: %w", path, err)
	}
	return s, nil
}

// Parse reads what a stat file holds. The name in its parentheses may hold
// anything, parentheses and spaces too.
func Parse(data []byte) (s Stat, err error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("%.80q names no program", data)
	}
	f := bytes.Fields(data[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return Stat{}, fmt.Errorf("%.80q has %d fields after the name, want 20 or more, the first a letter", data, len(f))
	}
	s.State = f[0][0]
	for _, n := range []struct {
		to   *int
		text []byte
	}{{&s.PID, bytes.TrimSpace(data[:open])}, {&s.Parent, f[1]}, {&s.Group, f[2]}, {&s.Session, f[3]}} {
		if *n.to, err = strconv.Atoi(string(n.text)); err != nil {
			return Stat{}, err
		}
	}
	if s.Start, err = strconv.ParseUint(string(f[19]), 10, 64); err != nil {
		return Stat{}, err
	}
	flags, err := strconv.ParseUint(string(f[6]), 10, 64)
	if err != nil {
		return Stat{}, err
	}
	s.Exiting = flags&exiting != 0
	return s, nil
}
