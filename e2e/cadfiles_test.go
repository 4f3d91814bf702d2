package e2e

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/freecad/freecadtest"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// The assembly, as a person gets it by the one command, opened by FreeCAD.
func TestFreeCADOpensTheAssembly(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		name   string
		facets float64 // how far the volumes of facets may be from what the kernel tells
	}{
		{env.Embedded, 1e-5}, // which are its solids
		{env.OCCT, 1e-2},     // which stand for its curves
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			freecadtest.Need(t)
			u := newUser(t)
			out := filepath.Join(u.home, "out")
			u.ok("cad", "scenario", "run", "assembly_design", "--kernel", k.name, "--out", out, "--wait")
			volumes := u.solids("integrator")
			expect.Must(t, len(volumes) == 6, "%v, want six solids", volumes)
			total := 0.0
			for _, v := range volumes {
				total += v
			}
			found := freecadtest.Open(t, filepath.Join(out, "assembly.step"), filepath.Join(out, "assembly.stl"),
				filepath.Join(out, "assembly.3mf"), filepath.Join(out, "assembly.svg"))
			stl := found["assembly.stl"].Solids
			expect.True(t, len(stl) == 1 && math.Abs(stl[0].Volume-total) <= k.facets*total, "STL: %+v, want one solid of %v mm³", stl, total)
			for name, relative := range map[string]float64{"assembly.step": 1e-5, "assembly.3mf": k.facets} {
				left := maps.Clone(volumes)
				for _, s := range found[name].Solids {
					want := left[s.Name]
					expect.True(t, math.Abs(s.Volume-want) <= relative*want, "%s: %s has %v mm³, want %v", name, s.Name, s.Volume, want)
					delete(left, s.Name)
				}
				if len(left) > 0 {
					t.Errorf("%s: no solid is %v", name, slices.Collect(maps.Keys(left)))
				}
			}
			for name, f := range found {
				for _, s := range f.Solids {
					if m := s.Mesh; !s.Closed || !s.Valid || m != nil && (!m.Solid || m.NonManifold || m.SelfCrossing || m.Turned) {
						t.Errorf("%s: %+v %+v is no valid closed solid", name, s, m)
					}
				}
			}
			if l := found["assembly.3mf"].Library; l != nil {
				expect.True(t, len(l.Objects) == 6 && l.Warnings == 0 && found["assembly.3mf"].Unit == "millimeter", "lib3mf: %+v", l)
				for _, o := range l.Objects {
					expect.True(t, o.Manifold, "lib3mf: %+v is no solid", o)
				}
			}
			// Lines that end only where others meet them: the same on both kernels,
			// whose curves are of other chords.
			d := found["assembly.svg"].Drawing
			expect.True(t, d.Valid && d.Wires == 132 && math.Abs(d.Length-3319) <= 2 && math.Abs(d.Box[2]-180/math.Sqrt2) <= 1e-3, "SVG: %+v", d)
		})
	}
}

// solids are the volumes of what is in the workspace of a CAD agent, by id.
func (u *user) solids(agent string) map[string]float64 {
	u.t.Helper()
	var list struct {
		Data struct {
			Entities []struct {
				ID         string `json:"entity_id"`
				Properties struct {
					Volume float64 `json:"volume"`
				} `json:"properties"`
			} `json:"entities"`
		} `json:"data"`
	}
	text := u.ok("cad", "op", agent, "entity.list", `{"entity_type":"solid"}`, "-o", "json")
	expect.No(u.t, core.DecodeStored([]byte(text), &list), text)
	out := map[string]float64{}
	for _, e := range list.Data.Entities {
		out[e.ID] = e.Properties.Volume
	}
	return out
}
