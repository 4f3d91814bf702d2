package cell

import (
	"os"
	"path/filepath"
	"strings"
)

// sight is what of the machine's files is there for a run that Landlock alone
// holds, by path without symbolic links: trees that it may read, the directories
// on the way to them, and links on the way. Nothing else is there.
type sight map[string]seenAs

type seenAs int

const (
	unseen   seenAs = iota
	onTheWay        // a directory that leads to what is there; of what it holds no more is
	linked          // a symbolic link by itself
	entire          // with all that is below it
)

// usual are links of the system's that lead to what is the caller's own.
var usual = [...]string{"/proc/self", "/proc/thread-self", "/proc/mounts", "/proc/net", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"}

// newSight is what paths show, and the links by which names lead there. A path
// that is not there yet is there once it is made.
func newSight(paths, names []string) sight {
	s := sight{"/": onTheWay}
	for _, path := range paths {
		s.put(s.follow(path, 0), entire)
	}
	for _, name := range names {
		s.follow(name, 0)
	}
	for _, path := range usual {
		s.put(path, linked)
	}
	return s
}

func (s sight) put(path string, as seenAs) {
	s[path] = max(s[path], as)
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		s[dir] = max(s[dir], onTheWay)
	}
}

// follow is where a path leads. It shows the links on the way.
func (s sight) follow(path string, links int) string {
	real := "/"
	for name := range strings.SplitSeq(filepath.Clean(path), "/") {
		next := filepath.Join(real, name)
		target, err := os.Readlink(next)
		if err != nil || links > maxLinks {
			real = next
			continue
		}
		s.put(next, linked)
		if !filepath.IsAbs(target) {
			target = filepath.Join(real, target)
		}
		real = s.follow(target, links+1)
	}
	return real
}

// of tells how an absolute path is seen that holds no "..": of one that a link is
// on the way of, as linked.
func (s sight) of(path string) seenAs {
	for at := 1; at < len(path); {
		end := strings.IndexByte(path[at:], '/')
		if end < 0 {
			end = len(path) - at
		}
		switch as := s[path[:at+end]]; as {
		case unseen, linked, entire:
			return as
		}
		at += end + 1
	}
	return onTheWay
}

// processIn is the number of the process whose directory of /proc a path is in
// or is, and what follows of it.
func processIn(path string) (pid int, rest string) {
	rest, ok := strings.CutPrefix(path, "/proc/")
	if !ok {
		return 0, ""
	}
	for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' && pid < 1<<30 {
		pid, rest = pid*10+int(rest[0]-'0'), rest[1:]
	}
	if rest != "" && rest[0] != '/' {
		return 0, ""
	}
	return pid, rest
}
