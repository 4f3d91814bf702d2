package cad

import (
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Effect is what a method does beyond answering.
type Effect string

// The effects of methods, as the judge's rules see them in action.effects,
// beside those that depend on the parameters: Elsewhere and Overwrite.
const (
	Reads   Effect = "read"    // changes nothing
	Changes Effect = "write"   // changes the content of a workspace
	Creates Effect = "create"  // makes a workspace
	Merges  Effect = "merge"   // brings one workspace's content into another
	Imports Effect = "import"  // reads a file of the workspace's directory into it
	Exports Effect = "export"  // writes a file into the workspace's directory
	Deletes Effect = "destroy" // deletes a file

	Elsewhere Effect = "elsewhere" // changes another workspace than the agent's own
	Overwrite Effect = "overwrite" // writes over a file that is there
)

// Method is one operation of the CAD environment that agents can be allowed.
type Method struct {
	Name   string
	Of     string // the method that this is a variant of: solid.boolean of solid.boolean.union
	Effect Effect
	// Local methods are answered by the controller: they are about more than
	// one workspace, or about agents.
	Local bool
}

// methods in the order in which they are told.
var methods = [...]Method{
	{Name: "entity.create_point", Effect: Changes},
	{Name: "entity.create_line", Effect: Changes},
	{Name: "entity.create_circle", Effect: Changes},
	{Name: "entity.create_arc", Effect: Changes},
	{Name: "entity.update", Effect: Changes},
	{Name: "entity.delete", Effect: Changes},
	{Name: "entity.query", Effect: Reads},
	{Name: "entity.list", Effect: Reads},
	{Name: "constraint.apply", Effect: Changes},
	{Name: "constraint.remove", Effect: Changes},
	{Name: "constraint.status", Effect: Reads},
	{Name: "solid.extrude", Effect: Changes},
	{Name: "solid.revolve", Effect: Changes},
	{Name: "solid.boolean", Effect: Changes},
	{Name: "solid.boolean.union", Of: "solid.boolean", Effect: Changes},
	{Name: "solid.boolean.subtract", Of: "solid.boolean", Effect: Changes},
	{Name: "solid.boolean.intersect", Of: "solid.boolean", Effect: Changes},
	{Name: "solid.primitive", Effect: Changes},
	{Name: "solid.pattern", Effect: Changes},
	{Name: "solid.pattern.linear", Of: "solid.pattern", Effect: Changes},
	{Name: "solid.pattern.circular", Of: "solid.pattern", Effect: Changes},
	{Name: "solid.mirror", Effect: Changes},
	{Name: "solid.transform", Effect: Changes},
	{Name: "solid.fillet", Effect: Changes},
	{Name: "solid.chamfer", Effect: Changes},
	{Name: "solid.shell", Effect: Changes},
	{Name: "workspace.create", Effect: Creates, Local: true},
	{Name: "workspace.list", Effect: Reads, Local: true},
	{Name: "workspace.switch", Effect: Changes, Local: true},
	{Name: "workspace.status", Effect: Reads},
	{Name: "workspace.merge", Effect: Merges},
	{Name: "workspace.resolve_conflict", Effect: Merges},
	{Name: "workspace.diff", Effect: Reads},
	{Name: "history.list", Effect: Reads},
	{Name: "history.undo", Effect: Changes},
	{Name: "history.redo", Effect: Changes},
	{Name: "file.import", Effect: Imports},
	{Name: "file.export", Effect: Exports},
	{Name: "file.delete", Effect: Deletes},
	{Name: "agent.metrics", Effect: Reads, Local: true},
	{Name: "measure.mass", Effect: Reads},
	{Name: "measure.interference", Effect: Reads},
	{Name: "measure.bbox", Effect: Reads},
	{Name: "measure.distance", Effect: Reads},
	{Name: "view.mesh", Effect: Reads},
	{Name: "system.hello", Effect: Reads},
	{Name: "system.ping", Effect: Reads},
}

// FindMethod finds a method by its name. The dotted way to spell the creating
// ones (entity.create.point) is known too.
func FindMethod(name string) (Method, bool) {
	if kind, dotted := strings.CutPrefix(name, "entity.create."); dotted {
		name = "entity.create_" + kind
	}
	i := slices.IndexFunc(methods[:], func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return methods[i], true
}

// MethodNames are all names, in order.
func MethodNames() []string {
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Name
	}
	return names
}

// variant is the method that a call comes to: solid.boolean with the operation
// union is solid.boolean.union, so that a role can allow just that.
func (m Method) variant(params core.Raw) Method {
	word := ""
	switch m.Name {
	case "solid.boolean":
		word = textOf(params, "operation")
	case "solid.pattern":
		switch word = textOf(params, "pattern_type"); {
		case word != "":
		case hasMember(params, "direction"):
			word = "linear"
		case hasMember(params, "axis_direction"):
			word = "circular"
		}
	}
	if v, ok := FindMethod(m.Name + "." + word); ok && v.Of == m.Name {
		return v
	}
	return m
}
