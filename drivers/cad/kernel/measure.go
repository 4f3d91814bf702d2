package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"

	"swarmdeck/engine/cad/mesh"
)

// number calls a measure of a solid that answers a double.
func (s *Solid) number(ctx context.Context, name string, args ...uint64) (float64, error) {
	out, err := s.kernel.in.call(ctx, name, append([]uint64{uint64(s.pointer)}, args...)...)
	return api.DecodeF64(out), err
}

// Empty says whether nothing is left of the solid.
func (s *Solid) Empty(ctx context.Context) (bool, error) {
	out, err := s.kernel.in.call(ctx, "Manifold.isEmpty", uint64(s.pointer))
	return uint32(out) != 0, err
}

// Bounds is the smallest box around the solid; false when it is empty.
func (s *Solid) Bounds(ctx context.Context) (mesh.Box, bool, error) {
	if empty, err := s.Empty(ctx); err != nil || empty {
		return mesh.Box{}, false, err
	}
	at, err := s.kernel.in.call(ctx, "Manifold._boundingBox", uint64(s.pointer))
	if err != nil {
		return mesh.Box{}, false, err
	}
	var b [6]float64
	if err := s.kernel.in.takeDoubles(ctx, at, b[:]); err != nil {
		return mesh.Box{}, false, err
	}
	return mesh.Box{Min: [3]float64(b[:3]), Max: [3]float64(b[3:])}, true, nil
}

// Volume is the volume in mm³.
func (s *Solid) Volume(ctx context.Context) (float64, error) {
	return s.number(ctx, "Manifold.volume")
}

// Touching is the shared volume in mm³ up to which two solids count as touching
// and not as overlapping.
const Touching = 1e-6

// Overlap is what two solids share.
type Overlap struct {
	Volume float64 // mm³; above Touching they overlap
	Box    mesh.Box
}

// Interference finds what two solids share; nil when they are apart or touch.
func (k *Kernel) Interference(ctx context.Context, a, b *Solid) (_ *Overlap, err error) {
	boxA, okA, err := a.Bounds(ctx)
	if err != nil || !okA {
		return nil, err
	}
	boxB, okB, err := b.Bounds(ctx)
	if err != nil || !okB || !boxA.Meets(boxB) {
		return nil, err
	}
	common, err := k.Boolean(ctx, Intersect, a, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, common.Free(ctx)) }()
	volume, err := common.Volume(ctx)
	if err != nil || volume <= Touching {
		return nil, err
	}
	box, _, err := common.Bounds(ctx)
	return &Overlap{Volume: volume, Box: box}, err
}

// Distance is the smallest gap between two solids in mm, 0 when they touch or
// overlap, and most when they are farther apart than that.
func (s *Solid) Distance(ctx context.Context, other *Solid, most float64) (float64, error) {
	gap, err := s.number(ctx, "Manifold.minGap", uint64(other.pointer), api.EncodeF64(most))
	return max(gap, 0), err
}

// grid is the step that coordinates snap to on their way out: the geometry
// rounds them to 32 bits, 4e-6 mm at 100 mm. Vertices that this brings together
// are welded.
const grid = 1e5

// Mesh is the solid's surface. Triangles of one flat face of one operand share
// a number in Faces.
func (s *Solid) Mesh(ctx context.Context) (*mesh.Mesh, error) {
	k := s.kernel
	defer k.in.values.reset()
	handle, err := k.in.call(ctx, "Manifold._GetMeshJS", uint64(s.pointer), 0xffffffff)
	if err != nil {
		return nil, err
	}
	o, ok := k.in.values.get(handle).(object)
	if !ok {
		return nil, fmt.Errorf("the geometry kernel answered no mesh")
	}
	return o.mesh()
}

// words are the elements of an array property of 32 bits each.
func (o object) words(name string) []uint32 {
	a, _ := o[name].(array)
	out := make([]uint32, len(a.bytes)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(a.bytes[4*i:])
	}
	return out
}

func (o object) mesh() (*mesh.Mesh, error) {
	stride, _ := o["numProp"].(float64)
	step := int(stride)
	properties, corners, face := o.words("vertProperties"), o.words("triVerts"), o.words("faceID")
	if step < 3 || len(properties)%step != 0 || len(corners)%3 != 0 {
		return nil, fmt.Errorf("the geometry kernel answered a mesh of %d numbers in steps of %d, %d corners", len(properties), step, len(corners))
	}
	// Vertices that differ in their properties only are one point.
	target := make([]uint32, len(properties)/step)
	for i := range target {
		target[i] = uint32(i)
	}
	to := o.words("mergeToVert")
	for i, from := range o.words("mergeFromVert") {
		if i < len(to) && int(from) < len(target) && int(to[i]) < len(target) {
			target[from] = to[i]
		}
	}
	m := &mesh.Mesh{Triangles: make([][3]uint32, len(corners)/3), Faces: make([]uint32, len(corners)/3)}
	number := make([]int, len(target))
	for i, c := range corners {
		if int(c) >= len(target) {
			return nil, fmt.Errorf("the geometry kernel answered a triangle with corner %d of %d", c, len(target))
		}
		v := target[c]
		if number[v] == 0 {
			m.Vertices = append(m.Vertices, point(properties[int(v)*step:]))
			number[v] = len(m.Vertices)
		}
		m.Triangles[i/3][i%3] = uint32(number[v] - 1)
	}
	o.number(m.Faces, face)
	return m.Welded(), nil
}

// number gives each (run, face) pair one number; a run is one operand in one
// place.
func (o object) number(into, face []uint32) {
	type source struct{ run, face uint32 }
	seen := map[source]uint32{}
	starts := o.words("runIndex")
	run := uint32(0)
	for i := range into {
		for int(run)+1 < len(starts) && uint32(3*i) >= starts[run+1] {
			run++
		}
		key := source{run: run, face: uint32(i)}
		if i < len(face) {
			key.face = face[i]
		}
		n, ok := seen[key]
		if !ok {
			n = uint32(len(seen))
			seen[key] = n
		}
		into[i] = n
	}
}

func point(words []uint32) (p [3]float64) {
	for i := range p {
		p[i] = math.Round(float64(math.Float32frombits(words[i]))*grid) / grid
		p[i] += 0 // no negative zero
	}
	return p
}

// FromMesh makes a solid of a surface that is closed, such as one read from a file.
// The tolerance is what its author declared.
func (k *Kernel) FromMesh(ctx context.Context, m *mesh.Mesh, tolerance float64) (*Solid, error) {
	vertices := make([]byte, 0, 12*len(m.Vertices))
	for _, v := range m.Vertices {
		for _, x := range v {
			vertices = binary.LittleEndian.AppendUint32(vertices, math.Float32bits(float32(x)))
		}
	}
	corners := make([]byte, 0, 12*len(m.Triangles))
	for _, t := range m.Triangles {
		for _, v := range t {
			corners = binary.LittleEndian.AppendUint32(corners, v)
		}
	}
	defer k.in.values.reset()
	return k.make(ctx, tolerance, "Manifold/1", k.in.values.put(object{
		"numProp":        3.0,
		"tolerance":      0.0,
		"vertProperties": array{kind: float32Kind, bytes: vertices},
		"triVerts":       array{kind: uint32Kind, bytes: corners},
	}))
}
