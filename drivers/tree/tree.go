// Package tree makes the work trees of agents with git, and takes over what an
// agent changed.
//
// A tree has a repository of its own, which its agent may write as it likes. The
// objects of the repository that it was made of are read there as alternates,
// and pinned there by a ref. So nothing of that repository is ever writable in
// the cell of an agent, which a work tree of git's own would need.
//
// Both repositories are somebody else's: git is never run on them, but on one of
// the engine's for each source, that reads their objects. What changes a source
// is written here: packs, refs with their locks as git takes them, and files,
// each put in its place by one rename.
package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// Options of New.
type Options struct {
	Cells *cell.Supervisor // starts git, and the commands that check
	Hosts keeper.Hosts     // have the trees of agents on other machines; nil has none
	Dir   string           // below which trees lie, by tenant and agent
	Kept  string           // below which their states are kept, by tenant
	Own   *safeopen.Own    // the engine's own files, of which no tree is made
	Most  git.Limits       // of a tree; the zero value means 500,000 files and 16 GiB
}

// Driver implements tree.Driver.
type Driver struct {
	opt Options

	began time.Time

	mu       sync.Mutex // one repository is made at a time
	swept    map[string]bool
	converts map[string]converted // by repository
}

var _ tree.Driver = (*Driver)(nil)

// New makes a driver. It runs nothing yet.
func New(opt Options) (*Driver, error) {
	for _, dir := range []*string{&opt.Dir, &opt.Kept} {
		abs, err := filepath.Abs(*dir)
		if err != nil || *dir == "" {
			return nil, core.Invalid("dir", *dir, "a directory")
		}
		*dir = abs
	}
	if opt.Most == (git.Limits{}) {
		opt.Most = git.Limits{Files: 500_000, Bytes: 16 << 30}
	}
	return &Driver{opt: opt, began: time.Now(), swept: map[string]bool{}, converts: map[string]converted{}}, nil
}

// repo opens the engine's repository of what a tree is made of, and makes it
// first.
func (d *Driver) repo(ctx context.Context, t tree.Tree) (git.Repository, error) {
	if err := core.CheckTenant(t.TenantID); err != nil {
		return git.Repository{}, err
	}
	r := git.Repository{Git: d.opt.git(), Dir: filepath.Join(d.opt.Kept, t.TenantID, "trees", sourceOf(t)+".git")}
	var w git.Worktree
	if t.Kind == tree.Git {
		var err error
		if w, err = git.FindWorktree(t.Source); err != nil {
			return r, gone(t, err)
		}
		r.Objects = d.objects(w)
		r.LFS = &lfs.Objects{Keep: filepath.Join(d.home(t), ".lfs"), Read: []string{lfsObjects(w)}}
		if err := shallow(w, filepath.Join(r.Dir, "shallow")); err != nil {
			return r, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.swept[r.Dir] {
		if err := unlocked(r.Dir, d.began); err != nil {
			return r, fmt.Errorf("remove the locks that a killed engine left: %w", err)
		}
		d.swept[r.Dir] = true
	}
	if err := r.Make(ctx, format(t)); err != nil || t.Kind != tree.Git {
		return r, err
	}
	return r, wrap(d.converting(ctx, &r, t, w), "find how %s converts files", t.Source)
}

// git starts git.
func (o Options) git() git.Git { return git.Git{Cells: o.Cells} }

// sourceOf names what a tree is made of.
func sourceOf(t tree.Tree) string {
	sum := sha256.Sum256([]byte(t.Source))
	return hex.EncodeToString(sum[:8])
}

// format is that of a tree's objects.
func format(t tree.Tree) string {
	if len(t.BaseCommit) == 64 {
		return "sha256"
	}
	return "sha1"
}

// unlocked removes git's locks from before a time out of a repository of ours: git
// was killed with the engine that started it, and would wait for itself for ever.
func unlocked(dir string, before time.Time) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "objects":
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".lock"):
			return nil
		}
		info, err := e.Info()
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
}

// gone is the error of a source that is not where it was.
func gone(t tree.Tree, err error) error {
	return core.Errorf(core.Unavailable, "the repository of agent %s is not there: %v", t.Agent, err)
}

// borrowed is what is beside a tree: the directories whose objects its repository reads,
// as the engine wrote them. Its own list of them is its agent's to write.
const borrowed = ".borrowed"

// objects are the directories of the objects of what trees are made of. What its
// repository borrows from others (gitrepository-layout(5), objects/info/alternates)
// counts only of a tree of ours, and as we made it: else whoever writes there would be
// given any directory.
func (d *Driver) objects(w git.Worktree) []string {
	all := []string{filepath.Join(w.Common, "objects")}
	home := filepath.Dir(w.Path)
	trees, err := filepath.EvalSymlinks(d.opt.Dir)
	if rel, bad := filepath.Rel(trees, home); err != nil || bad != nil || !filepath.IsLocal(rel) || strings.Count(rel, "/") != 1 {
		return all
	}
	data, _ := os.ReadFile(filepath.Join(home, borrowed)) // none, of one that borrows nothing
	for line := range strings.Lines(string(data)) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	return all
}

// borrows is the error of a repository that is not whole without another one.
func (d *Driver) borrows(w git.Worktree) error {
	root, err := w.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Read("objects/info/alternates", 64<<10); errors.Is(err, fs.ErrNotExist) || len(d.objects(w)) > 1 {
		return nil
	}
	return core.Errorf(core.Conflict, "dir: %s borrows objects of another repository (.git/objects/info/alternates), which an agent may have written and nothing follows; "+
		"make it whole first: git repack -a -d, then remove that file", w.Path).With("field", "dir").With("value", w.Path)
}

