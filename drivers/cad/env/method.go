package env

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// method is one operation of the environment.
type method struct {
	fields []field
	params any // a zero value of what they are read into
	// check lists what is wrong with params, as far as they tell by themselves.
	check func(params core.Raw) []error
	run   func(c *call, params core.Raw) (any, error)
	// fixed are params that an alias stands for.
	canonical string
	fixed     string
}

// op makes a method of a typed function on a workspace.
func op[P any](run func(c *call, p P) (any, error)) method { return typed((*call).enter, run) }

// bare makes a method of a typed function that needs no workspace, or names
// its own.
func bare[P any](run func(c *call, p P) (any, error)) method { return typed((*call).bound, run) }

func typed[P any](begin func(*call) error, run func(c *call, p P) (any, error)) method {
	known := fields(reflect.TypeFor[P]())
	into := func(params core.Raw, p *P, common *Common, later bool) ([]error, bool) {
		return decodeParams(params, known, reflect.ValueOf(p).Elem(), reflect.ValueOf(common).Elem(), later)
	}
	return method{fields: known, params: *new(P), check: func(params core.Raw) []error {
		var p P
		wrong, open := into(params, &p, new(Common), true)
		if c, ok := any(p).(checked); ok && len(wrong) == 0 && !open {
			if err := c.check(); err != nil {
				wrong = append(wrong, err)
			}
		}
		return wrong
	}, run: func(c *call, params core.Raw) (any, error) {
		var p P
		if wrong, _ := into(params, &p, &c.Common, false); len(wrong) > 0 {
			return nil, wrong[0]
		}
		if err := begin(c); err != nil {
			return nil, err
		}
		if p, ok := any(p).(checked); ok {
			if err := p.check(); err != nil {
				return nil, err
			}
		}
		return run(c, p)
	}}
}

// checked are params that must fit together.
type checked interface{ check() error }

// sound checks what was made without an error.
func sound(made checked, err error) error {
	if err == nil {
		err = made.check()
	}
	return err
}

// none is the params of a method that has only the common ones.
type none struct{}

// methods are all operations by their names.
func methods() map[string]method {
	all := map[string]method{
		"entity.create_point": op((*call).createPoint), "entity.create_line": op((*call).createLine),
		"entity.create_circle": op((*call).createCircle), "entity.create_arc": op((*call).createArc),
		"entity.query": op((*call).queryEntity), "entity.list": op((*call).listEntities),
		"entity.update": op((*call).updateEntity), "entity.delete": op((*call).deleteEntity),
		"constraint.apply": op((*call).applyConstraint), "constraint.status": op((*call).constraintStatus),
		"constraint.remove": op((*call).removeConstraint),
		"solid.extrude":     op((*call).extrude), "solid.revolve": op((*call).revolve),
		"solid.primitive": op((*call).primitive), "solid.boolean": op((*call).boolean),
		"solid.pattern": op((*call).pattern), "solid.mirror": op((*call).mirror),
		"solid.transform": op((*call).transform), "solid.fillet": op(edit[Fillet]),
		"solid.chamfer": op(edit[Chamfer]), "solid.shell": op(edit[Shell]),
		"workspace.create": bare((*call).createWorkspace), "workspace.list": bare((*call).listWorkspaces),
		"workspace.switch": bare((*call).switchWorkspace), "workspace.status": op((*call).workspaceStatus),
		"workspace.merge": bare((*call).merge), "workspace.resolve_conflict": bare((*call).resolve),
		"workspace.diff": bare((*call).diff),
		"workspace.load": bare((*call).load), "workspace.unload": bare((*call).unload),
		"history.list": op((*call).listHistory), "history.undo": op((*call).undo), "history.redo": op((*call).redo),
		"file.import": op((*call).importFile), "file.export": op((*call).exportFile),
		"measure.mass": op((*call).measureMass), "measure.bbox": op((*call).measureBounds),
		"measure.interference": op((*call).interference), "measure.distance": op((*call).measureDistance),
		"view.mesh": op((*call).viewMesh), "agent.metrics": bare((*call).agentMetrics),
		"system.hello": bare((*call).hello), "system.ping": bare((*call).ping),
		"system.cancel": bare((*call).cancelOne), "system.shutdown": bare((*call).shutdown),
	}
	for name, a := range map[string][2]string{
		"entity.create.point": {"entity.create_point"}, "entity.create.line": {"entity.create_line"},
		"entity.create.circle": {"entity.create_circle"}, "entity.create.arc": {"entity.create_arc"},
		"solid.boolean.union":     {"solid.boolean", `"operation":"union"`},
		"solid.boolean.subtract":  {"solid.boolean", `"operation":"subtract"`},
		"solid.boolean.intersect": {"solid.boolean", `"operation":"intersect"`},
		"solid.pattern.linear":    {"solid.pattern", `"pattern_type":"linear"`},
		"solid.pattern.circular":  {"solid.pattern", `"pattern_type":"circular"`},
	} {
		m := all[a[0]]
		m.canonical, m.fixed = a[0], a[1]
		all[name] = m
	}
	return all
}

