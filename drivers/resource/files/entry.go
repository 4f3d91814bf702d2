package files

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// kind is what an entry is.
type kind byte

const (
	removed   kind = 0 // among changes: nothing is there any more
	directory kind = 'd'
	regular   kind = 'f'
	link      kind = 'l'
	omitted   kind = 'x' // a file that was there, and too large: its path alone is known
)

// digest is the sha256 of a content: 32 bytes, or none.
type digest string

func (d digest) String() string { return hex.EncodeToString([]byte(d)) }

func parseDigest(text string) (digest, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "sha256:"))
	if err != nil || len(raw) != sha256.Size {
		return "", core.Invalid("snapshot", text, "sha256: and 64 hex digits")
	}
	return digest(raw), nil
}

// entry is a name of a tree. The root's path is ".".
type entry struct {
	Kind     kind
	Mode     uint32 // permission bits; sticky and setgid of directories too
	UID, GID uint32
	Mtime    int64  // nanoseconds since 1970
	Size     int64  // of a file
	Sum      digest // of a file
	Target   string // of a link
	Path     string

	at where // it was found; no part of a state
}

// where tells a file from another at its path, and whether it was changed: no program
// sets the time of an inode. The zero value tells nothing.
type where struct {
	Dev, Ino uint64
	Ctime    int64
}

func whereOf(st *unix.Stat_t) where { return where{uint64(st.Dev), st.Ino, st.Ctim.Nano()} }

// alike reports that two entries are the same, wherever they were found.
func (e *entry) alike(o *entry) bool {
	a, b := *e, *o
	a.at, b.at = where{}, where{}
	return a == b
}

// same reports that a file is the one that was seen, and has not changed since.
func (e *entry) same(seen *entry) bool {
	return seen.Kind == regular && seen.at != where{} && e.at == seen.at && e.Size == seen.Size && e.Mtime == seen.Mtime
}

// Modes that an entry may carry.
const (
	fileModes = 0o777
	dirModes  = 0o3777
)

// append writes what makes an entry differ from another. Names may hold any byte.
func (e *entry) append(b []byte) []byte {
	for _, n := range []int64{int64(e.Kind), int64(e.Mode), int64(e.UID), int64(e.GID), e.Mtime, e.Size, int64(len(e.Target)), int64(len(e.Path))} {
		b = binary.AppendVarint(b, n)
	}
	return append(append(append(b, e.Sum...), e.Target...), e.Path...)
}

// stateOf is the digest of all entries: the name of their state.
func stateOf(all []entry) digest {
	h := sha256.New()
	b := make([]byte, 0, 64<<10)
	for i := range all {
		if b = all[i].append(b); len(b) > 60<<10 {
			h.Write(b)
			b = b[:0]
		}
	}
	h.Write(b)
	return digest(h.Sum(nil))
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
