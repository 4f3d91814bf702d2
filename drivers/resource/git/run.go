package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
)

// repository is the engine's own, of one tenant.
type repository struct {
	git git.Git
	dir string
}

// exactly keeps every byte as it is: attributes of a tree do not change what
// is kept of it.
const exactly = "* -text -eol -crlf -filter -ident -working-tree-encoding -export-subst\n"

// repo opens the repository of a tenant, and makes it first.
func (d *Driver) repo(ctx context.Context, tenant string) (repository, error) {
	if err := core.CheckTenant(tenant); err != nil {
		return repository{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := repository{git.Git{Cells: d.opt.Cells}, filepath.Join(d.opt.Dir, tenant, "worktrees.git")}
	attributes := filepath.Join(r.dir, "info", "attributes")
	if _, err := os.Stat(attributes); err == nil {
		return r, nil
	}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return r, fmt.Errorf("make a place for snapshots: %w", err)
	}
	if err := r.init(ctx, "sha1"); err != nil {
		return r, err
	}
	if err := os.MkdirAll(filepath.Dir(attributes), 0o700); err != nil {
		return r, err
	}
	return r, os.WriteFile(attributes, []byte(exactly), 0o600) // last: it says that the repository is whole
}

func (r repository) init(ctx context.Context, format string) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	_, err := r.git.Run(ctx, git.Call{Write: []string{r.dir}, Args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + format, r.dir}})
	return err
}

// run runs git on the repository alone.
func (r repository) run(ctx context.Context, args ...string) (string, error) {
	out, err := r.git.Run(ctx, git.Call{Dir: r.dir, GitDir: r.dir, Args: args})
	return strings.TrimSpace(string(out)), err
}

// over runs git on the repository with the files of a tree and an index.
func (r repository) over(ctx context.Context, tree, index string, in []byte, args ...string) ([]byte, error) {
	return r.git.Run(ctx, git.Call{Dir: tree, GitDir: r.dir, WorkTree: tree, Index: index, In: bytes.NewReader(in), Args: args})
}

var idPattern = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

func checkID(id string) error {
	if !idPattern().MatchString(id) {
		return core.Invalid("id", id, "1-128 letters, digits, _ and -, the first a letter or digit")
	}
	return nil
}

// keptRef is what keeps a snapshot.
func keptRef(id string) string { return "refs/kept/" + id }
