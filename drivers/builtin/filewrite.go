package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

type writeResult struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
}

func (r *Runner) fileWrite(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
	var p struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Mode    string `json:"mode"`
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	path, err := r.path(p.Path)
	if err != nil {
		return nil, err
	}
	write, ok := map[string]func(string, string) (bool, error){
		"": create, "create": create, "overwrite": overwrite, "append": appendTo,
	}[p.Mode]
	if !ok {
		return nil, core.Invalid("mode", p.Mode, "create, overwrite, append")
	}
	if err := hold.Wait(ctx); err != nil {
		return nil, err
	}
	created, err := write(path, p.Content)
	if err != nil {
		return nil, fileError("write", path, err)
	}
	return core.Encode(writeResult{Path: path, Bytes: len(p.Content), Created: created})
}

// newFile is the mode of a new file; the engine's umask takes from it.
const newFile = 0o644

// create makes a file that is not there yet.
func create(path, content string) (bool, error) {
	return true, place(path, content, nil, func(temp string) error {
		err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // this file system can't
			if err = os.Link(temp, path); err == nil {
				err = os.Remove(temp)
			}
		}
		return err
	})
}

// overwrite puts a new file in the place of the one that is there, with its
// permissions.
func overwrite(path, content string) (created bool, err error) {
	var mode *fs.FileMode
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, notRegular(path, info)
	default:
		perm := info.Mode().Perm()
		mode = &perm
	}
	return created, place(path, content, mode, func(temp string) error { return os.Rename(temp, path) })
}

// place writes a file beside its place and moves it there once all of it is
// on the disk. A nil mode is that of a new file.
func place(path, content string, mode *fs.FileMode, move func(temp string) error) (err error) {
	temp := filepath.Join(filepath.Dir(path), ".swarmdeck-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newFile)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	_, err = f.WriteString(content)
	if err == nil && mode != nil {
		err = f.Chmod(*mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := move(temp); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// appendTo writes at the end of a file, which it makes if need be. A crash
// may leave a part of the content.
func appendTo(path, content string) (created bool, err error) {
	const flags = os.O_WRONLY | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY
	f, err := os.OpenFile(path, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		created = true
		f, err = os.OpenFile(path, flags|os.O_CREATE, newFile)
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := regular(f, path); err != nil {
		return false, err
	}
	n, err := f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return created, fmt.Errorf("after %d of %d bytes: %w", n, len(content), err)
	}
	if created {
		err = syncDir(filepath.Dir(path))
	}
	return created, err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
