package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// A reader of bbolt's pages that trusts nothing: bbolt itself follows whatever
// a damaged page says, into a panic, a fault or an endless loop.

// Flags of bbolt's pages and leaf elements.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketEntry  = 0x01
	elementLen   = 16
	bucketHeader = 16 // root page and sequence in front of an inline page
	manyFree     = 0xFFFF
)

// page is one page with its overflow.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte // with header
}

// element is one entry of a branch or leaf page.
type element struct {
	key, value []byte
	child      uint64 // of a branch
	bucket     bool   // value is a bucket header, not a record
}

// readPage reads page id of a file, with its overflow, into buf.
func readPage(f io.ReaderAt, m fileMeta, id uint64, buf []byte) (page, error) {
	if id < 2 || id >= uint64(m.pages) {
		return page{}, fmt.Errorf("page %d: out of bounds, the file has %d", id, m.pages)
	}
	var head [pageHeader]byte
	at := int64(id) * m.pageSize
	if _, err := f.ReadAt(head[:], at); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	if got := binary.NativeEndian.Uint64(head[:]); got != id {
		return page{}, fmt.Errorf("page %d: says it is page %d", id, got)
	}
	if id+overflow >= uint64(m.pages) {
		return page{}, fmt.Errorf("page %d: its %d overflow pages reach past the end", id, overflow)
	}
	n := int64(overflow+1) * m.pageSize
	if binary.NativeEndian.Uint16(head[8:]) != freelistPage && n > MaxValue+(1<<20) {
		return page{}, fmt.Errorf("page %d: %d bytes is more than any record has", id, n)
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := f.ReadAt(buf, at); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	return parsePage(id, buf)
}

// parsePage reads the header of a page in memory; an inline bucket has one
// too.
func parsePage(id uint64, data []byte) (page, error) {
	if len(data) < pageHeader {
		return page{}, fmt.Errorf("page %d: too short", id)
	}
	p := page{
		id:    id,
		flags: binary.NativeEndian.Uint16(data[8:]),
		count: int(binary.NativeEndian.Uint16(data[10:])),
		data:  data,
	}
	switch p.flags {
	case branchPage, leafPage:
		if pageHeader+p.count*elementLen > len(data) {
			return page{}, fmt.Errorf("page %d: %d entries don't fit", id, p.count)
		}
	case freelistPage:
	default:
		return page{}, fmt.Errorf("page %d: unknown kind %#x", id, p.flags)
	}
	return p, nil
}

// pages is how many pages of the file it takes.
func (p page) pages(m fileMeta) uint64 { return uint64(len(p.data)) / uint64(m.pageSize) }

// at returns entry i of a branch or leaf page.
func (p page) at(i int) (element, error) {
	off := pageHeader + i*elementLen
	e, order := p.data[off:], binary.NativeEndian
	var out element
	var pos, klen, vlen uint64
	if p.flags == branchPage {
		pos, klen = uint64(order.Uint32(e)), uint64(order.Uint32(e[4:]))
		out.child = order.Uint64(e[8:])
	} else {
		out.bucket = order.Uint32(e)&bucketEntry != 0
		pos, klen, vlen = uint64(order.Uint32(e[4:])), uint64(order.Uint32(e[8:])), uint64(order.Uint32(e[12:]))
	}
	start := uint64(off) + pos
	if start+klen+vlen > uint64(len(p.data)) {
		return out, fmt.Errorf("page %d: entry %d reaches past its end", p.id, i)
	}
	out.key = p.data[start : start+klen]
	out.value = p.data[start+klen : start+klen+vlen]
	return out, nil
}

// freePages returns the ids on a freelist page.
func (p page) freePages() (func(i uint64) uint64, uint64, error) {
	n, first := uint64(p.count), pageHeader
	if p.count == manyFree {
		if len(p.data) < pageHeader+8 {
			return nil, 0, fmt.Errorf("page %d: freelist is cut short", p.id)
		}
		n, first = binary.NativeEndian.Uint64(p.data[pageHeader:]), pageHeader+8
	}
	if p.flags != freelistPage || n > uint64(len(p.data)-first)/8 {
		return nil, 0, fmt.Errorf("page %d: not a whole freelist", p.id)
	}
	return func(i uint64) uint64 {
		return binary.NativeEndian.Uint64(p.data[uint64(first)+8*i:])
	}, n, nil
}

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
