package cell

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asking is a call that tells of a file by its path from a directory.
type asking struct {
	name string
	do   func(dir int, path string) (answer string, err error)
}

// toldBy is the answer to a call by its number, whatever it writes.
func toldBy(number uintptr, args ...any) (string, error) {
	var a [6]uintptr
	var keep []any
	for i, arg := range args {
		switch v := arg.(type) {
		case int:
			a[i] = uintptr(v)
		case string:
			p, err := unix.BytePtrFromString(v)
			if err != nil {
				return "", err
			}
			keep = append(keep, p)
			a[i] = uintptr(unsafe.Pointer(p))
		case []byte:
			keep = append(keep, v)
			a[i] = uintptr(unsafe.Pointer(&v[0]))
		}
	}
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	runtime.KeepAlive(keep)
	if errno != 0 {
		return "", errno
	}
	return "it answered", nil
}

// metadata are those that only name spaces hold: without them they tell whether a file
// that a run names is there and what is said of it, never what it holds.
var metadata = [...]string{
	"stat", "lstat", "access", "readlink", "fstatat", "fstatat of a link", "statx", "faccessat", "faccessat2", "readlinkat", "statfs",
	"O_PATH", "O_PATH of a link", "file_getattr", "open_tree_attr", "chdir",
}

// askings are all of them. Those that know no directory take paths from here.
func askings() []asking {
	buf := func() []byte { return make([]byte, 512) }
	at := func(dir int, path string) string {
		if dir == unix.AT_FDCWD {
			return path
		}
		return fmt.Sprintf("/proc/self/fd/%d/%s", dir, path)
	}
	opened := func(flags int) func(int, string) (string, error) {
		return func(dir int, path string) (string, error) {
			fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			if err != nil {
				return "", err
			}
			return "opened", unix.Close(fd)
		}
	}
	return append(elderAskings(), []asking{
		{"fstatat", func(d int, p string) (string, error) { return toldBy(unix.SYS_NEWFSTATAT, d, p, buf(), 0) }},
		{"fstatat of a link", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_NEWFSTATAT, d, p, buf(), unix.AT_SYMLINK_NOFOLLOW)
		}},
		{"statx", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_STATX, d, p, 0, unix.STATX_BASIC_STATS, buf())
		}},
		{"faccessat", func(d int, p string) (string, error) { return toldBy(unix.SYS_FACCESSAT, d, p, unix.F_OK) }},
		{"faccessat2", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_FACCESSAT2, d, p, unix.R_OK, unix.AT_EACCESS)
		}},
		{"readlinkat", func(d int, p string) (string, error) { return toldBy(unix.SYS_READLINKAT, d, p, buf(), 512) }},
		{"statfs", func(d int, p string) (string, error) { return toldBy(unix.SYS_STATFS, at(d, p), buf()) }},
		{"O_PATH", opened(unix.O_PATH)},
		{"O_PATH of a link", opened(unix.O_PATH | unix.O_NOFOLLOW)},
		{"neither to read nor to write", opened(unix.O_ACCMODE)},
		{"openat2", func(d int, p string) (string, error) {
			fd, err := unix.Openat2(d, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
			if err == nil {
				_ = unix.Close(fd)
			}
			return "opened", err
		}},
		{"getxattr", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_GETXATTR, at(d, p), "user.x", buf(), 512)
		}},
		{"lgetxattr", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_LGETXATTR, at(d, p), "user.x", buf(), 512)
		}},
		{"listxattr", func(d int, p string) (string, error) { return toldBy(unix.SYS_LISTXATTR, at(d, p), buf(), 512) }},
		{"llistxattr", func(d int, p string) (string, error) { return toldBy(unix.SYS_LLISTXATTR, at(d, p), buf(), 512) }},
		{"getxattrat", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_GETXATTRAT, d, p, 0, "user.x", make([]byte, 16), 16)
		}},
		{"listxattrat", func(d int, p string) (string, error) { return toldBy(unix.SYS_LISTXATTRAT, d, p, 0, buf(), 512) }},
		{"file_getattr", func(d int, p string) (string, error) { return toldBy(unix.SYS_FILE_GETATTR, d, p, buf(), 32, 0) }},
		{"open_tree", func(d int, p string) (string, error) { return toldBy(unix.SYS_OPEN_TREE, d, p, unix.OPEN_TREE_CLOEXEC) }},
		{"open_tree_attr", func(d int, p string) (string, error) {
			return toldBy(unix.SYS_OPEN_TREE_ATTR, d, p, unix.OPEN_TREE_CLOEXEC, 0, 0)
		}},
		{"name_to_handle_at", func(d int, p string) (string, error) {
			id := make([]byte, 8)
			return toldBy(unix.SYS_NAME_TO_HANDLE_AT, d, p, append([]byte{128, 0, 0, 0}, make([]byte, 256)...), id, 0)
		}},
		{"inotify", func(d int, p string) (string, error) {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return "", nil
			}
			defer unix.Close(fd)
			_, err = unix.InotifyAddWatch(fd, at(d, p), unix.IN_ALL_EVENTS)
			return "watched", err
		}},
		{"chdir", func(d int, p string) (string, error) {
			defer func() { _ = unix.Fchdir(d) }()
			return "entered", unix.Chdir(at(d, p))
		}},
		{"fchmodat", func(d int, p string) (string, error) { return toldBy(unix.SYS_FCHMODAT, d, p, 0o666) }},
		{"utimensat", func(d int, p string) (string, error) { return toldBy(unix.SYS_UTIMENSAT, d, p, 0, 0) }},
	}...)
}

