package tree

import (
	"context"
	"errors"
	"slices"
	"strings"

	"swarmdeck/drivers/git"
)

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