// internal methods are for the engine that this environment works for.
var internalMethods = []string{"workspace.load", "workspace.unload"}

// names lists the methods without aliases.
func (e *Env) methodNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e.methods)), func(name string) bool {
		return e.methods[name].canonical != "" || slices.Contains(internalMethods, name)
	})
}

// call is one request being carried out.
type call struct {
	Common

	env    *Env
	conn   *conn
	ctx    context.Context
	method string
	params core.Raw
	id     string // of the request, as JSON
	cancel context.CancelCauseFunc
	// release frees the timer of the deadline.
	release func()
	stage   stage
	ws      *model.Workspace
	entry   *model.Entry // of what changed
}

// bound starts the deadline and checks who asks.
func (c *call) bound() error {
	c.DeadlineMS = cmp.Or(c.DeadlineMS, defaultDeadline)
	if c.DeadlineMS < 1 || c.DeadlineMS > longestDeadline {
		return Invalid("deadline_ms", c.DeadlineMS, "1 to 600000 ms")
	}
	if len(c.AgentID) > 100 || !core.Printable(c.AgentID) {
		return Invalid("agent_id", c.AgentID, "at most 100 printable characters")
	}
	c.conn.limit(c)
	return nil
}

// enter also finds the workspace.
func (c *call) enter() error {
	if err := c.bound(); err != nil {
		return err
	}
	var err error
	c.ws, err = c.env.workspace("workspace_id", cmp.Or(c.WorkspaceID, c.conn.workspace))
	return err
}

// Parameters knows what the methods of the environment take, without one that
// runs.
type Parameters struct{ methods map[string]method }

// NewParameters makes it.
func NewParameters() *Parameters { return &Parameters{methods()} }

// Check lists what is wrong with the parameters of an operation that is to be
// carried out later, as far as they tell by themselves: what is missing, unknown,
// of another type, out of range or does not fit together. Each error is a
// core.Error that names the parameter and what is allowed. ${references} to what
// is known only then may stand for a value.
func (p *Parameters) Check(name string, params core.Raw) []error {
	m, known := p.methods[name]
	if !known {
		return []error{core.Invalid("method", name, "a method")}
	}
	if m.fixed != "" {
		params = fix(params, m.fixed)
	}
	wrong := m.check(params)
	for i, err := range wrong {
		if e, ok := errors.AsType[*Error](err); ok {
			wrong[i] = core.Errorf(core.InvalidInput, "%s; %s", e.Message, e.Data.Suggestion).With("field", e.Data.Field).With("value", e.Data.Value)
		}
	}
	return wrong
}

// Takes is what a method takes, in one line: each parameter with its type and what
// it is, * for one that is needed. What every method takes is left out.
func (p *Parameters) Takes(name string) string {
	m := p.methods[name]
	of := reflect.TypeOf(m.params)
	if of == nil {
		return ""
	}
	var all []string
	for _, f := range m.fields {
		if strings.Contains(m.fixed, `"`+f.name+`"`) {
			continue
		}
		text := f.name
		if f.required {
			text += "*"
		}
		short, _ := takes(of.FieldByIndex(f.index).Type)
		text += " " + short
		if f.is != "" {
			text += " (" + f.is + ")"
		}
		all = append(all, text)
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}
