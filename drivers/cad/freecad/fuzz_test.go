package freecad

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

func FuzzUnpack(f *testing.F) {
	blob := expect.Of(pack([]byte("DBRep_DrawableShape\n"), 0.02))(f)
	for _, seed := range [][]byte{blob, blob[:20], []byte("tolerance 1e400\n"), []byte("tolerance -1\nx"), []byte(`{"parts":[]}`), nil} {
		f.Add(seed)
	}
	path := filepath.Join(f.TempDir(), "body")
	f.Fuzz(func(t *testing.T, blob []byte) {
		content, tolerance, err := unpack(blob, path)
		if err == nil && (content != "brep" && content != "mesh" || !(tolerance >= 0 && tolerance <= 10)) {
			t.Errorf("content %q, tolerance %g", content, tolerance)
		}
	})
}

func FuzzReadMesh(f *testing.F) {
	path := filepath.Join(f.TempDir(), "mesh")
	m := &mesh.Mesh{Vertices: [][3]float64{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, Triangles: [][3]uint32{{0, 1, 2}}}
	expect.No(f, writeMesh(path, m))
	data := expect.Of(os.ReadFile(path))(f)
	f.Add(data)
	f.Add(data[:15])
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		expect.No(t, os.WriteFile(path, data, 0o600))
		m, err := readMesh(path)
		if err == nil && 12+24*len(m.Vertices)+12*len(m.Triangles)+4*len(m.Faces) != len(data) {
			t.Errorf("%d vertices, %d triangles and %d faces of %d bytes", len(m.Vertices), len(m.Triangles), len(m.Faces), len(data))
		}
	})
}
