package env

import (
	"context"
	"fmt"
	"math"
	"slices"

	"swarmdeck/drivers/cad/sketch"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// constraintProperties are how a constraint is stored.
type constraintProperties struct {
	Type       sketch.Type          `json:"constraint_type"`
	Entities   []string             `json:"entity_ids"` // ID, ID.start, ID.end or ID.center
	Parameters constraintParameters `json:"parameters,omitzero"`
}

// constraintParameters are the dimensions of a constraint, each for the type of
// that name.
type constraintParameters struct {
	Distance *float64 `json:"distance,omitempty"` // mm
	Angle    *float64 `json:"angle,omitempty"`    // radians
	Radius   *float64 `json:"radius,omitempty"`   // mm
	// Tolerance is how far from holding a constraint still counts as satisfied.
	Tolerance *float64 `json:"tolerance,omitempty"`
}

// constraintOf reads an entity that is a constraint.
func constraintOf(e model.Entity) (p constraintProperties, err error) {
	if err := core.DecodeStored(e.Properties, &p); err != nil || len(p.Entities) == 0 {
		return p, Refuse(InvalidConstraint, "constraint_id", e.ID, e.ID+" holds nothing that can be read", "remove it")
	}
	return p, nil
}

// value is the dimension that a type asks for.
func (p constraintProperties) value() (float64, error) {
	out := 0.0
	for _, d := range []struct {
		of    sketch.Type
		given *float64
	}{{sketch.Distance, p.Parameters.Distance}, {sketch.Angle, p.Parameters.Angle}, {sketch.Radius, p.Parameters.Radius}} {
		field := "parameters." + string(d.of)
		switch {
		case p.Type == d.of && d.given == nil:
			return 0, Refuse(InvalidConstraint, field, nil, field+" is missing", "give it in mm or radians")
		case p.Type != d.of && d.given != nil:
			return 0, Refuse(InvalidConstraint, field, *d.given, fmt.Sprintf("%s is not for a %s constraint", field, p.Type), "leave it out")
		case p.Type == d.of:
			out = *d.given
		}
	}
	return out, nil
}

func (p constraintProperties) tolerance() float64 { return given(p.Parameters.Tolerance, 1e-6) }

// drawing is a plane sketch of entities that constraints hold together.
type drawing struct {
	plane       Plane
	sketch      *sketch.Sketch
	curves      []model.Entity // in order
	constraints []model.Entity
	shapes      map[string]curve
	// lines are the coordinates that solved points lie on, in order, so that what
	// is equal but for rounding becomes equal.
	lines [2][]float64
}

// connected are the curves and constraints that hang together with some
// entities, in the order in which they were made.
func (c *call) connected(ids ...string) (curves, constraints []model.Entity, err error) {
	seen := map[string]bool{}
	for todo := slices.Clone(ids); len(todo) > 0; {
		id := todo[0]
		todo = todo[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		for _, name := range c.ws.Constraints(id) {
			if seen[name] {
				continue
			}
			seen[name] = true
			e, _ := c.ws.Entity(name)
			p, err := constraintOf(e)
			if err != nil {
				return nil, nil, err
			}
			for _, ref := range p.Entities {
				next, _ := split(ref)
				todo = append(todo, next)
			}
		}
	}
	for e := range c.ws.All() {
		switch {
		case !seen[e.ID]:
		case e.Type == model.Constraint:
			constraints = append(constraints, e)
		default:
			curves = append(curves, e)
		}
	}
	return curves, constraints, nil
}

// draw lays curves and constraints into a sketch. changed are curves that are
// not stored yet.
func draw(curves, constraints []model.Entity, changed map[string]curve) (*drawing, error) {
	d := &drawing{sketch: sketch.New(), curves: curves, constraints: constraints, shapes: map[string]curve{}}
	var all []curve
	for _, e := range curves {
		one, ok := changed[e.ID]
		if !ok {
			var err error
			if one, err = curveOf(e); err != nil {
				return nil, err
			}
		}
		d.shapes[e.ID] = one
		all = append(all, one)
	}
	var err error
	if d.plane, err = planeOf(all); err != nil {
		return nil, Refuse(InvalidConstraint, "entity_ids", nil, err.Error(), "constraints hold entities of one plane")
	}
	for _, e := range curves {
		if err := d.add(e.ID, d.shapes[e.ID]); err != nil {
			return nil, Refused(err, InvalidConstraint)
		}
	}
	for _, e := range constraints {
		p, err := constraintOf(e)
		if err != nil {
			return nil, err
		}
		value, err := p.value()
		if err == nil {
			err = d.sketch.Add(sketch.Constraint{ID: e.ID, Type: p.Type, Entities: p.Entities, Value: value})
		}
		if err != nil {
			return nil, Refused(err, InvalidConstraint)
		}
	}
	return d, nil
}

// add gives the sketch a curve by its points.
func (d *drawing) add(id string, c curve) error {
	point := func(name string, at [3]float64) error {
		p := d.plane.flat(at)
		return d.sketch.AddPoint(name, p.X, p.Y)
	}
	switch c.kind {
	case model.Point:
		return point(id, c.at)
	case model.Line:
		if err := point(id+".start", c.at); err != nil {
			return err
		}
		if err := point(id+".end", c.end); err != nil {
			return err
		}
		return d.sketch.AddLine(id, id+".start", id+".end")
	case model.Circle:
		if err := point(id+".center", c.at); err != nil {
			return err
		}
		return d.sketch.AddCircle(id, id+".center", c.radius)
	}
	for _, name := range []string{"center", "start", "end"} {
		at, _ := c.part(name)
		if err := point(id+"."+name, at); err != nil {
			return err
		}
	}
	if d.plane.turnsWith(c) {
		return d.sketch.AddArc(id, id+".center", id+".start", id+".end")
	}
	return d.sketch.AddArc(id, id+".center", id+".end", id+".start")
}

// solve moves what must move. What can't hold together is refused by name.
func (d *drawing) solve(ctx context.Context) (sketch.Report, error) {
	report, err := d.sketch.Solve(ctx)
	switch {
	case ctx.Err() != nil:
		return report, ended(ctx)
	case err != nil:
		return report, Refused(err, InvalidConstraint)
	case !report.Solved:
		return report, conflict(report.Conflicts, "")
	}
	return report, nil
}

// round cuts a solved number to 1e-10 mm: finer than any tolerance, and coarser
// than where the solver stops.
func round(v float64) float64 { return math.Round(v*1e10)/1e10 + 0 }

// snap is a coordinate as it was met before, or rounded.
func (d *drawing) snap(axis int, v float64) float64 {
	lines := d.lines[axis]
	i, _ := slices.BinarySearch(lines, v)
	for _, known := range lines[max(i-1, 0):min(i+1, len(lines))] {
		if math.Abs(v-known) < 1e-9 {
			return known
		}
	}
	v = round(v)
	d.lines[axis] = slices.Insert(lines, i, v)
	return v
}

// moved lists the curves that lie elsewhere than they did.
func (d *drawing) moved() ([]model.Entity, error) {
	var out []model.Entity
	for _, e := range d.curves {
		now, err := d.now(e.ID, d.shapes[e.ID])
		if err != nil {
			return nil, err
		}
		if err := now.check(); err != nil {
			return nil, err
		}
		stored, err := curveOf(e)
		if err != nil {
			return nil, err
		}
		if now.differs(stored) {
			e.Properties = now.properties()
			out = append(out, e)
		}
	}
	return out, nil
}

// now is where the sketch has a curve.
func (d *drawing) now(id string, c curve) (curve, error) {
	g, err := d.sketch.At(id)
	if err != nil {
		return c, err
	}
	at := func(i int) [3]float64 {
		p := d.plane.At(d.snap(0, g.Points[i][0]), d.snap(1, g.Points[i][1]))
		return [3]float64{round(p[0]), round(p[1]), round(p[2])}
	}
	old := c
	c.at = at(0)
	switch c.kind {
	case model.Line:
		c.end = at(1)
	case model.Circle:
		c.radius = round(g.Radius)
	case model.Arc:
		c.radius = round(g.Radius)
		from, to := 1, 2
		if !d.plane.turnsWith(c) {
			from, to = 2, 1
		}
		full := c.sweep() > 2*math.Pi-1e-9
		c.from, c.to = c.angle(at(from)), c.angle(at(to))
		if sweep := c.sweep(); full {
			c.to = c.from + 2*math.Pi
		} else {
			c.to = c.from + sweep
		}
	}
	if !c.differs(old) {
		return old, nil
	}
	return c, nil
}

// angle of a place about the centre, from the x axis.
func (c curve) angle(at [3]float64) float64 {
	p := c.plane().flat(at)
	return math.Atan2(p.Y, p.X) + 0
}

// differs says whether two states of a curve are apart by more than rounding.
func (c curve) differs(o curve) bool {
	for _, pair := range [][2][3]float64{{c.at, o.at}, {c.end, o.end}, {c.normal, o.normal}} {
		for i := range 3 {
			if math.Abs(pair[0][i]-pair[1][i]) > 1e-9 {
				return true
			}
		}
	}
	if c.kind == model.Arc {
		turn := func(a, b float64) float64 { return math.Abs(math.Remainder(a-b, 2*math.Pi)) * c.radius }
		if turn(c.from, o.from) > 1e-9 || turn(c.to, o.to) > 1e-9 {
			return true
		}
	}
	return math.Abs(c.radius-o.radius) > 1e-9
}
