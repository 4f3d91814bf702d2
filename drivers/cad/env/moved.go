package env

import (
	"math"
	"slices"

	"swarmdeck/engine/cad/model"
)

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
