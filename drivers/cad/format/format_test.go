package format_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// tetrahedron is the smallest solid.
func tetrahedron() format.Part {
	return format.Part{Name: "tetra", Mesh: &mesh.Mesh{
		Vertices:  [][3]float64{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		Triangles: [][3]uint32{{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}},
	}}
}

func written(t testing.TB, write func(io.Writer, []format.Part) error, parts ...format.Part) []byte {
	t.Helper()
	var out bytes.Buffer
	expect.No(t, write(&out, parts))
	return out.Bytes()
}

func writeSTEP(w io.Writer, parts []format.Part) error {
	return format.WriteSTEP(context.Background(), w, parts)
}

func TestSTLComesBackWithTheSameVolume(t *testing.T) {
	for _, p := range shapes(t) {
		data := written(t, format.WriteSTL, p)
		expect.True(t, len(data) == 84+50*len(p.Mesh.Triangles), "%s: %d bytes for %d triangles", p.Name, len(data), len(p.Mesh.Triangles))
		m, err := format.ReadSTL(data)
		expect.No(t, err, p.Name)
		near(t, p.Name, m.Properties().Volume, p.Mesh.Properties().Volume, 1e-5)
	}
}

const textTetra = `solid t
 facet normal 0 0 -1
  outer loop
   vertex 0 0 0
   vertex 0 1 0
   vertex 1 0 0
  endloop
 endfacet
 facet normal 0 -1 0
  outer loop
   vertex 0 0 0
   vertex 1 0 0
   vertex 0 0 1e0
  endloop
 endfacet
 facet normal 1 1 1
  outer loop
   vertex 1 0 0
   vertex 0 1 0
   vertex 0 0 1
  endloop
 endfacet
 facet normal -1 0 0
  outer loop
   vertex -0 0 0
   vertex 0 0 1
   vertex 0 1 0
  endloop
 endfacet
endsolid t
`

func TestTextSTLIsRead(t *testing.T) {
	m, err := format.ReadSTL([]byte(textTetra))
	expect.Must(t, err == nil && len(m.Vertices) == 4, "%+v, %v", m, err)
	near(t, "volume", m.Properties().Volume, 1.0/6, 1e-12)
}

func TestSTLThatIsNoSolidIsRefused(t *testing.T) {
	good := written(t, format.WriteSTL, tetrahedron())
	lying := bytes.Clone(good)
	binary.LittleEndian.PutUint32(lying[80:], math.MaxUint32)
	nan := bytes.Clone(good)
	binary.LittleEndian.PutUint32(nan[84+12:], 0x7fc00000)
	open := bytes.Clone(good[:84+150])
	binary.LittleEndian.PutUint32(open[80:], 3)
	for name, data := range map[string][]byte{
		"nothing": nil, "short": good[:100], "a count that lies": lying, "not a number": nan, "open": open,
		"text without end": []byte(textTetra[:len(textTetra)/2]), "text with words": []byte("solid\nfacet normal\nvertex a b c\n"),
		"long line": append([]byte("solid "), bytes.Repeat([]byte("x"), 100_000)...),
	} {
		m, err := format.ReadSTL(data)
		expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && m == nil, "%s: got %v, %v", name, m, err)
	}
}

func TestJSONComesBackAsItWas(t *testing.T) {
	parts := shapes(t)
	data := written(t, format.WriteJSON, parts...)
	back, err := format.ReadJSON(data)
	expect.Must(t, err == nil && len(back) == len(parts), "%d parts, %v", len(back), err)
	expect.True(t, bytes.Equal(written(t, format.WriteJSON, back...), data), "read and written again it differs")
	near(t, "volume", volumes(back), volumes(parts), 0)
}

