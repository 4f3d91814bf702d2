package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

// patience is how long git may look at a tree: a pipe where it wants a file would
// hold it up for ever.
const patience = 10 * time.Minute

func patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, core.Errorf(core.Unavailable, "git took longer than %s", patience))
}

// Now implements tree.Driver. The state is kept as long as the tree is.
func (d *Driver) Now(ctx context.Context, t tree.Tree) (tree.State, error) { return d.now(ctx, t) }

// now takes the state of a tree, which refs name then.
func (d *Driver) now(ctx context.Context, t tree.Tree, refs ...string) (s tree.State, err error) {
	r, err := d.repo(ctx, t)
	if err != nil {
		return s, err
	}
	if t.Host != "" {
		return d.nowThere(ctx, r, t, refs)
	}
	w := git.Worktree{Path: t.Path}
	if t.Kind == tree.Git {
		if found, err := git.FindWorktree(t.Path); err == nil { // else its agent broke it: the files are there
			w = found
		}
	}
	if s.Commit, err = d.whole(ctx, r, t, w, refs...); err != nil {
		return s, fmt.Errorf("look at the tree of %s: %w", t.Agent, err)
	}
	if t.Kind == tree.Git {
		s.Head, _ = w.Head()
	}
	return s, nil
}

// state takes a state and keeps it; refs name it besides.
func (d *Driver) state(ctx context.Context, r git.Repository, t tree.Tree, w git.Worktree, refs ...string) (string, error) {
	ctx, stop := patiently(ctx)
	defer stop()
	return r.State(ctx, w, d.opt.Most, func(commit string) []string {
		return append(refs, "refs/trees/"+t.Agent+"/"+commit)
	})
}

// whole takes a state with what is changed in the repositories of a tree, which are
// looked for anew where the state has others than the one before.
func (d *Driver) whole(ctx context.Context, r git.Repository, t tree.Tree, w git.Worktree, refs ...string) (commit string, err error) {
	if t.Kind != tree.Git {
		return d.state(ctx, r, t, w, refs...)
	}
	was := r.Links(w)
	if w.Notes, err = d.loosened(ctx, r, t, w); err != nil {
		return "", err
	}
	commit, err = d.state(ctx, r, t, w, refs...)
	if err != nil || slices.Equal(was, r.Links(w)) {
		return commit, err
	}
	if w.Notes, err = d.loosened(ctx, r, t, w); err != nil || w.Notes == "" {
		return commit, err
	}
	return d.state(ctx, r, t, w, refs...)
}

// markRef keeps the state of a label, which may be of an agent's making.
func markRef(t tree.Tree, label string) string {
	sum := sha256.Sum256([]byte(label))
	return "refs/trees/" + t.Agent + "/marks/" + hex.EncodeToString(sum[:16])
}

func (d *Driver) Mark(ctx context.Context, t tree.Tree, label string) error {
	_, err := d.now(ctx, t, markRef(t, label))
	return err
}

func (d *Driver) Marked(ctx context.Context, t tree.Tree, label string) (string, error) {
	r, err := d.repo(ctx, t)
	if err != nil {
		return "", err
	}
	if git.IsHash(label) {
		return label, nil
	}
	for _, of := range []string{tree.MarkTask, tree.MarkCall} {
		if commit, err := r.Do(ctx, "rev-parse", "--verify", "--quiet", markRef(t, of+label)); err == nil {
			return commit, nil
		}
	}
	return "", core.Errorf(core.NotFound, "since: nothing is kept of the tree of %s from %q; allowed: base, task, the id of a task or call since it has a tree, a commit", t.Agent, core.Clip(label)).With("field", "since").With("value", label)
}

func (d *Driver) Tip(ctx context.Context, t tree.Tree) (string, error) {
	if t.Kind == tree.Plain {
		r, err := d.repo(ctx, t)
		if err != nil {
			return "", err
		}
		return d.state(ctx, r, t, git.Worktree{Path: t.Source})
	}
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return "", gone(t, err)
	}
	if t.Base == "" {
		return "", core.Errorf(core.InvalidInput, "into: the tree of %s was made from no branch; say which it goes into", t.Agent).With("field", "into")
	}
	return refOf(w, t.Base)
}

func (d *Driver) Changes(ctx context.Context, t tree.Tree, from, to string) ([]tree.Change, error) {
	r, err := d.repo(ctx, t)
	if err != nil {
		return nil, err
	}
	out, err := r.Call(ctx, git.Call{Args: []string{"diff-tree", "-r", "-z", "-M", "--no-commit-id", "--raw", "--no-abbrev", "--numstat", from, to}})
	if err != nil {
		return nil, fmt.Errorf("compare %s and %s: %w", hex12(from), hex12(to), err)
	}
	all, ids, err := changes(out)
	if err != nil {
		return nil, err
	}
	if err := sized(ctx, r, all, ids); err != nil {
		return nil, err
	}
	more, err := d.looseChanges(ctx, r, t, from, to)
	return append(all, more...), err
}

var errChanges = errors.New("git's list of changes can't be read")

