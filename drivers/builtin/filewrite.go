package builtin

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
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
