package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// fileMeta is what the newest valid meta page says, and the file's size.
type fileMeta struct {
	pageSize int64
	pages    int64 // high water mark
	txid     uint64
	root     uint64
	freelist uint64
	size     int64
	damaged  bool // one of the two meta pages is not valid
}

// bbolt's file format, version 2.
const (
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	pageHeader   = 16
	metaLen      = 64
	metaSum      = 56 // offset of the checksum
	noFreelist   = ^uint64(0)
	minPageShift = 10
	maxPageShift = 16
)

// readMeta looks at the meta pages without mapping the file: reading past the
// end of a file that was cut short would be a fault. Under the lock no owner
// changes them meanwhile.
func readMeta(path string, locked bool) (fileMeta, error) {
	open := os.Open
	if locked {
		open = func(path string) (*os.File, error) { return lockFile(path, false) }
	}
	f, err := open(path)
	if err != nil {
		if !errors.Is(err, ErrLocked) && !errors.Is(err, ErrUnusable) {
			err = fmt.Errorf("%w: %w", ErrUnusable, err)
		}
		return fileMeta{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileMeta{}, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	if !info.Mode().IsRegular() {
		return fileMeta{}, fmt.Errorf("%w: not a regular file", ErrUnusable)
	}
	return findMeta(f, info.Size())
}

func findMeta(f io.ReaderAt, size int64) (fileMeta, error) {
	if size == 0 {
		return fileMeta{}, fmt.Errorf("%w: the file is empty; remove it to begin anew, or restore a backup", ErrUnusable)
	}
	best, found := metaAt(f, 0)
	both := found
	if found {
		other, ok := metaAt(f, best.pageSize)
		both = ok
		if ok && other.txid > best.txid {
			best = other
		}
	} else {
		for shift := minPageShift; shift <= maxPageShift && !found; shift++ {
			best, found = metaAt(f, 1<<shift)
			found = found && best.pageSize == 1<<shift
		}
	}
	if !found {
		return fileMeta{}, fmt.Errorf("%w: not a swarmdeck data file, or both its meta pages are damaged", ErrUnusable)
	}
	best.size, best.damaged = size, !both
	if need := best.pages * best.pageSize; size < need {
		return fileMeta{}, fmt.Errorf("%w: the file was cut short: %d bytes of %d", ErrUnusable, size, need)
	}
	return best, nil
}

// metaAt reads the meta page at an offset.
func metaAt(f io.ReaderAt, at int64) (fileMeta, bool) {
	var buf [pageHeader + metaLen]byte
	if _, err := f.ReadAt(buf[:], at); err != nil {
		return fileMeta{}, false
	}
	b, order := buf[pageHeader:], binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(b[:metaSum])
	m := fileMeta{
		pageSize: int64(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		pages:    int64(order.Uint64(b[40:])),
		txid:     order.Uint64(b[48:]),
	}
	ok := order.Uint32(b) == boltMagic && order.Uint32(b[4:]) == boltVersion &&
		order.Uint64(b[metaSum:]) == sum.Sum64() &&
		m.pageSize >= 1<<minPageShift && m.pageSize <= 1<<maxPageShift && m.pageSize&(m.pageSize-1) == 0 &&
		m.pages >= 4 && m.pages < 1<<40 && m.root < uint64(m.pages) &&
		(m.freelist < uint64(m.pages) || m.freelist == noFreelist)
	return m, ok
}
