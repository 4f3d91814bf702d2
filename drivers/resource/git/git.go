// Package git keeps git worktrees. A snapshot is a commit in a repository of
// the engine's own: the files that are tracked, or could be, byte for byte,
// with the commit that was checked out; what is ignored, empty directories and
// repositories in the repository are not in it. It is made again as a new
// worktree of the same repository, on a branch of its own, with the commit of
// then checked out and the files of then on top.
//
// A worktree is hostile, its configuration too: git is never run on its
// repository. Files are read and written with a repository of the engine's own;
// of the worktree's, the refs are read here, and the objects of the commit that
// was checked out by git on ours. A new worktree and its branch are a few small
// files in it, which are written here (gitrepository-layout(5)). A branch that
// git has packed since stays when its worktree is taken back.
package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

// Method is the method of the snapshots.
const Method = "git"

// Options of New.
type Options struct {
	Cells *cell.Supervisor // starts git
	// Dir is where snapshots are kept, in a repository for each tenant. It must
	// be given.
	Dir string
	// Files says which places there are; limits of a tree are the same.
	Files  *files.Driver
	Limits files.Limits // the zero value means files.DefaultLimits
}

// Driver keeps git worktrees.
type Driver struct {
	opt Options

	mu sync.Mutex // one repository is made at a time
}

var _ resource.Driver = (*Driver)(nil)

// New makes a driver. It runs nothing yet.
func New(opt Options) (*Driver, error) {
	abs, err := filepath.Abs(opt.Dir)
	if err != nil || opt.Dir == "" || opt.Files == nil {
		return nil, core.Invalid("dir", opt.Dir, "a directory, and a driver of files")
	}
	opt.Dir = abs
	if opt.Limits == (files.Limits{}) {
		opt.Limits = files.DefaultLimits()
	}
	return &Driver{opt: opt}, nil
}

// Look implements resource.Driver. A place that is no worktree is NOT_FOUND.
func (d *Driver) Look(_ context.Context, target string) (dag.Resource, error) {
	path, err := d.opt.Files.Place("target", target)
	if err != nil {
		return dag.Resource{}, err
	}
	if _, err := git.FindWorktree(path); err != nil {
		return dag.Resource{}, err
	}
	return describe(path), nil
}

func describe(path string) dag.Resource { return files.Describe("git", "git", path) }

// of finds the worktree of a resource.
func of(r dag.Resource) (git.Worktree, error) {
	path, err := files.PathOf(r)
	if err != nil {
		return git.Worktree{}, err
	}
	return git.FindWorktree(path)
}

func (d *Driver) Probe(_ context.Context, r dag.Resource) (dag.Liveness, error) {
	_, err := of(r)
	switch {
	case err == nil:
		return dag.Alive, nil
	case errors.Is(err, core.Kind(core.NotFound)):
		return dag.Dead, nil
	}
	return dag.LiveUnknown, err
}

func (d *Driver) Drop(ctx context.Context, tenant string, s dag.Snapshot) error {
	repo, err := d.repo(ctx, tenant, "sha1")
	if err != nil {
		return err
	}
	if err := files.CheckID(s.ID); err != nil {
		return err
	}
	_, err = repo.Do(ctx, "update-ref", "-d", keptRef(s.ID))
	return err
}

// staleAfter is how long the last state of a worktree lies unused before it is swept.
const staleAfter = 24 * time.Hour

func (d *Driver) Sweep(ctx context.Context, tenant string) error {
	repo, err := d.repo(ctx, tenant, "sha1")
	if err != nil {
		return err
	}
	_, err = repo.Do(ctx, "gc", "--quiet", "--prune=1.hour.ago")
	return errors.Join(err, repo.Sweep(ctx, time.Now().Add(-staleAfter)))
}

// repo opens the repository of a tenant, and makes it first.
func (d *Driver) repo(ctx context.Context, tenant, format string) (git.Repository, error) {
	if err := core.CheckTenant(tenant); err != nil {
		return git.Repository{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := git.Repository{Git: git.Git{Cells: d.opt.Cells}, Dir: filepath.Join(d.opt.Dir, tenant, "worktrees.git")}
	if format != "sha1" {
		r.Dir += "-" + format
	}
	return r, r.Make(ctx, format)
}

// keptRef is what keeps a snapshot.
func keptRef(id string) string { return "refs/kept/" + id }

// refKind is the kind of a snapshot's external reference: a commit of the
// engine's repository.
const refKind = "git_commit"

// patience is how long git may look at a tree.
const patience = 10 * time.Minute

func (d *Driver) Snapshot(ctx context.Context, tenant, id string, r dag.Resource, last *dag.ExtRef) (resource.Taken, error) {
	if err := files.CheckID(id); err != nil {
		return resource.Taken{}, err
	}
	repo, err := d.repo(ctx, tenant, "sha1")
	if err != nil {
		return resource.Taken{}, err
	}
	if commit := repo.Ref(keptRef(id)); commit != "" {
		return taken(ctx, repo, commit)
	}
	w, err := of(r)
	if err != nil {
		return resource.Taken{}, err
	}
	// A pipe where git wants a file would hold it up for ever.
	adding, stop := context.WithTimeoutCause(ctx, patience, core.Errorf(core.Unavailable, "git took longer than %s", patience))
	defer stop()
	limits := git.Limits{Files: d.opt.Limits.Files, Bytes: d.opt.Limits.Bytes}
	commit, err := repo.State(adding, w, limits, func(commit string) []string {
		if last != nil && last.ID == commit {
			return nil
		}
		return []string{keptRef(id)}
	})
	if err != nil {
		return resource.Taken{}, fmt.Errorf("take a snapshot of %s: %w", w.Path, err)
	}
	if last != nil && last.ID == commit {
		return unsized(commit), nil
	}
	return taken(ctx, repo, commit)
}

// unsized describes a snapshot without a look at what is in it.
func unsized(commit string) resource.Taken {
	return resource.Taken{Method: Method, Ref: dag.ExtRef{Kind: refKind, ID: commit}, Consistency: "crash_consistent"}
}

// taken describes a snapshot that is kept.
func taken(ctx context.Context, r git.Repository, commit string) (resource.Taken, error) {
	out := unsized(commit)
	list, err := r.Do(ctx, "ls-tree", "-r", "-l", "-z", commit)
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
