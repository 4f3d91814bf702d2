package freecad

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/cad/mesh"
)

// defaultAngle is what facets turn by at most, in radians, where the caller leaves it
// to the kernel.
const defaultAngle = 0.5

// Mesh cuts the surface around bodies into facets within the deflection. Faces
// number the true faces, curved ones too.
func (k *Kernel) Mesh(ctx context.Context, hashes []string, deflection, angle float64) (*mesh.Mesh, float64, error) {
	at, err := k.scratch()
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(at)
	path := filepath.Join(at, "mesh")
	if err := k.call(ctx, "mesh", map[string]any{"hashes": hashes, "linear": deflection, "angular": cmp.Or(angle, defaultAngle), "file": path}, nil); err != nil {
		return nil, 0, err
	}
	m, err := readMesh(path)
	if err != nil {
		return nil, 0, fmt.Errorf("freecad: %w", err)
	}
	if err := m.Check(); err != nil {
		return nil, 0, env.Refuse(env.TopologyError, "deflection", deflection, "the facets of this solid leave gaps: "+err.Error(), "give a finer deflection")
	}
	return m, deflection, nil
}

// A mesh on its way is a file in this machine's byte order: the numbers of
// vertices, triangles and faces of triangles, then each of the three.

func readMesh(path string) (*mesh.Mesh, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	from := bytes.NewReader(data)
	var counts [3]uint32
	if err := binary.Read(from, binary.NativeEndian, &counts); err != nil {
		return nil, fmt.Errorf("read a mesh: %w", err)
	}
	if want := 24*uint64(counts[0]) + 12*uint64(counts[1]) + 4*uint64(counts[2]); uint64(from.Len()) != want {
		return nil, fmt.Errorf("a mesh of %d vertices and %d triangles in %d bytes", counts[0], counts[1], len(data))
	}
	m := &mesh.Mesh{
		Vertices: make([][3]float64, counts[0]), Triangles: make([][3]uint32, counts[1]), Faces: make([]uint32, counts[2]),
	}
	for _, part := range []any{m.Vertices, m.Triangles, m.Faces} {
		if err := binary.Read(from, binary.NativeEndian, part); err != nil {
			return nil, fmt.Errorf("read a mesh of %d bytes: %w", len(data), err)
		}
	}
	return m, nil
}

func writeMesh(path string, m *mesh.Mesh) error {
	var out bytes.Buffer
	for _, part := range []any{[3]uint32{uint32(len(m.Vertices)), uint32(len(m.Triangles)), 0}, m.Vertices, m.Triangles} {
		if err := binary.Write(&out, binary.NativeEndian, part); err != nil {
			return fmt.Errorf("write a mesh: %w", err)
		}
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
