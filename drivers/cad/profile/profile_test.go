package profile_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

type pt = profile.Point

func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	expect.True(t, math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want)), "%s is %v, want %v", what, got, want)
}

// segments are those of shapes, to be put together again.
func segments(t *testing.T, make func() (profile.Shape, error)) []profile.Segment {
	t.Helper()
	s := expect.Of(make())(t)
	var out []profile.Segment
	for _, l := range s.Loops {
		out = append(out, l...)
	}
	return out
}

func TestAreasAreExact(t *testing.T) {
	for name, c := range map[string]struct {
		make func() (profile.Shape, error)
		area float64
	}{
		"rectangle":         {func() (profile.Shape, error) { return profile.Rectangle(pt{1, 2}, 10, 4) }, 40},
		"triangle":          {func() (profile.Shape, error) { return profile.Polygon(pt{0, 0}, pt{0, 3}, pt{6, 0}) }, 9},
		"circle":            {func() (profile.Shape, error) { return profile.Circle(pt{300, -4}, 7) }, 49 * math.Pi},
		"rounded rectangle": {func() (profile.Shape, error) { return profile.RoundedRectangle(pt{0, 0}, 20, 10, 3) }, 200 - 9*(4-math.Pi)},
		"stadium":           {func() (profile.Shape, error) { return profile.RoundedRectangle(pt{0, 0}, 20, 10, 5) }, 100 + 25*math.Pi},
		"half disc": {func() (profile.Shape, error) {
			a := profile.Arc(pt{0, 0}, 3, 0, math.Pi)
			return profile.New(a, profile.Line(a.To, a.From))
		}, 4.5 * math.Pi},
	} {
		t.Run(name, func(t *testing.T) { within(t, "area", expect.Of(c.make())(t).Area(), c.area) })
	}
}

func TestSegmentsInAnyOrderBecomeLoopsAndHoles(t *testing.T) {
	all := segments(t, func() (profile.Shape, error) { return profile.RoundedRectangle(pt{0, 0}, 100, 80, 5) })
	all = append(all, segments(t, func() (profile.Shape, error) { return profile.Circle(pt{30, 40}, 20) })...)
	all = append(all, segments(t, func() (profile.Shape, error) { return profile.RoundedRectangle(pt{27, 32}, 6, 16, 3) })...) // an island
	all = append(all, segments(t, func() (profile.Shape, error) { return profile.Rectangle(pt{70, 10}, 20, 60) })...)
	want := 8000 - 25*(4-math.Pi) - 400*math.Pi + 60 + 9*math.Pi - 1200
	random := rand.New(rand.NewPCG(3, 5))
	for range 50 {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i := range all {
			if random.IntN(2) == 0 {
				all[i] = all[i].Reversed()
			}
		}
		s := expect.Of(profile.New(all...))(t)
		expect.Must(t, len(s.Loops) == 4, "%d loops, want 4", len(s.Loops))
		within(t, "area", s.Area(), want)
	}
}

func TestFacetsStayWithinTheirTolerance(t *testing.T) {
	s := expect.Of(profile.RoundedRectangle(pt{0, 0}, 14, 4, 2))(t)
	last, length := 0.0, 20+4*math.Pi
	for _, tolerance := range []float64{1, 0.1, 0.01, 0.001, 0.0001} {
		loops, sag, err := s.Facet(func(float64) float64 { return tolerance })
		expect.Must(t, err == nil && sag <= tolerance && sag > 0, "tolerance %v: sag %v, %v", tolerance, sag, err)
		area := 0.0
		for i, p := range loops[0] {
			q := loops[0][(i+1)%len(loops[0])]
			area += (p[0]*q[1] - p[1]*q[0]) / 2
		}
		missing := s.Area() - area
		expect.True(t, missing >= 0 && missing <= sag*length && (last == 0 || missing <= last),
			"tolerance %v: %v mm² missing, before %v", tolerance, missing, last)
		last = missing
	}
	square := expect.Of(profile.Rectangle(pt{0, 0}, 1, 1))(t)
	loops, sag, err := square.Facet(func(float64) float64 { return 5 })
	expect.True(t, err == nil && sag == 0 && len(loops[0]) == 4, "a square has %d corners, sag %v, %v", len(loops[0]), sag, err)
}

