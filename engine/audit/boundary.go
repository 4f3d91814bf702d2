package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// issued are the sizes of checkpoints that somebody was given, and those around
// the events that stay when the ones beside them leave: big-endian size → the
// tree's root at that size. What leaves the log leaves the hashes behind that
// lead from each such size to the next.
const issued store.Bucket = "audit_issued"

// Issue remembers that a checkpoint was given to somebody, so that Verify and
// Compare know it when the events under it have left the log.
func (l *Ledger) Issue(ctx context.Context, tenant string, checkpoint []byte) error {
	c, err := ParseCheckpoint(checkpoint)
	if err != nil && !errors.Is(err, ErrUnsigned) {
		return err
	}
	known := c.Size == 0
	if !known {
		err = l.st.View(ctx, tenant, func(tx store.Tx) error {
			root, err := tx.Get(issued, key(c.Size))
			known = root != nil
			return err
		})
	}
	if known || err != nil && !errors.Is(err, ErrUnsigned) {
		return err
	}
	err = l.st.Update(ctx, tenant, func(tx store.Tx) error {
		s, err := readSealing(tx)
		if err != nil {
			return err
		}
		if c.Size <= s.Upto {
			return core.Errorf(core.Conflict, "the events of the checkpoint of %d have left the log", c.Size)
		}
		return tx.Put(issued, key(c.Size), c.Root[:])
	})
	if err != nil && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("remember the checkpoint of %s: %w", tenant, err)
	}
	return nil
}

// rootAt is the tree's root when it had size events.
func rootAt(tx store.Tx, size uint64) (tlog.Hash, error) {
	s, err := readSealing(tx)
	if err != nil {
		return tlog.Hash{}, err
	}
	if size >= s.Upto {
		return tlog.TreeHash(int64(size), storedHashes{tx})
	}
	root, err := tx.Get(issued, key(size))
	if err == nil && len(root) != tlog.HashSize {
		err = fmt.Errorf("its events have left the log, and it was not remembered as given out")
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	return tlog.Hash(root), nil
}

// node is a hash of the tree: over the events with numbers after first, 1<<level
// of them.
type node struct {
	level int
	first uint64
}

func (n node) end() uint64  { return n.first + 1<<n.level }
func (n node) index() int64 { return tlog.StoredHashIndex(n.level, int64(n.first>>n.level)) }

// cover are the nodes that lead from a tree of one size to that of another.
func cover(from, to uint64) (all []node) {
	for from < to {
		level := bits.Len64(to-from) - 1
		if from > 0 {
			level = min(level, bits.TrailingZeros64(from))
		}
		all = append(all, node{level, from})
		from += 1 << level
	}
	return all
}

// among says whether cover(from, to) has the node.
func (n node) among(from, to uint64) bool {
	if n.first < from || n.end() > to {
		return false
	}
	parent := n.first &^ (1<<(n.level+1) - 1)
	return parent < from || parent+1<<(n.level+1) > to
}

// stays says whether a node is needed when all events up to upto have left: to
// continue the tree and prove what is in it, or to lead from one issued size to
// the next. The sizes are those from the newest that is not after the node on.
func (n node) stays(sizes []uint64, upto uint64) bool {
	at, found := slices.BinarySearch(sizes, n.first)
	if !found {
		at--
	}
	return n.among(0, upto) || at >= 0 && at+1 < len(sizes) && n.among(sizes[at], sizes[at+1])
}

// sizesFrom are the issued sizes up to upto, and that, from the newest that is
// not after first; of those after it at most n.
func sizesFrom(tx store.Tx, first, upto uint64, n int) ([]uint64, error) {
	sizes := []uint64{0}
	err := tx.Scan(issued, nil, key(first+1), true, func(k, _ []byte) (bool, error) { sizes[0] = seqOf(k); return false, nil })
	if err == nil {
		err = tx.Scan(issued, key(first+1), key(upto), false, func(k, _ []byte) (bool, error) {
			sizes = append(sizes, seqOf(k))
			return len(sizes) <= n, nil
		})
	}
	return append(sizes, upto), err
}

func seqOf(k []byte) uint64 {
	if len(k) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}

// issuedUpto are the issued sizes up to one, and that one.
func issuedUpto(tx store.Tx, upto uint64, each func(size uint64, root []byte)) error {
	if upto == 0 {
		return nil
	}
	err := tx.Scan(issued, nil, key(upto), false, func(k, root []byte) (bool, error) {
		if len(k) == 8 {
			each(seqOf(k), root)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	root, err := tx.Get(issued, key(upto))
	each(upto, root)
	return err
}

// staying are the places of all hashes that stay when events have left, in
// order.
func staying(tx store.Tx, upto uint64) (all []uint64, err error) {
	for _, n := range cover(0, upto) {
		all = append(all, uint64(n.index()))
	}
	last := uint64(0)
	err = issuedUpto(tx, upto, func(size uint64, _ []byte) {
		for _, n := range cover(last, size) {
			all = append(all, uint64(n.index()))
		}
		last = size
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

// join grows the tree by a whole subtree; its size is a multiple of that one's.
func (f *frontier) join(level int, h tlog.Hash) {
	f.size += 1 << level
	for l := level; (f.size-1<<level)>>l&1 == 1; l++ {
		last := len(f.roots) - 1
		h = tlog.NodeHash(f.roots[last], h)
		f.roots = f.roots[:last]
	}
	f.roots = append(f.roots, h)
}

// leave takes the hashes of the events after from, up to upto, out of the tree,
// but for those that stay, and those that no longer need to.
func leave(tx store.Tx, from, upto uint64) error {
	sizes, err := sizesFrom(tx, max(from, 1)-1, upto, int(upto-from)+1)
	if err != nil {
		return err
	}
	var gone []uint64
	for _, n := range append(cover(0, from), cover(sizes[0], from)...) {
		near, err := sizesFrom(tx, n.first, upto, 1)
		if err != nil {
			return err
		}
		if !n.stays(near, upto) {
			gone = append(gone, uint64(n.index()))
		}
	}
	first, end := uint64(tlog.StoredHashIndex(0, int64(from))), uint64(tlog.StoredHashIndex(0, int64(upto)))
	hashes := make([]tlog.Hash, end-first)
	if err := (storedHashes{tx}).fill(first, hashes); err != nil {
		return err
	}
	var tail []byte
	err = tx.Scan(tree, key(first), key(end), false, func(k, value []byte) (bool, error) {
		gone = append(gone, seqOf(k))
		if over := seqOf(k) + uint64(len(value)/tlog.HashSize); over > end {
			tail = bytes.Clone(value[len(value)-int(over-end)*tlog.HashSize:])
		}
		return true, nil
	})
	for _, index := range gone {
		err = errors.Join(err, tx.Delete(tree, key(index)))
	}
	for leaf := from; leaf < upto; leaf++ {
		for level := range bits.TrailingZeros64(leaf+1) + 1 {
			n := node{level, leaf + 1 - 1<<level}
			if h := hashes[uint64(n.index())-first]; n.stays(sizes, upto) && h != (tlog.Hash{}) {
				err = errors.Join(err, tx.Put(tree, key(uint64(n.index())), h[:]))
			}
		}
	}
	if tail != nil {
		err = errors.Join(err, tx.Put(tree, key(end), tail))
	}
	return err
}
