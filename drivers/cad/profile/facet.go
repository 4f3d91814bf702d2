package profile

import (
	"fmt"
	"math"

	"swarmdeck/engine/core"
)

// MaxChords bounds what one arc is cut into.
const MaxChords = 4096

// Chords is how many chords of equal length stay within a tolerance of an arc:
// a full circle takes ceil(π / acos(1 - tolerance/radius)), at least 8, and an
// arc its share.
func Chords(radius, sweep, tolerance float64) int {
	circle := 8.0
	if tolerance < radius {
		circle = max(circle, math.Pi/math.Acos(1-tolerance/radius))
	}
	turns := math.Abs(sweep) / (2 * math.Pi)
	n := math.Ceil(circle*turns - 1e-9)
	if turns > 1-1e-9 {
		n = 4 * math.Ceil(n/4) // the extremes on the axes stay
	}
	return max(int(n), 1)
}

// Facet lists the corners of each loop, its curves cut into chords within a
// tolerance for each arc by its radius, and how far the chords really stay from
// the curves: 0 when there are none.
func (s Shape) Facet(tolerance func(radius float64) float64) (loops [][][2]float64, sag float64, err error) {
	for _, l := range s.Loops {
		points, deepest, err := l.facet(tolerance)
		if err != nil {
			return nil, 0, err
		}
		loops, sag = append(loops, points), max(sag, deepest)
	}
	return loops, sag, nil
}

func (l Loop) facet(tolerance func(radius float64) float64) (points [][2]float64, sag float64, err error) {
	t := 0.0
	for _, s := range l {
		points = append(points, [2]float64{s.From.X, s.From.Y})
		if s.Radius == 0 {
			continue
		}
		t = tolerance(s.Radius)
		n := Chords(s.Radius, s.Sweep, t)
		if n > MaxChords {
			return nil, 0, core.Invalid("tolerance", t, fmt.Sprintf("one that cuts an arc of radius %g mm into at most %d chords", s.Radius, MaxChords))
		}
		if len(l) == 1 {
			n = max(n, 3)
		}
		sag = max(sag, s.Radius*(1-math.Cos(s.Sweep/float64(2*n))))
		start := s.start()
		for i := 1; i < n; i++ {
			p := onCircle(s.Center, s.Radius, start+s.Sweep*float64(i)/float64(n))
			points = append(points, [2]float64{p.X, p.Y})
		}
	}
	if len(points) < 3 {
		return nil, 0, core.Invalid("tolerance", t, "one that leaves a loop of arcs 3 corners or more")
	}
	return points, sag, nil
}

// outline is a loop made ready to be asked what lies inside.
type outline struct {
	low, high Point
	pieces    []piece
}

// piece is a part of a loop that does not turn back in y.
type piece struct {
	Segment

	left bool // of an arc: it is the left half of its circle
}

func (l Loop) outline() outline {
	var o outline
	o.low, o.high = l.Bounds()
	for _, s := range l {
		for _, m := range s.monotone() {
			o.pieces = append(o.pieces, piece{m, m.Radius > 0 && m.middle().X < m.Center.X})
		}
	}
	return o
}

// holds says whether a point lies inside, by how often a ray to the right meets
// the loop; arcs count exactly.
func (o *outline) holds(p Point) bool {
	if p.X < o.low.X || p.X > o.high.X || p.Y < o.low.Y || p.Y > o.high.Y {
		return false
	}
	inside := false
	for i := range o.pieces {
		s := &o.pieces[i]
		a, b := s.From, s.To
		if (a.Y > p.Y) == (b.Y > p.Y) {
			continue
		}
		x := a.X + (p.Y-a.Y)/(b.Y-a.Y)*(b.X-a.X)
		if s.Radius > 0 {
			dy := p.Y - s.Center.Y
			dx := math.Sqrt(math.Max(s.Radius*s.Radius-dy*dy, 0))
			if s.left {
				dx = -dx
			}
			x = s.Center.X + dx
		}
		if x > p.X {
			inside = !inside
		}
	}
	return inside
}

// monotone cuts an arc where it turns back in y, at the top and the bottom.
func (s Segment) monotone() []Segment {
	if s.Radius == 0 {
		return []Segment{s}
	}
	var out []Segment
	at, end, direction := s.start(), s.start()+s.Sweep, math.Copysign(1, s.Sweep)
	from := s.From
	for (end-at)*direction > 1e-12 {
		k := math.Floor((at/math.Pi-0.5)*direction+1e-9) + 1
		next := (k*direction + 0.5) * math.Pi
		if (next-end)*direction >= -1e-12 {
			next = end
		}
		to := onCircle(s.Center, s.Radius, next)
		if next == end {
			to = s.To
		}
		out = append(out, Segment{From: from, To: to, Radius: s.Radius, Center: s.Center, Sweep: next - at})
		at, from = next, to
	}
	return out
}
