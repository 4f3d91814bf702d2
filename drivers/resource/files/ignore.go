package files

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ignoreFile says in each directory what is to be left out there and below, by
// gitignore(5).
const ignoreFile = ".gitignore"

// Bounds of such a file. One beyond them is not followed: then more is kept.
const (
	ignoreBytes    = 64 << 10
	ignorePatterns = 500   // of one file
	chainPatterns  = 2_000 // of all that hold in a directory
)

// rules are the patterns of a directory, and those of the directories above it.
type rules struct {
	above    *rules
	dir      string // "." is the root
	patterns []pattern
	total    int // patterns of these and of those above
}

// pattern is one line of an ignoreFile.
type pattern struct {
	parts []string // between slashes
	any   bool     // it stands for a name in any directory
	not   bool     // what it matches is kept after all
	dirs  bool     // it matches directories alone
}

// below are the rules in a directory, with the text of its ignoreFile; of too many none
// are added.
func (r *rules) below(dir, text string) *rules {
	var all []pattern
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if p, ok := parsePattern(strings.TrimSuffix(line, "\r")); ok {
			if all = append(all, p); len(all) > ignorePatterns {
				return r
			}
		}
	}
	total := len(all)
	if r != nil {
		total += r.total
	}
	if len(all) == 0 || total > chainPatterns {
		return r
	}
	return &rules{r, dir, all, total}
}

// inGit reports a path of git's own files, of which no rule leaves any out.
func inGit(path string) bool {
	return path == ".git" || strings.HasPrefix(path, ".git/") || strings.HasSuffix(path, "/.git") || strings.Contains(path, "/.git/")
}

func parsePattern(line string) (p pattern, ok bool) {
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	line, p.not = strings.CutPrefix(line, "!")
	line, p.dirs = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.any = !strings.Contains(line, "/")
	p.parts = strings.Split(strings.TrimPrefix(line, "/"), "/")
	return p, true
}

// ignores reports whether a path is left out: the last pattern that matches decides,
// those of the nearest directory first. Of what is in a directory that is left out it
// says nothing.
func (r *rules) ignores(path string, isDir bool) bool {
	if r == nil || inGit(path) {
		return false
	}
	for ; r != nil; r = r.above {
		rel := path
		if r.dir != "." {
			rel = path[len(r.dir)+1:]
		}
		name := rel[strings.LastIndexByte(rel, '/')+1:]
		for i := len(r.patterns) - 1; i >= 0; i-- {
			switch p := &r.patterns[i]; {
			case p.dirs && !isDir:
			case p.any && matchName(p.parts[0], name), !p.any && matchPath(p.parts, rel):
				return !p.not
			}
		}
	}
	return false
}

// matchPath matches a path with a pattern, whose parts ** stand for any directories; the
// last one stands for all that is in a directory.
func matchPath(parts []string, path string) bool {
	names := strings.Split(path, "/")
	at, n := 0, 0
	star, from := -1, 0 // the last ** and what follows what it has taken
	for n < len(names) {
		switch {
		case at < len(parts) && parts[at] == "**":
			if at == len(parts)-1 {
				return true
			}
			star, from = at, n
			at++
		case at < len(parts) && matchName(parts[at], names[n]):
			at, n = at+1, n+1
		case star >= 0:
			from++
			at, n = star+1, from
		default:
			return false
		}
	}
	return at == len(parts)
}

// matchName matches a name with a part of a pattern: *, ?, [classes] and \ before what is
// itself. It takes the product of their lengths at most.
func matchName(part, name string) bool {
	at, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		if at < len(part) && part[at] == '*' {
			star, from = at, n
			at++
			continue
		}
		if size, ok := matchByte(part[at:], name[n]); ok {
			at, n = at+size, n+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		at, n = star+1, from
	}
	return strings.Trim(part[at:], "*") == ""
}

// matchByte matches a byte with the beginning of a pattern, and says how long that is.
func matchByte(part string, c byte) (size int, ok bool) {
	switch {
	case part == "":
		return 0, false
	case part[0] == '?':
		return 1, true
	case part[0] == '[':
		return matchClass(part, c)
	case part[0] == '\\':
		return 2, len(part) > 1 && part[1] == c
	}
	return 1, part[0] == c
}

// matchClass matches a byte with [classes] and ranges. What has no end matches nothing.
func matchClass(part string, c byte) (size int, ok bool) {
	at, in := 1, false
	not := len(part) > 1 && (part[1] == '!' || part[1] == '^')
	if not {
		at++
	}
	for first := true; at < len(part); first = false {
		if part[at] == ']' && !first {
			return at + 1, in != not
		}
		if strings.HasPrefix(part[at:], "[:") {
			name, _, closed := strings.Cut(part[at+2:], ":]")
			if closed {
				in = in || isOf(name, c)
				at += len(name) + 4
				continue
			}
		}
		low, next := classByte(part, at)
		high := low
		if next+1 < len(part) && part[next] == '-' && part[next+1] != ']' {
			high, next = classByte(part, next+1)
		}
		in = in || c == low || low <= c && c <= high
		at = next
	}
	return 0, false
}

func classByte(part string, at int) (c byte, next int) {
	if part[at] == '\\' && at+1 < len(part) {
		at++
	}
	return part[at], at + 1
}

// posix are the classes of POSIX, each with the ends of its ranges.
const posix = "|alnum:09AZaz|alpha:AZaz|blank:  \t\t|cntrl:\x00\x1f\x7f\x7f|digit:09|graph:!~|lower:az|print: ~|punct:!/:@[`{~|space:  \t\n\r\r|upper:AZ|xdigit:09AFaf|"

// isOf reports a byte of one of them.
func isOf(class string, c byte) bool {
	_, ranges, _ := strings.Cut(posix, "|"+class+":")
	for ; ranges != "" && ranges[0] != '|'; ranges = ranges[2:] {
		if ranges[0] <= c && c <= ranges[1] {
			return true
		}
	}
	return false
}

// readIgnored reads the ignoreFile of a directory; "" without one that can be read.
func readIgnored(dir int) string {
	fd, err := unix.Openat(dir, ignoreFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), ignoreFile)
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > ignoreBytes {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, ignoreBytes))
	if err != nil {
		return ""
	}
	return string(text)
}
