package format_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
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
	if err := write(&out, parts); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSTLComesBackWithTheSameVolume(t *testing.T) {
	for _, p := range shapes(t) {
		data := written(t, format.WriteSTL, p)
		if len(data) != 84+50*len(p.Mesh.Triangles) {
			t.Errorf("%s: %d bytes for %d triangles", p.Name, len(data), len(p.Mesh.Triangles))
		}
		m, err := format.ReadSTL(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
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
	m, err := format.ReadSTL(strings.NewReader(textTetra))
	if err != nil || len(m.Vertices) != 4 {
		t.Fatalf("%+v, %v", m, err)
	}
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
		if m, err := format.ReadSTL(bytes.NewReader(data)); !errors.Is(err, core.Kind(core.InvalidInput)) || m != nil {
			t.Errorf("%s: got %v, %v", name, m, err)
		}
	}
	endless := io.MultiReader(bytes.NewReader(good), zeros{})
	if _, err := format.ReadSTL(endless); !errors.Is(err, core.Kind(core.InvalidInput)) {
		t.Errorf("an endless file: %v", err)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestJSONComesBackAsItWas(t *testing.T) {
	parts := shapes(t)
	data := written(t, format.WriteJSON, parts...)
	back, err := format.ReadJSON(bytes.NewReader(data))
	if err != nil || len(back) != len(parts) {
		t.Fatalf("%d parts, %v", len(back), err)
	}
	if again := written(t, format.WriteJSON, back...); !bytes.Equal(again, data) {
		t.Error("read and written again it differs")
	}
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
		"more":    {`}]}`, `}]}{}`},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		if bad == good {
			t.Fatalf("%s changes nothing", name)
		}
		if _, err := format.ReadJSON(strings.NewReader(bad)); !errors.Is(err, core.Kind(core.InvalidInput)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
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
			"STEP": format.WriteSTEP, "STL": format.WriteSTL, "3MF": format.Write3MF, "JSON": format.WriteJSON,
			"SVG": func(w io.Writer, p []format.Part) error { return format.WriteSVG(w, p, format.Top) },
		} {
			var out bytes.Buffer
			if err := write(&out, parts); !errors.Is(err, core.Kind(core.InvalidInput)) || out.Len() != 0 {
				t.Errorf("%s as %s: %v after %d bytes", name, kind, err, out.Len())
			}
		}
	}
	if err := format.WriteSVG(io.Discard, []format.Part{tetrahedron()}, "below"); !errors.Is(err, core.Kind(core.InvalidInput)) {
		t.Errorf("an unknown view: %v", err)
	}
}

func TestAFailingWriterIsReported(t *testing.T) {
	for kind, write := range map[string]func(io.Writer, []format.Part) error{
		"STEP": format.WriteSTEP, "STL": format.WriteSTL, "3MF": format.Write3MF, "JSON": format.WriteJSON,
		"SVG": func(w io.Writer, p []format.Part) error { return format.WriteSVG(w, p, format.Front) },
	} {
		if err := write(full{}, []format.Part{tetrahedron()}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s on a full disk: %v", kind, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func Test3MFHoldsEveryPartByName(t *testing.T) {
	parts := shapes(t)
	data := written(t, format.Write3MF, parts...)
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	file, err := archive.Open("3D/3dmodel.model")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := xml.NewDecoder(file).Decode(&model); err != nil {
		t.Fatal(err)
	}
	if model.Unit != "millimeter" || len(model.Objects) != len(parts) || len(model.Items) != len(parts) {
		t.Fatalf("unit %s, %d objects, %d items", model.Unit, len(model.Objects), len(model.Items))
	}
	for i, o := range model.Objects {
		if o.Name != parts[i].Name || len(o.Triangles) != len(parts[i].Mesh.Triangles) || len(o.Vertices) != len(parts[i].Mesh.Vertices) {
			t.Errorf("object %q has %d triangles, want %q with %d", o.Name, len(o.Triangles), parts[i].Name, len(parts[i].Mesh.Triangles))
		}
	}
	if again := written(t, format.Write3MF, parts...); !bytes.Equal(again, data) {
		t.Error("the same parts give different bytes")
	}
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
	lines := func() (visible, hidden int) {
		var out bytes.Buffer
		if err := format.WriteSVG(&out, []format.Part{{Name: "pin", Mesh: m, Tolerance: 0.02}}, format.Front); err != nil {
			t.Fatal(err)
		}
		paths := strings.SplitAfter(out.String(), "<path")
		return strings.Count(paths[2], "M"), strings.Count(paths[1], "M")
	}
	// The two sides where it turns away; of each rim the front half is visible.
	if visible, hidden := lines(); visible != n+2 || hidden != n {
		t.Errorf("%d lines are visible and %d hidden, want %d and %d", visible, hidden, n+2, n)
	}
	for i := range m.Faces {
		m.Faces[i] = min(m.Faces[i], 2) // an exact kernel knows that it is one face
	}
	if visible, hidden := lines(); visible != n+2 || hidden != n {
		t.Errorf("as one face %d lines are visible and %d hidden, want %d and %d", visible, hidden, n+2, n)
	}
}

func TestSVGDrawsEachEdgeOnce(t *testing.T) {
	for view, visible := range map[format.View]int{format.Top: 4, format.Front: 4, format.Right: 4, format.Isometric: 9} {
		var out bytes.Buffer
		if err := format.WriteSVG(&out, shapes(t)[:1], view); err != nil {
			t.Fatal(err)
		}
		var drawing struct {
			Width string `xml:"width,attr"`
			Paths []struct {
				D string `xml:"d,attr"`
			} `xml:"g>path"`
		}
		if err := xml.Unmarshal(out.Bytes(), &drawing); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(drawing.Paths[1].D, "M"); n != visible || strings.Count(drawing.Paths[0].D, "M") != 12-visible {
			t.Errorf("%s: %d edges are visible, want %d", view, n, visible)
		}
		if view == format.Top && drawing.Width != "110mm" {
			t.Errorf("a plate of 100 mm is drawn %s wide", drawing.Width)
		}
	}
}

func TestProfilesAreDrawnWithTrueArcs(t *testing.T) {
	s, err := profile.Slot(profile.Point{X: 0, Y: 0}, profile.Point{X: 10, Y: 0}, 2)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := format.WriteProfileSVG(&out, s); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "A2 2 0 0 0 ") != 4 || strings.Count(text, "L") != 2 || !strings.Contains(text, `width="24mm" height="14mm"`) {
		t.Errorf("%s", text)
	}
	if err := format.WriteProfileSVG(&out, profile.Shape{}); !errors.Is(err, core.Kind(core.InvalidInput)) {
		t.Errorf("an empty shape: %v", err)
	}
}

// FuzzReadSTL: what is read is a solid, and can be written and read again.
func FuzzReadSTL(f *testing.F) {
	f.Add(written(f, format.WriteSTL, tetrahedron()))
	f.Add([]byte(textTetra))
	f.Add([]byte("solid\nendsolid"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := format.ReadSTL(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		part := format.Part{Name: "again", Mesh: m}
		if _, err := format.ReadSTL(bytes.NewReader(written(t, format.WriteSTL, part))); err != nil {
			t.Fatal(err)
		}
		_ = format.WriteSTEP(io.Discard, []format.Part{part}) // may refuse, never panic
	})
}

// FuzzReadJSON: what is read can be written and reads the same.
func FuzzReadJSON(f *testing.F) {
	f.Add(written(f, format.WriteJSON, tetrahedron()))
	f.Add([]byte(`{"format":"swarmdeck-solids","version":1,"unit":"mm","parts":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, err := format.ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		once := written(t, format.WriteJSON, parts...)
		back, err := format.ReadJSON(bytes.NewReader(once))
		if err != nil || !bytes.Equal(written(t, format.WriteJSON, back...), once) {
			t.Fatalf("%v", err)
		}
		_ = format.WriteSTEP(io.Discard, parts)
	})
}

func BenchmarkSTEP(b *testing.B) {
	parts := shapes(b)
	for b.Loop() {
		written(b, format.WriteSTEP, parts...)
	}
}

func BenchmarkReadSTL(b *testing.B) {
	data := written(b, format.WriteSTL, shapes(b)[2])
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		must[*mesh.Mesh](b)(format.ReadSTL(bytes.NewReader(data)))
	}
}
