package files

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// kind is what an entry is.
type kind byte

const (
	directory kind = 'd'
	regular   kind = 'f'
	link      kind = 'l'
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

// decode reads a manifest. Its entries come in the order in which they can be
// made: a directory before what is in it, and each once.
func decode(data []byte) ([]entry, error) {
	rest, ok := strings.CutPrefix(string(data), firstLine)
	if !ok {
		return nil, core.Errorf(core.Internal, "a manifest begins with %q, this does not", strings.TrimSpace(firstLine))
	}
	var all []entry
	dirs := map[string]bool{}
	last := ""
	for n := 2; rest != ""; n++ {
		line, more, whole := strings.Cut(rest, "\n")
		e, err := parse(line)
		switch {
		case err != nil:
		case !whole:
			err = fmt.Errorf("it is cut")
		case len(all) == 0 && (e.path != "." || e.kind == link), len(all) > 0 && !valid(e.path):
			err = fmt.Errorf("%q has no place in a tree", e.path)
		case len(all) > 0 && !dirs[parent(e.path)]:
			err = fmt.Errorf("%q is in no directory", e.path)
		case len(all) > 1 && !before(last, e.path):
			err = fmt.Errorf("%q is out of order", e.path)
		}
		if err != nil {
			return nil, core.Errorf(core.Internal, "line %d of a manifest: %v", n, err)
		}
		if e.kind == directory {
			dirs[e.path] = true
		}
		all, last, rest = append(all, e), e.path, more
	}
	if len(all) == 0 {
		return nil, core.Errorf(core.Internal, "a manifest is empty")
	}
	return all, nil
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

// before is the order of a walk: by the names of the directories on the way.
func before(a, b string) bool {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if c := cmp.Compare(x, y); c != 0 {
			return c < 0
		}
		if !moreA || !moreB {
			return !moreA && moreB
		}
		a, b = restA, restB
	}
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
