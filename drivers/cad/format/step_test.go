package format_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/format"
)

func step(t testing.TB, parts ...format.Part) string {
	t.Helper()
	var out bytes.Buffer
	if err := format.WriteSTEP(&out, parts); err != nil {
		t.Fatal(err)
	}
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
			if n := count("ADVANCED_FACE"); w.faces >= 0 && n != w.faces {
				t.Errorf("%d faces, want %d", n, w.faces)
			}
			if n := count("FACE_BOUND"); n != w.holes {
				t.Errorf("%d holes in faces, want %d", n, w.holes)
			}
			if n := count("MANIFOLD_SOLID_BREP") + count("BREP_WITH_VOIDS"); n != w.solids {
				t.Errorf("%d solids, want %d", n, w.solids)
			}
			if n := count("ORIENTED_CLOSED_SHELL"); n != w.voids {
				t.Errorf("%d voids, want %d", n, w.voids)
			}
			uses := map[string]int{}
			for _, m := range regexp.MustCompile(`=ORIENTED_EDGE\('',\*,\*,#(\d+),(\.[TF]\.)\)`).FindAllStringSubmatch(text, -1) {
				uses[m[1]+m[2]]++
			}
			if len(uses) != 2*count("EDGE_CURVE") {
				t.Errorf("%d edges are used in %d ways", count("EDGE_CURVE"), len(uses))
			}
			for way, n := range uses {
				if n != 1 {
					t.Errorf("edge %s is used %d times", way, n)
				}
			}
		})
	}
}

func TestSTEPReferencesAndNumbersAreWellFormed(t *testing.T) {
	parts := shapes(t)
	text := step(t, parts...)
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#(\d+)=`).FindAllStringSubmatch(text, -1) {
		if defined[m[1]] {
			t.Fatalf("#%s is defined twice", m[1])
		}
		defined[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`#(\d+)`).FindAllStringSubmatch(text, -1) {
		if !defined[m[1]] {
			t.Fatalf("#%s is not defined", m[1])
		}
	}
	numbers := 0
	for _, line := range regexp.MustCompile(`(?m)=(CARTESIAN_POINT|DIRECTION)\('',\((.*)\)\);$`).FindAllStringSubmatch(text, -1) {
		for _, number := range strings.Split(line[2], ",") {
			numbers++
			if !regexp.MustCompile(`^-?\d+\.\d*(E[-+]?\d+)?$`).MatchString(number) {
				t.Fatalf("%q is no real", number)
			}
		}
	}
	if numbers < 1000 {
		t.Errorf("%d numbers found", numbers)
	}
	if !strings.Contains(text, `PRODUCT('ball''s \X2\00D6\X0\se',`) || strings.Count(text, "=PRODUCT(") != len(parts) {
		t.Error("the products do not carry the parts' names")
	}
	if again := step(t, parts...); again != text {
		t.Error("the same parts give different bytes")
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
			{"step", func(w *bytes.Buffer) error { return format.WriteSTEP(w, []format.Part{p}) }},
			{"stl", func(w *bytes.Buffer) error { return format.WriteSTL(w, []format.Part{p}) }},
			{"3mf", func(w *bytes.Buffer) error { return format.Write3MF(w, []format.Part{p}) }},
			{"svg", func(w *bytes.Buffer) error { return format.WriteSVG(w, []format.Part{p}, format.Isometric) }},
			{"json", func(w *bytes.Buffer) error { return format.WriteJSON(w, []format.Part{p}) }},
		} {
			var out bytes.Buffer
			if err := f.write(&out); err != nil {
				t.Errorf("%s as %s: %v", p.Name, f.ending, err)
			}
			if out.Len() == 0 {
				t.Errorf("%s as %s is empty", p.Name, f.ending)
			}
			if err := os.WriteFile(base+"."+f.ending, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
