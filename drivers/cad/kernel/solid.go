package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// Solid is one body inside a Kernel. It never changes: each operation makes
// another. Free it when nothing needs it, or close its Kernel.
type Solid struct {
	kernel    *Kernel
	pointer   uint32
	tolerance float64
}

// Tolerance is the largest distance, in millimetres, between a facet of the
// solid and the curve that it stands for; 0 when all its surfaces are flat.
func (s *Solid) Tolerance() float64 { return s.tolerance }

// Free gives the solid's memory back. Freeing twice does nothing.
func (s *Solid) Free(ctx context.Context) error {
	if s.pointer == 0 {
		return nil
	}
	p := s.pointer
	s.pointer = 0
	s.kernel.live--
	return s.kernel.in.discard(ctx, "Manifold", p)
}

// make calls a function whose result is a solid, and refuses one that the
// geometry reports as failed.
func (k *Kernel) make(ctx context.Context, tolerance float64, name string, args ...uint64) (*Solid, error) {
	out, err := k.in.call(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	s := &Solid{kernel: k, pointer: uint32(out), tolerance: tolerance}
	k.live++
	at, err := k.in.call(ctx, "Manifold.status", out)
	if err != nil {
		return nil, errors.Join(err, s.Free(ctx))
	}
	status, err := k.in.takeString(ctx, at)
	if err != nil {
		return nil, errors.Join(err, s.Free(ctx))
	}
	if status != "NoError" {
		return nil, errors.Join(core.Errorf(core.InvalidInput, "geometry: the result is no solid (%s)", status), s.Free(ctx))
	}
	return s, nil
}

// Box makes a cuboid whose lowest corner is at the position.
func (k *Kernel) Box(ctx context.Context, position, dimensions [3]float64) (*Solid, error) {
	return k.placed(ctx, mesh.Translation(position), 0, "_Cube", k.in.doubles(0, dimensions[:]...), 0)
}

// Cylinder makes a cylinder of the given height whose base centre is at the
// point and that rises along the axis.
func (k *Kernel) Cylinder(ctx context.Context, point, axis [3]float64, radius, height, tolerance float64) (*Solid, error) {
	return k.Cone(ctx, point, axis, radius, radius, height, tolerance)
}

// Cone makes a cone or its frustum, of radius at the base and top at the other
// end; one of the two may be 0.
func (k *Kernel) Cone(ctx context.Context, point, axis [3]float64, radius, top, height, tolerance float64) (*Solid, error) {
	place, widest := along(point, axis), max(radius, top)
	n, err := chords(widest, tolerance)
	if err != nil {
		return nil, err
	}
	if radius == 0 { // the geometry wants its apex on top
		place = place.After(mesh.Translation([3]float64{0, 0, height})).After(upsideDown)
		radius, top = top, radius
	}
	return k.placed(ctx, place, chordError(widest, n), "_Cylinder",
		api.EncodeF64(height), api.EncodeF64(radius), api.EncodeF64(top), uint64(n), 0)
}

// sphereSag bounds how much deeper the middle of a facet of a sphere lies than
// the middle of a chord of its equator: facets are largest between the axes.
const sphereSag = 3

// Sphere makes a sphere.
func (k *Kernel) Sphere(ctx context.Context, center [3]float64, radius, tolerance float64) (*Solid, error) {
	n, err := chords(radius, tolerance/sphereSag)
	if err != nil {
		return nil, err
	}
	if n > 512 {
		return nil, core.Invalid("tolerance", tolerance, "one that needs at most 512 chords around a sphere")
	}
	return k.placed(ctx, mesh.Translation(center), sphereSag*chordError(radius, n), "_Sphere", api.EncodeF64(radius), uint64(n))
}

// placed makes a solid at the origin and moves it to its place.
func (k *Kernel) placed(ctx context.Context, place mesh.Transform, tolerance float64, name string, args ...uint64) (*Solid, error) {
	s, err := k.make(ctx, tolerance, name, args...)
	if err != nil || place == mesh.Identity {
		return s, err
	}
	moved, err := s.Transform(ctx, place)
	return moved, errors.Join(err, s.Free(ctx))
}

// Region is a plane area given by loops of points: outer loops run
// counterclockwise, holes clockwise, none crosses another. Tolerance is how
// far its chords stay from the curves that they stand for.
type Region struct {
	Loops     [][][2]float64
	Tolerance float64
}

// polygons hands the loops over; the caller discards the answer.
func (k *Kernel) polygons(ctx context.Context, r Region) (loops uint32, err error) {
	if err := checkRegion(r); err != nil {
		return 0, err
	}
	out, err := k.in.call(ctx, "Vector2_vec2/0")
	if err != nil {
		return 0, err
	}
	for _, loop := range r.Loops {
		if err := k.addLoop(ctx, out, loop); err != nil {
			return 0, errors.Join(err, k.in.discard(ctx, "Vector2_vec2", uint32(out)))
		}
	}
	return uint32(out), nil
}

func (k *Kernel) addLoop(ctx context.Context, loops uint64, points [][2]float64) error {
	loop, err := k.in.call(ctx, "Vector_vec2/0")
	if err != nil {
		return err
	}
	for _, p := range points {
		if _, err = k.in.call(ctx, "Vector_vec2.push_back", loop, k.in.doubles(0, p[:]...)); err != nil {
			break
		}
	}
	if err == nil {
		_, err = k.in.call(ctx, "Vector2_vec2.push_back", loops, loop)
	}
	return errors.Join(err, k.in.discard(ctx, "Vector_vec2", uint32(loop)))
}

// leastArea is the least area in mm², holes taken away, that is not nothing.
const leastArea = 1e-8

// checkRegion refuses chords of curves that are too many, or that leave nothing.
func checkRegion(r Region) error {
	total, area := 0, 0.0
	for _, loop := range r.Loops {
		if total += len(loop); total > maxPoints {
			return core.Invalid("profile", total, fmt.Sprintf("at most %d points", maxPoints))
		}
		for i, p := range loop {
			q := loop[(i+1)%len(loop)]
			area += (p[0]*q[1] - p[1]*q[0]) / 2
		}
	}
	if area < leastArea {
		return core.Invalid("profile", fmt.Sprintf("an area of %g mm²", area), "one above 0, with outer loops counterclockwise")
	}
	return nil
}

// Extrude raises a region of the plane z = 0 by a height along z.
func (k *Kernel) Extrude(ctx context.Context, r Region, height float64) (*Solid, error) {
	loops, err := k.polygons(ctx, r)
	if err != nil {
		return nil, err
	}
	s, err := k.make(ctx, r.Tolerance, "_Extrude", uint64(loops), api.EncodeF64(height), 0, api.EncodeF64(0), k.in.doubles(0, 1, 1))
	return s, errors.Join(err, k.in.discard(ctx, "Vector2_vec2", loops))
}

// Revolve turns a region of the half plane x ≥ 0 about its y axis by up to a
// full turn in radians; the axis of the solid is z, and the region's x points
// along x at the start.
func (k *Kernel) Revolve(ctx context.Context, r Region, angle, tolerance float64) (*Solid, error) {
	widest := 0.0
	for _, loop := range r.Loops {
		for _, p := range loop {
			widest = max(widest, p[0])
		}
	}
	n, err := chords(widest, tolerance)
	if err != nil {
		return nil, err
	}
	loops, err := k.polygons(ctx, r)
	if err != nil {
		return nil, err
	}
	s, err := k.make(ctx, r.Tolerance+chordError(widest, n), "_Revolve",
		uint64(loops), uint64(n), api.EncodeF64(min(angle*180/math.Pi, 360)))
	return s, errors.Join(err, k.in.discard(ctx, "Vector2_vec2", loops))
}
