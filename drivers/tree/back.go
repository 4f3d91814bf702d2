package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/tree"
)

// note writes down, before the first of them is touched, which paths a landing changes:
// these alone are taken back. What is noted already was noted by the one that a kill cut
// off.
func (l *landing) note(list []entry) error {
	if l.listed == "" {
		return nil
	}
	if _, err := os.Lstat(l.listed); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var paths bytes.Buffer
	for _, e := range list {
		paths.WriteString(e.path + "\x00")
	}
	next := l.listed + ".new"
	if err := os.WriteFile(next, paths.Bytes(), 0o600); err != nil {
		return err
	}
	if err := synced(next); err != nil {
		return err
	}
	if err := os.Rename(next, l.listed); err != nil {
		return err
	}
	return synced(filepath.Dir(l.listed))
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
	paths, err := os.ReadFile(l.listed)
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
