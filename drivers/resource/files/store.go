// Package files keeps files and directories: it takes snapshots of them into a
// store of its own, and makes them again from there.
//
// A snapshot is a manifest: all files, directories and links of the tree, with
// mode, owner, time and, of a file, size and sha256. The contents lie beside
// it, each once, under that digest. Where the file system can share
// blocks (FICLONE) those of files above 1 MiB are shared, else contents are copied.
//
// Before each call all names are looked at, and no more than what changed since the
// snapshot before is read and written: a file with the same inode, times and size has
// the content that it had, the time of an inode being none that a program sets. A
// manifest is written as what it adds to the one before, and named by the digest of all.
//
// Git would keep a tree in fewer lines, but not the times of files and what is in .git of
// repositories in the tree; and it takes several times as long for the state before a call.
//
// A tree is hostile. Directories are walked by their descriptors, so that no
// link is ever followed, whoever changes what meanwhile; a link is kept as the
// text it is. Pipes, sockets and devices are left out and counted, as is what
// lies on another file system. What a .gitignore names, by gitignore(5), and files that
// are too large are left out by rule: the notes of a snapshot name them, and a restore in
// the tree's place leaves them as they are. Names may hold any byte. Files, bytes and depth
// are bounded, and a tree beyond is refused before it fills the disk.
//
// A tree is made again beside its place, synced, and put there by one rename:
// in place of nothing, or in exchange for what was there. Whoever looks sees
// the tree before or the tree after. Setuid and setgid of files are not
// restored.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// store is what is kept of one tenant's trees:
//
//	content/ab/cdef…  contents by sha256, never changed
//	tree/abcd…        manifests by the digest of their entries, as what they add to another one
//	taken/ID          the digest of the manifest that was taken under an id: what is kept
//	seen/KEY          where a large tree's files were seen, to read less
//	tmp/              what is being written
//
// Only taken/ is a root: what no manifest there names may be swept.
type store struct {
	dir string

	sweeping sync.RWMutex // held for writing while what nobody needs is removed

	mu     sync.Mutex
	used   int64            // bytes of contents; -1 until they were counted
	memory map[string]*seen // by place; what is pointed to does not change
}

func openStore(dir string) (*store, error) {
	for _, d := range []string{"content", "tree", "taken", "seen", "tmp", "begun"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("make a place for snapshots: %w", err)
		}
	}
	return &store{dir: dir, used: -1, memory: map[string]*seen{}}, nil
}

func (s *store) contentPath(d digest) string {
	name := d.String()
	return filepath.Join(s.dir, "content", name[:2], name[2:])
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
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}
