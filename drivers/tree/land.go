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
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// Land implements tree.Driver. The order makes that nothing is half done for long,
// and all of it can be done again: the objects, the lock of the branch, the files
// one by one, their index, and last the branch itself. What a kill leaves is
// brought to its end by the same key, or else taken back whole.
func (d *Driver) Land(ctx context.Context, t tree.Tree, key, from, to string) error {
	return d.landing(ctx, t, key, from, to, func(l *landing) error {
		err := l.land(ctx)
		if err == nil {
			return nil
		}
		done, bad := l.back(ctx)
		switch {
		case bad != nil:
			return fmt.Errorf("%w; %w: %w", err, tree.ErrHalf, bad)
		case done:
			return nil
		}
		return err
	})
}

func (d *Driver) Back(ctx context.Context, t tree.Tree, key, from, to string) (done bool, err error) {
	if _, err := os.Lstat(t.Source); errors.Is(err, fs.ErrNotExist) {
		return false, nil // and all of it with it
	}
	err = d.landing(ctx, t, key, from, to, func(l *landing) error {
		done, err = l.back(ctx)
		return err
	})
	return done, err
}

func (d *Driver) landing(ctx context.Context, t tree.Tree, key, from, to string, do func(*landing) error) error {
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	l := landing{Repository: r, t: t, d: d, key: key, from: from, to: to}
	if t.Kind == tree.Plain {
		l.root = t.Source
		l.listed = l.staged() + ".paths"
		return do(&l)
	}
	if l.w, err = git.FindWorktree(t.Source); err != nil {
		return gone(t, err)
	}
	if l.common, err = l.w.Root(); err != nil {
		return err
	}
	defer l.common.Close()
	l.listed = l.mark() + ".paths"
	return do(&l)
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
	listed string         // the file that says which paths are changed there; "" where nothing is taken back
}

func (l *landing) branch() string { return "refs/heads/" + l.t.Base }

func (l *landing) land(ctx context.Context) error {
	if l.t.Kind == tree.Plain {
		if err := l.files(ctx); err != nil {
			return err
		}
		return l.release()
	}
	tip := git.Ref(l.common, l.branch())
	if tip == "" {
		if err := l.straight(); err != nil {
			return err // it can't be read for a reason
		}
	}
	switch {
	case tip == l.to || tip != l.from && l.includes(ctx, tip):
		return l.release() // done, and not written down
	case tip != l.from:
		return core.Errorf(core.Conflict, "%s is at %s by now, not at %s any more", l.t.Base, hex12(tip), hex12(l.from)).With("field", "base")
	}
	if err := l.objects(ctx); err != nil {
		return fmt.Errorf("put the commits into %s: %w", l.t.Source, err)
	}
	if err := l.large(ctx); err != nil {
		return err
	}
	if err := l.find(ctx); err != nil {
		return err
	}
	if err := l.straight(); err != nil {
		return err
	}
	if err := l.link(ctx, l.branchLock()); err != nil {
		return err
	}
	if git.Ref(l.common, l.branch()) != l.from {
		return core.Errorf(core.Conflict, "%s has just moved on from %s", l.t.Base, hex12(l.from)).With("field", "base")
	}
	if l.root != "" {
		if err := l.checkedOut(ctx); err != nil {
			return err
		}
	}
	l.log()
	path := filepath.Join(l.w.Common, l.branch())
	if err := l.moved(l.branchLock(), path); err != nil {
		return fmt.Errorf("move the branch %s: %w", l.t.Base, err)
	}
	return l.release()
}

// includes reports whether a later commit of the branch has ours in it. Of a way
// back that says nothing: what was before is in every commit.
func (l *landing) includes(ctx context.Context, tip string) bool {
	_, ahead := l.Do(ctx, "merge-base", "--is-ancestor", l.to, l.from)
	_, err := l.Do(ctx, "merge-base", "--is-ancestor", l.to, tip)
	return ahead != nil && err == nil
}

