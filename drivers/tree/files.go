package tree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
)

// entry is one path that differs between two commits.
type entry struct {
	path     string
	from, to leaf

	have    leaf // what is in the work tree now
	indexed leaf // and in its index, where it has one
	sparse  bool // it is not to be checked out
}

// leaf is what a path is: nothing with mode "".
type leaf struct{ mode, object string }

const (
	modeLink   = "120000"
	modeModule = "160000"
	modeExec   = "100755"
)

// theirs reports a path that is neither as it was nor as it is to be.
func (e *entry) theirs(indexed bool) bool {
	other := func(l leaf) bool { return l != e.from && l != e.to }
	return other(e.have) || indexed && other(e.indexed)
}

// maxShownPaths bounds the paths that an error lists.
const maxShownPaths = 10

// checkedOut brings the work tree in which the branch is checked out to the new
// commit, and its index.
func (l *landing) checkedOut(ctx context.Context) error {
	if err := l.link(ctx, filepath.Join(l.dot, "index.lock")); err != nil {
		return err
	}
	list, err := l.entries(ctx)
	if err == nil {
		err = l.change(ctx, list)
	}
	if err != nil {
		return err
	}
	return l.reindex(ctx, list)
}

// entries are the paths that differ between the two commits.
func (l *landing) entries(ctx context.Context) (all []entry, err error) {
	out, err := l.Call(ctx, git.Call{Args: []string{"diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--raw", "--no-abbrev", l.from, l.to}})
	if err != nil {
		return nil, err
	}
	fields := bytes.Split(out, []byte{0})
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(string(fields[i]), ":"))
		if len(f) != 5 {
			return nil, errChanges
		}
		e := entry{path: string(fields[i+1]), from: leaf{f[0], f[2]}, to: leaf{f[1], f[3]}}
		for _, side := range []*leaf{&e.from, &e.to} {
			if side.mode == "000000" {
				*side = leaf{}
			}
		}
		if e.from.mode == modeModule || e.to.mode == modeModule {
			return nil, core.Errorf(core.Conflict, "%q is a repository in the repository, which is not taken over", e.path).With("field", "path")
		}
		all = append(all, e)
	}
	return all, nil
}

// files puts the files of the new commit in their places, each by one rename.
func (l *landing) files(ctx context.Context) error {
	list, err := l.entries(ctx)
	if err != nil {
		return err
	}
	return l.change(ctx, list)
}

// change is files for the paths that differ. Somebody's own work stops all of it before
// anything is touched; then what will be is noted, so that it can be taken back.
func (l *landing) change(ctx context.Context, list []entry) error {
	if err := l.look(ctx, list); err != nil {
		return err
	}
	theirs, err := l.across(list)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.theirs(l.dot != "") {
			theirs = append(theirs, e.path)
		}
	}
	if slices.Sort(theirs); len(theirs) > 0 {
		more := ""
		if n := len(theirs) - maxShownPaths; n > 0 {
			theirs, more = theirs[:maxShownPaths], fmt.Sprintf(" and %d more", n)
		}
		return core.Errorf(core.Conflict, "%s has work of its own in %s%s, which would be overwritten; commit it or put it away first", l.root, strings.Join(theirs, ", "), more).With("field", "base")
	}
	list = slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return e.have == e.to || e.sparse })
	if err := l.note(list); err != nil {
		return fmt.Errorf("note what is changed in %s: %w", l.root, err)
	}
	return l.place(ctx, list)
}

// place puts paths into their places. A directory that becomes a file is emptied first.
func (l *landing) place(ctx context.Context, list []entry) error {
	stage, err := l.stage(ctx, list)
	if err != nil {
		return err
	}
	defer files.RemoveTree(stage) //nolint:errcheck // swept by the next one
	for _, gone := range []bool{true, false} {
		for _, e := range list {
			if gone != (e.to.mode == "") {
				continue
			}
			if err := l.put(stage, e); err != nil {
				return fmt.Errorf("put %s into %s: %w", e.path, l.root, err)
			}
		}
	}
	return nil
}

// across are files and links of somebody's that stand where a directory is to be.
func (l *landing) across(list []entry) (all []string, err error) {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	known := map[string]bool{}
	for _, e := range list {
		known[e.path] = true
	}
	for _, e := range list {
		if e.to.mode == "" {
			continue
		}
		for _, dir := range parents(e.path) {
			if known[dir] {
				continue
			}
			known[dir] = true // looked at
			if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
				all = append(all, dir)
			}
		}
	}
	return all, nil
}

// staged is where the new files lie before they are put in their places.
func (l *landing) staged() string {
	at := l.dot
	at = cmp.Or(at, filepath.Dir(l.root)) // of a plain directory: on the same file system, as a rule
	return filepath.Join(at, ".swarmdeck-"+strings.ReplaceAll(l.key, ":", "-"))
}

