package env_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// bad is params that a method must refuse, with the number and the field.
type bad struct {
	method, params string
	code           env.Code
	field          string
}

var everyBadInput = []bad{
	{"entity.create_point", `{}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"coordinates":[1]}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"coordinates":[1,2,3,4]}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"coordinates":"p"}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"coordinates":[1e6,0]}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"coordinates":[1e999,0]}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"x":1,"y":-1e300}`, env.InvalidParameter, "y"},
	{"entity.create_point", `{"x":1}`, env.InvalidParameter, "coordinates"},
	{"entity.create_point", `{"x":1,"y":1,"coordinates":[1,1]}`, env.InvalidParameter, "x"},
	{"entity.create_point", `{"coordinates":[1,2],"colour":"red"}`, env.InvalidParameter, "colour"},
	{"entity.create_point", `{"coordinates":[1,2],"entity_id":"1x"}`, env.InvalidParameter, "entity_id"},
	{"entity.create_point", `{"coordinates":[1,2],"entity_id":"x.end"}`, env.InvalidParameter, "entity_id"},
	{"entity.create_point", `{"coordinates":[1,2],"entity_id":"box"}`, env.WorkspaceConflict, "entity_id"},
	{"entity.create_point", `{"coordinates":[1,2],"workspace_id":"nope"}`, env.EntityNotFound, "workspace_id"},
	{"entity.create_point", `{"coordinates":[1,2],"agent_id":5}`, env.InvalidParameter, "agent_id"},
	{"entity.create_point", `{"coordinates":[1,2],"agent_id":"a\u001b[2J"}`, env.InvalidParameter, "agent_id"},
	{"entity.create_point", `{"coordinates":[1,2],"deadline_ms":0.5}`, env.InvalidParameter, "deadline_ms"},
	{"entity.create_point", `{"coordinates":[1,2],"deadline_ms":-1}`, env.InvalidParameter, "deadline_ms"},
	{"entity.create_point", `{"coordinates":[1,2],"deadline_ms":9999999}`, env.InvalidParameter, "deadline_ms"},
	{"entity.create_line", `{"start":[0,0]}`, env.InvalidParameter, "end"},
	{"entity.create_line", `{"start":[0,0],"end":[0,0]}`, env.InvalidGeometry, "end"},
	{"entity.create_line", `{"start":"nope","end":[0,0]}`, env.EntityNotFound, "start"},
	{"entity.create_line", `{"start":"line","end":[0,0]}`, env.InvalidParameter, "start"},
	{"entity.create_line", `{"start":"box","end":[0,0]}`, env.OperationInvalid, "entity_id"},
	{"entity.create_circle", `{"center":[0,0],"radius":0}`, env.InvalidGeometry, "radius"},
	{"entity.create_circle", `{"center":[0,0],"radius":-2}`, env.InvalidGeometry, "radius"},
	{"entity.create_circle", `{"center":[0,0],"radius":"big"}`, env.InvalidParameter, "radius"},
	{"entity.create_circle", `{"center":[0,0],"radius":1,"normal":[0,0,0]}`, env.InvalidGeometry, "normal"},
	{"entity.create_arc", `{"center":[0,0],"radius":1,"start_angle":1,"end_angle":1}`, env.InvalidGeometry, "end_angle"},
	{"entity.create_arc", `{"center":[0,0],"radius":1,"start_angle":0}`, env.InvalidParameter, "end_angle"},
	{"entity.create_arc", `{"center":[0,0],"radius":1,"start_angle":0,"end_angle":5000}`, env.InvalidParameter, "start_angle"},
	{"entity.query", `{}`, env.InvalidParameter, "entity_id"},
	{"entity.query", `{"entity_id":"bx"}`, env.EntityNotFound, "entity_id"},
	{"entity.query", `{"entity_id":["box"]}`, env.InvalidParameter, "entity_id"},
	{"entity.list", `{"entity_type":"cube"}`, env.InvalidParameter, "entity_type"},
	{"entity.list", `{"limit":0}`, env.InvalidParameter, "limit"},
	{"entity.list", `{"limit":5000}`, env.InvalidParameter, "limit"},
	{"entity.list", `{"offset":-1}`, env.InvalidParameter, "offset"},
	{"entity.update", `{"entity_id":"line","radius":4}`, env.InvalidParameter, "radius"},
	{"entity.update", `{"entity_id":"line","end":[0,0]}`, env.InvalidGeometry, "end"},
	{"entity.update", `{"entity_id":"line"}`, env.OperationInvalid, "entity_id"},
	{"entity.update", `{"entity_id":"box","center":[1,1]}`, env.OperationInvalid, "entity_id"},
	{"entity.delete", `{}`, env.InvalidParameter, "entity_ids"},
	{"entity.delete", `{"entity_ids":["line","nope"]}`, env.EntityNotFound, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"glued","entity_ids":["line"]}`, env.InvalidParameter, "constraint_type"},
	{"constraint.apply", `{"constraint_type":"parallel","entity_ids":["line"]}`, env.InvalidConstraint, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"parallel","entity_ids":[]}`, env.InvalidParameter, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"parallel","entity_ids":["line","line"]}`, env.InvalidConstraint, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"parallel","entity_ids":["line","nope"]}`, env.EntityNotFound, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"coincident","entity_ids":["line.middle","circle"]}`, env.EntityNotFound, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"coincident","entity_ids":["circle.start","line.end"]}`, env.InvalidConstraint, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"fixed","entity_ids":["box"]}`, env.InvalidConstraint, "entity_ids"},
	{"constraint.apply", `{"constraint_type":"distance","entity_ids":["line"]}`, env.InvalidConstraint, "parameters.distance"},
	{"constraint.apply", `{"constraint_type":"distance","entity_ids":["line"],"parameters":{"distance":-1}}`, env.InvalidConstraint, "distance"},
	{"constraint.apply", `{"constraint_type":"horizontal","entity_ids":["line"],"parameters":{"angle":1}}`, env.InvalidConstraint, "parameters.angle"},
	{"constraint.apply", `{"constraint_type":"radius","entity_ids":["circle"],"parameters":{"size":1}}`, env.InvalidParameter, "parameters"},
	{"constraint.status", `{"constraint_id":"line"}`, env.InvalidConstraint, "constraint_id"},
	{"constraint.status", `{"entity_id":"nope"}`, env.EntityNotFound, "entity_id"},
	{"constraint.remove", `{"constraint_id":"line"}`, env.InvalidConstraint, "constraint_id"},
	{"solid.extrude", `{"distance":5}`, env.InvalidParameter, "entity_ids"},
	{"solid.extrude", `{"entity_ids":[],"distance":5}`, env.InvalidParameter, "entity_ids"},
	{"solid.extrude", `{"entity_ids":["circle"]}`, env.InvalidParameter, "distance"},
	{"solid.extrude", `{"entity_ids":["circle"],"distance":0}`, env.InvalidGeometry, "distance"},
	{"solid.extrude", `{"entity_ids":["circle"],"distance":1e-9}`, env.InvalidGeometry, "distance"},
	{"solid.extrude", `{"entity_ids":["circle"],"distance":1e7}`, env.InvalidParameter, "distance"},
	{"solid.extrude", `{"entity_ids":["circle"],"distance":5,"direction":[1,0,0]}`, env.InvalidGeometry, "distance"},
	{"solid.extrude", `{"entity_ids":["circle"],"distance":5,"direction":[0,0,0]}`, env.InvalidGeometry, "direction"},
	{"solid.extrude", `{"entity_ids":["circle"],"distance":5,"tolerance":0}`, env.InvalidParameter, "tolerance"},
	{"solid.extrude", `{"entity_ids":["line"],"distance":5}`, env.InvalidGeometry, "entity_ids"},
	{"solid.extrude", `{"entity_ids":["line","circle"],"distance":5}`, env.InvalidGeometry, "entity_ids"},
	{"solid.extrude", `{"entity_ids":["circle","circle"],"distance":5}`, env.InvalidGeometry, "entity_ids"},
	{"solid.extrude", `{"entity_ids":["nope"],"distance":5}`, env.EntityNotFound, "entity_ids"},
	{"solid.extrude", `{"entity_ids":["box"],"distance":5}`, env.OperationInvalid, "entity_id"},
	{"solid.extrude", `{"entity_ids":["circle","high"],"distance":5}`, env.InvalidGeometry, "entity_ids"},
	{"solid.revolve", `{"profile_entity_id":"circle","axis_point":[0,0],"axis_direction":[0,1],"angle":0}`, env.InvalidGeometry, "angle"},
	{"solid.revolve", `{"profile_entity_id":"circle","axis_point":[0,0],"axis_direction":[0,1],"angle":7}`, env.InvalidGeometry, "angle"},
	{"solid.revolve", `{"profile_entity_id":"circle","axis_point":[0,0],"axis_direction":[0,1],"angle":1}`, env.InvalidGeometry, "axis_point"},
	{"solid.revolve", `{"profile_entity_id":"circle","axis_point":[9,0],"axis_direction":[0,0,1],"angle":1}`, env.InvalidGeometry, "axis_point"},
	{"solid.revolve", `{"profile_entity_id":"circle","axis_point":[9,0],"axis_direction":[0,0],"angle":1}`, env.InvalidGeometry, "axis_direction"},
	{"solid.revolve", `{"axis_point":[0,0],"axis_direction":[0,1],"angle":1}`, env.InvalidParameter, "profile_entity_id"},
	{"solid.boolean", `{"operation":"glue","entity_ids":["box","ball"]}`, env.InvalidParameter, "operation"},
	{"solid.boolean", `{"operation":"union","entity_ids":["box"]}`, env.InvalidParameter, "entity_ids"},
	{"solid.boolean", `{"operation":"union","entity_ids":["box","box"]}`, env.OperationInvalid, "entity_ids"},
	{"solid.boolean", `{"operation":"union","entity_ids":["box","line"]}`, env.OperationInvalid, "entity_ids"},
	{"solid.boolean", `{"operation":"intersect","entity_ids":["box","ball"]}`, env.TopologyError, "entity_ids"},
	{"solid.boolean.union", `{"operation":"union","entity_ids":["box","ball"]}`, env.InvalidParameter, "params"},
	{"solid.boolean", `{"operation":"union","entity_ids":["box","ball"],"entity_id":"line"}`, env.WorkspaceConflict, "entity_id"},
	{"solid.primitive", `{"primitive_type":"torus"}`, env.InvalidParameter, "primitive_type"},
	{"solid.primitive", `{"primitive_type":"box","width":1,"depth":1}`, env.InvalidParameter, "height"},
	{"solid.primitive", `{"primitive_type":"box","width":1,"depth":1,"height":1,"radius":1}`, env.InvalidParameter, "radius"},
	{"solid.primitive", `{"primitive_type":"box","width":0,"depth":1,"height":1}`, env.InvalidGeometry, "width"},
	{"solid.primitive", `{"primitive_type":"cylinder","radius":-1,"height":1}`, env.InvalidGeometry, "radius"},
	{"solid.primitive", `{"primitive_type":"cone","radius1":0,"radius2":0,"height":1}`, env.InvalidGeometry, "radius1"},
	{"solid.primitive", `{"primitive_type":"sphere","radius":50000,"tolerance":0.000001}`, env.InvalidParameter, "tolerance"},
	{"solid.primitive", `{"primitive_type":"cylinder","radius":1,"height":1,"axis_direction":[0,0,0]}`, env.InvalidGeometry, "axis_direction"},
	{"solid.pattern", `{"base_entity_id":"box","count":3}`, env.InvalidParameter, "direction"},
	{"solid.pattern", `{"base_entity_id":"box","count":1,"direction":[1,0],"spacing":5}`, env.InvalidParameter, "count"},
	{"solid.pattern", `{"base_entity_id":"box","count":1000000,"direction":[1,0],"spacing":5}`, env.InvalidParameter, "count"},
	{"solid.pattern", `{"base_entity_id":"box","count":3,"direction":[1,0],"spacing":0}`, env.InvalidGeometry, "spacing"},
	{"solid.pattern", `{"base_entity_id":"box","count":3,"direction":[1,0],"spacing":90000}`, env.InvalidGeometry, "bounding_box"},
	{"solid.mirror", `{"base_entity_id":"box","mirror_plane_point":[90000,0,0],"mirror_plane_normal":[1,0,0]}`, env.InvalidGeometry, "bounding_box"},
	{"solid.transform", `{"entity_id":"box","translate":[99999,0,0]}`, env.InvalidGeometry, "bounding_box"},
	{"solid.primitive", `{"primitive_type":"box","width":1,"depth":1,"height":2,"position":[0,0,99999]}`, env.InvalidGeometry, "bounding_box"},
	{"solid.extrude", `{"entity_ids":["high"],"distance":100000}`, env.InvalidGeometry, "bounding_box"},
	{"solid.pattern", `{"base_entity_id":"box","count":3,"direction":[1,0],"spacing":5,"angle":1}`, env.InvalidParameter, "pattern_type"},
	{"solid.pattern.circular", `{"base_entity_id":"box","count":3}`, env.InvalidParameter, "axis_direction"},
	{"solid.mirror", `{"base_entity_id":"box","mirror_plane_point":[0,0,0],"mirror_plane_normal":[0,0,0]}`, env.InvalidGeometry, "mirror_plane_normal"},
	{"solid.mirror", `{"base_entity_id":"line","mirror_plane_point":[0,0,0],"mirror_plane_normal":[1,0,0]}`, env.OperationInvalid, "base_entity_id"},
	{"solid.transform", `{"entity_id":"box"}`, env.InvalidParameter, "translate"},
	{"solid.transform", `{"entity_id":"box","translate":[99999,99999,99999],"rotate":{}}`, env.InvalidGeometry, "rotate.axis_direction"},
	{"solid.transform", `{"entity_id":"box","matrix":[[0,0,0],[0,0,0],[0,0,0],[0,0,0]]}`, env.InvalidParameter, "matrix"},
	{"solid.transform", `{"translate":[1,1]}`, env.InvalidParameter, "entity_id"},
	{"solid.fillet", `{"entity_id":"box","radius":1}`, env.UnsupportedByKernel, "method"},
	{"solid.chamfer", `{"entity_id":"box","distance":1}`, env.UnsupportedByKernel, "method"},
	{"solid.shell", `{"entity_id":"box","thickness":1}`, env.UnsupportedByKernel, "method"},
	{"workspace.create", `{}`, env.InvalidParameter, "workspace_name"},
	{"workspace.create", `{"workspace_name":""}`, env.InvalidParameter, "workspace_name"},
	{"workspace.create", `{"workspace_name":"main"}`, env.WorkspaceConflict, "workspace_id"},
	{"workspace.create", `{"workspace_name":"x","base_workspace_id":"nope"}`, env.EntityNotFound, "base_workspace_id"},
	{"workspace.create", `{"workspace_name":"x","workspace_id":"../x"}`, env.InvalidParameter, "workspace_id"},
	{"workspace.switch", `{"workspace_id":"nope"}`, env.EntityNotFound, "workspace_id"},
	{"workspace.status", `{"workspace_id":"mian"}`, env.EntityNotFound, "workspace_id"},
	{"workspace.merge", `{"target_workspace_id":"main"}`, env.InvalidParameter, "source_workspace_id"},
	{"workspace.merge", `{"source_workspace_id":"main","target_workspace_id":"main"}`, env.OperationInvalid, "source_workspace_id"},
	{"workspace.resolve_conflict", `{"entity_id":"box","source_workspace_id":"other","target_workspace_id":"main","strategy":"guess"}`, env.EntityNotFound, "entity_id"},
	{"workspace.diff", `{"source_workspace_id":"other","target_workspace_id":"nope"}`, env.EntityNotFound, "target_workspace_id"},
	{"workspace.load", `{"workspace_id":"x","from":1,"entries":[]}`, env.OperationInvalid, "method"},
	{"workspace.unload", `{"workspace_id":"main"}`, env.OperationInvalid, "method"},
	{"history.list", `{"limit":-1}`, env.InvalidParameter, "limit"},
	{"history.redo", `{}`, env.OperationInvalid, ""},
	{"file.export", `{"file_path":"x.stl","format":"DOC"}`, env.UnsupportedFormat, "format"},
	{"file.export", `{"file_path":"x.igs","format":"IGES"}`, env.UnsupportedByKernel, "format"},
	{"file.export", `{"file_path":"x.stl","tessellation_quality":"best"}`, env.InvalidParameter, "tessellation_quality"},
	{"file.export", `{"file_path":"x.step","ascii":true}`, env.InvalidParameter, "ascii"},
	{"file.export", `{"file_path":"x.step","schema":"AP999"}`, env.UnsupportedByKernel, "schema"},
	{"file.export", `{"file_path":"x.svg","view":"behind"}`, env.InvalidParameter, "view"},
	{"file.export", `{"file_path":"../x.stl"}`, env.InvalidParameter, "file_path"},
	{"file.export", `{"file_path":"x.stl","entity_ids":["line"]}`, env.OperationInvalid, "entity_ids"},
	{"file.import", `{"file_path":"x.stl"}`, env.FileNotFound, "file_path"},
	{"measure.mass", `{"entity_id":"box","density":0}`, env.InvalidParameter, "density"},
	{"measure.mass", `{"entity_id":"line"}`, env.OperationInvalid, "entity_id"},
	{"measure.bbox", `{"entity_id":"box","entity_ids":["box"]}`, env.InvalidParameter, "entity_id"},
	{"measure.interference", `{"entity_ids":["box","nope"]}`, env.EntityNotFound, "entity_ids"},
	{"measure.distance", `{"entity_ids":["box"]}`, env.InvalidParameter, "entity_ids"},
	{"measure.distance", `{"entity_ids":["box","line.end"]}`, env.OperationInvalid, "entity_ids"},
	{"view.mesh", `{"deflection":0}`, env.InvalidParameter, "deflection"},
	{"view.mesh", `{"entity_ids":[]}`, env.InvalidParameter, "entity_ids"},
	{"agent.metrics", `{"agent_id":"nobody"}`, env.EntityNotFound, "agent_id"},
	{"system.cancel", `{}`, env.InvalidParameter, "id"},
	{"system.hello", `{"x":1}`, env.InvalidParameter, "x"},
	{"system.ping", `{"x":1}`, env.InvalidParameter, "x"},
	{"system.shutdown", `{"now":true}`, env.InvalidParameter, "now"},
	{"workspace.list", `{"all":true}`, env.InvalidParameter, "all"},
	{"history.undo", `{"steps":3}`, env.InvalidParameter, "steps"},
	{"entity.craete_point", `{}`, env.InvalidCommand, "method"},
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	c := start(t)
	c.box("box", [3]float64{}, [3]float64{10, 10, 10})
	c.do("solid.primitive", `{"entity_id":"ball","primitive_type":"sphere","radius":2,"center":[40,0,0]}`)
	c.do("entity.create_line", `{"entity_id":"line","start":[0,0],"end":[5,0]}`)
	c.do("entity.create_circle", `{"entity_id":"circle","center":[0,0],"radius":3}`)
	c.do("entity.create_circle", `{"entity_id":"high","center":[0,0,8],"radius":3}`)
	c.do("workspace.create", `{"workspace_name":"other"}`)
	before, other := c.state("main"), c.state("other")
	tried := map[string]bool{}
	for _, b := range everyBadInput {
		e := c.fails(b.code, b.field, b.method, b.params)
		if e.Message == "" || b.code != env.TopologyError && b.code != env.OperationInvalid && b.code != env.InvalidConstraint && e.Data.Suggestion == "" {
			t.Errorf("%s %s does not say what to do: %+v", b.method, b.params, e)
		}
		tried[b.method] = true
		now := c.state("main")
		expect.Must(t, now == before, "%s %s changed something:\n%s\n%s", b.method, b.params, before, now)
	}
	expect.Is(t, c.state("other"), other, "another workspace changed")
	h := c.do("system.hello", "{}")
	for _, list := range []string{"methods", "internal"} {
		for _, name := range h[list].([]any) {
			expect.True(t, tried[name.(string)], "%v: no bad input tried", name)
		}
	}
}

func TestARefusalNamesAParameter(t *testing.T) {
	c := start(t)
	var rings []string
	for i := range 600 {
		c.do("entity.create_circle", fmt.Sprintf(`{"entity_id":"c%d","center":[0,0],"radius":%d}`, i, i+1))
		rings = append(rings, fmt.Sprintf(`"c%d"`, i))
	}
	c.fails(env.InvalidGeometry, "entity_ids", "solid.extrude", `{"tolerance":0.0002,"distance":1,"entity_ids":[`+strings.Join(rings, ",")+`]}`)
	var e *env.Error
	err := env.Refused(core.Invalid("sketch", 900, "less"), env.InvalidConstraint)
	expect.True(t, errors.As(err, &e) && e.Data.Field == "entity_ids", "%+v", err)
}

func TestARefusalSuggests(t *testing.T) {
	c := start(t)
	c.box("housing", [3]float64{}, [3]float64{1, 1, 1})
	for _, tt := range [][3]string{
		{"entity.query", `{"entity_id":"houssing"}`, "did you mean housing?"},
		{"solid.extrud", `{}`, "did you mean solid.extrude?"},
		{"solid.extrude", `{"entity_ids":["housing"],"distanze":4}`, "give a number"},
		{"solid.primitive", `{"primitive_type":"box","widht":4}`, "did you mean width?"},
		{"entity.list", `{"workspace_id":"mian"}`, "did you mean main?"},
		{"solid.transform", `{"entity_id":"housing","rotate":{"axis":[0,0,1]}}`, "axis_point, axis_direction, angle"},
	} {
		r := c.try(tt[0], tt[1])
		if r.Error == nil || !strings.Contains(r.Error.Data.Suggestion, tt[2]) {
			t.Errorf("%s %s: %+v", tt[0], tt[1], r.Error)
		}
	}
	huge := strings.Repeat("x", 100_000)
	r := c.try("entity.query", fmt.Sprintf(`{"entity_id":%q}`, huge))
	expect.True(t, r.Error != nil && len(fmt.Sprint(r.Error.Data.Value, r.Error.Message)) <= 2000, "a huge value is told back whole")
}
