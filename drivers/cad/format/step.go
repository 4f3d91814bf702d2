package format

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"swarmdeck/engine/cad/mesh"
)

// WriteSTEP writes parts as STEP AP214 (ISO 10303-214): one product for each,
// of solids whose flat faces are whole and share their edges. A solid with
// voids keeps them. It ends between solids when ctx does.
func WriteSTEP(ctx context.Context, w io.Writer, parts []Part) error {
	if err := check(parts); err != nil {
		return err
	}
	// Faces are found before anything is written, so that a part which has
	// none leaves no half file.
	solids := make([][]stepSolid, len(parts))
	for i, p := range parts {
		var err error
		if solids[i], err = stepSolids(ctx, p.Mesh); err != nil {
			return fmt.Errorf("part %d, %s: %w", i+1, p.Name, err)
		}
	}
	s := &stepWriter{out: bufio.NewWriter(w)}
	s.header(coarsest(parts))
	application := s.add("APPLICATION_CONTEXT('automotive design')")
	s.add("APPLICATION_PROTOCOL_DEFINITION('international standard','automotive_design',2000,#%d)", application)
	s.productContext = s.add("PRODUCT_CONTEXT('',#%d,'mechanical')", application)
	s.definitionContext = s.add("PRODUCT_DEFINITION_CONTEXT('part definition',#%d,'design')", application)
	s.units(uncertainty(parts))
	for i, p := range parts {
		if err := s.part(ctx, p, solids[i]); err != nil {
			return err
		}
	}
	s.out.WriteString("ENDSEC;\nEND-ISO-10303-21;\n")
	return s.out.Flush()
}

// stepSolid is a body with its faces: the outer shell first, then the voids.
type stepSolid struct{ shells [][]face }

// stepSolids finds the faces of every body and checks that each edge is used
// exactly once in each direction.
func stepSolids(ctx context.Context, m *mesh.Mesh) ([]stepSolid, error) {
	owner := m.Owners()
	found, err := bodies(ctx, m, owner)
	if err != nil {
		return nil, err
	}
	var out []stepSolid
	flat := &groups{newFlats(m), owner}
	for _, b := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var one stepSolid
		for _, shell := range append([][]int{b.outer}, b.voids...) {
			all, err := faces(flat, shell)
			if err != nil {
				return nil, err
			}
			if err := sharedTwice(m, all); err != nil {
				return nil, err
			}
			one.shells = append(one.shells, all)
		}
		out = append(out, one)
	}
	return out, nil
}

func sharedTwice(m *mesh.Mesh, all []face) error {
	used := map[mesh.Edge]int{}
	for _, f := range all {
		for _, l := range f.loops {
			if len(l) < 3 {
				return noFaces("a face has a loop of %d corners", len(l))
			}
			for i, v := range l {
				used[mesh.Edge{From: v, To: l[(i+1)%len(l)]}]++
			}
		}
	}
	for e, n := range used {
		if m.Vertices[e.From] == m.Vertices[e.To] {
			return noFaces("the edge %d-%d has no length", e.From, e.To)
		}
		if n != 1 || used[e.Back()] != 1 {
			return noFaces("the edge %d-%d is used %d times one way and %d the other", e.From, e.To, n, used[e.Back()])
		}
	}
	return nil
}

// stepWriter numbers entities as they are written.
type stepWriter struct {
	out                               *bufio.Writer
	last                              int
	productContext, definitionContext int
	geometryContext                   int
}

func (s *stepWriter) add(format string, args ...any) int {
	s.last++
	fmt.Fprintf(s.out, "#%d=", s.last)
	fmt.Fprintf(s.out, format, args...)
	s.out.WriteString(";\n")
	return s.last
}

func (s *stepWriter) header(tolerance float64) {
	fmt.Fprintf(s.out, `ISO-10303-21;
HEADER;
FILE_DESCRIPTION(('faceted, chord tolerance %s mm'),'2;1');
FILE_NAME('','',(''),(''),'','swarmdeck','');
FILE_SCHEMA(('AUTOMOTIVE_DESIGN { 1 0 10303 214 1 1 1 1 }'));
ENDSEC;
DATA;
`, decimal(tolerance))
}

// uncertainty is how far points may lie from the planes and lines through them,
// in mm: twice the step of 1e-5 mm that vertices are rounded to, or of their
// single precision, which far from the origin is the coarser of the two.
func uncertainty(parts []Part) float64 {
	out := 2e-5
	for _, p := range parts {
		box := p.Mesh.Bounds()
		for i := range 3 {
			out = max(out, math.Ldexp(max(-box.Min[i], box.Max[i]), -22))
		}
	}
	return out
}

