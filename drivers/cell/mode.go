package cell

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// mode is what the system lets this process do with name spaces.
type mode int

const (
	asRoot mode = 1 + iota // all, without a user name space
	asUser                 // all, in a user name space
	bare                   // nothing
)

// Layers that Options.Without may name, and doctor shows.
const (
	layerSpaces   = "name spaces"
	layerCgroup   = "cgroup"
	layerLandlock = "landlock"
	layerSeccomp  = "seccomp"
	layerProcfs   = "procfs"
	layerIDMap    = "idmapped mounts"
	layerBounds   = "cgroup limits"
	layerSignals  = "scoped signals" // of Landlock
)

// modes are those to try, the best first.
func (s *Supervisor) modes() []mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.without(layerSpaces):
		return []mode{bare}
	case s.mode != 0:
		return []mode{s.mode}
	case os.Geteuid() == 0:
		return []mode{asRoot, asUser, bare}
	}
	return []mode{asUser, bare}
}

// settle remembers what worked, and why something better did not.
func (s *Supervisor) settle(m mode, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == 0 {
		s.mode = m
		if why != nil {
			s.why = why.Error()
		}
	}
}

func (s *Supervisor) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode != 0
}

// forbids reports an error of making a process that says that the system does
// not allow its name spaces. All of them pass nothing by that would not fail
// without them too.
func forbids(err error) bool {
	return slices.ContainsFunc([]error{syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS},
		func(e error) bool { return errors.Is(err, e) })
}

// What an init in a user name space needs, and its command loses.
var initCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE, unix.CAP_SETPCAP}

// attributes of an init's process.
func (m mode) attributes(walled bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if m == bare {
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	if walled {
		attr.Cloneflags |= syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET
	}
	if m == asUser {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = initCaps
	}
	return attr
}

func lookFor(name string) (string, error) {
	for _, dir := range filepath.SplitList(defaultPath) {
		if path := filepath.Join(dir, name); runnable(path) == nil {
			return path, nil
		}
	}
	return "", &os.PathError{Op: "find", Path: name, Err: os.ErrNotExist}
}
