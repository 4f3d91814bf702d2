package format_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
	"swarmdeck/drivers/cad/kernel"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

func step(t testing.TB, parts ...format.Part) string {
	t.Helper()
	var out bytes.Buffer
	expect.No(t, format.WriteSTEP(t.Context(), &out, parts))
	return out.String()
}

func TestSTEPHasWholeFacesOfSharedEdges(t *testing.T) {
	want := map[string]struct{ faces, holes, solids, voids int }{
		"plate":      {6, 0, 1, 0},
		"drilled":    {-1, 2, 1, 0},
		"with pegs":  {-1, 6, 1, 0},
		"pieces":     {-1, 0, 4, 0},
		"hollow":     {12, 0, 1, 1},
		"leaning":    {-1, 2, 1, 0},
		"notched":    {10, 0, 1, 0},
		"ball's Öse": {-1, 0, 1, 0},
		"stepped":    {11, 1, 1, 0},
	}
	for _, p := range shapes(t) {
		t.Run(p.Name, func(t *testing.T) {
			text, w := step(t, p), want[p.Name]
			count := func(name string) int { return strings.Count(text, "="+name+"(") }
			n := count("ADVANCED_FACE")
			expect.True(t, w.faces < 0 || n == w.faces, "%d faces, want %d", n, w.faces)
			expect.Is(t, count("FACE_BOUND"), w.holes)
			expect.Is(t, count("MANIFOLD_SOLID_BREP")+count("BREP_WITH_VOIDS"), w.solids)
			expect.Is(t, count("ORIENTED_CLOSED_SHELL"), w.voids)
			uses := map[string]int{}
			for _, m := range regexp.MustCompile(`=ORIENTED_EDGE\('',\*,\*,#(\d+),(\.[TF]\.)\)`).FindAllStringSubmatch(text, -1) {
				uses[m[1]+m[2]]++
			}
			if len(uses) != 2*count("EDGE_CURVE") {
				t.Errorf("%d edges are used in %d ways", count("EDGE_CURVE"), len(uses))
			}
			for way, n := range uses {
				expect.Is(t, n, 1, "edge", way, "is used")
			}
		})
	}
}

func TestSTEPReferencesAndNumbersAreWellFormed(t *testing.T) {
	parts := shapes(t)
	text := step(t, parts...)
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#(\d+)=`).FindAllStringSubmatch(text, -1) {
		expect.Must(t, !defined[m[1]], "#%s is defined twice", m[1])
		defined[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`#(\d+)`).FindAllStringSubmatch(text, -1) {
		expect.Must(t, defined[m[1]], "#%s is not defined", m[1])
	}
	numbers := 0
	for _, line := range regexp.MustCompile(`(?m)=(CARTESIAN_POINT|DIRECTION)\('',\((.*)\)\);$`).FindAllStringSubmatch(text, -1) {
		for _, number := range strings.Split(line[2], ",") {
			numbers++
			expect.Must(t, regexp.MustCompile(`^-?\d+\.\d*(E[-+]?\d+)?$`).MatchString(number), "%q is no real", number)
		}
	}
	expect.True(t, numbers >= 1000, "%d numbers found", numbers)
	expect.True(t, strings.Contains(text, `PRODUCT('ball''s \X2\00D6\X0\se',`) && strings.Count(text, "=PRODUCT(") == len(parts),
		"the products do not carry the parts' names")
	expect.Is(t, step(t, parts...), text, "the same parts give different bytes")
}

func TestSTEPClaimsThePrecisionThatItsGeometryHas(t *testing.T) {
	k := must[*kernel.Kernel](t)(engine.Open(t.Context()))
	defer k.Close(context.Background())
	turn := mesh.Rotation([3]float64{}, [3]float64{1, 2, 3}, 0.7)
	for _, size := range []float64{10, 100, 1000, 20_000} {
		tilted := must[*kernel.Solid](t)(box(t, k, [3]float64{}, [3]float64{size, size / 2, size / 3}).Transform(t.Context(), turn))
		m := must[*mesh.Mesh](t)(tilted.Mesh(t.Context()))
		off := 0.0 // how far the corners of a face lie from the plane of its first triangle
		first := map[uint32]int{}
		for i, f := range m.Faces {
			if _, seen := first[f]; !seen {
				first[f] = i
			}
			at, _, _ := m.Corners(first[f])
			for _, v := range m.Triangles[i] {
				off = max(off, math.Abs(mesh.Dot(m.Normal(first[f]), mesh.Sub(m.Vertices[v], at))))
			}
		}
		text := step(t, format.Part{Name: "box", Mesh: m})
		found := regexp.MustCompile(`LENGTH_MEASURE\(([^)]*)\)`).FindStringSubmatch(text)
		claimed, err := strconv.ParseFloat(found[1], 64)
		if err != nil || claimed < off || claimed > max(2e-5, 3e-7*size) {
			t.Errorf("a box of %g mm claims %s, %v; a corner lies %g off its face", size, found[1], err, off)
		}
	}
}

// SWARMDECK_CAD_OUT names a directory to look at the files with other tools.
func TestFilesForOtherTools(t *testing.T) {
	dir := os.Getenv("SWARMDECK_CAD_OUT")
	if dir == "" {
		dir = t.TempDir()
	}
	for i, p := range shapes(t) {
		base := filepath.Join(dir, fmt.Sprint(i))
		for _, f := range []struct {
			ending string
			write  func(*bytes.Buffer) error
		}{
			{"step", func(w *bytes.Buffer) error { return format.WriteSTEP(t.Context(), w, []format.Part{p}) }},
			{"stl", func(w *bytes.Buffer) error { return format.WriteSTL(w, []format.Part{p}) }},
			{"3mf", func(w *bytes.Buffer) error { return format.Write3MF(w, []format.Part{p}) }},
			{"svg", func(w *bytes.Buffer) error { return format.WriteSVG(w, []format.Part{p}, format.Isometric) }},
			{"json", func(w *bytes.Buffer) error { return format.WriteJSON(w, []format.Part{p}) }},
		} {
			var out bytes.Buffer
			expect.No(t, f.write(&out), p.Name, "as", f.ending)
			expect.True(t, out.Len() != 0, "%s as %s is empty", p.Name, f.ending)
			expect.No(t, os.WriteFile(base+"."+f.ending, out.Bytes(), 0o600))
		}
	}
}
