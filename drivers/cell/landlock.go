package cell

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlockABI is the ABI of Landlock here, 0 for none.
func landlockABI() (int, error) {
	abi, err := kernel.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("ask for Landlock: %w", err)
	}
	return abi, nil
}

// see takes every right over files from this thread but to read and execute
// what is below the paths of read, and to change what is below those of write;
// and where the kernel knows them signals to others and abstract sockets. It
// holds after execve. Paths that are not there need no rule.
func see(abi int, read, write []string) error {
	known := []landlock.Config{landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6}
	if abi < 1 {
		return fmt.Errorf("there is no ABI %d of Landlock", abi)
	}
	all := known[min(abi, len(known))-1]
	all.HandledAccessNet = 0 // seccomp and the name space hold the network
	var rules []landlock.Rule
	allow := func(paths []string, dirs, files func(...string) landlock.FSRule) {
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				rules = append(rules, dirs(path).IgnoreIfMissing())
			} else if err == nil {
				rules = append(rules, files(path).IgnoreIfMissing())
			}
		}
	}
	allow(append(read, "/proc/self/exe"), landlock.RODirs, landlock.ROFiles)
	change := all.HandledAccessFS &^ (kernel.AccessFSMakeChar | kernel.AccessFSMakeBlock) // no devices
	allow(write, func(paths ...string) landlock.FSRule { return landlock.PathAccess(change, paths...) },
		func(paths ...string) landlock.FSRule { return landlock.RWFiles(paths...).WithIoctlDev() })
	// The library's Restrict is for the whole process; this is for what the thread
	// becomes.
	set, flags, err := all.NewRulesetFD(rules...)
	if err != nil {
		return fmt.Errorf("make a Landlock rule set: %w", err)
	}
	defer func() { _ = unix.Close(set) }()
	if err := kernel.LandlockRestrictSelf(set, flags); err != nil {
		return fmt.Errorf("restrict this thread: %w", err)
	}
	return nil
}

// straightened opens paths without links, so that they stay what they are whatever is put on
// their way; one that leads through a link by now is left out.
func straightened(paths []string) (open []string, release func()) {
	var fds []int
	for _, path := range paths {
		if fd, err := straight(path); err == nil {
			fds = append(fds, fd)
			open = append(open, fmt.Sprintf("/proc/self/fd/%d", fd))
		}
	}
	return open, func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
}
