package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
)

// Limits bound a tree that is taken.
type Limits struct {
	Files int
	Bytes int64
}

// Known is the index that says how the files of a work tree were when they were
// taken last. Who makes a tree puts the index of that here.
func (r Repository) Known(w Worktree) string {
	sum := sha256.Sum256([]byte(w.Path))
	return filepath.Join(r.Dir, "index-"+hex.EncodeToString(sum[:8]))
}

// Take takes a work tree's files into the repository, and returns their tree:
// those that are tracked, or could be, byte for byte. The index of the time
// before says which have not changed.
func (r Repository) Take(ctx context.Context, w Worktree, most Limits) (string, error) {
	known := r.Known(w)
	index := known + "." + strings.ToLower(rand.Text()[:10]) // one that was killed leaves its lock on another
	defer os.Remove(index)
	if there, err := CopyIndex(known, index); err != nil {
		return "", err
	} else if there {
		if err := r.dropNested(ctx, w, index); err != nil {
			return "", err
		}
	}
	if err := r.bounded(ctx, w, index, most); err != nil {
		return "", err
	}
	tree, err := r.treeOf(ctx, w, index)
	if err != nil && ctx.Err() == nil {
		// Files that the index says are here may have been collected since.
		if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		tree, err = r.treeOf(ctx, w, index)
	}
	if err != nil {
		return "", err
	}
	return tree, os.Rename(index, known)
}

// CopyIndex copies an index with its time, if it is there. By that time git knows
// which files may have changed in the very second that it looked at them: of a
// later one it would believe that none did (Racy Git, api-index-skel of git).
func CopyIndex(from, to string) (there bool, err error) {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := os.Stat(from)
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return false, err
	}
	return true, os.Chtimes(to, info.ModTime(), info.ModTime())
}

// State takes a work tree's files, and makes them a commit that says what was
// checked out, a commit and its branch. The same state is the same commit. What
// is to be kept of it is for the caller to name.
func (r Repository) State(ctx context.Context, w Worktree, most Limits) (string, error) {
	tree, err := r.Take(ctx, w, most)
	if err != nil {
		return "", err
	}
	head, branch := w.Head()
	if !core.Printable(branch) {
		branch = ""
	}
	message := fmt.Sprintf("A worktree\n\nHead: %s\nBranch: %s\n", head, branch)
	out, err := r.Call(ctx, Call{In: strings.NewReader(message), Args: []string{"commit-tree", tree}})
	return strings.TrimSpace(string(out)), err
}

// treeOf takes what an index does not know yet, and returns the tree of it all.
func (r Repository) treeOf(ctx context.Context, w Worktree, index string) (string, error) {
	what := []string{"add", "--all", "--", "."}
	for _, path := range r.Cells.Hides(w.Path) { // git can't read it there, and nobody wants it kept
		what = append(what, ":(exclude,literal)"+path)
	}
	if _, err := r.Over(ctx, w.Path, index, nil, what...); err != nil {
		return "", err
	}
	tree, err := r.Over(ctx, w.Path, index, nil, "write-tree")
	return strings.TrimSpace(string(tree)), err
}

// dropNested takes the repositories in the repository out of an index. For one
// that is in it git would ask its status, which runs what its configuration says.
func (r Repository) dropNested(ctx context.Context, w Worktree, index string) error {
	list, err := r.Over(ctx, w.Path, index, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	var nested []byte
	for entry := range bytes.SplitSeq(list, []byte{0}) {
		if _, name, ok := bytes.Cut(entry, []byte{'\t'}); ok && bytes.HasPrefix(entry, []byte("160000 ")) {
			nested = append(append(nested, name...), 0)
		}
	}
	if len(nested) == 0 {
		return nil
	}
	_, err = r.Over(ctx, w.Path, index, nested, "update-index", "--force-remove", "-z", "--stdin")
	return err
}

// bounded refuses a tree beyond the limits before any of it is read.
func (r Repository) bounded(ctx context.Context, w Worktree, index string, most Limits) error {
	list, err := r.Over(ctx, w.Path, index, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	names, bytesLeft := 0, most.Bytes
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		if names++; names > most.Files {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d files", w.Path, most.Files).With("field", "path")
		}
		info, err := os.Lstat(filepath.Join(w.Path, string(name)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if bytesLeft -= info.Size(); bytesLeft < 0 {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d bytes; %q alone has %d", w.Path, most.Bytes, name, info.Size()).With("field", "path")
		}
	}
	return nil
}
