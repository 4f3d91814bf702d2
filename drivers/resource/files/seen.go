package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"
)

// seen is a tree as it was when its snapshot was taken last: a file that has not
// changed since has the same content. It is in memory, and what it took long to read
// is beside the snapshots for an engine that is started anew.
type seen struct {
	tree        digest
	all         []entry // those whose place is not set are read again
	deep, lines int     // of the manifest

	unsaved int64 // what it would cost to read what is not written, in bytes
}

// saved is what is written of it.
type saved struct {
	Tree digest
	At   []where // of each entry of that
}

const (
	// mostSeen bounds the entries in memory, of all trees of a tenant: some 200 bytes each.
	mostSeen = 400_000
	// mostUnsaved is how much an engine that is started anew may read again, in bytes; a
	// file costs aFile besides.
	mostUnsaved = 64 << 20
	aFile       = 16 << 10
)

// grain is how much older than its reading a file's newest change must be: a change
// within the clock's grain could not be told from none.
const grain = 2 * time.Second

// unsettle has those read again that changed too shortly before they were looked at.
func unsettle(all []entry, since time.Time) {
	for i := range all {
		if e := &all[i]; e.at.Ctime > since.UnixNano() || e.Mtime > since.UnixNano() {
			e.at = where{}
		}
	}
}

// match gives files that have not changed since they were seen their digests, and
// returns the others.
func match(was, now []entry) (others []*entry) {
	for old, e := range pairs(was, now) {
		switch {
		case e == nil || e.Kind != regular:
		case old != nil && e.same(old):
			e.Sum = old.Sum
		default:
			others = append(others, e)
		}
	}
	return others
}

// recall is what was seen of a tree; nil when nothing was, or that is damaged: then
// all is read again.
func (s *store) recall(root string) *seen {
	s.mu.Lock()
	was := s.memory[root]
	s.mu.Unlock()
	if was != nil {
		return was
	}
	at, err := readSaved(s.seenPath(root))
	if err != nil {
		return nil
	}
	// Only of what is kept are the contents sure to be there.
	m, err := s.manifest(at.Tree)
	if err != nil {
		return nil
	}
	was = &seen{tree: at.Tree, deep: m.Deep, lines: m.Lines}
	if was.all, err = s.tree(at.Tree); err != nil || len(was.all) != len(at.At) {
		return nil
	}
	for i := range was.all {
		was.all[i].at = at.At[i]
	}
	return was
}

// remember keeps what was seen; without it the next snapshot only costs more.
func (s *store) remember(root string, was, now *seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now.unsaved = learnt(was, now)
	if now.unsaved > mostUnsaved {
		s.save(root, now)
	}
	s.memory[root] = now
	sum := 0
	for _, other := range s.memory {
		sum += len(other.all)
	}
	for other, was := range s.memory {
		if sum > mostSeen && other != root {
			delete(s.memory, other)
			sum -= len(was.all)
		}
	}
}

// learnt is what it costs to read the files that could not be told from others when
// what was seen was last written.
func learnt(was, now *seen) (cost int64) {
	var before []entry
	if was != nil {
		cost, before = was.unsaved, was.all
	}
	for old, e := range pairs(before, now.all) {
		if e != nil && e.Kind == regular && e.at != (where{}) && (old == nil || old.at != e.at) {
			cost += e.Size + aFile
		}
	}
	return cost
}

func (s *store) seenPath(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(s.dir, "seen", hex.EncodeToString(sum[:16]))
}

// save writes what was seen of a tree.
func (s *store) save(root string, now *seen) {
	at := saved{now.tree, make([]where, len(now.all))}
	for i := range now.all {
		at.At[i] = now.all[i].at
	}
	path := s.seenPath(root)
	tmp := filepath.Join(s.dir, "tmp", filepath.Base(path))
	data, err := encode(at)
	if err == nil && os.WriteFile(tmp, data, 0o600) == nil && os.Rename(tmp, path) == nil {
		now.unsaved = 0
	}
}

func readSaved(path string) (at saved, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(data)).Decode(&at)
	}
	return at, err
}
