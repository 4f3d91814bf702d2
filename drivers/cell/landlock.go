package cell

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	seeFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	seeTree  = seeFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileOnly = seeFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rightsOf is how many rights over files an ABI of Landlock knows.
func rightsOf(abi int) uint64 {
	n := 13
	switch {
	case abi >= 5:
		n = 16
	case abi >= 3:
		n = 15
	case abi == 2:
		n = 14
	}
	return 1<<n - 1
}

// landlock is the ABI of Landlock here, 0 for none.
func landlock() (abi int, err error) {
	version, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("ask for Landlock: %w", errno)
	}
	return int(version), nil
}

// see takes every right over files from this thread but to read and execute
// what is below the paths of read, and to change what is below those of write;
// and where the kernel knows them signals to others and abstract sockets. It
// holds after execve. Paths that are not there need no rule.
func see(abi int, read, write []string) error {
	attr := unix.LandlockRulesetAttr{Access_fs: rightsOf(abi)}
	if abi >= scopesSignals {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	size := unsafe.Sizeof(attr)
	switch { // an older kernel refuses what it does not know
	case abi < 4:
		size = 8
	case abi < scopesSignals:
		size = 16
	}
	rules, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fmt.Errorf("make a Landlock rule set: %w", errno)
	}
	defer func() { _ = unix.Close(int(rules)) }()
	for _, list := range []struct {
		paths  []string
		rights uint64
	}{{append(read, "/proc/self/exe"), seeTree}, {write, attr.Access_fs}} {
		for _, path := range list.paths {
			err := permit(int(rules), path, list.rights, attr.Access_fs)
			if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
				return err
			}
		}
	}
	if _, _, errno = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return fmt.Errorf("restrict this thread: %w", errno)
	}
	return nil
}

// permit gives rights over what is below a path, of those that are known.
func permit(rules int, path string, rights, known uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "permit", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileOnly
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & known, Parent_fd: int32(fd)}
	if _, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return &os.PathError{Op: "permit", Path: path, Err: errno}
	}
	return nil
}
