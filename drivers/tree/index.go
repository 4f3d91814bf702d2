package tree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/git"
)

// nextIndex becomes the index of the work tree.
const nextIndex = "swarmdeck-index"

// index finds what the index of the work tree has at each path, and which paths are not
// checked out (git-sparse-checkout(1)): of a new one that says the nearest directory of
// the index.
func (l *landing) index(ctx context.Context, list []entry) error {
	work := filepath.Join(l.Dir, "index-land")
	defer os.Remove(work)
	if there, err := git.CopyIndex(filepath.Join(l.dot, "index"), work); err != nil || !there {
		return err
	}
	out, err := l.Call(ctx, git.Call{Index: work, Args: []string{"ls-files", "-z", "-t", "--stage"}})
	if err != nil {
		return fmt.Errorf("read the index of %s: %w", l.root, err)
	}
	type known struct {
		leaf
		sparse bool
	}
	all, kept := map[string]known{}, map[string]bool{} // kept: by directory, that all below it are sparse
	sparse := false
	for line := range bytes.SplitSeq(out, []byte{0}) {
		meta, name, ok := strings.Cut(string(line), "\t")
		f := strings.Fields(meta)
		if !ok || len(f) != 4 {
			continue
		}
		k := known{leaf{f[1], f[2]}, f[0] == "S"}
		if f[3] != "0" {
			k.mode = "unmerged"
		}
		all[name] = k
		sparse = sparse || k.sparse
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			was, there := kept[dir]
			kept[dir] = k.sparse && (was || !there)
			if dir == "." {
				break
			}
		}
	}
	for n := range list {
		e := &list[n]
		k, there := all[e.path]
		for dir := path.Dir(e.path); sparse && !there && dir != "."; dir = path.Dir(dir) {
			if below, is := kept[dir]; is {
				k.sparse = below
				break
			}
		}
		e.indexed, e.sparse = k.leaf, k.sparse
	}
	return nil
}

// reindex makes the new index of the one that is there: what else is in it stays.
func (l *landing) reindex(ctx context.Context, list []entry) error {
	work := filepath.Join(l.Dir, "index-land")
	_ = os.Remove(work + ".lock") // of one that was killed
	if _, err := git.CopyIndex(filepath.Join(l.dot, "index"), work); err != nil {
		return err
	}
	defer os.Remove(work)
	var lines, sparse strings.Builder
	for _, e := range list {
		if e.indexed != e.from {
			continue
		}
		mode, object := e.to.mode, e.to.object
		if mode == "" {
			mode, object = "0", strings.Repeat("0", len(l.to))
		} else if e.sparse {
			sparse.WriteString(e.path + "\x00")
		}
		fmt.Fprintf(&lines, "%s %s\t%s\x00", mode, object, e.path)
	}
	if _, err := l.Over(ctx, l.root, work, []byte(lines.String()), "update-index", "-z", "--index-info"); err != nil {
		return fmt.Errorf("bring the index of %s up to date: %w", l.root, err)
	}
	if sparse.Len() > 0 {
		if _, err := l.Over(ctx, l.root, work, []byte(sparse.String()), "update-index", "-z", "--skip-worktree", "--stdin"); err != nil {
			return fmt.Errorf("keep the checkout of %s sparse: %w", l.root, err)
		}
	}
	_, _ = l.Over(ctx, l.root, work, nil, "update-index", "-q", "--refresh") // only times, for the speed of the next git
	next := filepath.Join(l.dot, nextIndex)
	if _, err := git.CopyIndex(work, next); err != nil {
		return err
	}
	if err := synced(next); err != nil {
		return err
	}
	return l.moved(next, filepath.Join(l.dot, "index"))
}
