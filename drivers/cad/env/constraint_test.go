package env_test

import (
	"fmt"
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

func numbers(v any) (out [3]float64) {
	for i, x := range v.([]any) {
		out[i] = x.(float64)
	}
	return out
}

func TestConstraintsMoveGeometry(t *testing.T) {
	c := start(t)
	c.do("entity.create_line", `{"entity_id":"l","start":[0,0],"end":[10,0.5]}`)
	c.do("entity.create_line", `{"entity_id":"m","start":[10.5,0],"end":[11,8]}`)
	out := c.do("constraint.apply", `{"constraint_type":"coincident","entity_ids":["l.end","m.start"]}`)
	expect.True(t, out["satisfaction_status"] == "satisfied" && out["degrees_of_freedom_removed"] == 2.0 && fmt.Sprint(out["moved"]) == "[l m]", "%v", out)
	c.do("constraint.apply", `{"constraint_type":"perpendicular","entity_ids":["l","m"],"entity_id":"square"}`)
	c.do("constraint.apply", `{"constraint_type":"distance","entity_ids":["l"],"parameters":{"distance":50},"entity_id":"long"}`)
	c.do("constraint.apply", `{"constraint_type":"horizontal","entity_ids":["l"]}`)
	c.do("constraint.apply", `{"constraint_type":"fixed","entity_ids":["l.start"]}`)
	l := c.do("entity.query", `{"entity_id":"l"}`)["properties"].(map[string]any)
	m := c.do("entity.query", `{"entity_id":"m"}`)["properties"].(map[string]any)
	c.near("length", l["length"], 50, 1e-9)
	a, b := numbers(l["end"]), numbers(m["start"])
	expect.True(t, a == b, "%v %v", a, b)
	d := numbers(l["direction_vector"])
	e := numbers(m["direction_vector"])
	dot := d[0]*e[0] + d[1]*e[1]
	expect.True(t, math.Abs(dot) <= 1e-9, "%v", dot)
	status := c.do("constraint.status", `{"include_dof_analysis":true}`)
	analysis := status["dof_analysis"].(map[string]any)
	expect.True(t, status["total_count"] == 5.0 && analysis["degrees_of_freedom"] == 1.0 && analysis["fully_constrained"] == false, "%v", status)
	one := c.do("constraint.status", `{"constraint_id":"long"}`)
	expect.Is(t, one["satisfaction_status"], "satisfied", one)
}

func TestAConflictIsNamedAndNothingChanges(t *testing.T) {
	c := start(t)
	c.do("entity.create_line", `{"entity_id":"l","start":[0,0],"end":[10,0]}`)
	c.do("constraint.apply", `{"constraint_type":"distance","entity_ids":["l"],"parameters":{"distance":20},"entity_id":"long"}`)
	c.do("constraint.apply", `{"constraint_type":"horizontal","entity_ids":["l"],"entity_id":"level"}`)
	before := c.state("main")
	e := c.fails(env.ConstraintConflict, "constraint_type", "constraint.apply", `{"constraint_type":"distance","entity_ids":["l.start","l.end"],"parameters":{"distance":30}}`)
	expect.Same(t, e.Data.Conflicts, []string{"long"}, e)
	expect.Is(t, c.state("main"), before, "the refused constraint changed something")
	out := c.do("constraint.apply", `{"constraint_type":"distance","entity_ids":["l.start","l.end"],"parameters":{"distance":20},"entity_id":"again"}`)
	expect.True(t, fmt.Sprint(out["redundant"]) == "[again]" && out["degrees_of_freedom_removed"] == 0.0, "%v", out)
	analysis := c.do("constraint.status", `{"entity_id":"l","include_dof_analysis":true}`)["dof_analysis"].(map[string]any)
	expect.Is(t, fmt.Sprint(analysis["redundant"]), "[again]", analysis)
	c.do("constraint.remove", `{"constraint_id":"long"}`)
	c.do("constraint.remove", `{"constraint_id":"again"}`)
	c.do("entity.update", `{"entity_id":"l","end":[0,7]}`)
	l := c.do("entity.query", `{"entity_id":"l"}`)["properties"].(map[string]any)
	a, b := numbers(l["start"]), numbers(l["end"])
	expect.True(t, a[1] == b[1], "no longer level: %v", l)
}

func TestConstraintsOnRoundThingsInAnyPlane(t *testing.T) {
	c := start(t)
	c.do("entity.create_circle", `{"entity_id":"c","center":[0,5,0],"radius":4,"normal":[0,1,0]}`)
	c.do("entity.create_line", `{"entity_id":"l","start":[-10,5,6],"end":[10,5,6]}`)
	c.do("constraint.apply", `{"constraint_type":"fixed","entity_ids":["l"]}`)
	c.do("constraint.apply", `{"constraint_type":"tangent","entity_ids":["l","c"]}`)
	p := c.do("entity.query", `{"entity_id":"c"}`)["properties"].(map[string]any)
	at := numbers(p["center"])
	expect.True(t, math.Abs(6-at[2]-p["radius"].(float64)) <= 1e-9 && at[1] == 5, "%v", p)
	c.do("constraint.apply", `{"constraint_type":"radius","entity_ids":["c"],"parameters":{"radius":2.5}}`)
	p = c.do("entity.query", `{"entity_id":"c"}`)["properties"].(map[string]any)
	expect.Is(t, p["radius"], 2.5, p)
	c.do("entity.create_arc", `{"entity_id":"a","center":[0,0],"radius":5,"start_angle":0,"end_angle":1.5}`)
	c.do("entity.create_point", `{"entity_id":"p","coordinates":[7,1]}`)
	c.do("constraint.apply", `{"constraint_type":"fixed","entity_ids":["p"]}`)
	c.do("constraint.apply", `{"constraint_type":"coincident","entity_ids":["a.start","p"]}`)
	arc := c.do("entity.query", `{"entity_id":"a"}`)["properties"].(map[string]any)
	at = numbers(arc["start"])
	expect.True(t, math.Abs(at[0]-7) <= 1e-8 && math.Abs(at[1]-1) <= 1e-8, "%v", arc)
	c.fails(env.InvalidConstraint, "entity_ids", "constraint.apply", `{"constraint_type":"coincident","entity_ids":["p","c.center"]}`) // another plane
	c.fails(env.ConstraintConflict, "constraint_type", "entity.update", `{"entity_id":"p","coordinates":[0,0]}`)
	c.fails(env.OperationInvalid, "entity_id", "entity.delete", `{"entity_id":"p"}`)
	out := c.do("entity.delete", `{"entity_id":"p","with_constraints":true}`)
	expect.Is(t, len(out["removed"].([]any)), 3, out)
}

func TestAConstrainedSketchBecomesASolid(t *testing.T) {
	c := start(t)
	corners := [][2]float64{{0, 0}, {9, 1}, {11, 6}, {-1, 5}}
	for i, p := range corners {
		q := corners[(i+1)%4]
		c.do("entity.create_line", fmt.Sprintf(`{"entity_id":"l%d","start":[%g,%g],"end":[%g,%g]}`, i, p[0], p[1], q[0], q[1]))
	}
	for i := range 4 {
		c.do("constraint.apply", fmt.Sprintf(`{"constraint_type":"coincident","entity_ids":["l%d.end","l%d.start"]}`, i, (i+1)%4))
	}
	for _, p := range []string{
		`"fixed","entity_ids":["l0.start"]`, `"horizontal","entity_ids":["l0"]`, `"vertical","entity_ids":["l1"]`, `"horizontal","entity_ids":["l2"]`, `"vertical","entity_ids":["l3"]`,
		`"distance","entity_ids":["l0"],"parameters":{"distance":12}`, `"distance","entity_ids":["l1"],"parameters":{"distance":7}`,
	} {
		c.do("constraint.apply", `{"constraint_type":`+p+`}`)
	}
	analysis := c.do("constraint.status", `{"include_dof_analysis":true}`)["dof_analysis"].(map[string]any)
	expect.True(t, analysis["fully_constrained"] == true && len(analysis["redundant"].([]any)) == 0, "%v", analysis)
	solid := c.do("solid.extrude", `{"entity_ids":["l0","l1","l2","l3"],"distance":10}`)
	c.near("volume", solid["volume"], 840, 1e-9)
}
