package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// Worktree is a work tree as its own files tell (gitrepository-layout(5)). It is
// somebody else's: its repository is read, and git never run on it.
type Worktree struct {
	Path   string
	Dir    string // its own git directory
	Common string // that of the repository
	Notes  string // lines that its state carries besides, each with a line break
}

func notOne(path, why string) error {
	return core.Errorf(core.NotFound, "target: %s is no git worktree: %s", path, why).With("field", "target")
}

// FindWorktree reads what makes a directory a worktree. One that says it belongs
// to a repository must be known there: any file can say so.
func FindWorktree(path string) (w Worktree, err error) {
	dot := filepath.Join(path, ".git")
	info, err := os.Lstat(dot)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return w, notOne(path, "there is no .git")
	}
	switch {
	case err != nil:
		return w, err
	case info.IsDir():
		w = Worktree{Path: path, Dir: dot, Common: dot}
	case info.Mode().IsRegular():
		to, err := Pointer(dot, "gitdir: ")
		if err != nil {
			return w, notOne(path, err.Error())
		}
		back, err := Pointer(filepath.Join(to, "gitdir"), "")
		if real, bad := filepath.EvalSymlinks(filepath.Dir(back)); err != nil || bad != nil || real != path {
			return w, notOne(path, "the repository that it names does not know it")
		}
		w = Worktree{Path: path, Dir: to, Common: to}
		if common, err := Pointer(filepath.Join(to, "commondir"), ""); err == nil {
			// Whoever wrote these files can name any repository: one that knows it keeps it.
			if w.Common = common; !Inside(common, filepath.Join("worktrees", filepath.Base(to))) || !Same(to, filepath.Join(common, "worktrees", filepath.Base(to))) {
				return w, notOne(path, "the repository that it names does not keep it")
			}
		}
	default:
		return w, notOne(path, ".git is neither a directory nor a file")
	}
	for _, name := range []string{filepath.Join(w.Dir, "HEAD"), filepath.Join(w.Common, "objects")} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeSymlink != 0 {
			return w, notOne(path, "its repository has no "+filepath.Base(name))
		}
	}
	return w, nil
}

// Inside reports a directory below another one, to which no link leads.
func Inside(dir, name string) bool {
	real, err := filepath.EvalSymlinks(dir)
	at, bad := filepath.EvalSymlinks(filepath.Join(dir, name))
	return err == nil && bad == nil && at == filepath.Join(real, name)
}

// Same reports one directory by two names.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	y, bad := os.Stat(b)
	return err == nil && bad == nil && os.SameFile(x, y)
}

// maxPointer bounds a file that holds a path or the name of a ref, in bytes.
const maxPointer = 8191

// PointerText reads a small file, whoever put it there.
func PointerText(file string) (string, error) {
	var nobody *safeopen.Own
	root, err := nobody.Root(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, err := root.Read(filepath.Base(file), maxPointer)
	text := strings.TrimSuffix(string(data), "\n")
	if err == nil && (text == "" || strings.ContainsAny(text, "\x00\n")) {
		err = fmt.Errorf("%s names nothing", filepath.Base(file))
	}
	return text, err
}

// Pointer reads a file that holds a path.
func Pointer(file, prefix string) (string, error) {
	text, err := PointerText(file)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(text, prefix)
	if !ok || to == "" {
		return "", fmt.Errorf("%s names no place", filepath.Base(file))
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return filepath.Clean(to), nil
}

// Head is the commit that is checked out, and its branch; "" for none.
func (w Worktree) Head() (commit, branch string) {
	text, err := PointerText(filepath.Join(w.Dir, "HEAD"))
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	switch {
	case err != nil:
		return "", ""
	case !symbolic && IsHash(text):
		return text, ""
	case !symbolic:
		return "", ""
	}
	branch = strings.TrimPrefix(ref, "refs/heads/")
	root, err := w.Root()
	if err != nil {
		return "", branch
	}
	defer root.Close()
	return Ref(root, ref), branch
}

// maxEnds bounds what says where a history ends, in bytes.
const maxEnds = 16 << 20

// Ends are the commits at which the history of a shallow clone ends, a line each
// (gitformat-shallow(5)); nil of a whole one.
func (w Worktree) Ends() ([]byte, error) {
	root, err := w.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := root.Read("shallow", maxEnds)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(data) {
		if err == nil && !IsHash(string(bytes.TrimSuffix(line, []byte("\n")))) {
			err = core.Errorf(core.InvalidInput, "%s/shallow holds something else than commits", w.Common)
		}
	}
	return data, err
}

// Root is the worktree's repository, in which no link is followed.
func (w Worktree) Root() (*safeopen.Root, error) {
	var nobody *safeopen.Own // whose place it is was checked when it was attached
	return nobody.Root(w.Common)
}
