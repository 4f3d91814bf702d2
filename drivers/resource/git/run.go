package git

import (
	"context"
	"path/filepath"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
)

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
