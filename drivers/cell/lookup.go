package cell

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may lead over, as in the kernel.
const maxLinks = 40

// handle is how every file is opened: neither its content nor a device behind it
// is touched, and nothing is waited for.
const handle = unix.O_PATH | unix.O_CLOEXEC

// find opens the file that the caller's path leads to, as the kernel would find
// it for the caller: from where it is or from its descriptor, over its own links
// in /proc. What the run does not see is not there, also as a part of the way.
// At its end a symbolic link is followed or meant itself.
func (w *caller) find(from int32, path string, follow bool) (int, error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	at, where := unix.AT_FDCWD, ""
	plain := !strings.Contains(path, "..") // else steps up are looked at one by one
	if path[0] != '/' {
		var err error
		if at, err = w.directory(from); err != nil {
			return -1, err
		}
		defer unix.Close(at)
	} else if where = path; plain {
		if strings.Contains(path, "//") || strings.Contains(path, "/.") {
			where = filepath.Clean(path)
		}
		if w.b.sees(where) == unseen { // before anything of it is touched
			return -1, unix.ENOENT
		}
	}
	if plain {
		how := unix.OpenHow{Flags: handle, Resolve: unix.RESOLVE_NO_SYMLINKS}
		if !follow {
			how.Flags |= unix.O_NOFOLLOW
		}
		switch fd, err := unix.Openat2(at, path, &how); {
		case errors.Is(err, unix.ENOENT):
			return -1, unix.ENOENT
		case err == nil && where != "":
			return fd, nil // it is just there
		case err == nil:
			return w.b.shown(fd)
		}
	}
	return w.walk(at, path, follow)
}

// shown hands on a file that the run sees.
func (b *broker) shown(fd int) (int, error) {
	where, err := whereIs(fd)
	if err == nil && where[0] == '/' && b.sees(where) != unseen {
		return fd, nil
	}
	_ = unix.Close(fd)
	return -1, unix.ENOENT
}

// sees tells how the run sees an absolute path that holds no "..".
func (b *broker) sees(path string) seenAs {
	as := b.sight.of(path)
	if as == unseen {
		if pid, _ := processIn(path); pid != 0 && b.owns(pid) {
			return entire
		}
	}
	return as
}

// owns reports whether a process or thread is of the run.
func (b *broker) owns(pid int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, is := b.kin.find(pid)
	return is
}

// walk finds a file name by name.
func (w *caller) walk(from int, path string, follow bool) (int, error) {
	s := step{w: w, rest: path, follow: follow}
	var err error
	if path[0] == '/' {
		s.at, err = unix.Open("/", handle, 0)
	} else {
		s.at, err = unix.Openat(from, ".", handle, 0)
	}
	if err != nil {
		return -1, err
	}
	if s.where, err = whereIs(s.at); err == nil {
		for err == nil && s.rest != "" {
			err = s.take()
		}
	}
	switch {
	case err != nil:
		_ = unix.Close(s.at)
		return -1, err
	case s.own:
		return s.at, nil
	}
	return w.b.shown(s.at)
}

// step is how far a walk has come.
type step struct {
	w      *caller
	at     int    // what is open
	where  string // its path
	rest   string // of the path
	follow bool   // a link at the end
	links  int    // that were followed
	own    bool   // it is what the caller itself has open, wherever that is
}

// take goes on by one name.
func (s *step) take() error {
	name, rest, more := strings.Cut(strings.TrimLeft(s.rest, "/"), "/")
	s.rest, s.own = rest, false
	switch name {
	case "":
		return nil
	case ".", "..":
		if err := s.enter(name, unix.O_DIRECTORY); err != nil || name == "." {
			return err
		}
		var err error
		s.where, err = whereIs(s.at) // it may have been moved meanwhile
		return err
	}
	to := filepath.Join(s.where, name)
	if s.w.b.sees(to) == unseen {
		return unix.ENOENT
	}
	dir := s.at
	fd, err := unix.Openat(dir, name, handle|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return err
	}
	link := st.Mode&unix.S_IFMT == unix.S_IFLNK
	if link && (more || s.follow) {
		defer unix.Close(fd)
		if s.links++; s.links > maxLinks {
			return unix.ELOOP
		}
		return s.over(fd, name, to, more)
	}
	_ = unix.Close(dir)
	s.at, s.where = fd, to
	if more && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return nil
}

// enter opens a name from where the walk is, and goes on there.
func (s *step) enter(name string, flags int) error {
	fd, err := unix.Openat(s.at, name, handle|flags, 0)
	if err != nil {
		return err
	}
	_ = unix.Close(s.at)
	s.at = fd
	return nil
}

// over follows a symbolic link.
func (s *step) over(fd int, name, to string, more bool) error {
	pid, in := processIn(to)
	if pid != 0 && in != "" { // the kernel jumps: where to is no path
		flags := 0
		if more {
			flags = unix.O_DIRECTORY
		}
		if err := s.enter(name, flags); err != nil {
			return err
		}
		s.own = strings.Contains(in, "/fd/") || strings.Contains(in, "/ns/")
		var err error
		if s.where, err = whereIs(s.at); err != nil || s.own {
			return err
		}
		if s.where[0] != '/' || s.w.b.sees(s.where) == unseen {
			return unix.ENOENT
		}
		return nil
	}
	target, err := s.w.linkAt(fd, to)
	switch {
	case err != nil:
		return err
	case target == "":
		return unix.ENOENT
	case more:
		target += "/" + s.rest
	}
	s.rest = target
	if target[0] != '/' {
		return nil
	}
	root, err := unix.Open("/", handle, 0)
	if err != nil {
		return err
	}
	_ = unix.Close(s.at)
	s.at, s.where = root, "/"
	return nil
}

// linkAt reads a symbolic link at a path: those of /proc that lead to who reads
// them lead to the caller.
func (w *caller) linkAt(fd int, path string) (string, error) {
	if path == "/proc/self" || path == "/proc/thread-self" {
		pid := processOf(int(w.thread))
		if err := w.there(); err != nil {
			return "", err
		}
		if path == "/proc/self" {
			return strconv.Itoa(pid), nil
		}
		return strconv.Itoa(pid) + "/task/" + strconv.Itoa(int(w.thread)), nil
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(n, 0)]), err
}
