package env

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"swarmdeck/engine/core"
)

// root is the directory that the files of the call's workspace lie in, and that
// no path leads out of.
func (c *call) root() (*os.Root, error) {
	dir := c.env.options.Dir
	if own, ok := c.env.places[c.ws.Record().ID]; ok {
		dir = own
	}
	if dir == "" {
		return nil, Refuse(OperationInvalid, "file_path", nil, "the environment has no directory for files", "start it with --dir")
	}
	if root := c.env.dirs[dir]; root != nil {
		if same(root, dir) {
			return root, nil
		}
		delete(c.env.dirs, dir) // it was removed, and perhaps made again
		_ = root.Close()
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of workspace %s: %w", c.ws.Record().ID, err)
	}
	c.env.dirs[dir] = root
	return root, nil
}

// same says whether a directory still is the one that was opened.
func same(root *os.Root, dir string) bool {
	then, err := root.Stat(".")
	now, also := os.Stat(dir)
	return err == nil && also == nil && os.SameFile(then, now)
}

// filePath checks a path within the directory.
func filePath(p string) (string, error) {
	slashed := filepath.ToSlash(p)
	if p == "" || len(p) > 500 || !core.Printable(p) || !filepath.IsLocal(p) || path.Clean(slashed) == "." || strings.HasSuffix(slashed, "/") {
		return "", Invalid("file_path", p, "a relative path that stays inside the workspace's directory")
	}
	return filepath.Clean(p), nil
}

// fileError tells what went wrong with a path that is the caller's.
func fileError(field, name string, err error) error {
	var at *fs.PathError
	var why syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Refuse(FileNotFound, field, name, fmt.Sprintf("%s: no such file", name), "give the path of a file inside the workspace's directory")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist), errors.As(err, &at) && strings.Contains(at.Err.Error(), "escapes"),
		errors.As(err, &why) && slices.Contains([]syscall.Errno{syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP}, why):
		return Refuse(InvalidParameter, field, name, fmt.Sprintf("%s: %v", name, err), "give a path inside the workspace's directory that may be used")
	case why != 0:
		return Refuse(OperationInvalid, field, name, fmt.Sprintf("%s: %v", name, err), "see that there is room in the workspace's directory and that it can be used")
	}
	return fmt.Errorf("file %s: %w", name, err)
}

// replace writes a file whole: under another name first, so that whoever reads
// it finds the old one or the new one.
func replace(root *os.Root, name string, data []byte) (replaced bool, err error) {
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return false, err
		}
	}
	if info, err := root.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return false, Invalid("file_path", name, "the path of a file, not of a directory or device")
		}
		replaced = true
	}
	f, temporary, err := partial(root, name)
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return false, errors.Join(err, root.Remove(temporary))
	}
	return replaced, nil
}

// partial opens what a file is written as first: the one that a writer which was
// killed has left, so that none stay, and another while somebody writes that. The
// name can be guessed: a pipe of that name is not waited for.
func partial(root *os.Root, name string) (f *os.File, at string, err error) {
	dir, base := filepath.Split(name)
	at = filepath.Join(dir, "."+base+".part")
	if f, err = root.OpenFile(at, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644); err == nil {
		if ours(root, f, at) {
			return f, at, f.Truncate(0)
		}
		_ = f.Close() // nothing was written
	}
	at = filepath.Join(dir, "."+rand.Text()+".part")
	f, err = root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	return f, at, err
}

// ours locks a file, which is then nobody else's if it still has its name: who
// wrote it before may have finished.
func ours(root *os.Root, f *os.File, at string) bool {
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	then, err := f.Stat()
	now, also := root.Lstat(at)
	if err != nil || also != nil || !then.Mode().IsRegular() || !os.SameFile(then, now) {
		return false
	}
	st, ok := then.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1 // else it is another file too
}
