package conformance_test

import (
	"math"
	"path/filepath"
	"testing"

	"swarmdeck/drivers/cad/freecad/freecadtest"
	"swarmdeck/expect"
)

func (r *rig) opened(names ...string) map[string]freecadtest.File {
	r.Helper()
	var files []string
	for _, n := range names {
		files = append(files, filepath.Join(r.dir, n))
	}
	return freecadtest.Open(r.TB, files...)
}

func TestFreeCADOpensMeshesAndDrawings(t *testing.T) {
	onEach(t, func(r *rig) {
		freecadtest.Need(r.TB)
		plate, pin := r.holed()
		r.export("both.stl", obj{"tessellation_quality": "high_quality"})
		r.export("both.svg", obj{"view": "top"})
		r.export("both.3mf", obj{"tessellation_quality": "high_quality"})
		found := r.opened("both.stl", "both.svg", "both.3mf")
		r.sound("both.stl", found["both.stl"].Solids, plate+pin)
		r.sound("both.3mf", found["both.3mf"].Solids, plate, pin)
		// Of the plate and the pin only circles and the border are seen from above.
		d := found["both.svg"]
		expect.True(r, d.Valid && d.Wires == 6 && d.Closed == 6, "the drawing is %+v, want six closed wires", d.Drawing)
		r.near("length of the wires", d.Length, 2*(360+2*math.Pi*(15+14)), 0.5)
		for i, want := range []float64{0, 0, 100, 80} {
			expect.True(r, math.Abs(d.Box[i]-want) <= 0.01, "the drawing covers %v, want the plate in millimetres", d.Box)
		}
	})
}

// sound checks solids of facets: closed for one who joins equal corners, and of
// these volumes.
func (r *rig) sound(file string, solids []freecadtest.Solid, volumes ...float64) {
	r.Helper()
	expect.Must(r, len(solids) == len(volumes), "%s: %+v, want %d solids", file, solids, len(volumes))
	for i, s := range solids {
		if m := s.Mesh; !s.Closed || !s.Valid || !m.Solid || m.NonManifold || m.SelfCrossing || m.Turned {
			r.Errorf("%s: solid %d %+v %+v", file, i+1, s, *m)
		}
		r.near(file, s.Volume, volumes[i], 1e-3*volumes[i])
	}
}

func TestPartsThatTouchAreOneClosedSTLForFreeCAD(t *testing.T) {
	onEach(t, func(r *rig) {
		freecadtest.Need(r.TB)
		// A block with one on a part of its top, one at its side along an edge
		// only, one that overlaps it, one within a hole of the same size, and one
		// that is apart.
		r.box("block", [3]float64{}, [3]float64{40, 40, 10})
		r.box("top", [3]float64{10, 10, 10}, [3]float64{10, 10, 5})
		r.box("corner", [3]float64{40, 40, 0}, [3]float64{10, 10, 10})
		r.box("over", [3]float64{-5, 0, 0}, [3]float64{10, 10, 10})
		r.cylinder("drill", [3]float64{30, 30, -1}, 5, 12)
		r.do("solid.boolean", obj{"operation": "subtract", "entity_ids": []string{"block", "drill"}, "entity_id": "block"})
		r.cylinder("pin", [3]float64{30, 30, -5}, 5, 20)
		r.box("apart", [3]float64{60, 0, 0}, [3]float64{10, 10, 10})
		r.do("file.export", obj{"file_path": "all.stl", "tessellation_quality": "high_quality"})
		r.do("file.export", obj{"file_path": "text.stl", "tessellation_quality": "high_quality", "ascii": true})
		r.do("file.export", obj{"file_path": "all.3mf", "tessellation_quality": "high_quality"})
		whole := 16000 + 500 + 1000 + 500 + 1000 + 25*math.Pi*10
		found := r.opened("all.stl", "text.stl", "all.3mf")
		for _, name := range []string{"all.stl", "text.stl"} {
			r.sound(name, found[name].Solids, whole)
		}
		r.sound("all.3mf", found["all.3mf"].Solids, 16000-250*math.Pi, 500, 1000, 1000, 500*math.Pi, 1000)
	})
}