// stage lays the new files out beside the work tree's.
func (l *landing) stage(ctx context.Context, list []entry) (string, error) {
	stage := l.staged()
	if err := files.RemoveTree(stage); err != nil {
		return "", err
	}
	if err := os.Mkdir(stage, 0o700); err != nil {
		return "", err
	}
	index := filepath.Join(l.Dir, "index-stage-"+strings.ToLower(rand.Text()[:10])) // trees of one source share the directory
	defer os.Remove(index)
	var names bytes.Buffer
	for _, e := range list {
		if e.to.mode != "" {
			names.WriteString(e.path + "\x00")
		}
	}
	if _, err := l.Call(ctx, git.Call{Index: index, Args: []string{"read-tree", l.to}}); err != nil {
		return "", err
	}
	_, err := l.Call(ctx, git.Call{
		Dir: stage, WorkTree: stage, Index: index, Write: []string{stage}, In: &names, Args: []string{"checkout-index", "-z", "--stdin", "--quiet"},
	})
	if err != nil {
		return "", err
	}
	return stage, settle(stage)
}

// put brings one path to what it is to be. Directories that a file stands in the
// way of, and empty ones that stand in the way of a file, give way.
func (l *landing) put(stage string, e entry) error {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if e.to.mode == "" {
		if err := root.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
		for dir := filepath.Dir(e.path); dir != "."; dir = filepath.Dir(dir) {
			if root.Remove(dir) != nil {
				break // it holds something else
			}
		}
		return nil
	}
	for _, dir := range parents(e.path) {
		info, err := root.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = root.Remove(dir) // a file or a link that is a directory now; it was as it had been
			info = nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if info == nil || !info.IsDir() {
			if err := root.Mkdir(dir, 0o755); err != nil {
				return err
			}
		}
	}
	if info, err := root.Lstat(e.path); err == nil && info.IsDir() {
		if err := root.Remove(e.path); err != nil {
			return err
		}
	}
	parent, err := root.Open(filepath.Dir(e.path))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat(unix.AT_FDCWD, filepath.Join(stage, e.path), int(parent.Fd()), filepath.Base(e.path))
}

// parents are the directories on the way to a path, the outermost first.
func parents(path string) (all []string) {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		all = append(all, dir)
	}
	slices.Reverse(all)
	return all
}

// look finds what is in the work tree and its index now at each path. A file that is
// not checked out is what the index has.
func (l *landing) look(ctx context.Context, list []entry) error {
	if l.dot != "" {
		if err := l.index(ctx, list); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return err
	}
	defer root.Close()
	var regular []*entry
	for n := range list {
		e := &list[n]
		e.have = leaf{}
		info, err := root.Lstat(e.path)
		e.sparse = e.sparse && err != nil // somebody wanted that one
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			if e.sparse {
				e.have = e.indexed
			}
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := root.Readlink(e.path)
			if err != nil {
				return err
			}
			out, err := l.Call(ctx, git.Call{In: strings.NewReader(to), Args: []string{"hash-object", "--stdin"}})
			if err != nil {
				return err
			}
			e.have = leaf{modeLink, strings.TrimSpace(string(out))}
		case info.Mode().IsRegular():
			e.have.mode = "100644"
			if info.Mode()&0o100 != 0 {
				e.have.mode = modeExec
			}
			if strings.ContainsAny(e.path, "\n") {
				return core.Errorf(core.Conflict, "%q: a name with a line break is not taken over", e.path).With("field", "path")
			}
			regular = append(regular, e)
		case info.IsDir():
			e.have.mode = "dir"
			if empty(root, e.path) || within(list, e.path) {
				e.have = leaf{}
			}
		default:
			e.have.mode = "special"
		}
	}
	return l.hash(ctx, regular)
}

// hash reads files: byte for byte, and those that are nobody's then once more as git
// would keep them.
func (l *landing) hash(ctx context.Context, some []*entry) error {
	for _, how := range [][]string{{"--no-filters"}, nil} {
		var paths strings.Builder
		for _, e := range some {
			paths.WriteString(e.path + "\n")
		}
		out, err := l.Over(ctx, l.root, "", []byte(paths.String()), append([]string{"hash-object", "--stdin-paths"}, how...)...)
		if err != nil {
			return fmt.Errorf("read the files of %s: %w", l.root, err)
		}
		hashes := strings.Fields(string(out))
		if len(hashes) != len(some) {
			return fmt.Errorf("read the files of %s: %d of %d were read", l.root, len(hashes), len(some))
		}
		for n, e := range some {
			e.have.object = hashes[n]
		}
		some = slices.DeleteFunc(some, func(e *entry) bool { return !e.theirs(false) })
		if len(some) == 0 {
			return nil
		}
	}
	return nil
}

// empty reports a directory with nothing in it.
func empty(root *os.Root, path string) bool {
	f, err := root.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return err != nil
}

// within reports whether all that is known of a directory goes: its files are
// among those that change, and a file takes its place.
func within(list []entry, dir string) bool {
	return slices.ContainsFunc(list, func(e entry) bool { return strings.HasPrefix(e.path, dir+"/") && e.to.mode == "" })
}
