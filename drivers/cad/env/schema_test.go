package env_test

import (
	"strings"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestParametersAreCheckedBeforeAnythingRuns(t *testing.T) {
	p := env.NewParameters()
	for _, c := range []struct{ method, params, want string }{
		{"entity.create_circle", `{"center":[0,0,0],"radius":5}`, ""},
		{"entity.create_circle", `{"center":[0,0,0],"diameter":5}`, "radius is missing & diameter: unknown parameter"},
		{"entity.create_circle", `{"center":[0,0,0],"radius":"5"}`, `radius: "5" is not allowed; give a number`},
		{"entity.create_circle", `{"center":[0,0,0],"radius":-5}`, "radius: -5 mm makes no solid"},
		{"entity.create_circle", `{"center":[0],"radius":5}`, "center: "},
		{"entity.create_circle", `{"center":"${p.entity_id}","radius":"${m.data.radius}"}`, ""},
		{"entity.create_circle", `{"center":"${p.entity_id}","radius":"${m.data.radius}","size":1}`, "size: unknown parameter"},
		{"entity.create.circle", `{"center":[0,0],"radius":5}`, ""},
		{"entity.create_line", `{"start":[0,0,0],"end":[0,0,0]}`, "a line of length 0 mm is no line"},
		{"entity.create_point", `{}`, "coordinates is missing"},
		{"entity.create_arc", `{"center":[0,0],"radius":5,"start_angle":1,"end_angle":1}`, "an arc that ends where it starts"},
		{"solid.extrude", `{"entity_ids":["${a.entity_id}"],"distance":0}`, "distance: 0 mm makes no solid"},
		{"solid.extrude", `{"distance":5}`, "entity_ids is missing"},
		{"solid.extrude", `{"entity_ids":"a","distance":5}`, "entity_ids: "},
		{"solid.revolve", `{"profile_entity_id":"a","axis_point":[0,0],"axis_direction":[0,0,0],"angle":9}`, "axis_direction is no direction"},
		{"solid.revolve", `{"profile_entity_id":"a","axis_point":[0,0],"axis_direction":[0,1,0],"angle":9}`, "angle: 9 radians is no turn"},
		{"solid.boolean", `{"operation":"join","entity_ids":["a","b"]}`, "operation: join is not allowed"},
		{"solid.boolean", `{"operation":"union","entity_ids":["a"]}`, "entity_ids: 1 is not allowed"},
		{"solid.boolean.union", `{"entity_ids":["a","b"]}`, ""},
		{"solid.primitive", `{"primitive_type":"cylinder","height":3}`, "radius is missing"},
		{"solid.primitive", `{"primitive_type":"box","width":3,"depth":0,"height":3}`, "depth: 0 mm makes no solid"},
		{"solid.pattern", `{"base_entity_id":"a","count":1,"direction":[1,0,0],"spacing":5}`, "count: 1 is not allowed"},
		{"solid.pattern.circular", `{"base_entity_id":"a","count":4}`, "axis_direction is missing"},
		{"solid.fillet", `{"entity_id":"a","radius":0}`, "radius: 0 mm makes no solid"},
		{"solid.transform", `{"entity_id":"a"}`, "nothing says how to move"},
		{"measure.mass", `{"entity_id":"a","density":0}`, "density: 0 is not allowed"},
		{"file.export", `{"file_path":"a.step","view":"top"}`, "view: top is not allowed"},
		{"entity.list", `{"limit":0}`, "limit: 0 is not allowed"},
		{"constraint.apply", `{"constraint_type":"near","entity_ids":["a"]}`, "constraint_type: near is not allowed"},
		{"workspace.merge", `{"source_workspace":"${tasks.a.workspace_id}"}`, "target_workspace_id is missing"},
		{"workspace.merge", `[]`, "params: [] is not allowed"},
		{"solid.loft", `{}`, `method: "solid.loft" is not allowed`},
	} {
		var all []string
		for _, err := range p.Check(c.method, core.Raw(c.params)) {
			all = append(all, err.Error())
			field := core.AsError(err).Details["field"]
			expect.True(t, field != nil && field != "", "%s %s: %v names no field", c.method, c.params, err)
		}
		got := strings.Join(all, "; ")
		if parts := strings.Split(c.want, " & "); c.want == "" && got != "" || !strings.Contains(got, parts[0]) || !strings.Contains(got, parts[len(parts)-1]) {
			t.Errorf("%s %s: %q, want %q", c.method, c.params, got, c.want)
		}
	}
}

func TestWhatAMethodTakesIsToldInALine(t *testing.T) {
	p := env.NewParameters()
	for method, want := range map[string]string{
		"entity.create_circle": "entity_id text, center* [x,y,z] or the name of a point, radius* number (mm, above 0), normal [x,y,z] (of its plane; z where nothing is given)",
		"solid.boolean.union":  "entity_id text, entity_ids list of text (two solids or more; the others are taken from the first), base_entity_id text, tool_entity_ids list of text, keep_inputs true or false",
		"solid.transform":      "entity_id text, base_entity_id text, keep_inputs true or false, translate [x,y,z], rotate {axis_point, axis_direction, angle}, matrix list of [x,y,z]",
		"system.ping":          "nothing",
		"solid.loft":           "",
	} {
		expect.Is(t, p.Takes(method), want, method)
	}
}