// shallow keeps in a repository of ours where the history of another ends.
func shallow(w git.Worktree, file string) error {
	data, err := w.Ends()
	if err != nil || data == nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// Repository implements tree.Driver. One without a commit is none yet.
func (d *Driver) Repository(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || d.opt.Own.CheckWork(real) != nil {
		return ""
	}
	w, err := above(real)
	if err != nil {
		return ""
	}
	if commit, _ := w.Head(); commit == "" {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(strings.TrimSuffix(w.Common, ".git"), "/"))
}

func (d *Driver) Look(ctx context.Context, tenant string, w tree.Wanted) (t tree.Tree, err error) {
	if t, err = d.find(ctx, tenant, w); err != nil || t.Host == "" {
		return t, err
	}
	at, err := d.placeThere(ctx, t)
	t.Path = at.Path
	return t, err
}

// find is Look, but for the place that a host has for the tree.
func (d *Driver) find(ctx context.Context, tenant string, q tree.Wanted) (t tree.Tree, err error) {
	agent, dir, base := q.Agent, q.Dir, q.Base
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return t, core.Errorf(core.InvalidInput, "dir: %v", err).With("field", "dir").With("value", dir)
	}
	if err := d.opt.Own.CheckWork(real); err != nil {
		return t, err
	}
	t = tree.Tree{TenantID: tenant, Agent: agent, Kind: tree.Plain, Source: real, Host: q.Host}
	w, err := above(real)
	if errors.Is(err, core.Kind(core.NotFound)) {
		if base != "" {
			return t, core.Invalid("base", base, "none: "+real+" is in no git repository")
		}
		if home, _ := os.UserHomeDir(); real == "/" || real == home {
			return t, core.Invalid("dir", real, "a directory that can be copied: neither / nor a home, or one in a git repository")
		}
		t.Path = d.place(t)
		return t, nil
	}
	if err != nil {
		return t, err
	}
	t.Kind, t.Source, t.Branch = tree.Git, w.Path, "swarmdeck/"+agent
	if t.Sub, err = filepath.Rel(w.Path, real); err != nil || t.Sub == "." {
		t.Sub = ""
	}
	t.Path = d.place(t)
	commit, branch := w.Head()
	if base != "" {
		if commit, err = refOf(w, base); err != nil {
			return t, err
		}
		branch = base
	}
	if commit == "" {
		return t, core.Errorf(core.Conflict, "dir: nothing was committed in %s yet, and a tree begins with a commit; commit first, or share the directory: --tree=false, tree: false in a swarm file", w.Path).With("field", "dir")
	}
	t.Base, t.BaseCommit, t.Since, t.Head = branch, commit, commit, commit
	if err := d.borrows(w); err != nil {
		return t, err
	}
	r, err := d.repo(ctx, t)
	if err != nil {
		return t, err
	}
	if _, err := r.Do(ctx, "rev-list", "--objects", "--no-object-names", "--max-count=1", commit+"^{tree}"); err != nil {
		return t, core.Errorf(core.Conflict, "dir: the files of %s are not all in %s, which may be a partial clone: %v", commit[:12], w.Path, err).With("field", "dir")
	}
	if t.Lacks, err = lacking(ctx, r, w, commit); err != nil {
		return t, err
	}
	t.Pointers, err = unfilled(ctx, r, commit)
	return t, err
}

// refOf is the commit of a branch.
func refOf(w git.Worktree, branch string) (string, error) {
	root, err := w.Root()
	if err != nil {
		return "", err
	}
	defer root.Close()
	if !core.Printable(branch) || strings.Contains(branch, "..") || strings.HasPrefix(branch, "/") {
		return "", core.Invalid("base", branch, "a branch of "+w.Path)
	}
	if commit := git.Ref(root, "refs/heads/"+branch); commit != "" {
		return commit, nil
	}
	return "", core.Invalid("base", branch, "a branch of "+w.Path)
}

// above finds the work tree that a directory is in.
func above(dir string) (w git.Worktree, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if w, err = git.FindWorktree(at); err == nil || !errors.Is(err, core.Kind(core.NotFound)) || at == filepath.Dir(at) {
			return w, err
		}
	}
}

// home is where all of an agent's tree lies.
func (d *Driver) home(t tree.Tree) string { return filepath.Join(d.opt.Dir, t.TenantID, t.Agent) }

// place is the root of a tree: named after what it is of, as programs show it.
func (d *Driver) place(t tree.Tree) string {
	return filepath.Join(d.home(t), strings.TrimLeft(filepath.Base(t.Source), "."))
}

func (d *Driver) Reads(t tree.Tree) []string {
	if t.Kind != tree.Git || t.Host != "" {
		return nil
	}
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return nil
	}
	all := append(d.objects(w), moduleObjects(kept(w))...)
	if large := lfsObjects(w); git.Inside(w.Common, "lfs/objects") && (lfs.Objects{Read: []string{large}}).Any() {
		all = append(all, large)
	}
	return all
}

// hex12 is a commit as it is shown.
func hex12(commit string) string { return commit[:min(12, len(commit))] }

// command wraps what a step wanted around its error.
func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(what+": %w", append(args, err)...)
}