func TestJSONThatIsNoSolidIsRefused(t *testing.T) {
	good := string(written(t, format.WriteJSON, tetrahedron()))
	for name, c := range map[string]struct{ from, to string }{
		"format":  {"swarmdeck-solids", "other"},
		"version": {`"version":1`, `"version":2`},
		"unit":    {`"mm"`, `"inch"`},
		"field":   {`"unit"`, `"units"`},
		"index":   {`[0,2,1]`, `[0,2,9]`},
		"number":  {`[0,2,1]`, `[0,2,-1]`},
		"corners": {`[0,2,1]`, `[0,2]`},
		"inverse": {`[0,2,1]`, `[0,1,2]`},
		"name":    {`"tetra"`, `""`},
		"huge":    {`[1,0,0]`, `[1e300,0,0]`},
		"cut":     {`}]}`, ``},
		"member":  {`"tolerance"`, `"depth"`},
		"no list": {`[[0,2,1],[0,1,3],[1,2,3],[0,3,2]]`, `{}`},
		"endless": {`[[0,2,1],`, `[[0,2,1]`},
		"more":    {`}]}`, `}]}{}`},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		expect.Must(t, bad != good, "%s changes nothing", name)
		expect.Err(t, expect.Fault(format.ReadJSON([]byte(bad))), core.Kind(core.InvalidInput), name)
	}
}

