package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"

	"swarmdeck/engine/core"
)

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
