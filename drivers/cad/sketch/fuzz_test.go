package sketch_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"swarmdeck/drivers/cad/sketch"
	"swarmdeck/expect"
)

// FuzzSolve puts arbitrary constraints on a sketch: solved means that each
// holds, not solved that nothing moved and a conflict is named.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3})
	f.Add([]byte{2, 4, 5, 0, 9, 9, 5, 6, 0, 40, 10, 0, 8, 0, 3})
	f.Add([]byte{8, 4, 8, 0, 0, 8, 8, 9, 0, 0, 10, 8, 0, 0, 7, 6, 4, 5, 0, 0})
	entities := []string{"a", "b", "c", "d", "ab", "bc", "cd", "da", "k", "r"}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := draw(t, quad+"point m 5 10\npoint s 6 13\npoint e 2 11\ncircle k m 2\narc r m s e")
		for i := 0; i+5 <= len(data) && i < 60; i += 5 {
			c := sketch.Constraint{ID: fmt.Sprint(i), Type: sketch.Types()[int(data[i])%len(sketch.Types())]}
			for j := range 3 {
				if name := int(data[i+1+j]) % (len(entities) + 1); name < len(entities) {
					c.Entities = append(c.Entities, entities[name])
				}
			}
			switch c.Type {
			case sketch.Angle:
				c.Value = float64(data[i+4]) * math.Pi / 255
			case sketch.Distance, sketch.Radius:
				c.Value = float64(data[i+4]) / 4
			}
			if s.Add(c) != nil {
				continue
			}
		}
		before := places(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		r := expect.Of(s.Solve(ctx))(t)
		expect.True(t, r.DegreesOfFreedom >= 0 && r.Solved != (len(r.Conflicts) > 0), "%+v", r)
		after := places(t, s)
		for i := range after {
			expect.Must(t, !math.IsNaN(after[i]) && (r.Solved || after[i] == before[i]), "%+v moved %v to %v", r, before, after)
		}
		for _, c := range s.Constraints() {
			if off, err := s.Error(c.ID); r.Solved && (err != nil || off > 1e-6) {
				t.Errorf("%+v is off by %v, %v", c, off, err)
			}
		}
	})
}

// places are all coordinates and radii.
func places(t *testing.T, s *sketch.Sketch) (out []float64) {
	for _, id := range []string{"a", "b", "c", "d", "m", "s", "e", "k", "r"} {
		g := expect.Of(s.At(id))(t)
		for _, p := range g.Points {
			out = append(out, p[0], p[1])
		}
		out = append(out, g.Radius)
	}
	return out
}
