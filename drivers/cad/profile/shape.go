package profile

import (
	"fmt"
	"math"
	"slices"

	"swarmdeck/engine/core"
)

// Shape is an area of the plane: outer loops counterclockwise, holes clockwise.
type Shape struct {
	Loops []Loop `json:"loops"`
}

// Check puts a shape together again that was read.
func (s Shape) Check() (Shape, error) { return New(slices.Concat(s.Loops...)...) }

// Area of the shape, exact.
func (s Shape) Area() float64 {
	sum := 0.0
	for _, l := range s.Loops {
		sum += l.Area()
	}
	return sum
}

// New makes a shape of segments in any order and direction: it chains them to
// closed loops and turns those inside an odd number of others into holes. It
// refuses loose ends, forks and loops that cross.
func New(segments ...Segment) (Shape, error) {
	if len(segments) == 0 || len(segments) > MaxSegments {
		return Shape{}, core.Invalid("profile", fmt.Sprintf("%d segments", len(segments)), fmt.Sprintf("1 to %d", MaxSegments))
	}
	for i, s := range segments {
		if err := s.check(); err != nil {
			return Shape{}, fmt.Errorf("segment %d: %w", i+1, err)
		}
	}
	loops, err := chain(segments)
	if err != nil {
		return Shape{}, err
	}
	return orient(loops)
}

// Polygon joins points by lines and closes the loop.
func Polygon(points ...Point) (Shape, error) {
	segments := make([]Segment, 0, len(points))
	for i, p := range points {
		segments = append(segments, Line(p, points[(i+1)%len(points)]))
	}
	return New(segments...)
}

// ends finds segments by the rounded places of their ends.
type ends struct {
	at   map[[2]int64][]int
	from []Segment
}

func cell(p Point) [2]int64 {
	return [2]int64{int64(math.Floor(p.X / (2 * Joint))), int64(math.Floor(p.Y / (2 * Joint)))}
}

// near lists the unused segments, other than one, that have an end at a point.
func (e *ends) near(p Point, used []bool, but int) []int {
	var out []int
	c := cell(p)
	for dx := int64(-1); dx <= 1; dx++ {
		for dy := int64(-1); dy <= 1; dy++ {
			for _, i := range e.at[[2]int64{c[0] + dx, c[1] + dy}] {
				s := e.from[i]
				if i != but && !used[i] && min(distance(s.From, p), distance(s.To, p)) <= Joint && !slices.Contains(out, i) {
					out = append(out, i)
				}
			}
		}
	}
	return out
}

// chain joins segments end to end until each loop closes.
func chain(segments []Segment) ([]Loop, error) {
	e := &ends{at: map[[2]int64][]int{}, from: segments}
	for i, s := range segments {
		e.at[cell(s.From)] = append(e.at[cell(s.From)], i)
		e.at[cell(s.To)] = append(e.at[cell(s.To)], i)
	}
	used := make([]bool, len(segments))
	var loops []Loop
	for i, s := range segments {
		if used[i] {
			continue
		}
		used[i] = true
		loop := Loop{s}
		for begin, tip := s.From, s.To; distance(tip, begin) > Joint; {
			next := e.near(tip, used, i)
			switch {
			case len(next) == 0:
				return nil, core.Invalid("profile", fmt.Sprintf("a loose end at (%g, %g)", tip.X, tip.Y), "segments that close a loop")
			case len(next) > 1:
				return nil, core.Invalid("profile", fmt.Sprintf("a fork at (%g, %g)", tip.X, tip.Y), "two segments at each point")
			}
			n := segments[next[0]]
			if distance(n.From, tip) > distance(n.To, tip) {
				n = n.Reversed()
			}
			used[next[0]] = true
			n.From = tip // the small gap closes; an arc keeps its circle
			loop, tip = append(loop, n), n.To
		}
		loop[len(loop)-1].To = loop[0].From
		loops = append(loops, loop)
	}
	return loops, nil
}

// orient turns outer loops counterclockwise and holes clockwise.
func orient(loops []Loop) (Shape, error) {
	if err := uncrossed(loops); err != nil {
		return Shape{}, err
	}
	out, outlines := Shape{}, make([]outline, len(loops))
	for i, l := range loops {
		outlines[i] = l.outline()
	}
	for i, l := range loops {
		if math.Abs(l.Area()) < Joint*Joint {
			return Shape{}, core.Invalid("profile", "a loop without area", "loops around an area")
		}
		depth, inside := 0, l[0].middle()
		for j := range outlines {
			if i != j && outlines[j].holds(inside) {
				depth++
			}
		}
		if (l.Area() > 0) != (depth%2 == 0) {
			l = l.Reversed()
		}
		out.Loops = append(out.Loops, l)
	}
	return out, nil
}

// middle is the point halfway along a segment.
func (s Segment) middle() Point {
	if s.Radius > 0 {
		return onCircle(s.Center, s.Radius, s.start()+s.Sweep/2)
	}
	return Point{(s.From.X + s.To.X) / 2, (s.From.Y + s.To.Y) / 2}
}
