package env

import (
	"math"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
)

type pattern struct {
	EntityID  string   `json:"entity_id"`
	Base      string   `json:"base_entity_id" need:""`
	Type      string   `json:"pattern_type"` // linear or circular; what else is given tells it otherwise
	Count     int      `json:"count" need:""`
	Direction *Vec     `json:"direction"`
	Spacing   *float64 `json:"spacing"`
	Point     *Place   `json:"axis_point"`
	Axis      *Vec     `json:"axis_direction"`
	Angle     *float64 `json:"angle"` // a full turn where nothing is given
	// KeepInputs also keeps the solid that the pattern starts with, which then
	// lies inside the result.
	KeepInputs bool `json:"keep_inputs"`
}

// pattern joins copies of a solid to one, the solid itself being the first.
func (c *call) pattern(p pattern) (any, error) {
	base, err := c.solid("base_entity_id", p.Base)
	if err != nil {
		return nil, err
	}
	linear, circular := p.Direction != nil || p.Spacing != nil, p.Point != nil || p.Axis != nil || p.Angle != nil
	if p.Type == "" {
		p.Type = "linear"
		if circular {
			p.Type = "circular"
		}
	}
	m := making{id: p.EntityID, inputs: []model.Entity{base}, consumed: !p.KeepInputs}
	switch {
	case p.Type != "linear" && p.Type != "circular":
		return nil, Invalid("pattern_type", p.Type, "linear or circular")
	case linear && circular, p.Type == "linear" && circular, p.Type == "circular" && linear:
		return nil, Refuse(InvalidParameter, "pattern_type", p.Type, "these parameters are of two kinds of patterns", "linear takes direction, spacing, count; circular takes axis_point, axis_direction, angle, count")
	case p.Type == "linear" && (p.Direction == nil || p.Spacing == nil):
		return nil, Refuse(InvalidParameter, "direction", nil, "direction or spacing is missing", "a linear pattern takes direction, spacing and count")
	case p.Type == "linear":
		m.recipe = &Linear{Direction: *p.Direction, Spacing: *p.Spacing, Count: p.Count}
	case p.Axis == nil:
		return nil, Refuse(InvalidParameter, "axis_direction", nil, "axis_direction is missing", "a circular pattern takes axis_point, axis_direction, angle and count")
	default:
		r := &Circular{Axis: *p.Axis, Angle: 2 * math.Pi, Count: p.Count}
		if p.Point != nil {
			if r.Point, err = c.where("axis_point", *p.Point); err != nil {
				return nil, err
			}
		}
		if p.Angle != nil {
			r.Angle = *p.Angle
		}
		m.recipe = r
	}
	return c.make(m)
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
		inputs: []model.Entity{base}, consumed: p.KeepInputs != nil && !*p.KeepInputs,
	})
}

// solidChange is what operations on one solid have in common: it keeps its id,
// unless the result is given another or the solid is to be kept.
type solidChange struct {
	EntityID, Base string
	KeepInputs     bool
}

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
	EntityID   string    `json:"entity_id"` // the solid; with base_entity_id, the result's
	Base       string    `json:"base_entity_id"`
	KeepInputs bool      `json:"keep_inputs"`
	Translate  *Vec      `json:"translate"`
	Rotate     *rotation `json:"rotate"` // first
	// Matrix has four columns: the images of the axes and of the origin.
	Matrix *[4][3]float64 `json:"matrix"`
}

type rotation struct {
	Point Vec     `json:"axis_point"`
	Axis  Vec     `json:"axis_direction"`
	Angle float64 `json:"angle"` // radians, counterclockwise seen from the axis' tip
}

// transform turns a solid, then moves it.
func (c *call) transform(p transform) (any, error) {
	r := &Transform{Matrix: [4][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}}}
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
		r.Matrix = p.Rotate.matrix()
	}
	if p.Translate != nil {
		r.Matrix[3] = mesh.Add(r.Matrix[3], *p.Translate)
	}
	return c.changed(solidChange{p.EntityID, p.Base, p.KeepInputs}, r)
}

// matrix of a rotation (Rodrigues), without rounding at quarter turns.
func (r rotation) matrix() (m [4][3]float64) {
	u := mesh.Scale(r.Axis, 1/mesh.Length(r.Axis))
	sin, cos := math.Sincos(r.Angle)
	for _, v := range []*float64{&sin, &cos} {
		if whole := math.Round(*v); math.Abs(*v-whole) < 1e-15 {
			*v = whole
		}
	}
	for i := range 3 {
		var e [3]float64
		e[i] = 1
		turned := mesh.Add(mesh.Scale(e, cos), mesh.Add(mesh.Scale(mesh.Cross(u, e), sin), mesh.Scale(u, u[i]*(1-cos))))
		m[i] = zeroed(turned)
	}
	image := mesh.Add(mesh.Scale(m[0], r.Point[0]), mesh.Add(mesh.Scale(m[1], r.Point[1]), mesh.Scale(m[2], r.Point[2])))
	m[3] = zeroed(mesh.Sub(r.Point, image))
	return m
}

type fillet struct {
	EntityID   string       `json:"entity_id"`
	Base       string       `json:"base_entity_id"`
	KeepInputs bool         `json:"keep_inputs"`
	Radius     float64      `json:"radius" need:""`
	Edges      [][3]float64 `json:"edges"` // places; the edge nearest to each
}

func (c *call) fillet(p fillet) (any, error) {
	return c.changed(solidChange{p.EntityID, p.Base, p.KeepInputs}, &Fillet{Radius: p.Radius, Edges: p.Edges})
}

type chamfer struct {
	EntityID   string       `json:"entity_id"`
	Base       string       `json:"base_entity_id"`
	KeepInputs bool         `json:"keep_inputs"`
	Distance   float64      `json:"distance" need:""`
	Edges      [][3]float64 `json:"edges"`
}

func (c *call) chamfer(p chamfer) (any, error) {
	return c.changed(solidChange{p.EntityID, p.Base, p.KeepInputs}, &Chamfer{Distance: p.Distance, Edges: p.Edges})
}

type shell struct {
	EntityID   string       `json:"entity_id"`
	Base       string       `json:"base_entity_id"`
	KeepInputs bool         `json:"keep_inputs"`
	Thickness  float64      `json:"thickness" need:""`
	OpenFaces  [][3]float64 `json:"open_faces"` // places; the face nearest to each
}

func (c *call) shell(p shell) (any, error) {
	return c.changed(solidChange{p.EntityID, p.Base, p.KeepInputs}, &Shell{Thickness: p.Thickness, OpenFaces: p.OpenFaces})
}
