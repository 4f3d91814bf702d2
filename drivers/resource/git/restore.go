package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// marker is a file of a new worktree's own git directory that names the id it
// was made under.
const marker = "swarmdeck-made"

// making is a new worktree on its way.
type making struct {
	git.Repository
	w     git.Worktree // whose repository it joins
	id    string
	place string
}

func (m making) stage() string { return files.Stage(m.place, m.id) }

// Restore implements resource.Driver. It makes a new worktree only: in the
// place of one that is there its ignored files would be lost.
func (d *Driver) Restore(ctx context.Context, tenant, id string, s dag.Snapshot, r dag.Resource, dest string) (dag.Resource, error) {
	m, err := d.making(ctx, tenant, id, r, dest)
	if err != nil {
		return dag.Resource{}, err
	}
	commit := s.ExternalRef.ID
	if !git.IsHash(commit) {
		return dag.Resource{}, core.Invalid("snapshot", commit, "a commit")
	}
	message, err := m.Do(ctx, "log", "-1", "--format=%B", commit)
	if err != nil {
		return dag.Resource{}, core.Errorf(core.NotFound, "snapshot: the state %s is not kept here any more", commit).With("field", "snapshot")
	}
	head := ""
	for line := range strings.Lines(message) {
		if h, ok := strings.CutPrefix(strings.TrimSpace(line), "Head: "); ok && git.IsHash(h) {
			head = h
		}
	}
	if head == "" {
		return dag.Resource{}, core.Errorf(core.Conflict, "snapshot: nothing was committed in %s by then, and a worktree begins with a commit; allowed: keep it as files:%s", m.w.Path, m.w.Path).With("field", "snapshot")
	}
	if err := m.make(ctx, commit, head); err != nil {
		return dag.Resource{}, fmt.Errorf("make the worktree %s: %w", m.place, err)
	}
	return describe(m.place), nil
}

func (d *Driver) making(ctx context.Context, tenant, id string, r dag.Resource, dest string) (m making, err error) {
	if err := files.CheckID(id); err != nil {
		return m, err
	}
	if m.w, err = of(r); err != nil {
		return m, err
	}
	if dest == "" {
		return m, core.Errorf(core.InvalidInput, "to: a git worktree that is there is not replaced; give the path of a new one").With("field", "to")
	}
	if m.place, err = d.opt.Files.Dest(m.w.Path, dest); err != nil {
		return m, err
	}
	m.id = id
	m.Repository, err = d.repo(ctx, tenant, "sha1")
	return m, err
}

// make adds the worktree beside its place, fills it, and moves it there.
func (m making) make(ctx context.Context, commit, head string) error {
	if done, err := m.done(); err != nil || done {
		return err
	}
	if _, err := os.Lstat(m.place); err == nil {
		return core.Errorf(core.Conflict, "to: %s is there already; allowed: a new path", m.place).With("field", "to")
	}
	if err := m.clear(); err != nil {
		return err
	}
	stage := m.stage()
	if err := m.add(ctx, head); err != nil {
		return err
	}
	index := filepath.Join(m.Dir, "index-restore-"+m.id)
	defer os.Remove(index)
	_ = os.Remove(index + ".lock") // of one that was killed
	if _, err := m.Over(ctx, stage, index, nil, "read-tree", commit); err != nil {
		return err
	}
	fill := git.Call{Dir: stage, GitDir: m.Dir, WorkTree: stage, Index: index, Write: []string{stage}, Args: []string{"checkout-index", "--all", "--quiet"}}
	if _, err := m.Git.Run(ctx, fill); err != nil {
		return err
	}
	if err := m.put(marker, []byte(m.id)); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, stage, unix.AT_FDCWD, m.place, unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("move it to its place: %w", err)
	}
	return m.put("gitdir", []byte(filepath.Join(m.place, ".git")+"\n"))
}

// done reports whether the worktree of this id is in its place. A move that was
// cut off after the rename is brought to its end.
func (m making) done() (bool, error) {
	to, err := git.Pointer(filepath.Join(m.place, ".git"), "gitdir: ")
	if err != nil {
		return false, nil // it is not there, or another's
	}
	if id, err := git.PointerText(filepath.Join(to, marker)); err != nil || id != m.id || to != m.admin() {
		return false, nil
	}
	return true, m.put("gitdir", []byte(filepath.Join(m.place, ".git")+"\n"))
}

// clear takes away what an earlier try has left.
func (m making) clear() error {
	stage := m.stage()
	to, err := git.Pointer(filepath.Join(stage, ".git"), "gitdir: ")
	branch := ""
	if err == nil && to == m.admin() {
		if ref, err := git.Pointer(filepath.Join(to, "HEAD"), "ref: "); err == nil {
			_, branch, _ = strings.Cut(ref, "refs/heads/")
		}
	}
	if err := files.RemoveTree(stage); err != nil {
		return fmt.Errorf("remove what was left of an earlier try: %w", err)
	}
	if err := m.forget(stage); err != nil {
		return err
	}
	if strings.HasPrefix(branch, "swarmdeck/") {
		_ = m.drop(branch) // else the next takes another name
	}
	return nil
}

// forget removes what the repository knows of the worktree at stage. Other
// worktrees whose directory is away stay known: they may come back.
func (m making) forget(stage string) error {
	dir := filepath.Join(m.w.Common, "worktrees")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil // it knows none
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		own := filepath.Join(dir, e.Name())
		if back, err := git.Pointer(filepath.Join(own, "gitdir"), ""); err != nil || !e.IsDir() || back != filepath.Join(stage, ".git") {
			continue
		}
		if err := files.RemoveTree(own); err != nil {
			return fmt.Errorf("forget what was left of an earlier try: %w", err)
		}
	}
	return nil
}

func (d *Driver) Undo(ctx context.Context, tenant, id string, r dag.Resource, dest string) error {
	m, err := d.making(ctx, tenant, id, r, dest)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, core.Kind(core.NotFound)) {
			return nil
		}
		return err
	}
	done, err := m.done()
	if err != nil {
		return err
	}
	if done {
		branch, _ := git.PointerText(filepath.Join(m.admin(), "HEAD"))
		if err := files.RemoveTree(m.place); err != nil {
			return fmt.Errorf("remove the worktree: %w", err)
		}
		if err := m.forget(m.place); err != nil {
			return err
		}
		if name, ok := strings.CutPrefix(branch, "ref: refs/heads/swarmdeck/"); ok {
			_ = m.drop("swarmdeck/" + name)
		}
	}
	return m.clear()
}
