package conformance_test

import (
	"math"
	"strings"

	"swarmdeck/expect"
)

// at finds a member by its path, such as topology.is_closed.
func (o obj) at(path string) any {
	var v any = map[string]any(o)
	for name := range strings.SplitSeq(path, ".") {
		inner, _ := v.(map[string]any)
		v = inner[name]
	}
	return v
}

func (o obj) number(path string) float64 {
	if v, ok := o.at(path).(float64); ok {
		return v
	}
	return math.NaN()
}

func (o obj) text(path string) string {
	s, _ := o.at(path).(string)
	return s
}

func (o obj) list(path string) []any {
	l, _ := o.at(path).([]any)
	return l
}

// objects are the members of a list that are objects.
func (o obj) objects(path string) []obj {
	var out []obj
	for _, v := range o.list(path) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// vector is a list of numbers.
func (o obj) vector(path string) []float64 {
	var out []float64
	for _, v := range o.list(path) {
		n, ok := v.(float64)
		if !ok {
			n = math.NaN()
		}
		out = append(out, n)
	}
	return out
}

// near compares within an absolute distance.
func (r *rig) near(what string, got, want, within float64) {
	r.Helper()
	expect.True(r, math.Abs(got-want) <= within, "%s is %.12g, want %.12g within %g", what, got, want, within)
}

func (r *rig) nearVector(what string, got []float64, want [3]float64, within float64) {
	r.Helper()
	if len(got) != 3 {
		r.Errorf("%s is %v, want three numbers", what, got)
		return
	}
	for i, w := range want {
		if !math.IsNaN(w) {
			r.near(what, got[i], w, within)
		}
	}
}

// body is what a solid truly is. A centre or corner that is NaN is not
// compared.
type body struct {
	volume, area float64
	center       [3]float64
	low, high    [3]float64
	// flat solids have no curves: every kernel is exact.
	flat bool
	// faces, edges and corners of a flat solid; 0 are not compared.
	faces, edges, corners float64
}

// extent is the greatest length of the solid.
func (b body) extent() float64 {
	e := 0.0
	for i := range 3 {
		e = max(e, b.high[i]-b.low[i])
	}
	return e
}

var (
	nan     = math.NaN()
	unknown = [3]float64{nan, nan, nan}
)

// solid makes a solid and compares it with what it truly is.
func (r *rig) solid(method string, params obj, want body) string {
	r.Helper()
	o := r.do(method, params)
	r.compare(method, o, want)
	return o.text("entity_id")
}

// compare holds a solid against what it truly is, within what the kernel
// declares: a part of the volume, and of this solid that no facet is farther
// from the true surface than its tolerance.
func (r *rig) compare(what string, o obj, want body) {
	r.Helper()
	tolerance := o.number("tolerance")
	switch {
	case math.IsNaN(tolerance) || tolerance < 0:
		r.Errorf("%s: tolerance %v", what, o["tolerance"])
	case (r.about.Exact || want.flat) && tolerance != 0:
		r.Errorf("%s: tolerance %g, want 0", what, tolerance)
	case !r.about.Exact && !want.flat && !(tolerance > 0 && tolerance <= max(2*r.about.Tolerance, 1e-4*want.extent())):
		r.Errorf("%s: tolerance %g, the kernel declares %g", what, tolerance, r.about.Tolerance)
	}
	relative := r.relative
	if want.flat {
		relative = 1e-6
	}
	v, a := o.number("volume"), o.number("surface_area")
	r.near(what+": volume", v, want.volume, relative*want.volume)
	r.near(what+": volume, by the tolerance of the solid", v, want.volume, want.area*tolerance+1e-6*want.volume)
	r.near(what+": area", a, want.area, 2*relative*want.area)
	slack := 2*tolerance + 1e-5
	r.nearVector(what+": centre", o.vector("center_of_mass"), want.center, slack)
	r.nearVector(what+": lowest corner", o.vector("bounding_box.min"), want.low, slack)
	r.nearVector(what+": highest corner", o.vector("bounding_box.max"), want.high, slack)
	expect.True(r, o.at("topology.is_closed") == true && o.at("topology.is_manifold") == true, "%s: topology %v, want closed and manifold", what, o["topology"])
	for name, count := range map[string]float64{"face_count": want.faces, "edge_count": want.edges, "vertex_count": want.corners} {
		got := o.number("topology." + name)
		expect.True(r, got >= 1 && (count <= 0 || got == count), "%s: %s %g, want %g", what, name, got, count)
	}
}
