package sketch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/cad/sketch"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// draw makes a sketch of lines such as "point a 1 2", "line l a b",
// "circle c a 5", "arc k a b c".
func draw(t testing.TB, text string) *sketch.Sketch {
	t.Helper()
	s := sketch.New()
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var err error
		var x, y float64
		switch f[0] {
		case "point":
			fmt.Sscan(f[2]+" "+f[3], &x, &y)
			err = s.AddPoint(f[1], x, y)
		case "line":
			err = s.AddLine(f[1], f[2], f[3])
		case "circle":
			fmt.Sscan(f[3], &x)
			err = s.AddCircle(f[1], f[2], x)
		case "arc":
			err = s.AddArc(f[1], f[2], f[3], f[4])
		}
		expect.No(t, err)
	}
	return s
}

// demand adds constraints of lines such as "distance ab 5"; each is named by
// its line, spaces as dashes.
func demand(t testing.TB, s *sketch.Sketch, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		c := sketch.Constraint{ID: strings.Join(f, "-"), Type: sketch.Type(f[0])}
		for _, word := range f[1:] {
			var v float64
			if n, _ := fmt.Sscan(word, &v); n == 1 {
				c.Value = v
			} else {
				c.Entities = append(c.Entities, word)
			}
		}
		expect.No(t, s.Add(c))
	}
}

func solve(t testing.TB, s *sketch.Sketch) sketch.Report {
	t.Helper()
	return expect.Of(s.Solve(context.Background()))(t)
}

const quad = `
	point a 0.3 -0.2
	point b 9 1
	point c 11 6
	point d -1 4
	line ab a b
	line bc b c
	line cd c d
	line da d a
`

const rectangle = `
	horizontal ab
	vertical bc
	horizontal cd
	vertical da
	distance ab 10
	distance bc 5
`

func TestARectangleLosesItsFreedomStepByStep(t *testing.T) {
	s := draw(t, quad)
	expect.Is(t, solve(t, s).DegreesOfFreedom, 8, "four free points have degrees of freedom")
	demand(t, s, rectangle)
	r := solve(t, s)
	expect.True(t, r.Solved && r.DegreesOfFreedom == 2 && len(r.Redundant) == 0, "a rectangle that may move: %+v", r)
	demand(t, s, "fixed a")
	r = solve(t, s)
	expect.True(t, r.Solved && r.DegreesOfFreedom == 0, "a fixed rectangle: %+v", r)
	a, _ := s.At("a")
	c, _ := s.At("c")
	x, y := c.Points[0][0]-a.Points[0][0], c.Points[0][1]-a.Points[0][1]
	expect.True(t, math.Abs(x-10) <= 1e-8 && math.Abs(y-5) <= 1e-8, "its corners are %v, %v apart", x, y)
}

func TestRedundantConstraintsAreNamed(t *testing.T) {
	s := draw(t, quad)
	demand(t, s, rectangle+`
		parallel ab cd
		distance cd 10
		perpendicular ab bc
	`)
	r := solve(t, s)
	want := []string{"parallel-ab-cd", "distance-cd-10", "perpendicular-ab-bc"}
	expect.True(t, r.Solved && slices.Equal(r.Redundant, want) && r.DegreesOfFreedom == 2, "got %+v, want %v redundant", r, want)
}

func TestConflictsNameThoseThatDisagreeAndChangeNothing(t *testing.T) {
	for name, c := range map[string]struct{ demands, extra, want string }{
		"lengths of a rectangle": {rectangle, "distance cd 12", "distance-ab-10 distance-cd-12 horizontal-cd vertical-bc vertical-da"},
		"a length twice":         {"distance ab 10\nvertical bc", "distance a b 11", "distance-a-b-11 distance-ab-10"},
		"a right angle":          {"parallel ab cd", "perpendicular ab cd", "parallel-ab-cd perpendicular-ab-cd"},
		"a triangle":             {"distance ab 10\ndistance bc 3", "distance a c 15", "distance-a-c-15 distance-ab-10 distance-bc-3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := draw(t, quad)
			demand(t, s, c.demands)
			r := solve(t, s)
			expect.Must(t, r.Solved, "without the extra one: %+v", r)
			before, _ := s.At("c")
			f := strings.Fields(c.extra)
			one := sketch.Constraint{ID: strings.Join(f, "-"), Type: sketch.Type(f[0]), Entities: f[1:]}
			if f[0] == "distance" {
				fmt.Sscan(f[len(f)-1], &one.Value)
				one.Entities = f[1 : len(f)-1]
			}
			r, err := s.Apply(t.Context(), one)
			slices.Sort(r.Conflicts)
			expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && strings.Join(r.Conflicts, " ") == c.want,
				"got %v and %v, want %v", err, r.Conflicts, c.want)
			after, _ := s.At("c")
			expect.True(t, after.Points[0] == before.Points[0], "a refused constraint moved c from %v to %v", before, after)
			r = solve(t, s)
			expect.True(t, r.Solved, "afterwards: %+v", r)
		})
	}
}

