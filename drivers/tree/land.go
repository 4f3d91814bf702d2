package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// Land implements tree.Driver. The order makes that nothing is half done for long,
// and all of it can be done again: the objects, the lock of the branch, the files
// one by one, their index, and last the branch itself. What a kill leaves is
// brought to its end by the same key.
func (d *Driver) Land(ctx context.Context, t tree.Tree, key, from, to string) error {
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	l := landing{Repository: r, d: d, t: t, key: key, from: from, to: to}
	if t.Kind == tree.Plain {
		l.root = t.Source
		return l.files(ctx)
	}
	if l.w, err = git.FindWorktree(t.Source); err != nil {
		return gone(t, err)
	}
	if l.common, err = l.w.Root(); err != nil {
		return err
	}
	defer l.common.Close()
	return l.land(ctx)
}

// landing is one landing.
type landing struct {
	git.Repository
	d        *Driver
	t        tree.Tree
	key      string
	from, to string

	w      git.Worktree
	common *safeopen.Root // of the repository
	root   string         // the work tree in which the branch is checked out
	dot    string         // and that one's git directory
}

func (l *landing) branch() string { return "refs/heads/" + l.t.Base }

func (l *landing) land(ctx context.Context) error {
	tip := git.Ref(l.common, l.branch())
	switch {
	case tip == l.to:
		return l.release() // done, and not written down
	case tip != l.from && l.includes(ctx, tip):
		return l.release()
	case tip != l.from: // a kill may have left our locks, and nothing comes back to them
		return errors.Join(core.Errorf(core.Conflict, "%s is at %s by now, not at %s any more", l.t.Base, hex12(tip), hex12(l.from)).With("field", "base"), l.release())
	}
	if err := l.find(); err != nil {
		return err
	}
	if err := l.objects(ctx); err != nil {
		return fmt.Errorf("put the commits into %s: %w", l.t.Source, err)
	}
	if err := l.large(ctx); err != nil {
		return err
	}
	if err := l.lock(l.branch()); err != nil {
		return err
	}
	if git.Ref(l.common, l.branch()) != l.from {
		return errors.Join(l.release(), core.Errorf(core.Conflict, "%s has just moved on from %s", l.t.Base, hex12(l.from)).With("field", "base"))
	}
	if l.root != "" {
		if err := l.checkedOut(ctx); err != nil {
			return errors.Join(err, l.release())
		}
	}
	l.log()
	path := filepath.Join(l.w.Common, l.branch())
	if err := os.Rename(path+".lock", path); err != nil {
		return errors.Join(fmt.Errorf("move the branch %s: %w", l.t.Base, err), l.release())
	}
	return errors.Join(synced(filepath.Dir(path)), l.release())
}

// includes reports whether a later commit of the branch has ours in it. Of a way
// back that says nothing: what was before is in every commit.
func (l *landing) includes(ctx context.Context, tip string) bool {
	_, ahead := l.Do(ctx, "merge-base", "--is-ancestor", l.to, l.from)
	_, err := l.Do(ctx, "merge-base", "--is-ancestor", l.to, tip)
	return ahead != nil && err == nil
}

// find finds where the branch is checked out: in the repository's own work tree, or
// in one beside it.
func (l *landing) find() error {
	dirs := []string{l.w.Common}
	more, err := filepath.Glob(filepath.Join(l.w.Common, "worktrees", "*"))
	if err != nil {
		return err
	}
	for _, dot := range append(dirs, more...) {
		head, err := git.PointerText(filepath.Join(dot, "HEAD"))
		if err != nil || head != "ref: "+l.branch() {
			continue
		}
		root := filepath.Dir(l.w.Common)
		if dot != l.w.Common {
			back, err := git.Pointer(filepath.Join(dot, "gitdir"), "")
			if err != nil {
				return err
			}
			root = filepath.Dir(back)
		}
		if _, err := git.FindWorktree(root); err != nil {
			continue // a bare repository, or a work tree that was removed
		}
		l.root, l.dot = root, dot
		return nil
	}
	return nil
}

// objects brings the new commits into the source, as a pack that is checked on
// the way.
func (l *landing) objects(ctx context.Context) error {
	into := filepath.Join(l.w.Common, "objects")
	keep := git.Call{Objects: into, Write: []string{into}, Args: []string{"--strict"}}
	return packed(ctx, l.Repository, nil, []string{l.to, "^" + l.from}, func(in io.Reader) error { return unpack(ctx, l.Repository, keep, in) })
}

