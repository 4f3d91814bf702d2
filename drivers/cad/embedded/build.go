package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/drivers/cad/profile"
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

// region cuts the curves of a profile into chords, within what the recipe names
// or parts of their radii.
func (k *Kernel) region(p profile.Shape, named, part float64) (kernel.Region, error) {
	shape, err := p.Check()
	if err != nil {
		return kernel.Region{}, err
	}
	loops, sag, err := shape.Facet(func(radius float64) float64 { return k.tolerance(named, radius, part) })
	return kernel.Region{Loops: loops, Tolerance: sag}, err
}

// placed moves a fresh solid, which it frees.
func placed(ctx context.Context, s *kernel.Solid, t mesh.Transform) (*kernel.Solid, error) {
	if t == mesh.Identity {
		return s, nil
	}
	out, err := s.Transform(ctx, t)
	return out, errors.Join(err, s.Free(ctx))
}

// extrude raises the profile by its height over the plane, and then leans it so
// that the height's end comes to the end of the vector.
func (k *Kernel) extrude(ctx context.Context, e *env.Extrude) (*kernel.Solid, error) {
	region, err := k.region(e.Profile, e.Tolerance, once)
	if err != nil {
		return nil, err
	}
	height := math.Abs(mesh.Dot(e.Vector, e.Normal()))
	s, err := k.k.Extrude(ctx, region, height)
	if err != nil {
		return nil, err
	}
	return placed(ctx, s, mesh.Transform{e.XAxis, e.YAxis, mesh.Scale(e.Vector, 1/height), e.Origin})
}

// onAxis is how near to the axis a corner is on it, in mm.
const onAxis = 1e-6

// revolve turns the profile in a frame whose x points from the axis to the
// profile and whose z is the axis.
func (k *Kernel) revolve(ctx context.Context, r *env.Revolve) (*kernel.Solid, error) {
	point, along, err := r.AxisInPlane()
	if err != nil {
		return nil, err
	}
	// Both the profile and the turn leave the true surface.
	region, err := k.region(r.Profile, r.Tolerance/2, twice)
	if err != nil {
		return nil, err
	}
	out := [2]float64{along[1], -along[0]} // with the axis as y a right-handed frame
	low, high := 0.0, 0.0
	for _, loop := range region.Loops {
		for i, p := range loop {
			dx, dy := p[0]-point[0], p[1]-point[1]
			u := dx*out[0] + dy*out[1]
			if math.Abs(u) < onAxis {
				u = 0
			}
			loop[i] = [2]float64{u, dx*along[0] + dy*along[1]}
			low, high = min(low, u), max(high, u)
		}
	}
	if low < 0 && high > 0 {
		return nil, env.Refuse(env.InvalidGeometry, "axis_point", fmt.Sprint(r.Point), "the axis passes through the profile", "give an axis that the profile lies on one side of")
	}
	if low < 0 { // look from the other side: what ran left now runs right
		out = [2]float64{-out[0], -out[1]}
		for _, loop := range region.Loops {
			for i := range loop {
				loop[i][0] = -loop[i][0] + 0
			}
			slices.Reverse(loop)
		}
	}
	s, err := k.k.Revolve(ctx, region, math.Abs(r.Angle), k.tolerance(r.Tolerance/2, high-low, twice))
	if err != nil {
		return nil, err
	}
	z := mesh.Unit(r.Axis)
	x := mesh.Add(mesh.Scale(r.XAxis, out[0]), mesh.Scale(r.YAxis, out[1]))
	y := mesh.Scale(mesh.Cross(z, x), math.Copysign(1, r.Angle))
	origin := mesh.Add(r.Origin, mesh.Add(mesh.Scale(r.XAxis, point[0]), mesh.Scale(r.YAxis, point[1])))
	return placed(ctx, s, mesh.Transform{x, y, z, origin})
}

// Export writes named bodies as STEP.
func (k *Kernel) Export(ctx context.Context, w io.Writer, parts []env.Part, o env.ExportOptions) error {
	if o.Schema != "" && o.Schema != "AP214" {
		return env.Unsupported("schema", o.Schema, env.Embedded, env.OCCT)
	}
	var all []format.Part
	for _, p := range parts {
		m, tolerance, err := k.Mesh(ctx, []string{p.Hash}, o.Deflection, o.Angle)
		if err != nil {
			return err
		}
		all = append(all, format.Part{Name: p.Name, Mesh: m, Tolerance: tolerance})
	}
	return env.Refused(format.WriteSTEP(ctx, w, all), env.InvalidParameter)
}

// Import reads nothing: files of whole faces need another kernel.
func (k *Kernel) Import(_ context.Context, _ []byte, kind string) ([]env.Imported, error) {
	return nil, env.Unsupported("format", kind, env.Embedded, env.OCCT)
}

// CodeCache is where compiled code is kept between runs, for Options.CacheDir; ""
// where nothing can be kept, which only costs time.
func CodeCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "swarmdeck", "code")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return dir
}

// ShareCache has a process whose home is not the user's find the same CodeCache: what
// it may write, and its environment.
func ShareCache() (write []string, env map[string]string) {
	dir := CodeCache()
	if dir == "" {
		return nil, nil
	}
	return []string{dir}, map[string]string{"XDG_CACHE_HOME": filepath.Dir(filepath.Dir(dir))}
}
