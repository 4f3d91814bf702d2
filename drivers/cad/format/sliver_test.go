package format_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// roof is a box beside one with a ridge that rounding lays flat.
func roof(t *testing.T) format.Part {
	t.Helper()
	ctx := t.Context()
	k := must[*kernel.Kernel](t)(engine.Open(ctx))
	defer k.Close(ctx)
	ridged := kernel.Region{Loops: [][][2]float64{{{0, 0}, {10, 0}, {10, 10}, {5, 10.0000003}, {0, 10}}}}
	solid := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union,
		must[*kernel.Solid](t)(k.Extrude(ctx, ridged, 10)), box(t, k, [3]float64{0, 0, 10}, [3]float64{10, 10, 10})))
	return format.Part{Name: "roof", Mesh: must[*mesh.Mesh](t)(solid.Mesh(ctx))}
}

// capped is a tetrahedron of which one edge, from 0 to 1, has a vertex on one
// side: between that side and the base lies a triangle without area.
func capped() format.Part {
	return format.Part{Name: "capped", Mesh: &mesh.Mesh{
		Vertices:  [][3]float64{{0, 0, 0}, {10, 0, 0}, {0, 10, 0}, {0, 0, 10}, {5, 0, 0}, {2, -1, 5}, {8, -2, 5}},
		Triangles: [][3]uint32{{0, 2, 1}, {0, 4, 5}, {4, 6, 5}, {4, 1, 6}, {0, 5, 3}, {5, 6, 3}, {6, 1, 3}, {0, 1, 4}, {0, 3, 2}, {1, 2, 3}},
	}}
}

func TestATriangleWithoutAreaGetsNoFaceOfItsOwn(t *testing.T) {
	for _, p := range []format.Part{roof(t), capped()} {
		text := step(t, p)
		expect.True(t, !strings.Contains(text, "NAN") && !strings.Contains(text, "DIRECTION('',(0.,0.,0.))"), "%s: a direction is none", p.Name)
		got := format.Count(p.Mesh)
		want := format.Topology{
			Faces: strings.Count(text, "=ADVANCED_FACE("), Edges: strings.Count(text, "=EDGE_CURVE("), Vertices: strings.Count(text, "=VERTEX_POINT("), Closed: true,
		}
		expect.True(t, got == want && (p.Name != "capped" || want.Faces == 9), "%s: %+v are counted, the file has %+v", p.Name, got, want)
	}
}

func TestAFaceWithoutAreaIsRefused(t *testing.T) {
	// The base has a vertex of its own on the edge from 0 to 1: two triangles
	// without area lie back to back at their longest edge.
	p := capped()
	p.Mesh.Vertices = append(p.Mesh.Vertices, [3]float64{4, 0, 0})
	p.Mesh.Triangles = append(p.Mesh.Triangles[1:], [3]uint32{0, 2, 7}, [3]uint32{7, 2, 1}, [3]uint32{0, 7, 1})
	expect.No(t, p.Mesh.Check())
	var out bytes.Buffer
	if err := writeSTEP(&out, []format.Part{p}); !errors.Is(err, core.Kind(core.InvalidInput)) || !strings.Contains(err.Error(), "without an area") || out.Len() > 0 {
		t.Errorf("%v after %d bytes", err, out.Len())
	}
}

// surface3MF is the one object of a package.
func surface3MF(t *testing.T, data []byte) *mesh.Mesh {
	t.Helper()
	archive := must[*zip.Reader](t)(zip.NewReader(bytes.NewReader(data), int64(len(data))))
	file := must[io.ReadCloser](t)(archive.File[slices.IndexFunc(archive.File, func(f *zip.File) bool { return f.Name == "3D/3dmodel.model" })].Open())
	defer file.Close()
	var model struct {
		Vertices []struct {
			X float64 `xml:"x,attr"`
			Y float64 `xml:"y,attr"`
			Z float64 `xml:"z,attr"`
		} `xml:"resources>object>mesh>vertices>vertex"`
		Triangles []struct {
			A uint32 `xml:"v1,attr"`
			B uint32 `xml:"v2,attr"`
			C uint32 `xml:"v3,attr"`
		} `xml:"resources>object>mesh>triangles>triangle"`
	}
	expect.No(t, xml.NewDecoder(file).Decode(&model))
	m := &mesh.Mesh{}
	for _, v := range model.Vertices {
		m.Vertices = append(m.Vertices, [3]float64{v.X, v.Y, v.Z})
	}
	for _, c := range model.Triangles {
		m.Triangles = append(m.Triangles, [3]uint32{c.A, c.B, c.C})
	}
	return m
}

func TestWhatSinglePrecisionFoldsStaysClosedIn3MF(t *testing.T) {
	// A box far out, with a vertex 2e-5 mm from a corner: one place in the file.
	m := &mesh.Mesh{}
	cuboid(m, 1000, 10)
	near := m.Vertices[0]
	near[0] += 2e-5
	m.Vertices = append(m.Vertices, near)
	for i, c := range slices.Clone(m.Triangles) {
		for j, from := range c {
			if to, third := c[(j+1)%3], c[(j+2)%3]; from+to == 1 {
				m.Triangles[i] = [3]uint32{from, 8, third}
				m.Triangles = append(m.Triangles, [3]uint32{8, to, third})
			}
		}
	}
	got := surface3MF(t, written(t, format.Write3MF, format.Part{Name: "far", Mesh: m}))
	if err := got.Check(); err != nil || len(got.Vertices) != 8 || len(got.Triangles) != 12 {
		t.Errorf("%d vertices, %d triangles, %v", len(got.Vertices), len(got.Triangles), err)
	}
}

func TestRoundedNumbersMakeWholeFiles(t *testing.T) {
	ctx := t.Context()
	k := must[*kernel.Kernel](t)(engine.Open(ctx))
	defer k.Close(ctx)
	for _, depth := range []float64{33.333333, 33.33333, 33.333331, 33.33332} {
		solid := must[*kernel.Solid](t)(k.Boolean(ctx, kernel.Union,
			box(t, k, [3]float64{}, [3]float64{10, 100. / 3, 10}), box(t, k, [3]float64{10, 0, 0}, [3]float64{10, depth, 10})))
		part := format.Part{Name: fmt.Sprint(depth), Mesh: must[*mesh.Mesh](t)(solid.Mesh(ctx))}
		text := step(t, part)
		expect.True(t, strings.Count(text, "=MANIFOLD_SOLID_BREP(") == 1, "%s: %d bytes of STEP are no solid", part.Name, len(text))
		expect.No(t, surface3MF(t, written(t, format.Write3MF, part)).Check(), part.Name, "3MF")
		_, err := format.ReadSTL(written(t, format.WriteSTL, part))
		expect.No(t, err, part.Name, "STL")
	}
}
