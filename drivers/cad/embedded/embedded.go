// Package embedded fills the CAD environment's Kernel with the geometry inside
// this program: watertight solids of flat facets, with nothing to install.
// Curves are cut into chords within a declared tolerance, and every body says
// how far its facets stay from the true surface. Rounding and hollowing of
// solids and STEP files to read are refused: they need the occt kernel.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
)

// Version names the geometry code.
const Version = "manifold 3.5.4"

// Options of an Engine.
type Options struct {
	// CacheDir keeps compiled code between runs: a start takes some 10 ms
	// instead of some 300. Empty compiles anew in every process.
	CacheDir string
	// Tolerance is the chord tolerance in mm of shapes that name none: small
	// radii keep less, so that volumes are within 0.1 %, and radii above 160 mm
	// a part of themselves. 0 means kernel.DefaultTolerance.
	Tolerance float64
	// Memory is the most that one kernel may hold, in bytes; 0 means
	// kernel.DefaultMemory.
	Memory int
}

// Engine opens kernels, which share its compiled code.
type Engine struct {
	code    *kernel.Engine
	options Options
}

// New returns an Engine. It does no work: the first Open compiles.
func New(o Options) *Engine {
	o.Tolerance = cmp.Or(o.Tolerance, kernel.DefaultTolerance)
	o.Memory = cmp.Or(o.Memory, kernel.DefaultMemory)
	return &Engine{code: kernel.New(kernel.Options{CacheDir: o.CacheDir, Memory: o.Memory}), options: o}
}

// Close frees the compiled code and every kernel still open.
func (e *Engine) Close() error { return e.code.Close(context.Background()) }

// Open starts a kernel.
func (e *Engine) Open(ctx context.Context) (env.Kernel, error) {
	k, err := e.code.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &Kernel{k: k, options: e.options, bodies: map[string]*kernel.Solid{}}, nil
}

// Kernel is one instance with its bodies.
type Kernel struct {
	k       *kernel.Kernel
	options Options
	bodies  map[string]*kernel.Solid
}

var _ env.Kernel = (*Kernel)(nil)

// About tells what the kernel is and can do.
func (k *Kernel) About() env.About {
	return env.About{
		Name: env.Embedded, Version: Version, Tolerance: k.options.Tolerance,
		Shapes: []string{
			"extrude", "revolve", "box", "cylinder", "sphere", "cone", "union", "subtract", "intersect",
			"pattern_linear", "pattern_circular", "mirror", "transform", "import",
		},
		Exports: []string{"STEP", "STL", "3MF", "SVG", "JSON"},
		Imports: []string{"STL", "JSON"},
	}
}

// Drop forgets a body.
func (k *Kernel) Drop(hash string) {
	if s := k.bodies[hash]; s != nil {
		delete(k.bodies, hash)
		_ = s.Free(context.Background()) // a dead kernel, the one reason, says so at its next call
	}
}

// Close ends the kernel.
func (k *Kernel) Close() error {
	k.bodies = nil
	return k.k.Close(context.Background())
}

// built finds bodies.
func (k *Kernel) built(hashes ...string) ([]*kernel.Solid, error) {
	var all []*kernel.Solid
	for _, hash := range hashes {
		s := k.bodies[hash]
		if s == nil {
			return nil, fmt.Errorf("embedded kernel: body %.12s was not built", hash)
		}
		all = append(all, s)
	}
	return all, nil
}

// refused sorts the errors of the geometry: what parameters caused is told as
// such, and a dead kernel as lost.
func (k *Kernel) refused(err error, code env.Code) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, kernel.ErrDead) && k.k.Memory() >= k.options.Memory/2 {
		return env.Refuse(env.InsufficientMemory, "", nil, fmt.Sprintf("the operation needs more than the %d MB of a geometry kernel", k.options.Memory>>20),
			"use fewer copies or a coarser tolerance")
	}
	err = env.Refused(err, code)
	if refusal, ok := errors.AsType[*env.Error](err); ok && refusal.Data.Field == "tolerance" {
		return env.Refuse(env.InvalidParameter, "tolerance", refusal.Data.Value, "tolerance: too fine or too coarse for this shape", refusal.Data.Suggestion)
	}
	return err
}

// Measure tells what there is to tell of a body.
func (k *Kernel) Measure(ctx context.Context, hash string) (model.Facts, env.Inertia, error) {
	all, err := k.built(hash)
	if err != nil {
		return model.Facts{}, env.Inertia{}, err
	}
	return k.measure(ctx, all[0])
}

// Mesh is the surface as it was built, with the tolerance that it was built to:
// what is made of facets can't choose others.
func (k *Kernel) Mesh(ctx context.Context, hashes []string, _, _ float64) (_ *mesh.Mesh, tolerance float64, err error) {
	all, err := k.built(hashes...)
	if err != nil {
		return nil, 0, err
	}
	s := all[0]
	if len(all) > 1 {
		if s, err = k.k.Boolean(ctx, kernel.Union, all...); err != nil {
			return nil, 0, k.refused(err, env.TopologyError)
		}
		defer func() { err = errors.Join(err, s.Free(ctx)) }()
	}
	m, err := s.Mesh(ctx)
	return m, s.Tolerance(), k.refused(err, env.TopologyError)
}

// Overlap is what two bodies share.
func (k *Kernel) Overlap(ctx context.Context, a, b string) (*env.Overlap, error) {
	all, err := k.built(a, b)
	if err != nil {
		return nil, err
	}
	o, err := k.k.Interference(ctx, all[0], all[1])
	if err != nil || o == nil {
		return nil, k.refused(err, env.TopologyError)
	}
	return &env.Overlap{Volume: o.Volume, Bounds: o.Box}, nil
}

// Distance is the smallest gap between two bodies in mm, 0 when they touch or
// overlap; env.MaxLength for those that are farther apart.
func (k *Kernel) Distance(ctx context.Context, a, b string) (float64, error) {
	all, err := k.built(a, b)
	if err != nil {
		return 0, err
	}
	d, err := all[0].Distance(ctx, all[1], env.MaxLength)
	return d, k.refused(err, env.TopologyError)
}

func (k *Kernel) measure(ctx context.Context, s *kernel.Solid) (model.Facts, env.Inertia, error) {
	volume, err := s.Volume(ctx)
	if err != nil {
		return model.Facts{}, env.Inertia{}, k.refused(err, env.TopologyError)
	}
	m, err := s.Mesh(ctx)
	if err != nil {
		return model.Facts{}, env.Inertia{}, k.refused(err, env.TopologyError)
	}
	p := m.Properties()
	out := model.Facts{
		Volume: volume, Area: p.Area, Center: p.Center,
		Bounds: m.Bounds(), Tolerance: s.Tolerance(),
	}
	t := format.Count(m)
	out.Topology = model.Topology{Faces: t.Faces, Edges: t.Edges, Vertices: t.Vertices, Closed: t.Closed, Manifold: t.Closed}
	return out, p.Inertia, nil
}
