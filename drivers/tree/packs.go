package tree

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// maxPack bounds a pack of what an agent has made, in bytes.
const maxPack = "2147483648"

// packed hands over what some revisions reach, and those with a ^ before them do not, as
// a pack; more are directories of objects that are read besides the repository's.
func packed(ctx context.Context, r git.Repository, more, revs []string, read func(io.Reader) error) error {
	return r.Git.Read(ctx, git.Call{
		GitDir: r.Dir, Dir: r.Dir, More: slices.Concat(r.Objects, more), In: strings.NewReader(strings.Join(revs, "\n") + "\n"),
		Args: []string{"pack-objects", "-q", "--revs", "--stdout", "--thin", "--delta-base-offset"},
	}, read)
}

// sending writes revisions as a pack.
func sending(ctx context.Context, r git.Repository, more []string, revs ...string) func(io.Writer) error {
	return func(out io.Writer) error {
		return packed(ctx, r, more, revs, func(in io.Reader) error {
			_, err := io.Copy(out, in)
			return err
		})
	}
}

// fewObjects is how many objects of a pack lie in a repository of ours each for itself, as
// git has it (fetch.unpackLimit): a pack for each look would make the next one slow.
const fewObjects = 100

// unpack takes a pack into a repository, or where the call says; its arguments are those
// that git-index-pack(1) and git-unpack-objects(1) share.
func unpack(ctx context.Context, r git.Repository, c git.Call, in io.Reader) error {
	c.GitDir, c.Dir, c.More = r.Dir, r.Dir, r.Objects
	all := bufio.NewReader(in)
	how := []string{"index-pack", "--stdin", "--fix-thin"}
	if head, err := all.Peek(12); err == nil && c.Objects == "" && binary.BigEndian.Uint32(head[8:]) < fewObjects { // gitformat-pack(5)
		how = []string{"unpack-objects", "-q"}
	}
	c.Args = append(how, c.Args...)
	return r.Git.Write(ctx, c, func(out io.Writer) error {
		_, err := io.Copy(out, all)
		return err
	})
}

// foreign is how what an agent has made comes in: checked, and bounded.
func foreign() git.Call { return git.Call{Args: []string{"--strict", "--max-input-size=" + maxPack}} }

// headOf is what an agent has checked out in a state of its tree, "" for nothing.
func (d *Driver) headOf(ctx context.Context, r git.Repository, t tree.Tree, state string) (string, error) {
	if t.Host != "" {
		text, err := r.Do(ctx, "log", "-1", "--format=%B", state)
		for line := range strings.Lines(text) {
			if head, is := strings.CutPrefix(strings.TrimSpace(line), "Head: "); is && git.IsHash(head) {
				return head, err
			}
		}
		return "", err
	}
	w, err := committed(t)
	if err != nil {
		return "", err
	}
	head, _ := w.Head()
	return head, nil
}

// committed is the repository of an agent, whose objects are in it.
func committed(t tree.Tree) (git.Worktree, error) {
	w, err := git.FindWorktree(t.Path)
	if err != nil || w.Dir != filepath.Join(t.Path, ".git") {
		return w, core.Errorf(core.Conflict, "mode: the repository of %s was changed so that its commits can't be read; allowed: squash", t.Agent).With("field", "mode")
	}
	return w, nil
}

// sourceRoot opens what git keeps of a tree's source.
func sourceRoot(t tree.Tree) (*safeopen.Root, error) {
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return nil, gone(t, err)
	}
	return w.Root()
}

// madeFrom is the commit that a tree was made from. Its source has it, and nothing of what
// the agent committed upon it: what was squashed came as files.
func madeFrom(t tree.Tree) (string, error) {
	root, err := sourceRoot(t)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if commit := git.Ref(root, pinned(t, pinnedHead)); commit != "" {
		return commit, nil
	}
	return "", core.Errorf(core.Conflict, "mode: %s has lost %s, from which the commits of %s are told; allowed: squash", t.Source, pinned(t, pinnedHead), t.Agent).With("field", "mode")
}

// commits brings all that the agent committed into the engine's repository, checked
// (git-index-pack(1), --strict).
func (d *Driver) commits(ctx context.Context, r git.Repository, t tree.Tree, head string) error {
	if t.Host != "" {
		return d.commitsThere(ctx, r, t, head)
	}
	w, err := committed(t)
	if err != nil {
		return err
	}
	first, err := madeFrom(t)
	if err != nil {
		return err
	}
	return packed(ctx, r, []string{filepath.Join(w.Dir, "objects")}, []string{head, t.Head, "^" + first}, func(in io.Reader) error { return unpack(ctx, r, foreign(), in) })
}

// reach is where the agent's commits are read besides the engine's repository, to which
// those of another machine come first.
func (d *Driver) reach(ctx context.Context, r git.Repository, t tree.Tree, head string) ([]string, error) {
	if t.Host != "" {
		return nil, d.commitsThere(ctx, r, t, head)
	}
	w, err := committed(t)
	return []string{filepath.Join(w.Dir, "objects")}, err
}

// bring changes the files of a tree from one state to another, each by one rename.
func (d *Driver) bring(ctx context.Context, r git.Repository, t tree.Tree, key, from, to string) error {
	if t.Host != "" {
		return d.bringThere(ctx, r, t, key, from, to)
	}
	l := landing{Repository: r, d: d, t: t, key: key, from: from, to: to, root: t.Path}
	return l.files(ctx)
}
