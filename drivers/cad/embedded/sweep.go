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
)

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
