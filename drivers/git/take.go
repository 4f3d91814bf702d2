package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// State takes a work tree's files, those that are tracked, or could be, byte for
// byte, and makes them a commit that says what was checked out, a commit and its
// branch. The same state is the same commit. The refs that keep returns name it
// then; without one it is there until the next state of the tree.
//
// A tree that has not changed since its last state costs a look at its files, of
// one that has only what changed is read.
func (r Repository) State(ctx context.Context, w Worktree, most Limits, keep func(commit string) []string) (string, error) {
	head, branch := w.Head()
	if !core.Printable(branch) {
		branch = ""
	}
	message := fmt.Sprintf("A worktree\n\nHead: %s\nBranch: %s\n%s", head, branch, w.Notes)
	known := r.Known(w)
	index := known + "." + strings.ToLower(rand.Text()[:10]) // one that was killed leaves its lock on another
	defer os.Remove(index)
	if err := linkIndex(known, index); err != nil {
		return "", err
	}
	now, err := r.take(ctx, w, index, most)
	if err != nil {
		return "", err
	}
	if now.same && now.Message == message {
		now.used(known)
		return now.Commit, r.Name(ctx, now.Commit, keep(now.Commit))
	}
	now.Message = message
	out, err := r.Call(ctx, Call{In: strings.NewReader(message), Args: []string{"commit-tree", now.Tree}})
	if err != nil {
		return "", err
	}
	now.Commit = strings.TrimSpace(string(out))
	if err := r.Name(ctx, now.Commit, append(keep(now.Commit), lastRef(known))); err != nil {
		return "", err
	}
	return now.Commit, now.write(index, known)
}

// Name has refs name a commit, those that do not yet.
func (r Repository) Name(ctx context.Context, commit string, refs []string) error {
	var lines strings.Builder
	for _, ref := range refs {
		if r.Ref(ref) != commit {
			fmt.Fprintf(&lines, "update %s %s\n", ref, commit)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	_, err := r.Call(ctx, Call{In: strings.NewReader(lines.String()), Args: []string{"update-ref", "--stdin"}})
	return err
}

// take takes the files of a work tree: what changed since the last state, where
// the index is that of one, or else all that the index does not know.
func (r Repository) take(ctx context.Context, w Worktree, index string, most Limits) (now state, err error) {
	if was, there := r.last(r.Known(w), index); there {
		if now, err = r.since(ctx, w, index, was, most); err == nil || ctx.Err() != nil {
			return now, err
		}
	}
	var nested []link
	whole := intact(index)
	if whole {
		nested, err = r.dropNested(ctx, w, index)
	}
	if (!whole || err != nil) && ctx.Err() == nil { // a power failure cut it off
		if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return now, err
		}
	}
	if now, err = r.bounded(ctx, w, index, most); err != nil {
		return now, err
	}
	now.Tree, err = r.treeOf(ctx, w, index, nested)
	if err != nil && ctx.Err() == nil {
		// Files that the index says are here may have been collected since.
		if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return now, err
		}
		now.Tree, err = r.treeOf(ctx, w, index, nested)
	}
	if err != nil {
		return now, err
	}
	links, err := r.links(ctx, w, index)
	for _, l := range links {
		now.Links = append(now.Links, l.path)
	}
	return now, err
}

// links are the entries of an index that are repositories in the repository.
func (r Repository) links(ctx context.Context, w Worktree, index string) (entries []link, err error) {
	list, err := r.over(ctx, w, index, nil, "ls-files", "--stage", "-z")
	for entry := range bytes.SplitSeq(list, []byte{0}) {
		if _, name, ok := bytes.Cut(entry, []byte{'\t'}); ok && bytes.HasPrefix(entry, []byte("160000 ")) {
			entries = append(entries, link{string(name), string(entry) + "\x00"})
		}
	}
	return entries, err
}

// link is one of them: its path, and its line as update-index reads it.
type link struct{ path, line string }

// over runs git on a work tree with an index that is not waited for to be on the
// disk: one that a power failure cut off is found out by its checksum.
func (r Repository) over(ctx context.Context, w Worktree, index string, in []byte, args ...string) ([]byte, error) {
	return r.Call(ctx, Call{
		Dir: w.Path, WorkTree: w.Path, Index: index, Settings: []string{"core.fsync=all,-index"}, In: bytes.NewReader(in), Args: args,
	})
}

// within are the arguments of a command for all that is taken.
func (r Repository) within(w Worktree, args ...string) []string {
	args = append(args, "--", ".")
	for _, path := range r.Cells.Hides(w.Path) { // git can't read it there, and nobody wants it kept
		args = append(args, ":(exclude,literal)"+path)
	}
	return args
}

// treeOf takes what an index does not know yet, and returns the tree of it all. Of the
// entries that were repositories those are as they were that are empty now: a
// submodule which nobody has checked out.
func (r Repository) treeOf(ctx context.Context, w Worktree, index string, nested []link) (string, error) {
	_, err := r.over(ctx, w, index, nil, r.within(w, "add", "--all")...)
	if failed := (*Failed)(nil); errors.As(err, &failed) && r.Converts != "" {
		r.Converts = "" // what can't be converted as attributes of its tree say is kept as it is
		_, err = r.over(ctx, w, index, nil, r.within(w, "add", "--all")...)
	}
	if err != nil {
		return "", err
	}
	var empty []byte
	for _, l := range nested {
		if emptyDir(w.Path, l.path) {
			empty = append(empty, l.line...)
		}
	}
	if len(empty) > 0 {
		if _, err := r.over(ctx, w, index, empty, "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	tree, err := r.over(ctx, w, index, nil, "write-tree")
	return strings.TrimSpace(string(tree)), err
}

// emptyDir reports a directory below a root that holds nothing, with no link on the
// way there.
func emptyDir(root, name string) bool {
	at := root
	for part := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	f, err := os.Open(at)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// dropNested takes the repositories in the repository out of an index, and returns
// their entries, each with a NUL at its end. For one that is in it git would ask its
// status, which runs what its configuration says.
func (r Repository) dropNested(ctx context.Context, w Worktree, index string) ([]link, error) {
	all, err := r.links(ctx, w, index)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var names strings.Builder
	for _, l := range all {
		names.WriteString(l.path + "\x00")
	}
	_, err = r.over(ctx, w, index, []byte(names.String()), "update-index", "--force-remove", "-z", "--stdin")
	return all, err
}

// bounded refuses a tree beyond the limits before any of it is read, and says how
// many files and bytes it has.
func (r Repository) bounded(ctx context.Context, w Worktree, index string, most Limits) (s state, err error) {
	list, err := r.over(ctx, w, index, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return s, err
	}
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		if s.Files++; s.Files > most.Files {
			return s, core.Errorf(core.InvalidInput, "path: %s holds more than %d files", w.Path, most.Files).With("field", "path")
		}
		info, err := os.Lstat(filepath.Join(w.Path, string(name)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if s.Bytes += info.Size(); s.Bytes > most.Bytes {
			return s, core.Errorf(core.InvalidInput, "path: %s holds more than %d bytes; %q alone has %d", w.Path, most.Bytes, name, info.Size()).With("field", "path")
		}
	}
	return s, nil
}
