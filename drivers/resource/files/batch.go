package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

// batch is one snapshot being written. What it writes gets its name in sync, when it is
// on disk: a name never stands for less than its content.
type batch struct {
	*store
	room func() error

	mu    sync.Mutex
	fresh map[string]string // where it is to be → where it was written
}

// fewBytes are read into memory as a whole: what is kept already is not written again.
const fewBytes = 1 << 20

// take copies what is read from a file into the store. The blocks of a large file are
// shared where that is possible; the digest is of what is kept, whatever happens to the
// file meanwhile.
// A file that grows is read as far as it was when it was opened.
func (b *batch) take(in *os.File, most int64) (sum digest, size int64, err error) {
	if most <= fewBytes {
		data := make([]byte, most)
		n, err := io.ReadFull(in, data)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return sum, 0, err
		}
		whole := sha256.Sum256(data[:n])
		sum = digest(whole[:])
		return sum, int64(n), b.put(b.contentPath(sum), data[:n])
	}
	if err := b.room(); err != nil {
		return sum, 0, err
	}
	tmp, err := os.CreateTemp(filepath.Join(b.dir, "tmp"), "content-")
	if err != nil {
		return sum, 0, err
	}
	h := sha256.New()
	if unix.IoctlFileClone(int(tmp.Fd()), int(in.Fd())) == nil {
		size, err = io.Copy(h, tmp)
	} else {
		size, err = io.Copy(io.MultiWriter(tmp, h), io.LimitReader(in, most))
	}
	sum = digest(h.Sum(nil))
	return sum, size, b.enter(tmp, b.contentPath(sum), size, err)
}

// put writes what its path has not yet.
func (b *batch) put(path string, data []byte) error {
	if there, err := b.has(path); there || err != nil {
		return err
	}
	if err := b.room(); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Join(b.dir, "tmp"), "content-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	return b.enter(tmp, path, int64(len(data)), err)
}

// has reports what is kept, or will be.
func (b *batch) has(path string) (bool, error) {
	b.mu.Lock()
	_, fresh := b.fresh[path]
	b.mu.Unlock()
	if fresh {
		return true, nil
	}
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// enter closes what was written, unless that failed, and notes where it is to be.
func (b *batch) enter(tmp *os.File, path string, size int64, err error) error {
	if err == nil {
		err = tmp.Chmod(0o400)
	}
	err = errors.Join(err, tmp.Close())
	there := false
	if err == nil {
		there, err = b.has(path)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, twice := b.fresh[path]; err != nil || there || twice {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	b.fresh[path] = tmp.Name()
	b.store.mu.Lock()
	b.used += size // room has counted the others
	b.store.mu.Unlock()
	return nil
}

// Files of a snapshot are synced together: a journal commits what is asked of it at
// the same time at once. With more than freshFiles all the file system is, which
// waits for what others write.
const (
	freshFiles = 512
	atOnce     = 32
)

// sync puts what was written on disk, and then in its place.
func (b *batch) sync() error {
	if len(b.fresh) == 0 {
		return nil
	}
	if err := b.syncEach(slices.Collect(maps.Values(b.fresh))); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for path, tmp := range b.fresh {
		dir := filepath.Dir(path)
		err := os.Rename(tmp, path)
		if errors.Is(err, fs.ErrNotExist) {
			dirs[filepath.Dir(dir)] = true
			if err = os.Mkdir(dir, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
				err = os.Rename(tmp, path)
			}
		}
		if err != nil {
			return err
		}
		dirs[dir] = true
	}
	clear(b.fresh)
	return b.syncEach(slices.Collect(maps.Keys(dirs)))
}

// drop removes what did not get its place.
func (b *batch) drop() {
	for _, tmp := range b.fresh {
		_ = os.Remove(tmp)
	}
}

// syncEach syncs files or directories.
func (b *batch) syncEach(paths []string) error {
	if len(paths) > freshFiles {
		return syncAll(b.dir)
	}
	errs := make([]error, len(paths))
	free := make(chan struct{}, atOnce)
	var syncs sync.WaitGroup
	for n, path := range paths {
		free <- struct{}{}
		syncs.Go(func() {
			errs[n] = syncPath(path)
			<-free
		})
	}
	syncs.Wait()
	return errors.Join(errs...)
}

// syncAll syncs the file system that a path is on.
func syncAll(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// progress is how far a snapshot has come.
type progress struct {
	done *atomic.Int64 // files that were read
	all  int           // that are to be
}

var _ resource.Copying = (*Driver)(nil)

// begins notes a snapshot of a place, until what it returns is called.
func (d *Driver) begins(path string, done *atomic.Int64, all int) (over func()) {
	p := &progress{done, all}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.copying[path] = p
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.copying[path] == p { // else it is another one's
			delete(d.copying, path)
		}
	}
}

func (d *Driver) Copying(r dag.Resource) (done, all int) {
	path, err := PathOf(r)
	if err != nil {
		return 0, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.copying[path]; p != nil {
		return int(p.done.Load()), p.all
	}
	return 0, 0
}