// roads are ways of writing a path, each to what a call takes. An attempt has a
// directory of its own, which is where it is.
func roads() map[string]func(here, path string) string {
	up := strings.Repeat("../", 30)
	return map[string]func(here, path string) string{
		"by its path":    func(_, path string) string { return path },
		"by ..":          func(_, path string) string { return up + path[1:] },
		"by . and //":    func(_, path string) string { return "/." + strings.ReplaceAll(path, "/", "/.//") },
		"by its root":    func(_, path string) string { return "/proc/self/root" + path },
		"by its thread":  func(_, path string) string { return "/proc/thread-self/root" + path },
		"by its cwd":     func(_, path string) string { return "/proc/self/cwd/" + up + path[1:] },
		"by a link":      func(here, path string) string { return linkTo(here, path) },
		"by a near link": func(here, path string) string { return linkTo(here, up+path[1:]) },
		"by a link to it": func(here, path string) string {
			return linkTo(here, linkTo(here, filepath.Dir(path))) + "/" + filepath.Base(path)
		},
		"through it":      func(_, path string) string { return filepath.Dir(path) + "/" + up + "usr/bin" },
		"past it":         func(_, path string) string { return path + "/x" },
		"as a directory":  func(_, path string) string { return path + "/" },
		"by a descriptor": func(_, path string) string { return "\x00" + path },
	}
}

// linkTo makes a link and names it.
func linkTo(here, path string) string {
	all, _ := os.ReadDir(here)
	name := filepath.Join(here, fmt.Sprintf("l%d", len(all)))
	_ = os.Symlink(path, name)
	return name
}

// attemptsToAsk want to know of files that are not there for a run. What is said of
// one that is hidden must be what is said of one that nowhere is.
func attemptsToAsk() []attempt {
	var all []attempt
	for _, a := range askings() {
		for road, way := range roads() {
			all = append(all, attempt{family: read, name: a.name + " " + road, do: func(w *world) string { return w.tells(a, way) }})
		}
	}
	return all
}

func (w *world) tells(a asking, way func(here, path string) string) string {
	if !w.Spaces && slices.Contains(metadata[:], a.name) {
		return ""
	}
	if unix.Unshare(unix.CLONE_FS) != nil { // a call may change where it is
		return ""
	}
	here, err := os.MkdirTemp(w.Dir, "ask")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(here)
	say := func(path string) string {
		dir, path := unix.AT_FDCWD, way(here, path)
		if rest, ok := strings.CutPrefix(path, "\x00"); ok {
			if dir, err = unix.Open(here, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
				return ""
			}
			defer unix.Close(dir)
			path = strings.Repeat("../", 30) + rest[1:]
		}
		if unix.Chdir(here) != nil {
			return ""
		}
		answer, err := a.do(dir, path)
		return fmt.Sprint(answer, err)
	}
	for _, secret := range w.secrets() {
		for _, path := range []string{secret, filepath.Dir(secret)} {
			if within(os.Getenv("HOME"), path) || within(os.TempDir(), path) { // it is on the way to what is its own
				continue
			}
			got, want := say(path), say(path+"-nowhere")
			if got != want { // unless another attempt has changed this process in between
				got, want = say(path), say(path+"-nowhere")
			}
			if got != want {
				return fmt.Sprintf("%s: %s, of nothing %s", path, got, want)
			}
		}
	}
	return ""
}
