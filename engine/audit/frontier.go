package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/store"
)

// tree is the bucket of the Merkle tree's hashes: big-endian index of the
// first stored hash (tlog.StoredHashIndex) → that hash and those after it.
const tree store.Bucket = "audit_tree"

// treeRecord is the number of hashes that one record of the tree holds at most
// (those that one commit added are its least). A page has room for some of
// them, so that a commit writes few that are not new.
const treeRecord = 32

// putHashes stores the hashes from index first on.
func putHashes(tx store.Tx, first uint64, hashes []tlog.Hash) error {
	for some := range slices.Chunk(hashes, treeRecord) {
		value := make([]byte, 0, len(some)*tlog.HashSize)
		for i := range some {
			value = append(value, some[i][:]...)
		}
		if err := tx.Put(tree, key(first), value); err != nil {
			return err
		}
		first += uint64(len(some))
	}
	return nil
}

// frontier is the right edge of an RFC 6962 tree: the roots of the complete
// subtrees that its leaves divide into, largest first. It is all that is
// needed to grow the tree, and to know its root.
type frontier struct {
	size  uint64
	roots []tlog.Hash
}

// push adds a leaf and appends to out, when it is not nil, what must be
// stored for it, in the order of tlog.StoredHashIndex.
func (f *frontier) push(leaf tlog.Hash, out []tlog.Hash) []tlog.Hash {
	out = append(out, leaf)
	for range bits.TrailingZeros64(f.size + 1) {
		last := len(f.roots) - 1
		leaf = tlog.NodeHash(f.roots[last], leaf)
		f.roots = f.roots[:last]
		out = append(out, leaf)
	}
	f.roots = append(f.roots, leaf)
	f.size++
	return out
}

// root is the tree's hash.
func (f *frontier) root() tlog.Hash {
	last := len(f.roots) - 1
	if last < 0 {
		return sha256.Sum256(nil)
	}
	h := f.roots[last]
	for i := last - 1; i >= 0; i-- {
		h = tlog.NodeHash(f.roots[i], h)
	}
	return h
}

func (f *frontier) clone() frontier {
	return frontier{size: f.size, roots: slices.Clone(f.roots)}
}

// loadFrontier reads the right edge of a stored tree.
func loadFrontier(tx store.Tx, size uint64) (frontier, error) {
	var at []int64
	for lo := uint64(0); lo < size; {
		level := bits.Len64(size-lo) - 1
		at = append(at, tlog.StoredHashIndex(level, int64(lo>>level)))
		lo += 1 << level
	}
	roots, err := storedHashes{tx}.ReadHashes(at)
	return frontier{size: size, roots: roots}, err
}

// leafHash is tlog.RecordHash into a buffer that the caller keeps.
func leafHash(buf, data []byte) (tlog.Hash, []byte) {
	buf = append(append(buf[:0], 0), data...)
	return sha256.Sum256(buf), buf
}

// storedHashes is the tlog.HashReader of a stored tree.
type storedHashes struct{ tx store.Tx }

func (r storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		found := false
		err := r.tx.Scan(tree, nil, key(uint64(index)+1), true, func(k, value []byte) (bool, error) {
			if at := uint64(index) - binary.BigEndian.Uint64(k); at < uint64(len(value)/tlog.HashSize) {
				copy(hashes[i][:], value[at*tlog.HashSize:])
				found = true
			}
			return false, nil
		})
		if err != nil {
			return nil, fmt.Errorf("read audit tree hash %d: %w", index, err)
		}
		if !found {
			return nil, fmt.Errorf("audit tree hash %d is missing", index)
		}
	}
	return hashes, nil
}

// fill copies the stored hashes from index on into hashes; those that are
// missing stay zero. It returns an error for a damaged record, the hashes
// before which are filled in.
func (r storedHashes) fill(index uint64, hashes []tlog.Hash) error {
	place := func(k, value []byte) (bool, error) {
		if len(k) != 8 {
			return true, nil
		}
		first := binary.BigEndian.Uint64(k)
		for i := range uint64(len(value) / tlog.HashSize) {
			if at := first + i - index; first+i >= index && at < uint64(len(hashes)) {
				copy(hashes[at][:], value[i*tlog.HashSize:])
			}
		}
		return true, nil
	}
	// The record that holds the first index may begin before it.
	if err := r.tx.Scan(tree, nil, key(index), true, func(k, value []byte) (bool, error) { _, err := place(k, value); return false, err }); err != nil {
		return err
	}
	return r.tx.Scan(tree, key(index), key(index+uint64(len(hashes))), false, place)
}
