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

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// store is what is kept of one tenant's trees:
//
//	content/ab/cdef…  contents by sha256, never changed
//	tree/abcd…        manifests by sha256
//	taken/ID          the digest of the manifest that was taken under an id: what is kept
//	seen/KEY          a tree's manifest and stats of the last time, to read less
//	tmp/              what is being written
//
// Only taken/ is a root: what no manifest there names may be swept.
type store struct {
	dir string

	sweeping sync.RWMutex // held for writing while what nobody needs is removed

	mu   sync.Mutex
	used int64 // bytes of contents; -1 until they were counted
}

func openStore(dir string) (*store, error) {
	for _, d := range []string{"content", "tree", "taken", "seen", "tmp", "begun"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("make a place for snapshots: %w", err)
		}
	}
	return &store{dir: dir, used: -1}, nil
}

func (s *store) contentPath(d digest) string {
	name := d.String()
	return filepath.Join(s.dir, "content", name[:2], name[2:])
}

func (s *store) treePath(d digest) string { return filepath.Join(s.dir, "tree", d.String()) }

// batch is one snapshot being written. What it wrote is on disk after sync.
type batch struct {
	*store
	fresh []string // new contents
	room  func() error
}

// take copies what is read from a file into the store. The file's blocks are
// shared where that is possible; the digest is of what is kept, whatever
// happens to the file meanwhile.
// A file that grows is read as far as it was when it was opened.
func (b *batch) take(in *os.File, most int64) (sum digest, size int64, err error) {
	if err := b.room(); err != nil {
		return sum, 0, err
	}
	tmp, err := os.CreateTemp(filepath.Join(b.dir, "tmp"), "content-")
	if err != nil {
		return sum, 0, err
	}
	defer tmp.Close()
	defer os.Remove(tmp.Name())
	h := sha256.New()
	if unix.IoctlFileClone(int(tmp.Fd()), int(in.Fd())) == nil {
		size, err = io.Copy(h, tmp)
	} else {
		size, err = io.Copy(io.MultiWriter(tmp, h), io.LimitReader(in, most))
	}
	if err != nil {
		return sum, size, err
	}
	h.Sum(sum[:0])
	path := b.contentPath(sum)
	if _, err := os.Lstat(path); err == nil {
		return sum, size, nil // its like is kept
	}
	if err := tmp.Chmod(0o400); err != nil {
		return sum, size, err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return sum, size, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return sum, size, err
	}
	b.fresh = append(b.fresh, path)
	b.mu.Lock()
	b.used += size // room has counted the others
	b.mu.Unlock()
	return sum, size, nil
}

// size is how much the contents take.
func (s *store) size() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= 0 {
		return s.used, nil
	}
	var n int64
	err := filepath.WalkDir(filepath.Join(s.dir, "content"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count what snapshots take: %w", err)
	}
	s.used = n
	return n, nil
}

// fewFiles are synced one by one where they are made again; more of them with all
// the file system.
const fewFiles = 16

// Files of a snapshot are synced together: a journal commits what is asked of it at
// the same time at once. With more than freshFiles all the file system is, which
// waits for what others write.
const (
	freshFiles = 512
	atOnce     = 32
)

// sync puts what was written on disk.
func (b *batch) sync() error {
	if len(b.fresh) > freshFiles {
		return syncAll(b.dir)
	}
	dirs := map[string]bool{}
	for _, path := range b.fresh {
		dirs[filepath.Dir(path)] = true
	}
	all := slices.AppendSeq(slices.Clone(b.fresh), maps.Keys(dirs))
	if len(dirs) > 0 {
		all = append(all, filepath.Join(b.dir, "content"))
	}
	errs := make([]error, len(all))
	free := make(chan struct{}, atOnce)
	var syncs sync.WaitGroup
	for n, path := range all {
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

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// write puts a small file in its place, whole or not at all.
func (s *store) write(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Join(s.dir, "tmp"), "small-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// tree reads a manifest, and holds it against its digest.
func (s *store) tree(d digest) ([]entry, error) {
	data, err := os.ReadFile(s.treePath(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, core.Errorf(core.NotFound, "snapshot: the state sha256:%s is not kept here any more", d).With("field", "snapshot")
	}
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(data) != d {
		return nil, core.Errorf(core.Conflict, "snapshot: the manifest sha256:%s was damaged or changed", d).With("field", "snapshot")
	}
	return decode(data)
}

// sweep removes contents and manifests that nothing kept names, and what
// snapshots that were cut off left behind.
func (s *store) sweep() error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.mu.Lock()
	s.used = -1
	s.mu.Unlock()
	trees, contents := map[string]bool{}, map[string]bool{}
	kept, err := os.ReadDir(filepath.Join(s.dir, "taken"))
	if err != nil {
		return err
	}
	for _, k := range kept {
		r, err := s.receipt(k.Name())
		if err != nil {
			return err
		}
		if trees[r.Tree] {
			continue
		}
		trees[r.Tree] = true
		d, err := parseDigest(r.Tree)
		if err != nil {
			return err
		}
		all, err := s.tree(d)
		if err != nil {
			return err // rather keep too much
		}
		for _, e := range all {
			if e.kind == regular {
				contents[e.sum.String()] = true
			}
		}
	}
	var errs []error
	for _, dir := range []string{"tmp", "seen"} { // what was seen may name what goes
		old, err := os.ReadDir(filepath.Join(s.dir, dir))
		errs = append(errs, err)
		for _, f := range old {
			errs = append(errs, os.Remove(filepath.Join(s.dir, dir, f.Name())))
		}
	}
	errs = append(errs, prune(filepath.Join(s.dir, "tree"), func(name string) bool { return trees[name] }))
	fans, err := os.ReadDir(filepath.Join(s.dir, "content"))
	errs = append(errs, err)
	for _, fan := range fans {
		errs = append(errs, prune(filepath.Join(s.dir, "content", fan.Name()), func(name string) bool { return contents[fan.Name()+name] }))
	}
	return errors.Join(errs...)
}

func prune(dir string, keep func(name string) bool) error {
	all, err := os.ReadDir(dir)
	errs := []error{err}
	for _, f := range all {
		if !keep(f.Name()) {
			errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}
