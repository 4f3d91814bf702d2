package env

import (
	"fmt"
	"reflect"
	"slices"
)

type primitive struct {
	EntityID  string   `json:"entity_id"`
	Type      string   `json:"primitive_type" need:"" is:"box, cylinder, sphere or cone"`
	Width     *float64 `json:"width" is:"of a box, along x"`
	Depth     *float64 `json:"depth" is:"of a box, along y"`
	Height    *float64 `json:"height" is:"of a box, cylinder or cone"`
	Position  *Place   `json:"position" is:"of a box"`
	Radius    *float64 `json:"radius" is:"of a cylinder or sphere"`
	Radius1   *float64 `json:"radius1" is:"of a cone"`
	Radius2   *float64 `json:"radius2" is:"of a cone"`
	AxisPoint *Place   `json:"axis_point" is:"of a cylinder or cone"`
	Axis      *Vec     `json:"axis_direction" is:"of a cylinder or cone"`
	Center    *Place   `json:"center" is:"of a sphere"`
	Tolerance *float64 `json:"tolerance"`
}

// primitives lists what each kind takes: first what it needs, then what it may
// have.
var primitives = map[string][2][]string{
	"box":      {{"width", "depth", "height"}, {"position"}},
	"cylinder": {{"radius", "height"}, {"axis_point", "axis_direction", "tolerance"}},
	"sphere":   {{"radius"}, {"center", "tolerance"}},
	"cone":     {{"radius1", "radius2", "height"}, {"axis_point", "axis_direction", "tolerance"}},
}

// check refuses params of another kind, names what is missing, and refuses what
// is no solid.
func (p primitive) check() error {
	takes, known := primitives[p.Type]
	if !known {
		return Invalid("primitive_type", p.Type, "box, cylinder, sphere or cone")
	}
	for _, f := range fields(reflect.TypeOf(p)) {
		if f.name == "entity_id" || f.required {
			continue
		}
		there := !reflect.ValueOf(p).FieldByIndex(f.index).IsNil()
		needed := slices.Contains(takes[0], f.name)
		switch {
		case needed && !there:
			return Refuse(InvalidParameter, f.name, nil, fmt.Sprintf("%s is missing", f.name), fmt.Sprintf("a %s needs %v", p.Type, takes[0]))
		case there && !needed && !slices.Contains(takes[1], f.name):
			return Refuse(InvalidParameter, f.name, nil, fmt.Sprintf("a %s has no %s", p.Type, f.name), fmt.Sprintf("it takes %v and %v", takes[0], takes[1]))
		}
	}
	return p.recipe([3]float64{}, 0).check()
}

func (p primitive) recipe(at [3]float64, tolerance float64) Recipe {
	axis := given(p.Axis, Vec{0, 0, 1})
	switch p.Type {
	case "box":
		return &Box{Position: at, Dimensions: [3]float64{*p.Width, *p.Depth, *p.Height}}
	case "cylinder":
		return &Cylinder{Point: at, Axis: axis, Radius: *p.Radius, Height: *p.Height, Tolerance: tolerance}
	case "sphere":
		return &Sphere{Center: at, Radius: *p.Radius, Tolerance: tolerance}
	}
	return &Cone{Point: at, Axis: axis, Radius: *p.Radius1, Top: *p.Radius2, Height: *p.Height, Tolerance: tolerance}
}

func (c *call) primitive(p primitive) (any, error) {
	var at [3]float64
	for field, given := range map[string]*Place{"position": p.Position, "axis_point": p.AxisPoint, "center": p.Center} {
		if given == nil {
			continue
		}
		var err error
		if at, err = c.where(field, *given); err != nil {
			return nil, err
		}
	}
	tolerance, err := c.tolerance(p.Tolerance)
	if err != nil {
		return nil, err
	}
	return c.make(making{id: p.EntityID, recipe: p.recipe(at, tolerance)})
}
