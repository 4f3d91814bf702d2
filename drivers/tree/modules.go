package tree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

// Bounds of submodules.
const (
	maxModules  = 50 // repositories of theirs that a repository keeps, and of a tree
	modulesDeep = 4  // submodules of submodules
	namesDeep   = 8  // parts of a submodule's name
)

// module is a submodule of a tree: a path of it, and the commit that is there.
type module struct{ path, commit string }

// kept are the repositories of submodules that a repository keeps (gitsubmodules(7)),
// in the order of their names. Nothing that they or .gitmodules say is followed.
func kept(w git.Worktree) (all []git.Worktree) {
	var look func(dir string, deep int)
	look = func(dir string, deep int) {
		entries, err := os.ReadDir(dir)
		if err != nil || deep > namesDeep*modulesDeep {
			return
		}
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if !e.IsDir() || len(all) >= maxModules {
				continue
			}
			objects, err := os.Lstat(filepath.Join(at, "objects"))
			head, bad := os.Lstat(filepath.Join(at, "HEAD"))
			if err != nil || bad != nil || !objects.IsDir() || !head.Mode().IsRegular() {
				look(at, deep+1) // a part of a name
				continue
			}
			all = append(all, git.Worktree{Path: at, Dir: at, Common: at})
			look(filepath.Join(at, "modules"), deep+1)
		}
	}
	look(filepath.Join(w.Common, "modules"), 0)
	return all
}

// moduleObjects are the directories of the objects of submodules.
func moduleObjects(all []git.Worktree) []string {
	return core.Map(all, func(w git.Worktree) string { return filepath.Join(w.Common, "objects") })
}

// links are the submodules of a commit.
func links(ctx context.Context, r git.Repository, commit string) (all []module, err error) {
	out, err := r.Call(ctx, git.Call{Args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}})
	if err != nil {
		return nil, err
	}
	for line := range bytes.SplitSeq(out, []byte{0}) {
		meta, path, ok := strings.Cut(string(line), "\t")
		f := strings.Fields(meta)
		if ok && len(f) == 3 && f[0] == modeModule && filepath.IsLocal(path) {
			all = append(all, module{path, f[2]})
		}
	}
	return all, nil
}

// lacking names the submodules of a commit that its repository does not have.
func lacking(ctx context.Context, r git.Repository, w git.Worktree, commit string) (paths []string, err error) {
	all, err := links(ctx, r, commit)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	r.Objects = slices.Concat(r.Objects, moduleObjects(kept(w)))
	for n, m := range all {
		if n >= maxModules || !has(ctx, r, m.commit) {
			paths = append(paths, core.Clip(m.path))
		}
	}
	return paths[:min(len(paths), maxModules)], nil
}

// has reports whether the files of a commit are there.
func has(ctx context.Context, r git.Repository, commit string) bool {
	_, err := r.Do(ctx, "cat-file", "-e", commit+"^{tree}")
	return err == nil
}

// modules lays out the submodules of a state whose objects the source has, each with
// a repository of its own that reads these. The others stay empty.
func (d *Driver) modules(ctx context.Context, r git.Repository, t tree.Tree, state, dir string) error {
	if t.Kind != tree.Git {
		return nil
	}
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return gone(t, err)
	}
	from := kept(w)
	if len(from) == 0 {
		return nil
	}
	r.Objects = slices.Concat(r.Objects, moduleObjects(from))
	left := maxModules
	return d.under(ctx, r, t, from, state, dir, 0, &left)
}

// stepped makes the directories of a path below another one, and goes through no
// link: a tree that somebody has forged can hold one by the name of a directory.
func stepped(dir, path string) (string, error) {
	for part := range strings.SplitSeq(path, "/") {
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return "", core.Errorf(core.InvalidInput, "%s is no directory", core.Clip(path))
		}
	}
	return dir, nil
}

// moduleEnds are the commits at which the history of submodules ends.
func moduleEnds(from []git.Worktree) (ends []byte, err error) {
	for _, w := range from {
		data, err := w.Ends()
		if err != nil {
			return nil, err
		}
		ends = append(ends, data...)
	}
	return ends, nil
}

// under lays out the submodules of a commit below its directory.
func (d *Driver) under(ctx context.Context, r git.Repository, t tree.Tree, from []git.Worktree, commit, dir string, deep int, left *int) error {
	all, err := links(ctx, r, commit)
	if err != nil || len(all) == 0 || deep >= modulesDeep {
		return err
	}
	for _, m := range all {
		if *left--; *left < 0 || !has(ctx, r, m.commit) {
			continue
		}
		to, err := stepped(dir, m.path)
		if err != nil {
			return wrap(err, "make a place for submodule %s", m.path)
		}
		if err := d.fresh(ctx, r, t, to, moduleObjects(from)); err != nil {
			return wrap(err, "make the repository of submodule %s", m.path)
		}
		if err := os.WriteFile(filepath.Join(to, ".git", "HEAD"), []byte(m.commit+"\n"), 0o644); err != nil {
			return err
		}
		ends, err := moduleEnds(from)
		if err != nil {
			return err
		}
		if len(ends) > 0 {
			if err := os.WriteFile(filepath.Join(to, ".git", "shallow"), ends, 0o644); err != nil {
				return err
			}
		}
		if err := lay(ctx, r, m.commit, to, filepath.Join(to, ".git", "index")); err != nil {
			return wrap(err, "lay out submodule %s", m.path)
		}
		if err := d.under(ctx, r, t, from, m.commit, to, deep+1, left); err != nil {
			return err
		}
	}
	return nil
}
