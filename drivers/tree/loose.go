package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

// loose is a repository in a tree with changes that no commit of it holds: git itself
// keeps of it only which commit is checked out.
type loose struct {
	path string
	from string // the tree of that commit, of git's
	to   string // that of its files
}

// looseNote begins the line of a state that tells of one, so that it is another state.
const looseNote = "Loose: "

func (l loose) note() string {
	return fmt.Sprintf("%s%s %s %s\n", looseNote, l.from, l.to, strconv.Quote(l.path))
}

// looseIn are those of a state.
func looseIn(ctx context.Context, r git.Repository, state string) (all []loose, err error) {
	text, err := r.Do(ctx, "log", "-1", "--format=%B", state)
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(strings.TrimSpace(line), looseNote)
		f := strings.SplitN(rest, " ", 3)
		if !is || len(f) != 3 || !git.IsHash(f[0]) || !git.IsHash(f[1]) {
			continue
		}
		if path, err := strconv.Unquote(f[2]); err == nil {
			all = append(all, loose{path, f[0], f[1]})
		}
	}
	return all, err
}

// nested are the repositories in a directory of a tree, by their paths below the tree
// and the outermost first, as far as links lead to them through directories alone.
func (d *Driver) nested(r git.Repository, at git.Worktree, below string, deep int) (all []git.Worktree, paths []string) {
	if deep >= modulesDeep {
		return nil, nil
	}
	root, err := filepath.EvalSymlinks(at.Path)
	if err != nil {
		return nil, nil
	}
	for _, name := range r.Links(at) {
		dir := filepath.Join(at.Path, name)
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != filepath.Join(root, name) {
			continue
		}
		w, err := git.FindWorktree(dir)
		if err != nil || w.Dir != filepath.Join(dir, ".git") {
			continue // empty, or no repository of its own
		}
		all, paths = append(all, w), append(paths, filepath.Join(below, name))
		more, under := d.nested(r, w, filepath.Join(below, name), deep+1)
		all, paths = append(all, more...), append(paths, under...)
	}
	return all[:min(len(all), maxModules)], paths[:min(len(paths), maxModules)]
}

// within reads what repositories in a tree have committed, too.
func (d *Driver) within(r git.Repository, t tree.Tree, all []git.Worktree) git.Repository {
	r.Objects = slices.Clone(r.Objects)
	if w, err := git.FindWorktree(t.Source); err == nil {
		r.Objects = append(r.Objects, moduleObjects(kept(w))...)
	}
	for _, w := range all {
		r.Objects = append(r.Objects, filepath.Join(w.Dir, "objects"))
	}
	return r
}

// loosened finds the repositories in a tree with changes that no commit holds, as notes
// of a state.
func (d *Driver) loosened(ctx context.Context, r git.Repository, t tree.Tree, w git.Worktree) (notes string, err error) {
	all, paths := d.nested(r, w, "", 0)
	if len(all) == 0 {
		return "", nil
	}
	known := d.within(r, t, all)
	for n, sub := range all {
		commit, err := r.State(ctx, git.Worktree{Path: sub.Path, Dir: sub.Dir, Common: sub.Common}, d.opt.Most, func(string) []string { return nil })
		if err != nil {
			return "", fmt.Errorf("look at submodule %s: %w", core.Clip(paths[n]), err)
		}
		to, err := r.Do(ctx, "rev-parse", "--verify", commit+"^{tree}")
		if err != nil {
			return "", err
		}
		head, _ := sub.Head()
		from, err := known.Do(ctx, "rev-parse", "--verify", head+"^{tree}")
		if _, ok := errors.AsType[*git.Failed](err); ok { // it has none, or none that can be read
			from, err = r.Do(ctx, "mktree")
		}
		if err != nil {
			return "", err
		}
		if from != to {
			notes += loose{paths[n], from, to}.note()
		}
	}
	return notes, nil
}

