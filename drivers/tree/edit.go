package tree

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

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