func TestEveryTypeOfConstraintHoldsAfterSolving(t *testing.T) {
	const round = quad + `
		point m 5 10
		point n 14 9
		point s 6 13
		point e 2 11
		circle k m 2
		circle o n 3
		arc r m s e
	`
	for _, c := range []struct {
		demand string
		takes  int
	}{
		{"fixed a", 2},
		{"fixed ab", 4},
		{"fixed k", 3},
		{"fixed r", 5},
		{"coincident b c", 2},
		{"coincident c ab", 1},
		{"coincident ab c", 1},
		{"coincident c k", 1},
		{"coincident o d", 1},
		{"concentric k o", 2},
		{"horizontal ab", 1},
		{"horizontal a c", 1},
		{"vertical bc", 1},
		{"vertical b d", 1},
		{"parallel ab cd", 1},
		{"parallel ab bc", 1},
		{"perpendicular ab cd", 1},
		{"angle ab bc 1", 1},
		{"angle ab cd 2", 1},
		{"tangent ab k", 1},
		{"tangent o cd", 1},
		{"tangent k o", 1},
		{"tangent r o", 1},
		{"tangent r bc", 1},
		{"distance ab 7", 1},
		{"distance a c 20", 1},
		{"distance a c 0", 2},
		{"distance m ab 3", 1},
		{"distance ab cd 4", 1},
		{"radius k 4", 1},
		{"radius r 5", 1},
		{"equal ab bc", 1},
		{"equal k o", 1},
		{"equal k r", 1},
		{"midpoint m bc", 2},
		{"symmetric a c bc", 2},
		{"symmetric b d m-n", 2},
	} {
		t.Run(c.demand, func(t *testing.T) {
			s := draw(t, round+"line m-n m n")
			free := solve(t, s).DegreesOfFreedom
			demand(t, s, c.demand)
			r := solve(t, s)
			expect.True(t, r.Solved && len(r.Redundant) == 0 && free-r.DegreesOfFreedom == c.takes,
				"took %d degrees of freedom, want %d: %+v", free-r.DegreesOfFreedom, c.takes, r)
			off, err := s.Error(s.Constraints()[0].ID)
			expect.True(t, err == nil && off <= 1e-8, "it is off by %v, %v", off, err)
		})
	}
}

func TestArcsStayArcsAndMeetLinesSmoothly(t *testing.T) {
	s := draw(t, `
		point o 0 0
		point p 20 0
		point q 3.2 3.1
		point w 0.1 4
		line l p q
		arc k o q w
	`)
	demand(t, s, "fixed o\nradius k 5\ntangent l k\nhorizontal o p\ndistance o p 13\nvertical o w")
	r := solve(t, s)
	expect.Must(t, r.Solved && r.DegreesOfFreedom == 0, "%+v", r)
	g, _ := s.At("k")
	for _, p := range g.Points[1:] {
		d := math.Hypot(p[0], p[1])
		expect.True(t, math.Abs(d-5) <= 1e-8, "an end lies at a distance of %v", d)
	}
	if l, _ := s.At("l"); math.Abs(math.Hypot(l.Points[0][0]-l.Points[1][0], l.Points[0][1]-l.Points[1][1])-12) > 1e-7 {
		t.Errorf("the tangent from 13 to a circle of 5 is %v, want 12 long", l.Points)
	}
}

