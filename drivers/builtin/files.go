package builtin

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

type readResult struct {
	Path          string  `json:"path"`
	Bytes         int     `json:"bytes"`
	Content       *string `json:"content,omitzero"`
	ContentBase64 string  `json:"content_base64,omitempty"`
}

func (r *Runner) fileRead(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
	var p struct {
		Path     string `json:"path"`
		MaxBytes int    `json:"max_bytes"`
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	most, err := maxBytes(p.MaxBytes)
	if err != nil {
		return nil, err
	}
	path, err := r.path(p.Path)
	if err != nil {
		return nil, err
	}
	if err := hold.Wait(ctx); err != nil {
		return nil, err
	}
	// Not blocking, because a named pipe would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	defer f.Close()
	if err := regular(f, path); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, fileError("read", path, err)
	}
	if len(data) > most {
		return nil, tooLarge("the file "+path, most)
	}
	out := readResult{Path: path, Bytes: len(data)}
	if s := string(data); utf8.ValidString(s) {
		out.Content = &s
	} else {
		out.ContentBase64 = base64.StdEncoding.EncodeToString(data)
	}
	return core.Encode(out)
}

func regular(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return fileError("look at", path, err)
	}
	if !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	return nil
}

func notRegular(path string, info fs.FileInfo) error {
	what := "no regular file"
	switch {
	case info.IsDir():
		what = "a directory"
	case info.Mode()&fs.ModeSymlink != 0:
		what = "a symbolic link, which is not followed"
	}
	return core.Errorf(core.InvalidInput, "path: %s is %s", path, what).With("field", "path")
}

// fileError gives an error of the system the class that a caller can act on.
func fileError(verb, path string, err error) error {
	var known *core.Error
	code := core.Internal
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		code = core.NotFound
	case errors.Is(err, fs.ErrExist):
		code = core.Conflict
	case errors.Is(err, fs.ErrPermission):
		code = core.Denied
	case errors.Is(err, syscall.ELOOP):
		return core.Errorf(core.InvalidInput, "path: %s is a symbolic link, which is not followed", path).With("field", "path")
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		code = core.InvalidInput
	}
	return core.Errorf(code, "%s %s: %v", verb, path, cause(err)).With("field", "path")
}

// cause is what went wrong, without the path that the message names already.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
