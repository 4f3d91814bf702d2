package conformance_test

import (
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

func TestMass(t *testing.T) {
	onEach(t, func(r *rig) {
		b := r.box("b", [3]float64{}, [3]float64{10, 10, 10})
		r.solid("solid.pattern", obj{"base_entity_id": b, "direction": []float64{1, 0, 0}, "spacing": 30, "count": 2, "entity_id": "two"}, body{
			flat: true, volume: 2000, area: 1200, center: [3]float64{20, 5, 5}, high: [3]float64{40, 10, 10},
		})
		m := r.do("measure.mass", obj{"entity_id": "two", "density": 7.85})
		r.near("mass", m.number("mass"), 2*7.85, 1e-6)
		row := func(i int) []float64 {
			l, _ := m.list("inertia")[i].([]any)
			return obj{"row": l}.vector("row")
		}
		// Each cube has m·a²/6 about itself, and 15 mm to the centre (Steiner).
		r.nearVector("inertia", row(0), [3]float64{2 * 7.85 * 100 / 6, 0, 0}, 1e-3)
		r.nearVector("inertia", row(2), [3]float64{0, 0, 2 * 7.85 * (100.0/6 + 225)}, 1e-2)
		c := r.cylinder("c", [3]float64{0, 0, 50}, 20, 5)
		m = r.do("measure.mass", obj{"entity_id": c, "density": 2.7})
		mass := 2.7 * 2 * math.Pi
		r.near("mass of a disc", m.number("mass"), mass, r.relative*mass)
		l, _ := m.list("inertia")[2].([]any)
		r.near("inertia of a disc", obj{"row": l}.vector("row")[2], mass*200, 2*r.relative*mass*200)
		r.refuse(env.InvalidParameter, "density", "measure.mass", obj{"entity_id": c, "density": 0})
	})
}

func TestBoundsOfAll(t *testing.T) {
	onEach(t, func(r *rig) {
		r.refuse(env.OperationInvalid, "entity_id", "measure.bbox", nil)
		r.box("b", [3]float64{-5, 0, 0}, [3]float64{10, 10, 10})
		r.cylinder("c", [3]float64{30, 0, 0}, 4, 25)
		o := r.do("measure.bbox", nil)
		r.nearVector("size", o.vector("size"), [3]float64{39, 14, 25}, 1e-5)
		r.nearVector("lowest corner", r.do("measure.bbox", obj{"entity_id": "c"}).vector("min"), [3]float64{26, -4, 0}, 1e-5)
	})
}

func TestInterference(t *testing.T) {
	onEach(t, func(r *rig) {
		r.box("plate", [3]float64{}, [3]float64{100, 80, 20})
		r.box("beside", [3]float64{100, 0, 0}, [3]float64{10, 80, 20}) // touches
		r.cylinder("pin", [3]float64{50, 40, 10}, 10, 40)
		r.cylinder("far", [3]float64{500, 0, 0}, 10, 40)
		o := r.do("measure.interference", nil)
		found := o.objects("interferences")
		expect.Must(r, o.number("checked_pairs") == 6 && len(found) == 1, "%v, want one interference of six pairs", o)
		ids := found[0].list("entity_ids")
		expect.True(r, ids[0] == "plate" && ids[1] == "pin", "interference of %v, want plate and pin", ids)
		r.near("overlap", found[0].number("volume"), 1000*math.Pi, r.relative*1000*math.Pi)
		r.nearVector("its top", found[0].vector("bounding_box.max"), [3]float64{60, 50, 20}, 1e-4)
		o = r.do("measure.interference", obj{"entity_ids": []string{"plate", "beside"}})
		expect.True(r, o.number("interference_count") == 0, "%v: touching is no interference", o)
		r.refuse(env.EntityNotFound, "entity_ids", "measure.interference", obj{"entity_ids": []string{"plate", "none"}})
	})
}

func TestDistance(t *testing.T) {
	onEach(t, func(r *rig) {
		r.box("a", [3]float64{}, [3]float64{10, 10, 10})
		r.box("b", [3]float64{13, 14, 0}, [3]float64{10, 10, 10})
		r.box("c", [3]float64{10, 0, 0}, [3]float64{1, 1, 1})
		for other, gap := range map[string]float64{"b": 5, "c": 0} {
			r.near("distance of a and "+other, r.own("measure.distance", obj{"entity_ids": []string{"a", other}}).number("distance"), gap, 1e-6)
		}
	})
}

func TestViews(t *testing.T) {
	onEach(t, func(r *rig) {
		r.box("b", [3]float64{}, [3]float64{10, 10, 10})
		r.cylinder("c", [3]float64{30, 0, 0}, 20, 25)
		o := r.do("view.mesh", obj{"deflection": 0.02})
		solids := o.objects("solids")
		expect.Must(r, len(solids) == 2, "%d solids, want 2", len(solids))
		for i, volume := range []float64{1000, 10000 * math.Pi} {
			m := &mesh.Mesh{}
			for _, v := range solids[i].list("vertices") {
				l, _ := v.([]any)
				m.Vertices = append(m.Vertices, [3]float64(obj{"v": l}.vector("v")))
			}
			for _, v := range solids[i].list("triangles") {
				l, _ := v.([]any)
				n := obj{"v": l}.vector("v")
				m.Triangles = append(m.Triangles, [3]uint32{uint32(n[0]), uint32(n[1]), uint32(n[2])})
			}
			for _, n := range solids[i].vector("faces") {
				m.Faces = append(m.Faces, uint32(n))
			}
			err := m.Check()
			expect.True(r, err == nil && len(m.Faces) == len(m.Triangles), "solid %d: %d faces of %d triangles, %v", i, len(m.Faces), len(m.Triangles), err)
			r.near("volume of the facets", m.Properties().Volume, volume, 2e-3*volume)
		}
		r.refuse(env.InvalidParameter, "deflection", "view.mesh", obj{"deflection": 0})
	})
}
