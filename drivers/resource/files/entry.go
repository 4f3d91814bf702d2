package files

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// kind is what an entry is.
type kind byte

const (
	directory kind = 'd'
	regular   kind = 'f'
	link      kind = 'l'
	omitted   kind = 'x' // a file that was there, and too large: its path alone is known
)

// digest is the sha256 of a content.
type digest [32]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// entry is one line of a manifest. The root's path is ".".
type entry struct {
	kind     kind
	mode     uint32 // permission bits; sticky and setgid of directories too
	uid, gid uint32
	mtime    int64  // nanoseconds since 1970
	size     int64  // of a file
	sum      digest // of a file
	target   string // of a link
	path     string

	at where // it was found; no part of a manifest
}

// where tells a file from another at its path, and whether it was changed: no program
// sets the time of an inode. The zero value tells nothing.
type where struct {
	dev, ino uint64
	ctime    int64
}

func whereOf(st *unix.Stat_t) where { return where{uint64(st.Dev), st.Ino, st.Ctim.Nano()} }

// alike reports that two entries have the same line.
func (e *entry) alike(o *entry) bool {
	return e.kind == o.kind && e.mode == o.mode && e.uid == o.uid && e.gid == o.gid && e.mtime == o.mtime &&
		e.size == o.size && e.sum == o.sum && e.target == o.target && e.path == o.path
}

// same reports that a file is the one that was seen, and has not changed since.
func (e *entry) same(seen *entry) bool {
	return seen.kind == regular && seen.at != where{} && e.at == seen.at && e.size == seen.size && e.mtime == seen.mtime
}

// firstLine begins a manifest. What follows it is never changed.
const firstLine = "swarmdeck tree 1\n"

// Modes that an entry may carry.
const (
	fileModes = 0o777
	dirModes  = 0o3777
)

// append writes the entry's line. Names are quoted: they may hold any byte.
func (e entry) append(b []byte) []byte {
	b = append(b, byte(e.kind), ' ')
	b = strconv.AppendUint(b, uint64(e.mode), 8)
	b = strconv.AppendUint(append(b, ' '), uint64(e.uid), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(e.gid), 10)
	b = strconv.AppendInt(append(b, ' '), e.mtime, 10)
	switch e.kind {
	case regular:
		b = strconv.AppendInt(append(b, ' '), e.size, 10)
		b = hex.AppendEncode(append(b, ' '), e.sum[:])
	case link:
		b = strconv.AppendQuoteToASCII(append(b, ' '), e.target)
	}
	b = strconv.AppendQuoteToASCII(append(b, ' '), e.path)
	return append(b, '\n')
}

func encode(all []entry) []byte {
	b := make([]byte, 0, len(firstLine)+160*len(all))
	b = append(b, firstLine...)
	for _, e := range all {
		b = e.append(b)
	}
	return b
}

// stateOf is the digest of the manifest of entries: the name of their state.
func stateOf(all []entry) (sum digest) {
	h := sha256.New()
	b := append(make([]byte, 0, 64<<10), firstLine...)
	for i := range all {
		if b = all[i].append(b); len(b) > 60<<10 {
			h.Write(b)
			b = b[:0]
		}
	}
	h.Write(b)
	h.Sum(sum[:0])
	return sum
}

// decode reads a manifest. Its entries come in the order in which they can be
// made: a directory before what is in it, and each once.
func decode(data []byte) ([]entry, error) {
	rest, ok := strings.CutPrefix(string(data), firstLine)
	if !ok {
		return nil, core.Errorf(core.Internal, "a manifest begins with %q, this does not", strings.TrimSpace(firstLine))
	}
	var all []entry
	for n := 2; rest != ""; n++ {
		line, more, whole := strings.Cut(rest, "\n")
		e, err := parse(line)
		if err == nil && !whole {
			err = fmt.Errorf("it is cut")
		}
		if err != nil {
			return nil, core.Errorf(core.Internal, "line %d of a manifest: %v", n, err)
		}
		all, rest = append(all, e), more
	}
	return all, placed(all)
}

