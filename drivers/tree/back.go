package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// note writes down, before the first of them is touched, which paths a landing changes:
// these alone are taken back. What is noted already was noted by the one that a kill cut
// off.
func (l *landing) note(list []entry) error {
	if l.listed == "" {
		return nil
	}
	var paths bytes.Buffer
	for _, e := range list {
		paths.WriteString(e.path + "\x00")
	}
	return l.at(l.listed, func(p *safeopen.Place) error {
		_, err := p.Look()
		if errors.Is(err, fs.ErrNotExist) {
			err = p.Create(paths.Bytes())
		}
		return err
	})
}

// back takes back what a landing has done of itself, whole: files that it put in their
// places, and their entries of the index. What somebody has changed since is theirs.
// It reports a landing that was done, of which the branch says so.
func (l *landing) back(ctx context.Context) (done bool, err error) {
	later := map[string]bool{} // what the branch has changed since
	if l.t.Kind == tree.Git {
		tip := git.Ref(l.common, l.branch())
		if tip == l.to || tip != l.from && l.includes(ctx, tip) {
			return true, l.release()
		}
		if tip != l.from && tip != "" {
			out, err := l.Call(ctx, git.Call{Args: []string{"diff-tree", "-r", "-z", "--no-renames", "--name-only", l.from, tip}})
			if err != nil {
				return false, err
			}
			for path := range bytes.SplitSeq(out, []byte{0}) {
				later[string(path)] = true
			}
		}
	}
	var paths []byte
	err = l.at(l.listed, func(p *safeopen.Place) (err error) {
		paths, _, err = p.Read(git.MaxAnswer)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, l.release()
	}
	if err != nil {
		return false, err
	}
	if l.t.Kind == tree.Git {
		if err := l.find(ctx); err != nil {
			return false, err
		}
		if l.root == "" { // the work tree is gone, and what was done in it
			return false, l.release()
		}
		for _, lock := range []string{l.branchLock(), filepath.Join(l.dot, "index.lock")} {
			if err := l.link(ctx, lock); err != nil {
				return false, err
			}
		}
	}
	noted := map[string]bool{}
	for path := range bytes.SplitSeq(paths, []byte{0}) {
		noted[string(path)] = true
	}
	r := *l
	r.from, r.to = l.to, l.from
	list, err := r.entries(ctx)
	if err != nil {
		return false, err
	}
	list = slices.DeleteFunc(list, func(e entry) bool { return later[e.path] })
	if err := r.look(ctx, list); err != nil {
		return false, err
	}
	put := slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return !noted[e.path] || e.have != e.from || e.sparse })
	if err := r.place(ctx, put); err != nil {
		return false, fmt.Errorf("bring the files of %s back: %w", l.root, err)
	}
	if l.dot != "" {
		if err := r.reindex(ctx, list); err != nil {
			return false, err
		}
	}
	return false, errors.Join(l.release(), files.RemoveTree(l.staged()))
}
