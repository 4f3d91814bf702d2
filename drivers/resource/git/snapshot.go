package git

import (
	"context"
	"fmt"
	"strings"
	"time"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

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
