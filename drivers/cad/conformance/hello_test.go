package conformance_test

import (
	"slices"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

// required are the methods of requirement 6.3.
var required = []string{
	"entity.create_point", "entity.create_line", "entity.create_circle", "entity.create_arc", "entity.query", "entity.list",
	"constraint.apply", "constraint.status", "solid.extrude", "solid.revolve", "solid.boolean", "solid.primitive",
	"solid.pattern", "solid.mirror", "workspace.create", "workspace.list", "workspace.switch", "workspace.status",
	"workspace.merge", "workspace.resolve_conflict", "history.list", "history.undo", "history.redo", "file.import",
	"file.export", "agent.metrics", "measure.mass", "measure.interference", "measure.bbox", "view.mesh", "system.hello",
}

func TestHelloTellsWhatTheKernelCan(t *testing.T) {
	onEach(t, func(r *rig) {
		o := r.do("system.hello", nil)
		expect.True(r, o.text("kernel") == r.name && o.at("exact") == (r.name == env.OCCT) && o.text("kernel_version") != "",
			"kernel %v %v, exact %v, want %s", o["kernel"], o["kernel_version"], o["exact"], r.name)
		offered.Store(r.name, o.list("methods"))
		for _, m := range required {
			expect.True(r, slices.Contains(o.list("methods"), any(m)), "method %s is missing", m)
		}
		if o.number("errors.UNSUPPORTED_BY_KERNEL") != -32020 || o.number("errors.TIMEOUT") != -32012 || o.number("errors.ENTITY_NOT_FOUND") != -32001 {
			r.Errorf("errors %v, want those of requirement 6.3", o["errors"])
		}
		exact := o.at("exact") == true
		expect.True(r, exact == (o.number("tolerance") == 0) && o.text("unit") == "mm", "tolerance %v, unit %v", o["tolerance"], o["unit"])
		// Every kernel builds what the contract asks for, and writes what others open.
		for _, op := range []string{"extrude", "revolve", "box", "cylinder", "sphere", "cone", "union", "subtract", "intersect", "pattern_linear", "pattern_circular", "mirror", "transform", "import"} {
			expect.True(r, slices.Contains(o.list("shapes"), any(op)), "op %s is missing", op)
		}
		for _, f := range []string{"STEP", "STL", "3MF", "SVG"} {
			expect.True(r, slices.Contains(o.list("export_formats"), any(f)), "export format %s is missing", f)
		}
		r.do("system.ping", nil)
	})
}

func TestAgentsAreCounted(t *testing.T) {
	onEach(t, func(r *rig) {
		r.do("solid.primitive", obj{"primitive_type": "sphere", "radius": 2, "agent_id": "ada"})
		r.refuse(env.EntityNotFound, "entity_id", "measure.mass", obj{"entity_id": "none", "agent_id": "ada"})
		o := r.do("agent.metrics", obj{"agent_id": "ada"})
		if o.number("operation_count") != 2 || o.number("success_count") != 1 || o.number("error_count") != 1 || o.number("errors.ENTITY_NOT_FOUND") != 1 {
			r.Errorf("%v, want two operations, one of which failed", o)
		}
	})
}
