package git

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

	"swarmdeck/drivers/git"
	"swarmdeck/engine/safeopen"
)

// maxIndex bounds the index of a new worktree, in bytes.
const maxIndex = 1 << 30

// name names the new worktree in its repository.
func (m making) name() string { return strings.TrimPrefix(filepath.Base(m.stage()), ".") }

// admin is where the repository keeps what it knows of the new worktree.
func (m making) admin() string { return filepath.Join(m.w.Common, "worktrees", m.name()) }

// below does something in the repository, where no link is followed.
func (m making) below(name string, do func(*safeopen.Place) error) error {
	root, err := m.w.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	return root.At(name, do)
}

// put writes a file of the new worktree's own git directory.
func (m making) put(name string, content []byte) error {
	return m.below(filepath.Join("worktrees", m.name(), name), func(p *safeopen.Place) error {
		_, err := p.Put(content, nil)
		return err
	})
}

// add joins an empty worktree at the stage to the repository, with head checked
// out on a branch of its own.
func (m making) add(ctx context.Context, head string) error {
	index, err := m.index(ctx, head)
	if err != nil {
		return err
	}
	branch, err := m.branch(head)
	if err != nil {
		return fmt.Errorf("make a branch: %w", err)
	}
	for _, dir := range []string{"worktrees", filepath.Join("worktrees", m.name())} {
		if err := m.below(dir, (*safeopen.Place).Mkdir); err != nil {
			return err
		}
	}
	stage := m.stage()
	for name, content := range map[string]string{
		"HEAD": "ref: refs/heads/" + branch + "\n", "commondir": "../..\n", "gitdir": filepath.Join(stage, ".git") + "\n", "index": string(index),
	} {
		if err := m.put(name, []byte(content)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(stage, ".git"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString("gitdir: " + m.admin() + "\n")
	return errors.Join(err, f.Close())
}

// index is an index of the files of head, whose trees are read from the
// worktree's objects by git on a repository of ours.
func (m making) index(ctx context.Context, head string) ([]byte, error) {
	repo := m.Repository
	if len(head) == 64 {
		repo.Dir += "-sha256"
		if err := repo.Make(ctx, "sha256"); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(m.Dir, "index-head-"+m.id)
	defer os.Remove(path)
	_ = os.Remove(path + ".lock") // of one that was killed
	call := git.Call{GitDir: repo.Dir, Index: path, Objects: filepath.Join(m.w.Common, "objects"), Args: []string{"read-tree", head}}
	if _, err := repo.Git.Run(ctx, call); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxIndex {
		return nil, errors.Join(err, fmt.Errorf("the commit %s has too many files", head))
	}
	return os.ReadFile(path)
}

// branch makes the new worktree's branch. It is named after its place, or,
// where that is taken, after its id too: such a one is ours, of a try that was
// cut off.
func (m making) branch(head string) (name string, err error) {
	clean := func(s string) string {
		return strings.Trim(strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
				return c
			}
			return '-'
		}, s), "-")
	}
	root, err := m.w.Root()
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.At("refs/heads/swarmdeck", (*safeopen.Place).Mkdir); err != nil {
		return "", err
	}
	name = "swarmdeck/" + clean(filepath.Base(filepath.Dir(m.place))+"-"+filepath.Base(m.place))
	if git.Ref(root, "refs/heads/"+name) == "" {
		err := root.At("refs/heads/"+name, func(p *safeopen.Place) error { return p.Create([]byte(head + "\n")) })
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	sum := sha256.Sum256([]byte(m.id))
	name += "-" + hex.EncodeToString(sum[:4])
	return name, root.At("refs/heads/"+name, func(p *safeopen.Place) error {
		_, err := p.Put([]byte(head+"\n"), nil)
		return err
	})
}

// drop removes a branch of ours.
func (m making) drop(branch string) error {
	return m.below("refs/heads/"+branch, (*safeopen.Place).Remove)
}