func TestALineThatTurnsKeepsItsLength(t *testing.T) {
	for _, far := range []int{10, 1000, 90000} { // the size of the sketch
		for _, c := range []struct{ demand, end string }{
			{"perpendicular base l", "10 5"},
			{"parallel base l", "4.3589 14"},
			{"angle base l 1.0472", "10 5"},
			{"angle base l 1.5708", "10 5"},
			{"angle base l 3.1", "10 5.1"},
			{"angle base l 0", "-10 5.1"},
		} {
			t.Run(fmt.Sprint(far, " ", c.demand), func(t *testing.T) {
				s := draw(t, fmt.Sprintf("point p 0 0\npoint q %d 0\nline base p q\npoint a 0 5\npoint b %s\nline l a b", far, c.end))
				demand(t, s, "fixed base\n"+c.demand)
				r := solve(t, s)
				expect.Must(t, r.Solved && r.DegreesOfFreedom == 3, "%+v", r)
				l, _ := s.At("l")
				got := math.Hypot(l.Points[1][0]-l.Points[0][0], l.Points[1][1]-l.Points[0][1])
				expect.True(t, got >= 9.9 && got <= 12, "10 became %v", got)
			})
		}
	}
}

func TestPointsWithoutADistanceAreOne(t *testing.T) {
	for _, size := range []string{"0.5", "1", "20", "90000"} {
		s := draw(t, "point a 0 0\npoint b "+size+" 0\npoint c "+size+" 0.1")
		demand(t, s, "distance b c 0")
		r := solve(t, s)
		expect.True(t, r.Solved && r.DegreesOfFreedom == 4 && len(r.Redundant) == 0, "size %s: %+v", size, r)
		b, _ := s.At("b")
		c, _ := s.At("c")
		expect.True(t, apart(b, c) <= 1e-8, "size %s: %v and %v", size, b, c)
	}
}

func apart(a, b sketch.Geometry) float64 {
	return math.Hypot(a.Points[0][0]-b.Points[0][0], a.Points[0][1]-b.Points[0][1])
}

func TestWhatLiesInOnePlaceCanBeSetApart(t *testing.T) {
	for _, c := range []struct {
		demand string
		free   int
		apart  float64 // at least
	}{
		{"distance a b 10", 7, 10},
		{"distance b a 0.001", 7, 0.001},
		{"coincident a k", 7, 3},
		{"tangent k m", 7, 0.5},
	} {
		t.Run(c.demand, func(t *testing.T) {
			s := draw(t, "point a 1 1\npoint b 1 1\npoint far 20 0\ncircle k b 5\ncircle m a 3")
			demand(t, s, c.demand)
			r := solve(t, s)
			expect.Must(t, r.Solved && r.DegreesOfFreedom == c.free, "%+v", r)
			a, _ := s.At("a")
			b, _ := s.At("b")
			k, _ := s.At("k")
			m, _ := s.At("m")
			got := apart(a, b)
			expect.True(t, got >= c.apart-1e-8 && k.Radius >= 3 && m.Radius >= 2, "the centres are %v apart, the radii are %v and %v", got, k.Radius, m.Radius)
		})
	}
}

func TestAnArcMeetsALineSmoothlyHoweverTheyWereJoined(t *testing.T) {
	for _, joined := range []string{"coincident q w", "distance q w 0"} {
		s := draw(t, "point o 0 0\npoint w 5 0\npoint v 0 5\narc k o w v\npoint p 9 -7\npoint q 5.2 0.1\nline l p q")
		demand(t, s, "fixed k\n"+joined+"\ntangent l k")
		r := solve(t, s)
		expect.True(t, r.Solved && r.DegreesOfFreedom == 1 && len(r.Redundant) == 0, "%s: %+v", joined, r)
		l, _ := s.At("l")
		expect.True(t, math.Abs(l.Points[0][0]-5) <= 1e-7, "%s: %v", joined, l)
	}
}

func TestSolvingFromNearbyStartsReachesTheSameShape(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 9))
	for range 100 {
		s := draw(t, quad)
		for id, at := range map[string][2]float64{"a": {0, 0}, "b": {10, 0}, "c": {10, 5}, "d": {0, 5}} {
			expect.No(t, s.Move(id, at[0]+3*random.Float64()-1.5, at[1]+3*random.Float64()-1.5))
		}
		demand(t, s, rectangle)
		r := solve(t, s)
		expect.Must(t, r.Solved && r.DegreesOfFreedom == 2, "%+v", r)
		a, _ := s.At("a")
		c, _ := s.At("c")
		d := math.Hypot(c.Points[0][0]-a.Points[0][0], c.Points[0][1]-a.Points[0][1])
		expect.Must(t, math.Abs(d-math.Sqrt(125)) <= 1e-7, "the diagonal is %v", d)
	}
}

