package conformance_test

import (
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

func TestCurves(t *testing.T) {
	onEach(t, func(r *rig) {
		p := r.do("entity.create_point", obj{"coordinates": []float64{1, 2}})
		r.nearVector("point", p.vector("coordinates"), [3]float64{1, 2, 0}, 0)
		expect.True(r, p.text("entity_id") == "point_1" && p.text("entity_type") == "point" && p.text("workspace_id") == "main", "%v, want point_1 of main", p)
		r.nearVector("point of x, y, z", r.do("entity.create.point", obj{"x": 1, "y": 2, "z": 3}).vector("coordinates"), [3]float64{1, 2, 3}, 0)
		l := r.do("entity.create_line", obj{"start": "point_1", "end": []float64{4, 6, 0}})
		r.near("length", l.number("length"), 5, 1e-12)
		r.nearVector("direction", l.vector("direction_vector"), [3]float64{0.6, 0.8, 0}, 1e-12)
		c := r.do("entity.create_circle", obj{"center": []float64{0, 0, 0}, "radius": 2})
		r.near("area", c.number("area"), 4*math.Pi, 1e-12)
		r.near("circumference", c.number("circumference"), 4*math.Pi, 1e-12)
		a := r.do("entity.create_arc", obj{"center": []float64{0, 0, 0}, "radius": 2, "start_angle": 0, "end_angle": math.Pi / 2})
		r.near("length of an arc", a.number("length"), math.Pi, 1e-12)
		r.nearVector("its end", a.vector("end"), [3]float64{0, 2, 0}, 1e-12)

		q := r.do("entity.query", obj{"entity_id": "line_1"})
		expect.True(r, q.number("properties.length") == 5 && q.text("hash") != "", "queried %v", q)
		page := r.do("entity.list", obj{"limit": 2, "offset": 1})
		expect.True(r, page.number("total_count") == 5 && len(page.list("entities")) == 2 && page.objects("entities")[0].text("entity_id") == "point_2",
			"page %v, want the second and third of 5", page)
		lines := r.do("entity.list", obj{"filter_type": "line"})
		expect.True(r, lines.number("total_count") == 1, "lines %v, want one", lines)
		up := r.do("entity.update", obj{"entity_id": "circle_1", "radius": 3})
		r.near("area after the change", up.number("area"), 9*math.Pi, 1e-12)
		r.do("entity.delete", obj{"entity_id": "arc_1"})
		r.refuse(env.EntityNotFound, "entity_id", "entity.query", obj{"entity_id": "arc_1"})
	})
}

func TestConstraints(t *testing.T) {
	onEach(t, func(r *rig) {
		line := func(id string, x1, y1, x2, y2 float64) {
			r.do("entity.create_line", obj{"entity_id": id, "start": []float64{x1, y1}, "end": []float64{x2, y2}})
		}
		hold := func(kind string, parameters obj, ids ...string) obj {
			o := r.do("constraint.apply", obj{"constraint_type": kind, "entity_ids": ids, "parameters": parameters})
			expect.Is(r, o.text("satisfaction_status"), "satisfied", kind, "of", ids, o)
			return o
		}
		line("a", 0, 0, 10, 1)
		line("b", 10.5, 1, 11, 8)
		line("c", 0, 20, 9, 22)
		r.do("entity.create_circle", obj{"entity_id": "o", "center": []float64{30, 0}, "radius": 3})
		first := hold("coincident", obj{}, "a.end", "b.start")
		expect.True(r, first.number("degrees_of_freedom_removed") == 2, "coincident removes %v degrees of freedom, want 2", first["degrees_of_freedom_removed"])
		hold("perpendicular", obj{}, "a", "b")
		hold("parallel", obj{}, "a", "c")
		hold("distance", obj{"distance": 12}, "a.start", "a.end")
		hold("angle", obj{"angle": math.Pi / 2}, "b", "c")
		hold("radius", obj{"radius": 4}, "o")
		hold("tangent", obj{}, "a", "o")
		get := func(id string) obj {
			return obj(r.do("entity.query", obj{"entity_id": id})["properties"].(map[string]any))
		}
		a, b, c, o := get("a"), get("b"), get("c"), get("o")
		r.near("length of a", a.number("length"), 12, 1e-6)
		r.nearVector("start of b", b.vector("start"), [3]float64(a.vector("end")), 1e-6)
		dot := func(x, y obj) float64 {
			u, v := x.vector("direction_vector"), y.vector("direction_vector")
			return u[0]*v[0] + u[1]*v[1]
		}
		r.near("a across b", dot(a, b), 0, 1e-6)
		r.near("a along c", math.Abs(dot(a, c)), 1, 1e-6)
		r.near("radius of o", o.number("radius"), 4, 1e-6)
		s, d, m := a.vector("start"), a.vector("direction_vector"), o.vector("center")
		r.near("distance of o's centre from a", math.Abs((m[0]-s[0])*d[1]-(m[1]-s[1])*d[0]), 4, 1e-6)

		status := r.do("constraint.status", obj{"entity_id": "a", "include_dof_analysis": true})
		expect.True(r, members(map[string]any(status)) != "{}", "status %v", status)
		e := r.refuse(env.ConstraintConflict, "constraint_type", "constraint.apply", obj{"constraint_type": "distance", "entity_ids": []string{"a.start", "a.end"}, "parameters": obj{"distance": 15}})
		expect.True(r, len(e.Data.Conflicts) != 0, "%+v, want the constraints in conflict", e.Data)
		r.near("length of a, as before", get("a").number("length"), 12, 1e-9)
		r.do("constraint.remove", obj{"constraint_id": first.text("constraint_id")})
		r.refuse(env.EntityNotFound, "constraint_id", "constraint.status", obj{"constraint_id": first.text("constraint_id")})
		r.refuse(env.InvalidParameter, "constraint_type", "constraint.apply", obj{"constraint_type": "glued", "entity_ids": []string{"a", "b"}})
	})
}
