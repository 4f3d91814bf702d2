package env

import (
	"fmt"
	"slices"

	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// making is a solid to be made.
type making struct {
	id       string // "" takes a free one; one of consumed is taken over
	recipe   Recipe
	blob     *model.Blob
	inputs   []model.Entity
	consumed bool // the inputs go
}

// tolerance is the chord tolerance of a new shape: what was asked for, or what
// the environment was started with; 0 leaves it to the kernel. An exact kernel
// has none.
func (c *call) tolerance(asked *float64) (float64, error) {
	t := c.env.options.Tolerance
	if asked != nil {
		if *asked == 0 {
			return 0, Invalid("tolerance", 0, "0.000001 to 10 mm")
		}
		if err := chord(*asked); err != nil {
			return 0, err
		}
		t = *asked
	}
	if c.env.bench.about.Exact {
		return 0, nil
	}
	return t, nil
}

// supported refuses ops that the kernel does not build.
func (c *call) supported(op string) error {
	about := c.env.bench.about
	if slices.Contains(about.Shapes, op) {
		return nil
	}
	return Unsupported("method", c.method, about.Name, other(about.Name))
}

// other is the kernel that can what one can't.
func other(name string) string {
	if name == Embedded {
		return OCCT
	}
	return ""
}

// define makes the body of a solid and the change that adds it.
func (c *call) define(m making) (model.Entity, model.Change, error) {
	var none model.Entity
	var change model.Change
	if err := c.supported(m.recipe.Op()); err != nil {
		return none, change, err
	}
	var hashes, consumed []string
	for _, e := range m.inputs {
		hashes = append(hashes, e.Shape)
		if m.consumed {
			consumed = append(consumed, e.ID)
		}
	}
	id := m.id
	if !slices.Contains(consumed, id) {
		var err error
		if id, err = c.newID(id, model.Solid); err != nil {
			return none, change, err
		}
	}
	blob := ""
	if m.blob != nil {
		blob = m.blob.Hash
		change.Blobs = []model.Blob{*m.blob}
	}
	shape, err := NewShape(m.recipe, blob, hashes...)
	if err != nil {
		return none, change, err
	}
	facts, err := c.env.bench.build(c.ctx, in(c.ws).with(change.Blobs, shape), shape.Hash)
	if err != nil {
		return none, change, err
	}
	if err := reach(facts.Bounds); err != nil {
		return none, change, err
	}
	facts.Operation = shape.Op
	properties, err := core.Encode(facts)
	if err != nil {
		return none, change, fmt.Errorf("the kernel measured what is no number: %w", err)
	}
	e := model.Entity{ID: id, Type: model.Solid, Properties: properties, Shape: shape.Hash}
	change.Put, change.Shapes = []model.Entity{e}, []model.Shape{shape}
	change.Removed = slices.DeleteFunc(consumed, func(gone string) bool { return gone == id })
	return e, change, nil
}

// make adds a solid and tells of it.
func (c *call) make(m making) (any, error) {
	e, change, err := c.define(m)
	if err != nil {
		return nil, err
	}
	out, err := c.put(change, e.ID)
	if err != nil {
		return nil, err
	}
	if m.consumed {
		out["consumed"] = idsOf(m.inputs)
	}
	return out, nil
}

// solid finds an entity that is a solid.
func (c *call) solid(field, id string) (model.Entity, error) {
	e, err := c.entity(field, id)
	if err != nil {
		return e, err
	}
	if e.Type != model.Solid {
		return e, Refuse(OperationInvalid, field, id, fmt.Sprintf("%s is a %s", id, e.Type), "give a solid; extrude or revolve makes one of curves")
	}
	return e, nil
}

type extrude struct {
	EntityID  string   `json:"entity_id" is:"of the solid; or, alone, the curve"`
	EntityIDs []string `json:"entity_ids" is:"lines, arcs and circles that close loops in one plane"`
	Distance  float64  `json:"distance" need:"" is:"mm, not 0"`
	Direction *Vec     `json:"direction" is:"the plane's normal where nothing is given"`
	Tolerance *float64 `json:"tolerance"`
}

// curved says whether facets leave the true profile.
func curved(s profile.Shape) bool {
	return slices.ContainsFunc(s.Loops, func(l profile.Loop) bool {
		return slices.ContainsFunc(l, func(g profile.Segment) bool { return g.Radius > 0 })
	})
}

func (p extrude) check() error {
	switch {
	case p.EntityIDs == nil && p.EntityID == "":
		return Refuse(InvalidParameter, "entity_ids", nil, "entity_ids is missing", "give the lines, arcs and circles that close the profile")
	case p.Distance == 0:
		return Refuse(InvalidGeometry, "distance", 0, "distance: 0 mm makes no solid", fmt.Sprintf("give at least %g mm up or down", MinLength))
	case p.Direction != nil:
		return first(direction("direction", *p.Direction))
	}
	return nil
}

// extrude sweeps a profile along its plane's normal, or along a direction.
func (c *call) extrude(p extrude) (any, error) {
	ids := p.EntityIDs
	if ids == nil {
		ids, p.EntityID = []string{p.EntityID}, ""
	}
	shape, plane, err := c.profile("entity_ids", ids)
	if err != nil {
		return nil, err
	}
	along := plane.Normal()
	if p.Direction != nil {
		along = mesh.Unit(*p.Direction)
	}
	r := &Extrude{Profile: shape, Plane: plane, Vector: zeroed(mesh.Scale(along, p.Distance))}
	if curved(shape) {
		if r.Tolerance, err = c.tolerance(p.Tolerance); err != nil {
			return nil, err
		}
	}
	return c.make(making{id: p.EntityID, recipe: r})
}

type revolve struct {
	EntityID  string   `json:"entity_id"`
	ProfileID string   `json:"profile_entity_id"`
	EntityIDs []string `json:"entity_ids" is:"where several curves close the profile"`
	Point     *Place   `json:"axis_point" need:""`
	Axis      Vec      `json:"axis_direction" need:""`
	Angle     float64  `json:"angle" need:"" is:"radians, up to 2π either way, not 0"`
	Tolerance *float64 `json:"tolerance"`
}

func (p revolve) check() error {
	switch {
	case p.ProfileID != "" && p.EntityIDs != nil:
		return Refuse(InvalidParameter, "profile_entity_id", p.ProfileID, "profile_entity_id and entity_ids say the same", "give one of the two")
	case p.ProfileID == "" && p.EntityIDs == nil:
		return Refuse(InvalidParameter, "profile_entity_id", nil, "profile_entity_id is missing", "give it, or entity_ids where several curves close the profile")
	}
	return first(direction("axis_direction", p.Axis), turning(p.Angle))
}

// revolve turns a profile about an axis of its plane.
func (c *call) revolve(p revolve) (any, error) {
	ids := p.EntityIDs
	if p.ProfileID != "" {
		ids = []string{p.ProfileID}
	}
	shape, plane, err := c.profile("entity_ids", ids)
	if err != nil {
		return nil, err
	}
	point, err := c.where("axis_point", *p.Point)
	if err != nil {
		return nil, err
	}
	tolerance, err := c.tolerance(p.Tolerance)
	if err != nil {
		return nil, err
	}
	return c.make(making{id: p.EntityID, recipe: &Revolve{
		Profile: shape, Plane: plane, Point: point, Axis: p.Axis, Angle: p.Angle, Tolerance: tolerance,
	}})
}

type boolean struct {
	EntityID   string   `json:"entity_id"`
	Operation  string   `json:"operation" need:"" is:"union, subtract or intersect"`
	EntityIDs  []string `json:"entity_ids" is:"two solids or more; the others are taken from the first"`
	Base       string   `json:"base_entity_id"`
	Tools      []string `json:"tool_entity_ids"`
	KeepInputs bool     `json:"keep_inputs"`
}

func (p boolean) ids() []string {
	if p.Base != "" || p.Tools != nil {
		return append([]string{p.Base}, p.Tools...)
	}
	return p.EntityIDs
}

func (p boolean) check() error {
	switch ids := p.ids(); {
	case !slices.Contains([]string{"union", "subtract", "intersect"}, p.Operation):
		return Invalid("operation", p.Operation, "union, subtract or intersect")
	case (p.Base != "" || p.Tools != nil) && p.EntityIDs != nil:
		return Refuse(InvalidParameter, "base_entity_id", p.Base, "entity_ids and base_entity_id say the same", "give entity_ids, or base_entity_id and tool_entity_ids")
	case len(ids) < 2 || len(ids) > MaxInputs:
		return Invalid("entity_ids", len(ids), fmt.Sprintf("2 to %d solids", MaxInputs))
	default:
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				return Refuse(OperationInvalid, "entity_ids", id, id+" is named twice", "give different solids")
			}
		}
	}
	return nil
}

// boolean combines solids, which go unless they are to be kept. The result may
// take over the id of one that goes.
func (c *call) boolean(p boolean) (any, error) {
	m := making{id: p.EntityID, recipe: &Boolean{Operation: p.Operation}, consumed: !p.KeepInputs}
	for _, id := range p.ids() {
		e, err := c.solid("entity_ids", id)
		if err != nil {
			return nil, err
		}
		m.inputs = append(m.inputs, e)
	}
	return c.make(m)
}