func TestApplyTellsWhatItTook(t *testing.T) {
	s := draw(t, quad)
	r, err := s.Apply(t.Context(), sketch.Constraint{ID: "1", Type: sketch.Coincident, Entities: []string{"a", "c"}})
	expect.True(t, err == nil && r.Removed == 2 && r.DegreesOfFreedom == 6, "%+v, %v", r, err)
	expect.No(t, s.Remove("1"))
	r = solve(t, s)
	expect.True(t, r.DegreesOfFreedom == 8, "removed: %+v", r)
}

func TestBadInputIsRefused(t *testing.T) {
	s := draw(t, quad+"circle k a 2")
	demand(t, s, "horizontal ab")
	add := func(typ sketch.Type, value float64, entities ...string) func() error {
		return func() error {
			return s.Add(sketch.Constraint{ID: "new", Type: typ, Entities: entities, Value: value})
		}
	}
	for name, c := range map[string]struct {
		call func() error
		code core.Code
	}{
		"name twice":    {func() error { return s.AddPoint("a", 0, 0) }, core.InvalidInput},
		"no name":       {func() error { return s.AddPoint("", 0, 0) }, core.InvalidInput},
		"not a number":  {func() error { return s.AddPoint("z", math.NaN(), 0) }, core.InvalidInput},
		"huge":          {func() error { return s.Move("a", 1e300, 0) }, core.InvalidInput},
		"one point":     {func() error { return s.AddLine("z", "a", "a") }, core.InvalidInput},
		"no point":      {func() error { return s.AddLine("z", "a", "ab") }, core.InvalidInput},
		"unknown point": {func() error { return s.AddLine("z", "a", "zz") }, core.NotFound},
		"radius":        {func() error { return s.AddCircle("z", "a", 0) }, core.InvalidInput},
		"type":          {add("glued", 0, "a", "b"), core.InvalidInput},
		"entities":      {add(sketch.Parallel, 0, "a", "b"), core.InvalidInput},
		"too few":       {add(sketch.Parallel, 0, "ab"), core.InvalidInput},
		"same twice":    {add(sketch.Parallel, 0, "ab", "ab"), core.InvalidInput},
		"unknown":       {add(sketch.Parallel, 0, "ab", "xy"), core.NotFound},
		"negative":      {add(sketch.Distance, -1, "ab"), core.InvalidInput},
		"angle":         {add(sketch.Angle, 4, "ab", "bc"), core.InvalidInput},
		"no radius":     {add(sketch.Radius, 0, "k"), core.InvalidInput},
		"no length":     {add(sketch.Distance, 0, "ab"), core.InvalidInput},
		"value":         {add(sketch.Parallel, 3, "ab", "cd"), core.InvalidInput},
		"constraint id": {func() error { return s.Add(s.Constraints()[0]) }, core.InvalidInput},
		"remove":        {func() error { return s.Remove("nothing") }, core.NotFound},
	} {
		expect.Err(t, c.call(), core.Kind(c.code), name, c.code)
	}
	expect.True(t, len(s.Constraints()) == 1, "refusals left %v", s.Constraints())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Err(t, expect.Fault(s.Solve(ended)), context.Canceled, "an ended context")
}

// ring is a regular loop of n segments whose sides are all equal, with one
// length, one angle and one fixed corner.
func ring(t testing.TB, n int) *sketch.Sketch {
	s := sketch.New()
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		off := 1 + 0.01*math.Sin(float64(7*i))
		expect.No(t, s.AddPoint(fmt.Sprint("p", i), 100*cos*off, 100*sin*off))
	}
	for i := range n {
		expect.No(t, s.AddLine(fmt.Sprint("l", i), fmt.Sprint("p", i), fmt.Sprint("p", (i+1)%n)))
	}
	turn := fmt.Sprint(2 * math.Pi / float64(n))
	demand(t, s, fmt.Sprintf("fixed p0\ndistance l0 %v", 200*math.Sin(math.Pi/float64(n))))
	for i := 1; i < n; i++ {
		if i < n-1 {
			demand(t, s, fmt.Sprintf("equal l%d l%d", i-1, i))
		}
		if i < n-1 {
			demand(t, s, fmt.Sprintf("angle l%d l%d %s", i-1, i, turn))
		}
	}
	return s
}

func TestALoopOf60SegmentsCloses(t *testing.T) {
	s := ring(t, 60)
	r := solve(t, s)
	expect.True(t, r.Solved && r.DegreesOfFreedom == 1 && len(r.Redundant) == 0, "%+v", r)
}
