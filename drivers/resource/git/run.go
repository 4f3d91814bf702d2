package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// harmless switches off what a repository's configuration could run.
func harmless() []string {
	return []string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "gc.auto=0",
		"-c", "maintenance.auto=false", "-c", "safe.directory=*", "-c", "core.attributesFile=/dev/null", "-c", "submodule.recurse=false",
		"-c", "protocol.allow=never", "-c", "core.fsync=all",
	}
}

// environ is all that git is told of its surroundings.
func environ(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ADVICE=0",
		"GIT_AUTHOR_NAME=swarmdeck", "GIT_AUTHOR_EMAIL=swarmdeck@localhost", "GIT_AUTHOR_DATE=@0 +0000",
		"GIT_COMMITTER_NAME=swarmdeck", "GIT_COMMITTER_EMAIL=swarmdeck@localhost", "GIT_COMMITTER_DATE=@0 +0000",
	}, more...)
}

// maxAnswer bounds what a command prints.
const maxAnswer = 64 << 20

// runIn runs git in a directory.
func runIn(ctx context.Context, dir string, env []string, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append(harmless(), args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ(env...), 5*time.Second
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &bounded{w: &out}, &bounded{w: &bad}
	if in != nil {
		cmd.Stdin = bytes.NewReader(in)
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, exec.ErrNotFound) {
			return nil, core.Errorf(core.Unavailable, "there is no git command here")
		}
		why := strings.TrimSpace(bad.String())
		return nil, fmt.Errorf("git %s: %w: %.500s", args[0], err, why)
	}
	return out.Bytes(), nil
}

type bounded struct{ w *bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.w.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("more than %d bytes", maxAnswer)
	}
	return b.w.Write(p)
}

// repository is the engine's own, of one tenant.
type repository struct{ dir string }

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
	r := repository{filepath.Join(d.opt.Dir, tenant, "worktrees.git")}
	attributes := filepath.Join(r.dir, "info", "attributes")
	if _, err := os.Stat(attributes); err == nil {
		return r, nil
	}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return r, fmt.Errorf("make a place for snapshots: %w", err)
	}
	if _, err := runIn(ctx, "/", nil, nil, "init", "--quiet", "--bare", "--template=", r.dir); err != nil {
		return r, err
	}
	if err := os.MkdirAll(filepath.Dir(attributes), 0o700); err != nil {
		return r, err
	}
	return r, os.WriteFile(attributes, []byte(exactly), 0o600) // last: it says that the repository is whole
}

// run runs git on the repository alone.
func (r repository) run(ctx context.Context, args ...string) (string, error) {
	out, err := runIn(ctx, r.dir, []string{"GIT_DIR=" + r.dir}, nil, args...)
	return strings.TrimSpace(string(out)), err
}

// over runs git on the repository with the files of a tree and an index.
func (r repository) over(ctx context.Context, tree, index string, in []byte, args ...string) ([]byte, error) {
	return runIn(ctx, tree, []string{"GIT_DIR=" + r.dir, "GIT_WORK_TREE=" + tree, "GIT_INDEX_FILE=" + index}, in, args...)
}

var (
	idPattern   = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)
	hashPattern = core.Pattern(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

func checkID(id string) error {
	if !idPattern().MatchString(id) {
		return core.Invalid("id", id, "1-128 letters, digits, _ and -, the first a letter or digit")
	}
	return nil
}

// keptRef is what keeps a snapshot.
func keptRef(id string) string { return "refs/kept/" + id }
