// Package freecad fills the CAD environment's Kernel with exact geometry:
// OpenCASCADE, by the Python modules of a FreeCAD that is installed here.
//
// Each kernel is a child process that holds bodies and nothing else. It is
// started with a private directory, an environment of its own and a limit of
// memory, and it ends with this process, whatever ends that. Whatever goes
// wrong in it (a call that takes too long, a crash, an answer that is none)
// loses that kernel only: it is killed, every later call says why, and its
// owner opens another and builds what it needs again.
//
// A body does not depend on what else was made of its inputs, and the same
// recipes give the same file (but for IGES, whose names come in any order). A
// file to read may be made to crash its reader: that runs in a process of its
// own.
//
// A transform that stretches circles to ellipses keeps the exact surfaces, but
// of what is made of such a solid OpenCASCADE measures the volume to some 1e-4
// only.
package freecad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// DefaultMemory is the address space of a worker, in bytes. FreeCAD takes a
// quarter of a GB of it before there is any body.
const DefaultMemory = 4 << 30

// Options of Open.
type Options struct {
	// Installation to use; the zero value looks for one.
	Installation Installation
	// Memory is the address space that the worker may take, in bytes; 0 means
	// DefaultMemory. A limit too small for FreeCAD itself fails Open.
	Memory int64
	// Dir is where the worker's private directory is made; empty means the
	// system's place for temporary files. Files on their way in and out lie
	// there during a call.
	Dir string
}

// Kernel is one worker with its bodies. It belongs to one goroutine.
type Kernel struct {
	p     *process
	about env.About
	lost  error // why nothing can be asked any more
}

var _ env.Kernel = (*Kernel)(nil)

// Open starts a worker. Its error wraps ErrNotFound when there is no FreeCAD.
func Open(ctx context.Context, o Options) (env.Kernel, error) {
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	if o.Memory < 0 {
		return nil, core.Invalid("memory", o.Memory, "a number of bytes")
	}
	if o.Installation.Python == "" {
		var err error
		if o.Installation, err = Find(ctx, nil); err != nil {
			return nil, err
		}
	}
	d, err := newDir(o.Dir)
	if err != nil {
		return nil, err
	}
	p, err := launch(o.Installation, o.Memory, d)
	if err != nil {
		return nil, err
	}
	k := &Kernel{p: p}
	var versions struct {
		FreeCAD     string `json:"freecad"`
		OpenCASCADE string `json:"opencascade"`
	}
	if err := k.call(ctx, "hello", struct{}{}, &versions); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	k.about = env.About{
		Name: env.OCCT, Version: fmt.Sprintf("FreeCAD %s, OpenCASCADE %s", versions.FreeCAD, versions.OpenCASCADE), Exact: true,
		Shapes: []string{
			"extrude", "revolve", "box", "cylinder", "sphere", "cone", "union", "subtract", "intersect",
			"pattern_linear", "pattern_circular", "mirror", "transform", "fillet", "chamfer", "shell", "import",
		},
		Exports: []string{"STEP", "IGES", "BREP", "STL", "3MF", "SVG", "JSON"},
		Imports: []string{"STEP", "IGES", "BREP", "STL", "JSON"},
	}
	return k, nil
}

// About tells what the kernel is and can do.
func (k *Kernel) About() env.About { return k.about }

// Close ends the worker.
func (k *Kernel) Close() error {
	k.lost = cmp.Or(k.lost, errors.New("freecad: the kernel is closed"))
	k.p.kill()
	return nil
}

// broken is the code of a worker's error that no other parameters would have
// avoided.
const broken env.Code = -32000

// call asks the worker. An answer that refuses is an *env.Error; any other
// error ends the kernel.
func (k *Kernel) call(ctx context.Context, method string, params, result any) error {
	if k.lost != nil {
		return k.lost
	}
	err := k.p.call(ctx, method, params, result)
	if err == nil {
		return nil
	}
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && env.Code(answer.Code) != broken {
		var data env.Data
		if err := jsonrpc.Decode(answer.Data, &data); err == nil {
			return env.Refuse(env.Code(answer.Code), data.Field, data.Value, answer.Message, data.Suggestion)
		}
	}
	k.lost = fmt.Errorf("freecad: %w", err)
	k.p.kill()
	return k.lost
}

// build is what the worker is asked to make.
type build struct {
	Hash      string            `json:"hash"`
	Op        string            `json:"op"`
	Params    core.Raw          `json:"params"`
	Inputs    []string          `json:"inputs"`
	Content   map[string]string `json:"content"` // of an import: file, and how it is written
	Tolerance float64           `json:"tolerance"`
}

// Build makes the body of a shape.
func (k *Kernel) Build(ctx context.Context, s model.Shape, blob []byte) (model.Facts, error) {
	if _, err := env.DecodeRecipe(s); err != nil {
		return model.Facts{}, err
	}
	b := build{Hash: s.Hash, Op: s.Op, Params: s.Params, Inputs: s.Inputs, Content: map[string]string{}}
	if len(b.Params) == 0 {
		b.Params = core.Raw("{}")
	}
	if s.Op == "import" {
		at, err := k.scratch()
		if err != nil {
			return model.Facts{}, err
		}
		defer os.RemoveAll(at)
		if b.Content["content"], b.Tolerance, err = unpack(blob, filepath.Join(at, "body")); err != nil {
			return model.Facts{}, err
		}
		b.Content["file"] = filepath.Join(at, "body")
	}
	var facts model.Facts
	err := k.call(ctx, "build", b, &facts)
	return facts, err
}

// Drop forgets a body.
func (k *Kernel) Drop(hash string) {
	if k.lost == nil {
		// A worker that can't be told any more is noticed at the next call.
		_ = k.p.conn.Notify("drop", map[string]string{"hash": hash})
	}
}

// Measure tells what there is to tell of a body.
func (k *Kernel) Measure(ctx context.Context, hash string) (model.Facts, env.Inertia, error) {
	var m struct {
		Facts   model.Facts `json:"facts"`
		Inertia env.Inertia `json:"inertia"`
	}
	err := k.call(ctx, "measure", map[string]string{"hash": hash}, &m)
	return m.Facts, m.Inertia, err
}

// Overlap is what two bodies share.
func (k *Kernel) Overlap(ctx context.Context, a, b string) (*env.Overlap, error) {
	var o *env.Overlap
	err := k.call(ctx, "overlap", map[string]string{"a": a, "b": b}, &o)
	return o, err
}

// Distance is the smallest gap between two bodies in mm, 0 when they touch or
// overlap.
func (k *Kernel) Distance(ctx context.Context, a, b string) (float64, error) {
	var gap struct {
		Distance float64 `json:"distance"`
	}
	err := k.call(ctx, "distance", map[string]string{"a": a, "b": b}, &gap)
	return gap.Distance, err
}

// scratch makes a directory for the files of one call.
func (k *Kernel) scratch() (string, error) {
	if k.lost != nil {
		return "", k.lost
	}
	at, err := os.MkdirTemp(k.p.dir.path, "call-")
	if err != nil {
		return "", fmt.Errorf("make a directory for FreeCAD's files: %w", err)
	}
	return at, nil
}