// changes reads what diff-tree prints with -z --raw --numstat: first a line of
// each kind of change, then the lines of each file. The ids are those of what the files
// hold now.
func changes(out []byte) (all []tree.Change, ids []string, err error) {
	words := map[byte]string{'A': "added", 'M': "changed", 'D': "deleted", 'R': "moved", 'T': "type"}
	at := map[string]int{}
	fields := bytes.Split(out, []byte{0})
	for i := 0; i < len(fields) && len(fields[i]) > 0; i++ {
		if fields[i][0] == ':' {
			meta := bytes.Fields(fields[i])
			if len(meta) != 5 || i+1 >= len(fields) {
				return nil, nil, errChanges
			}
			c := tree.Change{Path: string(fields[i+1]), Status: words[meta[4][0]]}
			i++
			if c.Status == "moved" {
				if i++; i >= len(fields) {
					return nil, nil, errChanges
				}
				c.From, c.Path = c.Path, string(fields[i])
			}
			at[c.Path] = len(all)
			all, ids = append(all, c), append(ids, string(meta[3]))
			continue
		}
		count := strings.SplitN(string(fields[i]), "\t", 3)
		if len(count) != 3 {
			return nil, nil, errChanges
		}
		path := count[2]
		if path == "" { // moved: both paths follow
			if i += 2; i >= len(fields) {
				return nil, nil, errChanges
			}
			path = string(fields[i])
		}
		n, ok := at[path]
		if !ok {
			return nil, nil, errChanges
		}
		c := &all[n]
		c.Binary = count[0] == "-"
		c.Added, _ = strconv.Atoi(count[0])
		c.Removed, _ = strconv.Atoi(count[1])
	}
	return all, ids, nil
}

func (d *Driver) Diff(ctx context.Context, t tree.Tree, from, to string, paths []string, out io.Writer) error {
	r, err := d.repo(ctx, t)
	if err == nil {
		err = diff(ctx, r, append(patch(from, to, "--"), paths...), out)
	}
	if err != nil {
		return err
	}
	return d.looseDiff(ctx, r, t, from, to, paths, out)
}

// Whole implements tree.Driver. What is in submodules is left out.
func (d *Driver) Whole(ctx context.Context, t tree.Tree, from, to string, paths []string, out io.Writer) error {
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	return diff(ctx, r, append(patch("--unified=1000000000", from, to, "--"), paths...), out)
}

func diff(ctx context.Context, r git.Repository, args []string, out io.Writer) error {
	call := git.Call{GitDir: r.Dir, Dir: r.Dir, More: r.Objects, Args: args}
	return r.Git.Read(ctx, call, func(in io.Reader) error {
		_, err := io.Copy(out, in)
		return err
	})
}

// patch are the arguments of a git that writes how two trees differ.
func patch(more ...string) []string {
	return append([]string{"--literal-pathspecs", "diff-tree", "-p", "-r", "-M", "--no-commit-id", "--no-color", "--no-ext-diff", "--no-textconv", "--histogram"}, more...)
}

// Apart implements tree.Driver. What an agent did to its own repository may be
// unreadable; its commits count as none then.
func (d *Driver) Apart(ctx context.Context, t tree.Tree, now tree.State, tip string) (ahead, behind int, err error) {
	r, err := d.repo(ctx, t)
	if err != nil || t.Kind != tree.Git {
		return 0, 0, err
	}
	count := func(more []string, to, from string) (int, error) {
		if to == "" || to == from {
			return 0, nil
		}
		out, err := r.Call(ctx, git.Call{More: more, Args: []string{"rev-list", "--count", to, "^" + from}})
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	}
	if behind, err = count(nil, tip, t.BaseCommit); err != nil {
		return 0, 0, fmt.Errorf("count what %s has more than %s: %w", t.Base, hex12(t.BaseCommit), err)
	}
	more, err := d.reach(ctx, r, t, now.Head)
	if err == nil {
		ahead, err = count(more, now.Head, t.Head)
	}
	if err != nil {
		ahead = 0
	}
	return ahead, behind, ctx.Err()
}

// leafOf is the entry of a path in a state: of a regular file, or it is an error.
func leafOf(ctx context.Context, r git.Repository, state, path string) (mode, object string, err error) {
	line, err := r.Do(ctx, "--literal-pathspecs", "ls-tree", "-z", state, "--", path)
	if err != nil {
		return "", "", err
	}
	head, name, _ := strings.Cut(strings.TrimRight(line, "\x00"), "\t")
	words := strings.Fields(head)
	if len(words) != 3 || words[1] != "blob" || words[0] == modeLink || name != path {
		return "", "", core.Invalid("file", path, "a regular file of the tree")
	}
	return words[0], words[2], nil
}

func (d *Driver) File(ctx context.Context, t tree.Tree, state, path string) ([]byte, error) {
	r, err := d.repo(ctx, t)
	if err != nil {
		return nil, err
	}
	_, object, err := leafOf(ctx, r, state, path)
	if err != nil {
		return nil, err
	}
	size, err := r.Do(ctx, "cat-file", "-s", object)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.Atoi(size); err != nil || n > tree.MaxEdit {
		return nil, core.Invalid("file", path, fmt.Sprintf("a file of at most %d bytes", tree.MaxEdit))
	}
	return r.Call(ctx, git.Call{Args: []string{"cat-file", "blob", object}})
}

func (d *Driver) Edit(ctx context.Context, t tree.Tree, key, state, path string, content []byte) error {
	ctx, stop := patiently(ctx)
	defer stop()
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	mode, _, err := leafOf(ctx, r, state, path)
	if err != nil {
		return err
	}
	object, err := r.Call(ctx, git.Call{In: bytes.NewReader(content), Args: []string{"hash-object", "-w", "--no-filters", "--stdin"}})
	if err != nil {
		return err
	}
	next, err := variant(ctx, r, state, func(index string) error {
		line := mode + " " + strings.TrimSpace(string(object)) + "\t" + path + "\x00"
		_, err := r.Call(ctx, git.Call{Index: index, In: strings.NewReader(line), Args: []string{"update-index", "-z", "--index-info"}})
		return err
	})
	if err != nil {
		return err
	}
	return d.bring(ctx, r, t, key, state, next)
}
