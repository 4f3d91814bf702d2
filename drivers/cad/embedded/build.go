package embedded

import (
	"context"
	"errors"
	"fmt"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
)

// Build makes the body of a shape.
func (k *Kernel) Build(ctx context.Context, shape model.Shape, blob []byte) (model.Facts, error) {
	if k.bodies[shape.Hash] != nil {
		facts, _, err := k.Measure(ctx, shape.Hash)
		return facts, err
	}
	recipe, err := env.DecodeRecipe(shape)
	if err != nil {
		return model.Facts{}, err
	}
	inputs, err := k.built(shape.Inputs...)
	if err != nil {
		return model.Facts{}, err
	}
	s, err := k.make(ctx, recipe, inputs, blob)
	if err != nil {
		return model.Facts{}, k.refused(err, env.InvalidGeometry)
	}
	if empty, err := s.Empty(ctx); err != nil || empty {
		if err == nil {
			err = env.Refuse(env.TopologyError, "entity_ids", nil, fmt.Sprintf("%s leaves nothing", shape.Op), "choose solids of which something remains")
		}
		return model.Facts{}, errors.Join(err, s.Free(ctx))
	}
	facts, _, err := k.measure(ctx, s)
	if err != nil {
		return facts, errors.Join(err, s.Free(ctx))
	}
	k.bodies[shape.Hash] = s
	return facts, nil
}

// What the kernel cuts curves to where a recipe names no tolerance, as parts of
// their radius: fine enough for volumes within 0.1 % however small the radius
// is, and no finer than a large one needs.
const (
	once   = 7e-4 // of a circle: 84 chords
	twice  = 3e-4 // of a circle that turns about an axis: 128 chords
	ball   = 6e-4 // of a sphere, whose facets lie deeper than its chords: 160
	finest = 6e-5 // of all: 287 chords
)

// tolerance is what a recipe names, or the kernel's own for a radius of which
// facets may stay away by a part.
func (k *Kernel) tolerance(named, radius, part float64) float64 {
	if named != 0 {
		return named
	}
	return min(max(min(k.options.Tolerance, part*radius), finest*radius, 1e-6), 10)
}

func (k *Kernel) make(ctx context.Context, recipe env.Recipe, in []*kernel.Solid, blob []byte) (*kernel.Solid, error) {
	switch r := recipe.(type) {
	case *env.Extrude:
		return k.extrude(ctx, r)
	case *env.Revolve:
		return k.revolve(ctx, r)
	case *env.Box:
		return k.k.Box(ctx, r.Position, r.Dimensions)
	case *env.Cylinder:
		return k.k.Cylinder(ctx, r.Point, r.Axis, r.Radius, r.Height, k.tolerance(r.Tolerance, r.Radius, once))
	case *env.Sphere:
		return k.k.Sphere(ctx, r.Center, r.Radius, k.tolerance(r.Tolerance, r.Radius, ball))
	case *env.Cone:
		return k.k.Cone(ctx, r.Point, r.Axis, r.Radius, r.Top, r.Height, k.tolerance(r.Tolerance, max(r.Radius, r.Top), once))
	case *env.Boolean:
		return k.k.Boolean(ctx, kernel.Operation(r.Operation), in...)
	case *env.Linear:
		return in[0].LinearPattern(ctx, r.Direction, r.Spacing, r.Count)
	case *env.Circular:
		return in[0].CircularPattern(ctx, r.Point, r.Axis, r.Angle, r.Count)
	case *env.Mirror:
		return in[0].Transform(ctx, mesh.Reflection(r.Point, r.Normal))
	case *env.Transform:
		return in[0].Transform(ctx, mesh.Transform(r.Matrix))
	case *env.Import:
		return k.imported(ctx, blob)
	}
	return nil, env.Unsupported("method", "solid."+recipe.Op(), env.Embedded, env.OCCT)
}

// imported makes a body of what Import wrote.
func (k *Kernel) imported(ctx context.Context, blob []byte) (*kernel.Solid, error) {
	parts, err := format.ReadJSON(blob)
	if err != nil || len(parts) != 1 {
		return nil, env.Refuse(env.UnsupportedByKernel, "format", nil, "this solid was imported by another kernel",
			"start the environment with --kernel "+env.OCCT)
	}
	return k.k.FromMesh(ctx, parts[0].Mesh, parts[0].Tolerance)
}
