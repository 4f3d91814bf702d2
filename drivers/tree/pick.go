package tree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

// pick is a state with only some of what changed: what the tree was made from,
// with these files and hunks.
func (j *joining) pick(ctx context.Context) (string, error) {
	all, err := j.d.Changes(ctx, j.t, j.t.Since, j.j.State)
	if err != nil {
		return "", err
	}
	return variant(ctx, j.Repository, j.t.Since, func(index string) (err error) {
		for n, p := range j.j.Only {
			at := slices.IndexFunc(all, func(c tree.Change) bool { return c.Path == p.Path })
			if at < 0 {
				return core.Invalid(fmt.Sprintf("only[%d]", n), p.Path, "a file that "+j.t.Agent+" has changed")
			}
			if len(p.Hunks) > 0 {
				err = j.pickHunks(ctx, index, p)
			} else {
				err = j.pickFile(ctx, index, all[at])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// variant makes a state of another one, changed in an index.
func variant(ctx context.Context, r git.Repository, of string, change func(index string) error) (string, error) {
	index := filepath.Join(r.Dir, "index-variant-"+strings.ToLower(rand.Text()[:10]))
	defer os.Remove(index)
	if _, err := r.Call(ctx, git.Call{Index: index, Args: []string{"read-tree", of}}); err != nil {
		return "", err
	}
	if err := change(index); err != nil {
		return "", err
	}
	out, err := r.Call(ctx, git.Call{Index: index, Args: []string{"write-tree"}})
	if err != nil {
		return "", err
	}
	return r.Do(ctx, "commit-tree", "-m", "a state", strings.TrimSpace(string(out)))
}

// pickFile takes a whole file into an index as a state has it.
func (j *joining) pickFile(ctx context.Context, index string, c tree.Change) error {
	entry, err := j.Do(ctx, "--literal-pathspecs", "ls-tree", "-z", j.j.State, "--", c.Path)
	if err != nil {
		return err
	}
	none := "0 " + strings.Repeat("0", len(j.t.Since)) + "\t"
	lines := strings.TrimRight(entry, "\x00") + "\x00"
	if c.Status == "deleted" {
		lines = none + c.Path + "\x00"
	}
	if c.From != "" {
		lines += none + c.From + "\x00"
	}
	_, err = j.Call(ctx, git.Call{Index: index, In: strings.NewReader(lines), Args: []string{"update-index", "-z", "--index-info"}})
	return err
}

// pickHunks takes some hunks of a file into an index.
func (j *joining) pickHunks(ctx context.Context, index string, p tree.Piece) error {
	var text bytes.Buffer
	if err := j.d.Diff(ctx, j.t, j.t.Since, j.j.State, []string{p.Path}, &text); err != nil {
		return err
	}
	patch, err := someHunks(text.String(), p)
	if err != nil {
		return err
	}
	_, err = j.Call(ctx, git.Call{Index: index, In: strings.NewReader(patch), Args: []string{"apply", "--cached", "--recount", "--whitespace=nowarn", "-"}})
	return wrap(err, "take hunks %v of %s", p.Hunks, p.Path)
}

// someHunks is a patch of one file with only these hunks.
func someHunks(patch string, p tree.Piece) (string, error) {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "@@ ") {
			n++
		}
		if n == 0 || slices.Contains(p.Hunks, n) {
			b.WriteString(line)
		}
	}
	for _, h := range p.Hunks {
		if h < 1 || h > n {
			return "", core.Invalid("hunk", h, fmt.Sprintf("1 to %d of %s", n, p.Path))
		}
	}
	return b.String(), nil
}

// marked are the files to which a commit adds conflict markers as git writes them: a
// beginning and an end, not a line of ======= alone, which is a heading somewhere.
func (j *joining) marked(ctx context.Context, onto, commit string) ([]string, error) {
	out, err := j.Call(ctx, git.Call{
		Settings: []string{"core.whitespace=-blank-at-eol,-blank-at-eof,-space-before-tab", "core.quotePath=false"},
		Args:     []string{"diff-tree", "-r", "--check", "--no-renames", onto, commit},
	})
	var failed *git.Failed
	if err == nil || !errors.As(err, &failed) || failed.Code != 2 { // which says that it found some
		return nil, err
	}
	var paths []string
	for line := range strings.Lines(string(out)) {
		line, found := strings.CutSuffix(strings.TrimSpace(line), ": leftover conflict marker")
		if at := strings.LastIndexByte(line, ':'); found && at > 0 {
			paths = append(paths, line[:at])
		}
	}
	if paths = slices.Compact(paths); len(paths) == 0 {
		return nil, nil
	}
	args := []string{"--literal-pathspecs", "grep", "-z", "-l", "--all-match", "-e", "^<<<<<<< ", "-e", "^>>>>>>> ", commit, "--"}
	found, err := j.Call(ctx, git.Call{Args: append(args, paths[:min(len(paths), 100)]...)})
	if errors.As(err, &failed) && failed.Code == 1 { // none
		return nil, nil
	}
	paths = strings.Split(strings.TrimSuffix(string(found), "\x00"), "\x00")
	for i, p := range paths {
		paths[i] = strings.TrimPrefix(p, commit+":")
	}
	return paths, err
}