// looseBetween are the repositories in a tree whose uncommitted changes differ between
// two states.
func (d *Driver) looseBetween(ctx context.Context, r git.Repository, t tree.Tree, from, to string) (all []loose, known git.Repository, err error) {
	at := git.Worktree{Path: t.Path}
	if t.Kind != tree.Git || t.Host == "" && len(r.Links(at)) == 0 {
		return nil, r, nil
	}
	was, err := looseIn(ctx, r, from)
	if err != nil {
		return nil, r, err
	}
	now, err := looseIn(ctx, r, to)
	if err != nil {
		return nil, r, err
	}
	for _, l := range now {
		if n := slices.IndexFunc(was, func(w loose) bool { return w.path == l.path }); n >= 0 {
			l.from = was[n].to
		}
		if l.from != l.to {
			all = append(all, l)
		}
	}
	subs, _ := d.nested(r, at, "", 0)
	return all, d.within(r, t, subs), nil
}

// looseChanges lists how such files differ. What its agent has broken is named alone.
func (d *Driver) looseChanges(ctx context.Context, r git.Repository, t tree.Tree, from, to string) (all []tree.Change, err error) {
	some, known, err := d.looseBetween(ctx, r, t, from, to)
	for _, l := range some {
		out, err := known.Call(ctx, git.Call{Args: []string{"diff-tree", "-r", "-z", "-M", "--raw", "--no-abbrev", "--numstat", l.from, l.to}})
		if _, ok := errors.AsType[*git.Failed](err); ok {
			all = append(all, tree.Change{Path: l.path, Status: "changed"})
			continue
		}
		if err != nil {
			return nil, err
		}
		list, _, err := changes(out)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			c.Path = l.path + "/" + c.Path
			if c.From != "" {
				c.From = l.path + "/" + c.From
			}
			all = append(all, c)
		}
	}
	return all, err
}

// looseDiff writes how they differ; of no paths all.
func (d *Driver) looseDiff(ctx context.Context, r git.Repository, t tree.Tree, from, to string, paths []string, out io.Writer) error {
	some, known, err := d.looseBetween(ctx, r, t, from, to)
	for _, l := range some {
		var inside []string
		for _, p := range paths {
			if name, is := strings.CutPrefix(p, l.path+"/"); is {
				inside = append(inside, name)
			}
		}
		if len(paths) > 0 && len(inside) == 0 {
			continue
		}
		args := append(patch("--src-prefix=a/"+l.path+"/", "--dst-prefix=b/"+l.path+"/", l.from, l.to, "--"), inside...)
		call := git.Call{GitDir: known.Dir, Dir: known.Dir, More: known.Objects, Args: args}
		err := known.Git.Read(ctx, call, func(in io.Reader) error {
			_, err := io.Copy(out, in)
			return err
		})
		if failed, ok := errors.AsType[*git.Failed](err); ok {
			_, err = fmt.Fprintf(out, "submodule %s has changes that no commit holds: %s\n", core.Clip(l.path), failed.Said)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// bound refuses to take over a state with changes that no commit holds, which a merge
// would leave out in silence; of some files only those are refused that are among them.
func (d *Driver) bound(ctx context.Context, r git.Repository, t tree.Tree, q tree.Join) error {
	all, err := looseIn(ctx, r, q.State)
	if err != nil {
		return err
	}
	for _, l := range all {
		among := func(p tree.Piece) bool { return p.Path == l.path || strings.HasPrefix(p.Path, l.path+"/") }
		if len(q.Only) == 0 || slices.ContainsFunc(q.Only, among) {
			return core.Errorf(core.Conflict, "submodule %s has changes of %s that no commit holds, and what changes within a submodule is not taken over: bring them into its own repository and have %s put it back, or take the other files with review accept", core.Clip(l.path), t.Agent, t.Agent).With("field", "agent").With("path", core.Clip(l.path))
		}
	}
	return nil
}
