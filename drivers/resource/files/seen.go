package files

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// seen is a tree as it was when its snapshot was taken last: a file that has not
// changed since has the same content. It is in memory, and beside the snapshots for an
// engine that is started anew.
type seen struct {
	tree  digest
	all   []entry // those whose place is not set are read again
	deep  int     // deltas of the manifest, and their bytes
	bytes int64
	log   int64 // bytes of what is written of it; 0 for nothing

	used uint64 // when it was, among the others
}

// mostSeen bounds the entries in memory, of all trees of a tenant: some 200 bytes each.
const mostSeen = 400_000

// grain is how much older than its reading a file's newest change must be: a change
// within the clock's grain could not be told from none.
const grain = 2 * time.Second

// unsettle has those read again that changed too shortly before they were looked at.
func unsettle(all []entry, since time.Time) {
	for i := range all {
		if e := &all[i]; e.at.ctime > since.UnixNano() || e.mtime > since.UnixNano() {
			e.at = where{}
		}
	}
}

// match gives files that have not changed since they were seen their digests, and
// returns the numbers of the others.
func match(was, now []entry) (others []int) {
	for n := range now {
		e := &now[n]
		for len(was) > 0 && order(was[0].path, e.path) < 0 {
			was = was[1:]
		}
		switch known := len(was) > 0 && was[0].path == e.path; {
		case e.kind != regular:
		case known && e.same(&was[0]):
			e.sum = was[0].sum
		default:
			others = append(others, n)
		}
	}
	return others
}

// recall is what was seen of a tree; nil when nothing was, or that is damaged: then
// all is read again.
func (s *store) recall(root string) *seen {
	s.mu.Lock()
	was := s.memory[root]
	if was != nil {
		s.clock++
		was.used = s.clock
	}
	s.mu.Unlock()
	if was != nil {
		return was
	}
	data, err := os.ReadFile(s.seenPath(root))
	if err != nil {
		return nil
	}
	tree, files, whole := decodeSeen(data)
	if len(files) == 0 {
		return nil
	}
	// Only of what is kept are the contents sure to be there.
	all, err := s.tree(tree)
	if err != nil {
		return nil
	}
	for i := range all {
		if f, ok := files[all[i].path]; ok && f.sum == all[i].sum && f.size == all[i].size && f.mtime == all[i].mtime {
			all[i].at = f.at
		}
	}
	was = &seen{tree: tree, all: all, log: whole}
	if was.deep, was.bytes, err = s.depth(tree); err != nil {
		return nil
	}
	return was
}

// remember keeps what was seen; without it the next snapshot only costs more. What is
// written of it is as long as what changed, as a rule.
func (s *store) remember(root string, was, now *seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now.log = s.note(root, was, now)
	s.clock++
	now.used = s.clock
	s.memory[root] = now
	sum := 0
	for _, other := range slices.SortedFunc(s.seenRoots(), func(a, b string) int { return cmp.Compare(s.memory[b].used, s.memory[a].used) }) {
		if sum += len(s.memory[other].all); sum > mostSeen && other != root {
			delete(s.memory, other)
		}
	}
}

// seenRoots are the trees in memory.
func (s *store) seenRoots() func(func(string) bool) {
	return func(yield func(string) bool) {
		for root := range s.memory {
			if !yield(root) {
				return
			}
		}
	}
}

func (s *store) seenPath(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(s.dir, "seen", hex.EncodeToString(sum[:16]))
}

// note writes what was seen behind what is written already, or all of it anew when that
// became twice as long as it need be. It returns how much is written then.
func (s *store) note(root string, was, now *seen) int64 {
	path := s.seenPath(root)
	if was != nil && was.log > 0 {
		news := learnt(was.all, now.all)
		if len(news) == 0 && was.tree == now.tree {
			return was.log
		}
		data := encodeSeen(now.tree, news)
		if size := was.log + int64(len(data)); size < 2*seenMost(now.all) && appendTo(path, was.log, data) {
			return size
		}
	}
	data := encodeSeen(now.tree, learnt(nil, now.all))
	tmp := filepath.Join(s.dir, "tmp", filepath.Base(path))
	if os.WriteFile(tmp, data, 0o600) != nil || os.Rename(tmp, path) != nil {
		return 0
	}
	return int64(len(data))
}

// appendTo writes behind a file that is as long as it should be.
func appendTo(path string, at int64, data []byte) bool {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != at {
		return false
	}
	_, err = f.Write(data)
	return err == nil
}

// learnt are the files that can be told from others now, but could not before.
func learnt(was, now []entry) (news []entry) {
	for _, e := range now {
		for len(was) > 0 && order(was[0].path, e.path) < 0 {
			was = was[1:]
		}
		if e.kind == regular && e.at != (where{}) && (len(was) == 0 || was[0].path != e.path || was[0].at != e.at || was[0].sum != e.sum) {
			news = append(news, e)
		}
	}
	return news
}

const seenHead = 6*8 + 32 // bytes of a file beside its path

// seenMost is how much a tree takes that is written as a whole, about.
func seenMost(all []entry) int64 {
	n := int64(4096)
	for i := range all {
		n += int64(seenHead + len(all[i].path))
	}
	return n
}

// encodeSeen writes files of a tree: how many bytes follow, these, and their sha256.
func encodeSeen(tree digest, all []entry) []byte {
	b := append(make([]byte, 8), tree[:]...)
	for _, e := range all {
		for _, n := range []uint64{e.at.dev, e.at.ino, uint64(e.size), uint64(e.mtime), uint64(e.at.ctime), uint64(len(e.path))} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		b = append(append(b, e.sum[:]...), e.path...)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	sum := sha256.Sum256(b[8:])
	return append(b, sum[:]...)
}

// decodeSeen reads what was written, up to where it is damaged: how far is whole. The
// last tells of the tree.
func decodeSeen(b []byte) (tree digest, all map[string]entry, whole int64) {
	all = map[string]entry{}
	for {
		if len(b) < 8 {
			return tree, all, whole
		}
		size := binary.LittleEndian.Uint64(b)
		if size < uint64(len(tree)) || uint64(len(b)-8) < 32 || size > uint64(len(b)-8-32) {
			return tree, all, whole
		}
		body, sum := b[8:8+size], b[8+size:8+size+32]
		if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
			return tree, all, whole
		}
		copy(tree[:], body)
		decodeFiles(body[len(tree):], all)
		b, whole = b[8+size+32:], whole+int64(size)+40
	}
}

func decodeFiles(b []byte, all map[string]entry) {
	for len(b) >= seenHead {
		var n [6]uint64
		for i := range n {
			n[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		if n[5] > uint64(len(b)-seenHead) {
			return
		}
		end := seenHead + int(n[5])
		all[string(b[seenHead:end])] = entry{
			kind: regular, size: int64(n[2]), mtime: int64(n[3]), sum: digest(b[48:seenHead]), at: where{dev: n[0], ino: n[1], ctime: int64(n[4])},
		}
		b = b[end:]
	}
}
