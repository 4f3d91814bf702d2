package env

import (
	"math"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
)

type pattern struct {
	EntityID  string   `json:"entity_id"`
	Base      string   `json:"base_entity_id" need:""`
	Type      string   `json:"pattern_type" is:"linear or circular; what else is given tells it otherwise"`
	Count     int      `json:"count" need:"" is:"2 or more, the solid itself the first"`
	Direction *Vec     `json:"direction" is:"linear"`
	Spacing   *float64 `json:"spacing" is:"linear, mm"`
	Point     *Place   `json:"axis_point" is:"circular"`
	Axis      *Vec     `json:"axis_direction" is:"circular"`
	Angle     *float64 `json:"angle" is:"circular, radians; a full turn where nothing is given"`
	// KeepInputs also keeps the solid that the pattern starts with, which then
	// lies inside the result.
	KeepInputs bool `json:"keep_inputs"`
}

// recipe is what it makes about an axis through a point.
func (p pattern) recipe(at [3]float64) (Recipe, error) {
	linear, circular := p.Direction != nil || p.Spacing != nil, p.Point != nil || p.Axis != nil || p.Angle != nil
	if p.Type == "" {
		p.Type = "linear"
		if circular {
			p.Type = "circular"
		}
	}
	switch {
	case p.Type != "linear" && p.Type != "circular":
		return nil, Invalid("pattern_type", p.Type, "linear or circular")
	case linear && circular, p.Type == "linear" && circular, p.Type == "circular" && linear:
		return nil, Refuse(InvalidParameter, "pattern_type", p.Type, "these parameters are of two kinds of patterns", "linear takes direction, spacing, count; circular takes axis_point, axis_direction, angle, count")
	case p.Type == "linear" && (p.Direction == nil || p.Spacing == nil):
		return nil, Refuse(InvalidParameter, "direction", nil, "direction or spacing is missing", "a linear pattern takes direction, spacing and count")
	case p.Type == "linear":
		return &Linear{Direction: *p.Direction, Spacing: *p.Spacing, Count: p.Count}, nil
	case p.Axis == nil:
		return nil, Refuse(InvalidParameter, "axis_direction", nil, "axis_direction is missing", "a circular pattern takes axis_point, axis_direction, angle and count")
	}
	return &Circular{Point: at, Axis: *p.Axis, Angle: given(p.Angle, 2*math.Pi), Count: p.Count}, nil
}

func (p pattern) check() error { return sound(p.recipe([3]float64{})) }

// pattern joins copies of a solid to one, the solid itself being the first.
func (c *call) pattern(p pattern) (any, error) {
	base, err := c.solid("base_entity_id", p.Base)
	if err != nil {
		return nil, err
	}
	var at [3]float64
	if p.Point != nil {
		if at, err = c.where("axis_point", *p.Point); err != nil {
			return nil, err
		}
	}
	r, err := p.recipe(at)
	if err != nil {
		return nil, err
	}
	return c.make(making{id: p.EntityID, recipe: r, inputs: []model.Entity{base}, consumed: !p.KeepInputs})
}

type mirror struct {
	EntityID string `json:"entity_id"`
	Base     string `json:"base_entity_id" need:""`
	Point    *Place `json:"mirror_plane_point" need:""`
	Normal   Vec    `json:"mirror_plane_normal" need:""`
	// KeepInputs is true where nothing is given: the reflection comes beside its
	// original.
	KeepInputs *bool `json:"keep_inputs"`
}

func (p mirror) check() error { return first(direction("mirror_plane_normal", p.Normal)) }

func (c *call) mirror(p mirror) (any, error) {
	base, err := c.solid("base_entity_id", p.Base)
	if err != nil {
		return nil, err
	}
	point, err := c.where("mirror_plane_point", *p.Point)
	if err != nil {
		return nil, err
	}
	return c.make(making{
		id: p.EntityID, recipe: &Mirror{Point: point, Normal: p.Normal},
		inputs: []model.Entity{base}, consumed: !given(p.KeepInputs, true),
	})
}

// solidChange are the params that operations on one solid have in common: it keeps
// its id, unless the result is given another or the solid is to be kept.
type solidChange struct {
	EntityID   string `json:"entity_id"` // the solid; with base_entity_id, the result's
	Base       string `json:"base_entity_id"`
	KeepInputs bool   `json:"keep_inputs"`
}

// edited are the params of an operation that a recipe says all else of.
type edited[R any] struct {
	solidChange
	Recipe R
}

func (p edited[R]) recipe() Recipe { return any(&p.Recipe).(Recipe) }
func (p edited[R]) check() error   { return p.recipe().check() }

// edit makes a solid another one: by a fillet, a chamfer or a shell.
func edit[R any](c *call, p edited[R]) (any, error) { return c.changed(p.solidChange, p.recipe()) }

func (c *call) changed(s solidChange, r Recipe) (any, error) {
	if s.Base == "" {
		s.Base, s.EntityID = s.EntityID, ""
	}
	if s.Base == "" {
		return nil, Refuse(InvalidParameter, "entity_id", nil, "entity_id is missing", "give the solid to change")
	}
	base, err := c.solid("entity_id", s.Base)
	if err != nil {
		return nil, err
	}
	if s.EntityID == "" && !s.KeepInputs {
		s.EntityID = base.ID
	}
	return c.make(making{id: s.EntityID, recipe: r, inputs: []model.Entity{base}, consumed: !s.KeepInputs})
}

type transform struct {
	solidChange
	Translate *Vec      `json:"translate"`
	Rotate    *rotation `json:"rotate"` // first
	// Matrix has four columns: the images of the axes and of the origin.
	Matrix *[4][3]float64 `json:"matrix"`
}

type rotation struct {
	Point Vec     `json:"axis_point"`
	Axis  Vec     `json:"axis_direction"`
	Angle float64 `json:"angle"` // radians, counterclockwise seen from the axis' tip
}

// recipe turns, then moves.
func (p transform) recipe() (*Transform, error) {
	r := &Transform{Matrix: mesh.Identity}
	switch {
	case p.Matrix != nil && (p.Translate != nil || p.Rotate != nil):
		return nil, Refuse(InvalidParameter, "matrix", nil, "matrix says all there is to say", "give matrix alone, or translate and rotate")
	case p.Matrix != nil:
		r.Matrix = *p.Matrix
	case p.Translate == nil && p.Rotate == nil:
		return nil, Refuse(InvalidParameter, "translate", nil, "nothing says how to move the solid", "give translate [x, y, z], rotate {axis_point, axis_direction, angle} or matrix")
	}
	if p.Rotate != nil {
		if err := direction("rotate.axis_direction", p.Rotate.Axis); err != nil {
			return nil, err
		}
		r.Matrix = mesh.Rotation(p.Rotate.Point, p.Rotate.Axis, p.Rotate.Angle)
	}
	if p.Translate != nil {
		r.Matrix[3] = mesh.Add(r.Matrix[3], *p.Translate)
	}
	return r, nil
}

func (p transform) check() error { return sound(p.recipe()) }

// transform turns a solid, then moves it.
func (c *call) transform(p transform) (any, error) {
	r, err := p.recipe()
	if err != nil {
		return nil, err
	}
	return c.changed(p.solidChange, r)
}
