package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
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
// end of a file that was cut short would be a fault.
func readMeta(path string) (fileMeta, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileMeta{}, fmt.Errorf("%w: %w", ErrUnusable, err)
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

// create makes a new data file under another name and publishes it whole.
// When another process was faster its file stands.
func create(path string, schema int) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	temp, err := tempName(path)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	db, err := bbolt.Open(temp, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoStatistics: true})
	if err != nil {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return writeIdentity(tx, schema) })
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	if err := publish(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: create: %w", ErrUnusable, err)
	}
	return nil
}

// tempName makes an empty private file beside path.
func tempName(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return f.Name(), f.Close()
}

// publish gives the finished file temp its name, durably, unless that is
// taken (fs.ErrExist).
func publish(temp, path string) error {
	err := os.Link(temp, path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return err
	case err != nil: // a file system without hard links
		if _, e := os.Lstat(path); e == nil {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes names durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // not every file system can, or has to
	}
	return errors.Join(err, d.Close())
}

// lockedBy is ErrLocked, with the process that has the lock where the system
// tells.
func lockedBy(path string) error {
	if pid := lockHolder(path); pid > 0 {
		return fmt.Errorf("%w (pid %d)", ErrLocked, pid)
	}
	return ErrLocked
}

// lockHolder finds the owner of the file's lock in /proc/locks, whose lines
// read "1: FLOCK ADVISORY WRITE 812 fd:01:4711 0 EOF". 0 when unknown.
func lockHolder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	data, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}

// outOfSpace reports that a mapping did not fit the address space.
func outOfSpace(err error) bool { return errors.Is(err, syscall.ENOMEM) }