func (s *stepWriter) units(uncertainty float64) {
	mm := s.add("(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.))")
	radian := s.add("(NAMED_UNIT(*)PLANE_ANGLE_UNIT()SI_UNIT($,.RADIAN.))")
	steradian := s.add("(NAMED_UNIT(*)SI_UNIT($,.STERADIAN.)SOLID_ANGLE_UNIT())")
	accuracy := s.add("UNCERTAINTY_MEASURE_WITH_UNIT(LENGTH_MEASURE(%s),#%d,'distance_accuracy_value','confusion accuracy')", stepReal(uncertainty), mm)
	s.geometryContext = s.add("(GEOMETRIC_REPRESENTATION_CONTEXT(3)GLOBAL_UNCERTAINTY_ASSIGNED_CONTEXT((#%d))GLOBAL_UNIT_ASSIGNED_CONTEXT((#%d,#%d,#%d))REPRESENTATION_CONTEXT('',''))",
		accuracy, mm, radian, steradian)
}

func (s *stepWriter) part(ctx context.Context, p Part, solids []stepSolid) error {
	name := stepString(p.Name)
	product := s.add("PRODUCT(%s,%s,'',(#%d))", name, name, s.productContext)
	formation := s.add("PRODUCT_DEFINITION_FORMATION('','',#%d)", product)
	definition := s.add("PRODUCT_DEFINITION('design','',#%d,#%d)", formation, s.definitionContext)
	shape := s.add("PRODUCT_DEFINITION_SHAPE('','',#%d)", definition)
	s.add("PRODUCT_RELATED_PRODUCT_CATEGORY('part',$,(#%d))", product)
	items := []int{s.placement([3]float64{}, [3]float64{0, 0, 1}, [3]float64{1, 0, 0})}
	g := &stepGeometry{stepWriter: s, mesh: p.Mesh, points: map[uint32]int{}, vertices: map[uint32]int{}, edges: map[mesh.Edge]int{}}
	for _, solid := range solids {
		if err := ctx.Err(); err != nil {
			return err
		}
		items = append(items, g.solid(name, solid))
	}
	representation := s.add("ADVANCED_BREP_SHAPE_REPRESENTATION(%s,(%s),#%d)", name, references(items), s.geometryContext)
	s.add("SHAPE_DEFINITION_REPRESENTATION(#%d,#%d)", shape, representation)
	return nil
}

func (s *stepWriter) placement(at, axis, along [3]float64) int {
	return s.add("AXIS2_PLACEMENT_3D('',#%d,#%d,#%d)",
		s.add("CARTESIAN_POINT('',(%s))", stepTriple(at)),
		s.add("DIRECTION('',(%s))", stepTriple(axis)),
		s.add("DIRECTION('',(%s))", stepTriple(along)))
}

// stepReal is a number as the format demands it: with a point, and E for the
// exponent.
func stepReal(v float64) string {
	text := strings.ToUpper(strconv.FormatFloat(v+0, 'g', -1, 64))
	mantissa, exponent, scientific := strings.Cut(text, "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += "."
	}
	if scientific {
		return mantissa + "E" + exponent
	}
	return mantissa
}

func stepTriple(v [3]float64) string {
	return stepReal(v[0]) + "," + stepReal(v[1]) + "," + stepReal(v[2])
}

// stepString quotes a text: what is not plain ASCII goes as hexadecimal (ISO
// 10303-21, 6.4.3).
func stepString(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\'' || r == '\\':
			out.WriteRune(r)
			out.WriteRune(r)
		case r >= 0x20 && r < 0x7f:
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\X4\%08X\X0\`, r)
		default:
			fmt.Fprintf(&out, `\X2\%04X\X0\`, r)
		}
	}
	return "'" + out.String() + "'"
}

func references(ids []int) string {
	var out strings.Builder
	for i, id := range ids {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "#%d", id)
	}
	return out.String()
}

// square is some direction at a right angle to another.
func square(n [3]float64) [3]float64 {
	least := 0
	for i := range n {
		if math.Abs(n[i]) < math.Abs(n[least]) {
			least = i
		}
	}
	var e [3]float64
	e[least] = 1
	return mesh.Unit(mesh.Cross(n, e))
}