// find finds where the branch is checked out: in the repository's own work tree, or
// in one beside it. That has the contents of LFS where the operator works with it, and
// else the pointers.
func (l *landing) find(ctx context.Context) error {
	l.LFS = &lfs.Objects{}
	if usesLFS(ctx, l.Repository, l.w) {
		l.LFS.Read = []string{lfsObjects(l.w)}
	}
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
		w, err := git.FindWorktree(root)
		if err != nil || dot == l.w.Common && !git.Same(w.Dir, dot) {
			continue // a bare repository, or a work tree that was removed
		}
		if dot != l.w.Common {
			if err := l.known(dot, w); err != nil {
				return err
			}
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

// large brings what the commits leave to git LFS into the source.
func (l *landing) large(ctx context.Context) error {
	all, err := l.d.taking(ctx, l.Repository, l.t, l.from, l.to)
	if err != nil {
		return err
	}
	return lfsPut(l.Repository, l.w, all)
}

// mark is a file of ours in the source's repository. Each lock that we take is a
// second name of it, so that a lock which a kill left is known to be ours.
func (l *landing) mark() string {
	return filepath.Join(l.w.Common, "swarmdeck-"+strings.ReplaceAll(l.key, ":", "-"))
}

// branchLock is the file that becomes the ref, as git has it.
func (l *landing) branchLock() string { return filepath.Join(l.w.Common, l.branch()) + ".lock" }

// lockPatience is how long another git may be at work there.
const lockPatience = 5 * time.Second

// link takes a lock as git does, once it is free: it is our mark under a second name.
func (l *landing) link(ctx context.Context, lock string) error {
	if err := l.marked(); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, lockPatience)
	defer stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := taken(l.linked(lock), l.mark(), lock)
		if !errors.Is(err, core.Kind(core.Unavailable)) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
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

// release takes away whatever is there of a landing's own: the list of its paths first,
// since without that one nothing is taken back, then its locks and its mark.
func (l *landing) release() error {
	if err := absent(os.Remove(l.listed)); err != nil {
		return err
	}
	errs := []error{}
	if l.t.Kind == tree.Plain {
		return files.RemoveTree(l.staged())
	}
	mark := l.mark()
	locks := []string{l.branchLock()}
	if l.dot != "" {
		locks = append(locks, filepath.Join(l.dot, "index.lock"))
	} else if all, err := filepath.Glob(filepath.Join(l.w.Common, "worktrees", "*", "index.lock")); err == nil {
		locks = append(append(locks, filepath.Join(l.w.Common, "index.lock")), all...)
	}
	for _, lock := range locks[1:] {
		l.dot = filepath.Dir(lock)
		errs = append(errs, files.RemoveTree(l.staged()), absent(os.Remove(filepath.Join(l.dot, nextIndex))))
	}
	for _, lock := range locks {
		if _, err := os.Lstat(lock); err == nil && taken(fs.ErrExist, mark, lock) == nil {
			errs = append(errs, os.Remove(lock))
		}
	}
	return errors.Join(append(errs, absent(os.Remove(mark)))...)
}

// absent is no error for what was to be removed.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// logs are those of the branch and of HEAD, where git keeps them.
func (l *landing) logs() []string {
	logs := []string{filepath.Join(l.w.Common, "logs", l.branch())}
	if l.dot != "" {
		logs = append(logs, filepath.Join(l.dot, "logs", "HEAD"))
	}
	return logs
}

// log writes what happens into the logs: it is how people find back.
func (l *landing) log() {
	line := fmt.Sprintf("%s %s swarmdeck <swarmdeck@localhost> %d +0000\tswarmdeck: took over %s\n", l.from, l.to, time.Now().Unix(), l.t.Agent)
	for _, path := range l.logs() {
		_ = l.at(path, func(p *safeopen.Place) error {
			if _, err := p.Look(); err != nil {
				return err // git makes none where it keeps none
			}
			_, err := p.Append([]byte(line))
			return err
		})
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
