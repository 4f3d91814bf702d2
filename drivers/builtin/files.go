package builtin

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"syscall"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
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
		MaxBytes int    `json:"max_bytes" allow:"none or 1-1048576"`
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	most := cmp.Or(p.MaxBytes, defaultBytes)
	f, err := r.file(call.Tenant, call.TaskID, p.Path)
	if err != nil {
		return nil, r.fileError(ctx, call, "read", p.Path, err)
	}
	if err := hold.Wait(ctx); err != nil {
		return nil, err
	}
	var data []byte
	err = r.at(f, func(at *safeopen.Place) (err error) {
		data, _, err = at.Read(most)
		return err
	})
	if errors.Is(err, safeopen.ErrTooLarge) {
		return nil, tooLarge("the file "+f.path(), most)
	}
	if err != nil {
		return nil, r.fileError(ctx, call, "read", f.path(), err)
	}
	out := readResult{Path: f.path(), Bytes: len(data)}
	if s := string(data); utf8.ValidString(s) {
		out.Content = &s
	} else {
		out.ContentBase64 = base64.StdEncoding.EncodeToString(data)
	}
	return core.Encode(out)
}

// at works on what a file's name leads to.
func (r *Runner) at(f file, work func(*safeopen.Place) error) error {
	root, err := r.opt.Own.Root(f.root)
	if err != nil {
		return err
	}
	defer root.Close()
	at, err := root.Place(f.name)
	if err != nil {
		return err
	}
	defer at.Close()
	return work(at)
}

// fileError gives an error of the system the class that a caller can act on.
// That somebody reached for the engine's own files, or out of their scope, is told.
func (r *Runner) fileError(ctx context.Context, call skill.Call, verb, path string, err error) error {
	var known *core.Error
	code := core.Internal
	if (safeopen.IsOwn(err) || errors.Is(err, core.Kind(core.Denied))) && r.opt.Refused != nil {
		r.opt.Refused(ctx, call, err)
	}
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		code = core.NotFound
	case errors.Is(err, fs.ErrExist):
		code = core.Conflict
	case errors.Is(err, fs.ErrPermission):
		code = core.Denied
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		code = core.InvalidInput
	}
	return core.Errorf(code, "%s %s: %v", verb, path, cause(err)).With("field", "path")
}

// cause is what went wrong, without the path that the message names already.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

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
	f, err := r.file(call.Tenant, call.TaskID, p.Path)
	if err != nil {
		return nil, r.fileError(ctx, call, "write", p.Path, err)
	}
	write, ok := map[string]func(*safeopen.Place, []byte) (bool, error){
		"": create, "create": create, "overwrite": overwrite, "append": (*safeopen.Place).Append,
	}[p.Mode]
	if !ok {
		return nil, core.Invalid("mode", p.Mode, "create, overwrite, append")
	}
	if err := hold.Wait(ctx); err != nil {
		return nil, err
	}
	var created bool
	err = r.at(f, func(at *safeopen.Place) (err error) {
		created, err = write(at, []byte(p.Content))
		return err
	})
	if err != nil {
		return nil, r.fileError(ctx, call, "write", f.path(), err)
	}
	return core.Encode(writeResult{Path: f.path(), Bytes: len(p.Content), Created: created})
}

// Places implements skill.Placed: the file that file-write writes.
func (r *Runner) Places(tenant, task string, spec skill.Spec, params core.Raw) []string {
	var p struct {
		Path string `json:"path"`
	}
	if spec.Name != "file-write" || core.DecodeStored(params, &p) != nil {
		return nil
	}
	f, err := r.file(tenant, task, p.Path)
	if err != nil {
		return nil
	}
	return []string{f.path()}
}

func create(at *safeopen.Place, content []byte) (bool, error) { return true, at.Create(content) }

func overwrite(at *safeopen.Place, content []byte) (bool, error) { return at.Put(content, nil) }