// large brings what the commits leave to git LFS into the source. Its work tree has the
// contents where the operator works with LFS, and else the pointers.
func (l *landing) large(ctx context.Context) error {
	uses := usesLFS(ctx, l.Repository, l.w)
	all, err := l.d.taking(ctx, l.Repository, l.t, l.from, l.to)
	if err != nil {
		return err
	}
	err = lfsPut(l.Repository, l.w, all)
	l.LFS = &lfs.Objects{}
	if uses {
		l.LFS.Read = []string{lfsObjects(l.w)}
	}
	return err
}

// mark is a file of ours in the source's repository. Each lock that we take is a
// second name of it, so that a lock which a kill left is known to be ours.
func (l *landing) mark() string {
	return filepath.Join(l.w.Common, "swarmdeck-"+strings.ReplaceAll(l.key, ":", "-"))
}

// begun reports a landing that a kill may have left in the midst of its files.
func (d *Driver) begun(t tree.Tree, key string) bool {
	l := landing{t: t, key: key, root: t.Source}
	place := l.staged()
	if t.Kind == tree.Git {
		w, err := git.FindWorktree(t.Source)
		if err != nil {
			return false
		}
		l.w = w
		place = l.mark()
	}
	_, err := os.Lstat(place)
	return err == nil
}

// lock takes the lock of a ref as git does: the file that becomes the ref.
func (l *landing) lock(ref string) error {
	mark := l.mark()
	if err := os.WriteFile(mark, []byte(l.to+"\n"), 0o644); err != nil {
		return err
	}
	if err := synced(mark); err != nil {
		return err
	}
	path := filepath.Join(l.w.Common, ref)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // it may be packed
		return err
	}
	return taken(os.Link(mark, path+".lock"), mark, path+".lock")
}

// taken makes of a lock that is there already an error, unless it is our own.
func taken(err error, mark, lock string) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	a, bad := os.Lstat(mark)
	b, worse := os.Lstat(lock)
	if bad == nil && worse == nil && os.SameFile(a, b) {
		return nil
	}
	return core.Errorf(core.Unavailable, "another git works there: %s is locked", lock)
}

// release takes our locks and the mark away, whatever a kill left of them.
func (l *landing) release() error {
	mark := l.mark()
	errs := []error{}
	locks := []string{filepath.Join(l.w.Common, l.branch()) + ".lock"}
	if l.dot != "" {
		locks = append(locks, filepath.Join(l.dot, "index.lock"))
	} else if all, err := filepath.Glob(filepath.Join(l.w.Common, "worktrees", "*", "index.lock")); err == nil {
		locks = append(append(locks, filepath.Join(l.w.Common, "index.lock")), all...)
	}
	for _, lock := range locks {
		if _, err := os.Lstat(lock); err == nil && taken(fs.ErrExist, mark, lock) == nil {
			errs = append(errs, os.Remove(lock))
		}
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// log writes what happens into the logs of the branch and of HEAD, where git
// keeps them: it is how people find back.
func (l *landing) log() {
	line := fmt.Sprintf("%s %s swarmdeck <swarmdeck@localhost> %d +0000\tswarmdeck: took over %s\n", l.from, l.to, time.Now().Unix(), l.t.Agent)
	logs := []string{filepath.Join(l.w.Common, "logs", l.branch())}
	if l.dot != "" {
		logs = append(logs, filepath.Join(l.dot, "logs", "HEAD"))
	}
	for _, path := range logs {
		if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil { // git makes none where it keeps none
			_, _ = f.WriteString(line)
			_ = f.Close()
		}
	}
}

// synced has a file or a directory on the disk.
func synced(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Published implements tree.Driver.
func (d *Driver) Published(ctx context.Context, t tree.Tree, commit string) (string, error) {
	if t.Kind != tree.Git {
		return "", nil
	}
	r, err := d.repo(ctx, t)
	if err != nil {
		return "", err
	}
	root, err := sourceRoot(t)
	if err != nil {
		return "", err
	}
	defer root.Close()
	remotes, err := git.Refs(root, "", "refs/remotes/")
	for ref, at := range remotes {
		if _, not := r.Do(ctx, "merge-base", "--is-ancestor", commit, at); not == nil {
			return strings.TrimPrefix(ref, "refs/remotes/"), nil
		}
	}
	return "", err
}
