package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// Who shares a repository may have put links where a landing writes. It goes by the
// directory that it holds open, and through none of them.

// at works on a path of the repository, or beside a plain directory.
func (l *landing) at(path string, work func(*safeopen.Place) error) error {
	root, dir := l.common, l.w.Common
	if root == nil {
		var nobody *safeopen.Own
		dir = filepath.Dir(path)
		beside, err := nobody.Root(dir)
		if err != nil {
			return err
		}
		defer beside.Close()
		root = beside
	}
	name, err := filepath.Rel(dir, path)
	if err == nil {
		err = root.At(name, work)
	}
	if err != nil {
		return fmt.Errorf("in %s: %w", dir, err)
	}
	return nil
}

// straight refuses, before anything is touched, a repository in which a link stands where
// the landing writes.
func (l *landing) straight() error {
	paths := append(l.logs(), filepath.Join(l.w.Common, l.branch()), l.mark(), l.listed)
	if l.dot != "" {
		paths = append(paths, filepath.Join(l.dot, "index"))
	}
	for _, path := range paths {
		err := l.at(path, func(p *safeopen.Place) error {
			_, err := p.Look()
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// known refuses a work tree that the repository names and that is another one's.
func (l *landing) known(dot string, w git.Worktree) error {
	name, err := filepath.Rel(l.w.Common, dot)
	if err == nil && git.Inside(l.w.Common, name) && git.Same(w.Dir, dot) {
		return nil
	}
	return core.Errorf(core.Conflict, "%s names %s as a work tree of this repository, which does not name it in turn; remove it if it is left over", dot, w.Path).With("field", "base")
}

// marked makes the mark. One that is there is ours if it says the same.
func (l *landing) marked() error {
	text := []byte(l.to + "\n")
	return l.at(l.mark(), func(p *safeopen.Place) error {
		data, _, err := p.Read(len(text))
		switch {
		case err == nil && bytes.Equal(data, text):
			return nil
		case err == nil, errors.Is(err, safeopen.ErrTooLarge):
			err = l.release()
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err != nil {
			return err
		}
		return p.Create(text)
	})
}

// linked makes the mark a lock too, in a directory that need not be there: the ref may be packed.
func (l *landing) linked(lock string) error {
	dir, err := filepath.Rel(l.w.Common, filepath.Dir(lock))
	if err == nil && dir != "." {
		err = mkdirs(l.common, dir)
	}
	if err != nil {
		return fmt.Errorf("in %s: %w", l.w.Common, err)
	}
	return l.at(l.mark(), func(mark *safeopen.Place) error { return l.at(lock, mark.Link) })
}

// moved puts a lock in the place of what it locks.
func (l *landing) moved(lock, to string) error {
	return l.at(lock, func(p *safeopen.Place) error { return l.at(to, p.Move) })
}