// placed refuses entries that can't be made one after the other.
func placed(all []entry) error {
	if len(all) == 0 {
		return core.Errorf(core.Internal, "a manifest is empty")
	}
	dirs := map[string]bool{}
	for n, e := range all {
		why := ""
		switch {
		case n == 0 && (e.path != "." || e.kind == link || e.kind == omitted), n > 0 && !valid(e.path):
			why = "has no place in a tree"
		case n > 0 && !dirs[parent(e.path)]:
			why = "is in no directory"
		case n > 1 && order(all[n-1].path, e.path) >= 0:
			why = "is out of order"
		}
		if why != "" {
			return core.Errorf(core.Internal, "entry %d of a manifest: %q %s", n+1, e.path, why)
		}
		if e.kind == directory {
			dirs[e.path] = true
		}
	}
	return nil
}

// valid is fs.ValidPath for names of any bytes, but the root's.
func valid(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.IndexByte(part, 0) >= 0 {
			return false
		}
	}
	return true
}

// order is that of a walk: by the names of the directories on the way, the root first.
func order(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == ".":
		return -1
	case b == ".":
		return 1
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	switch {
	case n == len(a) || n == len(b):
		return cmp.Compare(len(a), len(b))
	case a[n] == '/':
		return -1
	case b[n] == '/':
		return 1
	}
	return cmp.Compare(a[n], b[n])
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

func parse(line string) (e entry, err error) {
	var f [6]string
	rest := line
	n := 5
	for i := range n {
		var ok bool
		if f[i], rest, ok = strings.Cut(rest, " "); !ok {
			return e, fmt.Errorf("%d of %d fields", i, n+1)
		}
	}
	number := func(s string, base, bits int) uint64 {
		v, bad := strconv.ParseUint(s, base, bits)
		if bad != nil && err == nil {
			err = fmt.Errorf("%q is no number", s)
		}
		return v
	}
	if len(f[0]) != 1 {
		return e, fmt.Errorf("%q is no kind", f[0])
	}
	e.kind = kind(f[0][0])
	e.mode, e.uid, e.gid = uint32(number(f[1], 8, 32)), uint32(number(f[2], 10, 32)), uint32(number(f[3], 10, 32))
	var bad error
	if e.mtime, bad = strconv.ParseInt(f[4], 10, 64); bad != nil {
		return e, fmt.Errorf("%q is no time", f[4])
	}
	most := uint32(fileModes)
	switch e.kind {
	case directory:
		most = dirModes
	case regular:
		size, more, _ := strings.Cut(rest, " ")
		sum, more, _ := strings.Cut(more, " ")
		e.size = int64(number(size, 10, 63))
		raw, bad := hex.DecodeString(sum)
		if bad != nil || len(raw) != len(e.sum) || hex.EncodeToString(raw) != sum {
			return e, fmt.Errorf("%q is no digest", sum)
		}
		e.sum, rest = digest(raw), more
	case link:
		if e.target, rest, err = unquote(rest); err != nil {
			return e, err
		}
		if !strings.HasPrefix(rest, " ") || e.target == "" || strings.IndexByte(e.target, 0) >= 0 {
			return e, fmt.Errorf("a link leads nowhere")
		}
		rest = rest[1:]
	case omitted:
		most = 0
	default:
		return e, fmt.Errorf("%q is no kind", f[0])
	}
	if e.mode > most && err == nil {
		err = fmt.Errorf("mode %o is not allowed", e.mode)
	}
	var tail string
	path, tail, bad := unquote(rest)
	if err == nil {
		err = bad
	}
	if err == nil && tail != "" {
		err = fmt.Errorf("%q is too much", tail)
	}
	e.path = path
	if err == nil && string(e.append(nil)) != line+"\n" {
		err = fmt.Errorf("it is written in another way than ours")
	}
	return e, err
}

func unquote(s string) (text, rest string, err error) {
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", s, fmt.Errorf("a name is not quoted")
	}
	text, err = strconv.Unquote(q)
	return text, s[len(q):], err
}