func TestJSONOfTooManyPartsIsNotKept(t *testing.T) {
	const many = 1 << 18
	text := `{"format":"swarmdeck-solids","version":1,"unit":"mm","parts":[` + strings.Repeat("{},", many) + `{}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := format.ReadJSON([]byte(text))
	runtime.ReadMemStats(&after)
	expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && strings.Contains(err.Error(), "1 to 1000 solids"), "%v", err)
	took := after.TotalAlloc - before.TotalAlloc
	expect.True(t, took <= 16*uint64(len(text)), "a file of %d bytes took %d", len(text), took)
}

func TestJSONOfTooManyTrianglesIsNotKept(t *testing.T) {
	good := string(written(t, format.WriteJSON, tetrahedron()))
	many := strings.Repeat("[0,1,2],", mesh.MaxTriangles+1000)
	_, err := format.ReadJSON([]byte(strings.Replace(good, `[0,2,1]`, many+`[0,2,1]`, 1)))
	want := fmt.Sprintf("%d triangles", mesh.MaxTriangles+1)
	expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && strings.Contains(err.Error(), want), "%v, want the first that is too many: %s", err, want)
}

func TestWritersRefuseWhatIsNoSolidAndWriteNothing(t *testing.T) {
	open := tetrahedron()
	open.Mesh.Triangles = open.Mesh.Triangles[:3]
	nameless, coarse, empty := tetrahedron(), tetrahedron(), tetrahedron()
	nameless.Name, coarse.Tolerance, empty.Mesh = "", math.NaN(), nil
	for name, parts := range map[string][]format.Part{
		"none": nil, "open": {tetrahedron(), open}, "nameless": {nameless}, "tolerance": {coarse}, "no mesh": {empty},
	} {
		for kind, write := range map[string]func(io.Writer, []format.Part) error{
			"STEP": writeSTEP, "STL": format.WriteSTL, "3MF": format.Write3MF, "JSON": format.WriteJSON,
			"SVG": func(w io.Writer, p []format.Part) error { return format.WriteSVG(w, p, format.Top) },
		} {
			var out bytes.Buffer
			err := write(&out, parts)
			expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && out.Len() == 0, "%s as %s: %v after %d bytes", name, kind, err, out.Len())
		}
	}
	expect.Err(t, format.WriteSVG(io.Discard, []format.Part{tetrahedron()}, "below"), core.Kind(core.InvalidInput), "an unknown view")
}

func TestAFailingWriterIsReported(t *testing.T) {
	for kind, write := range map[string]func(io.Writer, []format.Part) error{
		"STEP": writeSTEP, "STL": format.WriteSTL, "3MF": format.Write3MF, "JSON": format.WriteJSON,
		"SVG": func(w io.Writer, p []format.Part) error { return format.WriteSVG(w, p, format.Front) },
	} {
		expect.Err(t, write(full{}, []format.Part{tetrahedron()}), io.ErrShortWrite, kind, "on a full disk")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func Test3MFHoldsEveryPartByName(t *testing.T) {
	parts := shapes(t)
	data := written(t, format.Write3MF, parts...)
	archive := expect.Of(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	file := expect.Of(archive.Open("3D/3dmodel.model"))(t)
	var model struct {
		Unit    string `xml:"unit,attr"`
		Objects []struct {
			Name      string     `xml:"name,attr"`
			Vertices  []struct{} `xml:"mesh>vertices>vertex"`
			Triangles []struct{} `xml:"mesh>triangles>triangle"`
		} `xml:"resources>object"`
		Items []struct {
			ID int `xml:"objectid,attr"`
		} `xml:"build>item"`
	}
	expect.No(t, xml.NewDecoder(file).Decode(&model))
	expect.Must(t, model.Unit == "millimeter" && len(model.Objects) == len(parts) && len(model.Items) == len(parts),
		"unit %s, %d objects, %d items", model.Unit, len(model.Objects), len(model.Items))
	for i, o := range model.Objects {
		expect.True(t, o.Name == parts[i].Name && len(o.Triangles) == len(parts[i].Mesh.Triangles) && len(o.Vertices) == len(parts[i].Mesh.Vertices),
			"object %q has %d triangles, want %q with %d", o.Name, len(o.Triangles), parts[i].Name, len(parts[i].Mesh.Triangles))
	}
	expect.True(t, bytes.Equal(written(t, format.Write3MF, parts...), data), "the same parts give different bytes")
}

func TestBoxesThatTouchAtAnEdgeStayClosed(t *testing.T) {
	// Two boxes side by side, corner to corner, share the edge at (10, 10); a
	// third has only a corner in common with the second.
	k := must[*kernel.Kernel](t)(engine.Open(t.Context()))
	defer k.Close(context.Background())
	var parts []format.Part
	for i, at := range [][3]float64{{0, 0, 0}, {10, 10, 0}, {20, 20, 10}} {
		m := must[*mesh.Mesh](t)(box(t, k, at, [3]float64{10, 10, 10}).Mesh(t.Context()))
		parts = append(parts, format.Part{Name: fmt.Sprintf("box %d", i), Mesh: m})
	}
	touching := &mesh.Mesh{}
	for _, p := range parts[:2] {
		first := uint32(len(touching.Vertices))
		touching.Vertices = append(touching.Vertices, p.Mesh.Vertices...)
		for _, c := range p.Mesh.Triangles {
			touching.Triangles = append(touching.Triangles, [3]uint32{first + c[0], first + c[1], first + c[2]})
		}
	}
	for name, parts := range map[string][]format.Part{
		"apart": parts, "one": {{Name: "both", Mesh: touching}},
	} {
		for _, write := range []func(io.Writer, []format.Part) error{format.WriteSTL, format.WriteTextSTL} {
			m, err := format.ReadSTL(written(t, write, parts...)) // which joins equal corners
			expect.No(t, err, name)
			near(t, name, m.Properties().Volume, volumes(parts), 1e-5)
		}
	}
	data := written(t, format.Write3MF, format.Part{Name: "both", Mesh: touching})
	_, number := vertices3MF(t, data)
	expect.True(t, number == 16, "%d places in the 3MF, want 16", number)
	twice := format.Part{Name: "twice", Mesh: parts[0].Mesh}
	expect.Says(t, format.WriteSTL(io.Discard, []format.Part{twice, twice}), "touches itself", "a part that is there twice")
}

// vertices3MF counts the vertices of a package and the places that they are at.
func vertices3MF(t *testing.T, data []byte) (all, places int) {
	t.Helper()
	archive := must[*zip.Reader](t)(zip.NewReader(bytes.NewReader(data), int64(len(data))))
	model := must[fs.File](t)(archive.Open("3D/3dmodel.model"))
	found := regexp.MustCompile(`<vertex [^>]*>`).FindAllString(string(must[[]byte](t)(io.ReadAll(model))), -1)
	at := map[string]bool{}
	for _, v := range found {
		at[v] = true
	}
	return len(found), len(at)
}

func TestSVGDrawsTheOutlineOfACurve(t *testing.T) {
	const n, r, h = 48, 10.0, 30.0 // a cylinder of facets, by its rims
	m := &mesh.Mesh{Vertices: [][3]float64{{0, 0, 0}, {0, 0, h}}}
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / n)
		m.Vertices = append(m.Vertices, [3]float64{r * cos, r * sin, 0}, [3]float64{r * cos, r * sin, h})
	}
	for i := range uint32(n) {
		a, b := 2+2*i, 2+2*((i+1)%n)
		m.Triangles = append(m.Triangles, [3]uint32{0, b, a}, [3]uint32{1, a + 1, b + 1}, [3]uint32{a, b, b + 1}, [3]uint32{a, b + 1, a + 1})
		m.Faces = append(m.Faces, 0, 1, 2+i, 2+i)
	}
	drawn := func() (visible, hidden strokes) {
		var out bytes.Buffer
		expect.No(t, format.WriteSVG(&out, []format.Part{{Name: "pin", Mesh: m, Tolerance: 0.02}}, format.Front))
		paths := strings.SplitAfter(out.String(), "<path")
		return strokesOf(paths[2]), strokesOf(paths[1])
	}
	// The two sides where it turns away; of each rim the front half is visible.
	around, behind := strokes{lines: 1, closed: 1, edges: n + 2}, strokes{lines: 2, edges: n}
	visible, hidden := drawn()
	expect.True(t, visible == around && hidden == behind, "%+v are visible and %+v hidden, want %+v and %+v", visible, hidden, around, behind)
	for i := range m.Faces {
		m.Faces[i] = min(m.Faces[i], 2) // an exact kernel knows that it is one face
	}
	visible, hidden = drawn()
	expect.True(t, visible == around && hidden == behind, "as one face %+v are visible and %+v hidden, want %+v and %+v", visible, hidden, around, behind)
}

// strokes count what a path draws.
type strokes struct{ lines, closed, edges int }

func strokesOf(path string) strokes {
	closed := strings.Count(path, "Z")
	return strokes{lines: strings.Count(path, "M"), closed: closed, edges: strings.Count(path, "L") + closed}
}

func TestSVGDrawsEachEdgeOnce(t *testing.T) {
	flat := [2]strokes{{lines: 1, closed: 1, edges: 4}, {lines: 1, closed: 1, edges: 4}}
	for view, want := range map[format.View][2]strokes{
		format.Top: flat, format.Front: flat, format.Right: flat,
		format.Isometric: {{lines: 6, edges: 9}, {lines: 3, edges: 3}}, // corners of three edges end lines
	} {
		var out bytes.Buffer
		expect.No(t, format.WriteSVG(&out, shapes(t)[:1], view))
		var drawing struct {
			Width string `xml:"width,attr"`
			Paths []struct {
				D string `xml:"d,attr"`
			} `xml:"g>path"`
		}
		expect.No(t, xml.Unmarshal(out.Bytes(), &drawing))
		expect.Is(t, [2]strokes{strokesOf(drawing.Paths[1].D), strokesOf(drawing.Paths[0].D)}, want, view, "visible and hidden are")
		expect.True(t, view != format.Top || drawing.Width == "110mm", "a plate of 100 mm is drawn %s wide", drawing.Width)
	}
}

// FuzzReadSTL: what is read is a solid, and can be written and read again.
func FuzzReadSTL(f *testing.F) {
	f.Add(written(f, format.WriteSTL, tetrahedron()))
	f.Add([]byte(textTetra))
	f.Add([]byte("solid\nendsolid"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := format.ReadSTL(data)
		if err != nil {
			return
		}
		expect.No(t, m.Check())
		part := format.Part{Name: "again", Mesh: m}
		expect.Of(format.ReadSTL(written(t, format.WriteSTL, part)))(t)
		_ = writeSTEP(io.Discard, []format.Part{part}) // may refuse, never panic
	})
}

// FuzzReadJSON: what is read can be written and reads the same.
func FuzzReadJSON(f *testing.F) {
	f.Add(written(f, format.WriteJSON, tetrahedron()))
	f.Add([]byte(`{"format":"swarmdeck-solids","version":1,"unit":"mm","parts":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, err := format.ReadJSON(data)
		if err != nil {
			return
		}
		once := written(t, format.WriteJSON, parts...)
		back, err := format.ReadJSON(once)
		expect.Must(t, err == nil && bytes.Equal(written(t, format.WriteJSON, back...), once), "%v", err)
		_ = writeSTEP(io.Discard, parts)
	})
}
