package tree

import (
	"bytes"
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
}

// leaf is what a path is: nothing with mode "".
type leaf struct{ mode, object string }

const (
	modeLink   = "120000"
	modeModule = "160000"
	modeExec   = "100755"
)

// maxShownPaths bounds the paths that an error lists.
const maxShownPaths = 10

// checkedOut brings the work tree in which the branch is checked out to the new
// commit, and its index.
func (l *landing) checkedOut(ctx context.Context) error {
	lock := filepath.Join(l.dot, "index.lock")
	if err := taken(os.Link(l.mark(), lock), l.mark(), lock); err != nil {
		return err
	}
	if err := l.files(ctx); err != nil {
		return err
	}
	// The new index is made of the one that is there: what else is in it stays.
	work := filepath.Join(l.Dir, "index-land")
	_ = os.Remove(work + ".lock") // of one that was killed
	if _, err := git.CopyIndex(filepath.Join(l.dot, "index"), work); err != nil {
		return err
	}
	defer os.Remove(work)
	list, err := l.entries(ctx)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range list {
		mode, object := e.to.mode, e.to.object
		if mode == "" {
			mode, object = "0", strings.Repeat("0", len(l.to))
		}
		fmt.Fprintf(&lines, "%s %s\t%s\x00", mode, object, e.path)
	}
	if _, err := l.Over(ctx, l.root, work, []byte(lines.String()), "update-index", "-z", "--index-info"); err != nil {
		return fmt.Errorf("bring the index of %s up to date: %w", l.root, err)
	}
	_, _ = l.Over(ctx, l.root, work, nil, "update-index", "-q", "--refresh") // only times, for the speed of the next git
	next := filepath.Join(l.dot, "swarmdeck-index")
	if _, err := git.CopyIndex(work, next); err != nil {
		return err
	}
	if err := os.Chmod(next, 0o644); err != nil {
		return err
	}
	if err := synced(next); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(l.dot, "index"))
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

// files puts the files of the new commit in their places, each by one rename. A
// file that is neither as it was nor as it is to be is somebody's work, and stops
// all of it before anything is touched.
func (l *landing) files(ctx context.Context) error {
	list, err := l.entries(ctx)
	if err != nil {
		return err
	}
	have, err := l.have(ctx, list)
	if err != nil {
		return err
	}
	var theirs []string
	for n, e := range list {
		if have[n] != e.from && have[n] != e.to {
			theirs = append(theirs, e.path)
		}
	}
	across, err := l.across(list)
	if err != nil {
		return err
	}
	if theirs = append(theirs, across...); len(theirs) > 0 {
		more := ""
		if n := len(theirs) - maxShownPaths; n > 0 {
			theirs, more = theirs[:maxShownPaths], fmt.Sprintf(" and %d more", n)
		}
		return core.Errorf(core.Conflict, "%s has work of its own in %s%s, which would be overwritten; commit it or put it away first", l.root, strings.Join(theirs, ", "), more).With("field", "base")
	}
	stage, err := l.stage(ctx, list)
	if err != nil {
		return err
	}
	defer files.RemoveTree(stage)              //nolint:errcheck // swept by the next one
	for _, gone := range []bool{true, false} { // a directory that becomes a file is emptied first
		for n, e := range list {
			if have[n] == e.to || gone != (e.to.mode == "") {
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
	if at == "" {
		at = filepath.Dir(l.root) // of a plain directory: on the same file system, as a rule
	}
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

// have is what is in the work tree now at each path.
func (l *landing) have(ctx context.Context, list []entry) ([]leaf, error) {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := make([]leaf, len(list))
	var regular bytes.Buffer
	var which []int
	for n, e := range list {
		info, err := root.Lstat(e.path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := root.Readlink(e.path)
			if err != nil {
				return nil, err
			}
			out, err := l.Call(ctx, git.Call{In: strings.NewReader(to), Args: []string{"hash-object", "--stdin"}})
			if err != nil {
				return nil, err
			}
			all[n] = leaf{modeLink, strings.TrimSpace(string(out))}
		case info.Mode().IsRegular():
			all[n].mode = "100644"
			if info.Mode()&0o100 != 0 {
				all[n].mode = modeExec
			}
			if strings.ContainsAny(e.path, "\n") {
				return nil, core.Errorf(core.Conflict, "%q: a name with a line break is not taken over", e.path).With("field", "path")
			}
			regular.WriteString(e.path + "\n")
			which = append(which, n)
		case info.IsDir():
			all[n].mode = "dir"
			if empty(root, e.path) || within(list, e.path) {
				all[n] = leaf{}
			}
		default:
			all[n].mode = "special"
		}
	}
	out, err := l.Call(ctx, git.Call{Dir: l.root, WorkTree: l.root, In: &regular, Args: []string{"hash-object", "--stdin-paths"}})
	if err != nil {
		return nil, fmt.Errorf("read the files of %s: %w", l.root, err)
	}
	hashes := strings.Fields(string(out))
	if len(hashes) != len(which) {
		return nil, fmt.Errorf("read the files of %s: %d of %d were read", l.root, len(hashes), len(which))
	}
	for i, n := range which {
		all[n].object = hashes[i]
	}
	return all, nil
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