func TestBoundsHoldTheBulgeOfArcs(t *testing.T) {
	for name, c := range map[string]struct {
		sweep     float64
		low, high pt
	}{
		"counterclockwise": {math.Pi, pt{-2, 0}, pt{2, 2}},
		"clockwise":        {-math.Pi, pt{-2, -2}, pt{2, 0}},
		"full":             {2 * math.Pi, pt{-2, -2}, pt{2, 2}},
	} {
		low, high := profile.Loop{profile.Arc(pt{0, 0}, 2, 0, c.sweep)}.Bounds()
		for _, d := range []float64{low.X - c.low.X, low.Y - c.low.Y, high.X - c.high.X, high.Y - c.high.Y} {
			expect.True(t, math.Abs(d) <= 1e-9, "%s: %v to %v", name, low, high)
		}
	}
}

func TestWhatIsNoAreaIsRefused(t *testing.T) {
	square := segments(t, func() (profile.Shape, error) { return profile.Rectangle(pt{0, 0}, 10, 10) })
	circle := func(x, r float64) profile.Segment { return profile.Arc(pt{x, 5}, r, 0, 2*math.Pi) }
	arc := profile.Arc(pt{0, 0}, 5, 0, 1)
	for name, c := range map[string]struct {
		segments []profile.Segment
		want     string
	}{
		"nothing":        {nil, "0 segments"},
		"loose end":      {square[:3], "a loose end at"},
		"fork":           {append(square[:4:4], profile.Line(square[2].From, pt{20, 20})), "a fork at"},
		"bow tie":        {[]profile.Segment{profile.Line(pt{0, 0}, pt{1, 1}), profile.Line(pt{1, 1}, pt{1, 0}), profile.Line(pt{1, 0}, pt{0, 1}), profile.Line(pt{0, 1}, pt{0, 0})}, "a crossing at (0.5, 0.5)"},
		"crossing":       {append(square[:4:4], circle(10, 2)), "a crossing at"},
		"touching":       {append(square[:4:4], circle(2, 2)), "a crossing at"},
		"two circles":    {[]profile.Segment{circle(0, 3), circle(4, 3)}, "a crossing at"},
		"same circle":    {[]profile.Segment{circle(0, 3), circle(0, 3)}, "a crossing at"},
		"there and back": {[]profile.Segment{arc, arc.Reversed()}, "a crossing at"},
		"no length":      {[]profile.Segment{profile.Line(pt{1, 1}, pt{1, 1})}, "a segment of 0 mm"},
		"not a number":   {[]profile.Segment{profile.Line(pt{math.NaN(), 1}, pt{1, 1})}, "NaN"},
		"radius":         {[]profile.Segment{circle(0, -3)}, "radius"},
		"sweep":          {[]profile.Segment{profile.Arc(pt{0, 0}, 1, 0, 7)}, "sweep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := profile.New(c.segments...)
			expect.True(t, errors.Is(err, core.Kind(core.InvalidInput)) && strings.Contains(err.Error(), c.want), "got %v, want a refusal with %q", err, c.want)
		})
	}
}

// nested is a target of rings: each circle inside the one before.
func nested(n int) (rings []profile.Segment, area float64) {
	for i := range n {
		r := float64(n - i)
		rings = append(rings, profile.Arc(pt{X: 3}, r, 0, 2*math.Pi))
		area += math.Pi * r * r * (1 - 2*float64(i%2))
	}
	return rings, area
}

func TestRingsInRingsAreHolesByTurns(t *testing.T) {
	rings, area := nested(301)
	s := expect.Of(profile.New(rings...))(t)
	within(t, "area", s.Area(), area)
	for i, l := range s.Loops {
		expect.True(t, (l.Area() > 0) == (i%2 == 0), "ring %d has area %g", i, l.Area())
	}
}
