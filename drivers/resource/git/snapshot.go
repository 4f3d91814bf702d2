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
	"time"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/safeopen"
)

// refKind is the kind of a snapshot's external reference: a commit of the
// engine's repository.
const refKind = "git_commit"

// patience is how long git may look at a tree.
const patience = 10 * time.Minute

// Snapshot implements resource.Driver.
func (d *Driver) Snapshot(ctx context.Context, tenant, id string, r dag.Resource, last *dag.ExtRef) (resource.Taken, error) {
	if err := checkID(id); err != nil {
		return resource.Taken{}, err
	}
	repo, err := d.repo(ctx, tenant)
	if err != nil {
		return resource.Taken{}, err
	}
	if commit, err := repo.run(ctx, "rev-parse", "--verify", "--quiet", keptRef(id)); err == nil {
		return repo.taken(ctx, commit)
	}
	w, err := of(r)
	if err != nil {
		return resource.Taken{}, err
	}
	// A pipe where git wants a file would hold it up for ever.
	adding, stop := context.WithTimeoutCause(ctx, patience, core.Errorf(core.Unavailable, "git took longer than %s", patience))
	defer stop()
	tree, err := d.add(adding, repo, w)
	if err != nil {
		return resource.Taken{}, fmt.Errorf("take a snapshot of %s: %w", w.path, err)
	}
	// The commit says what was checked out. The same state is the same commit.
	head, branch := w.head()
	message := fmt.Sprintf("A worktree\n\nHead: %s\nBranch: %s\n", head, branch)
	out, err := repo.git.Run(ctx, git.Call{GitDir: repo.dir, In: strings.NewReader(message), Args: []string{"commit-tree", tree}})
	commit := strings.TrimSpace(string(out))
	if err != nil {
		return resource.Taken{}, err
	}
	if last == nil || last.ID != commit {
		if _, err := repo.run(ctx, "update-ref", keptRef(id), commit); err != nil {
			return resource.Taken{}, err
		}
	}
	return repo.taken(ctx, commit)
}

// head is the commit that is checked out, and its branch; "" for none.
func (w worktree) head() (commit, branch string) {
	text, err := pointerText(filepath.Join(w.gitDir, "HEAD"))
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	switch {
	case err != nil:
		return "", ""
	case !symbolic && git.IsHash(text):
		return text, ""
	case !symbolic:
		return "", ""
	}
	branch = files.Printable(strings.TrimPrefix(ref, "refs/heads/"))
	root, err := w.root()
	if err != nil {
		return "", branch
	}
	defer root.Close()
	return git.Ref(root, ref), branch
}

// root is the worktree's repository, in which no link is followed.
func (w worktree) root() (*safeopen.Root, error) {
	var nobody *safeopen.Own // whose place it is was checked when it was attached
	return nobody.Root(w.common)
}

// add takes a worktree's files into the repository, and returns their tree. The
// index of the time before says which have not changed.
func (d *Driver) add(ctx context.Context, repo repository, w worktree) (string, error) {
	sum := sha256.Sum256([]byte(w.path))
	known := filepath.Join(repo.dir, "index-"+hex.EncodeToString(sum[:8]))
	index := known + "." + strings.ToLower(rand.Text()[:10]) // one that was killed leaves its lock on another
	defer os.Remove(index)
	if data, err := os.ReadFile(known); err == nil {
		if err := os.WriteFile(index, data, 0o600); err != nil {
			return "", err
		}
		if err := repo.dropNested(ctx, w, index); err != nil {
			return "", err
		}
	}
	if err := d.bounded(ctx, repo, w, index); err != nil {
		return "", err
	}
	tree, err := repo.treeOf(ctx, w, index)
	if err != nil && ctx.Err() == nil {
		// Files that the index says are here may have been collected since.
		if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		tree, err = repo.treeOf(ctx, w, index)
	}
	if err != nil {
		return "", err
	}
	return tree, os.Rename(index, known)
}

// treeOf takes what an index does not know yet, and returns the tree of it all.
func (r repository) treeOf(ctx context.Context, w worktree, index string) (string, error) {
	what := []string{"add", "--all", "--", "."}
	for _, path := range r.git.Cells.Hides(w.path) { // git can't read it there, and nobody wants it kept
		what = append(what, ":(exclude,literal)"+path)
	}
	if _, err := r.over(ctx, w.path, index, nil, what...); err != nil {
		return "", err
	}
	tree, err := r.over(ctx, w.path, index, nil, "write-tree")
	return strings.TrimSpace(string(tree)), err
}

// dropNested takes the repositories in the repository out of an index. For one
// that is in it git would ask its status, which runs what its configuration says.
func (r repository) dropNested(ctx context.Context, w worktree, index string) error {
	list, err := r.over(ctx, w.path, index, nil, "ls-files", "--stage", "-z")
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
	_, err = r.over(ctx, w.path, index, nested, "update-index", "--force-remove", "-z", "--stdin")
	return err
}

// bounded refuses a tree beyond the limits before any of it is read.
func (d *Driver) bounded(ctx context.Context, repo repository, w worktree, index string) error {
	list, err := repo.over(ctx, w.path, index, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	names, bytesLeft := 0, d.opt.Limits.Bytes
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		if names++; names > d.opt.Limits.Files {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d files", w.path, d.opt.Limits.Files).With("field", "path")
		}
		info, err := os.Lstat(filepath.Join(w.path, string(name)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if bytesLeft -= info.Size(); bytesLeft < 0 {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d bytes; %q alone has %d", w.path, d.opt.Limits.Bytes, name, info.Size()).With("field", "path")
		}
	}
	return nil
}

// taken describes a snapshot that is kept.
func (r repository) taken(ctx context.Context, commit string) (resource.Taken, error) {
	out := resource.Taken{Method: Method, Ref: dag.ExtRef{Kind: refKind, ID: commit}, Consistency: "crash_consistent"}
	list, err := r.run(ctx, "ls-tree", "-r", "-l", "-z", commit)
	if err != nil {
		return out, err
	}
	nested := 0
	for line := range strings.SplitSeq(list, "\x00") {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		var size int64
		if _, err := fmt.Sscan(f[3], &size); err == nil {
			out.Size += size
		}
		if f[1] == "commit" {
			nested++
		}
	}
	if nested > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d repositories in the repository were left out", nested))
	}
	out.Notes = append(out.Notes, "what git ignores is not in it")
	return out, nil
}
