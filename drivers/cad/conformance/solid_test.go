package conformance_test

import (
	"fmt"
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

// loop draws the lines that join points and close, and returns their ids.
func (r *rig) loop(points ...[3]float64) []string {
	r.Helper()
	var ids []string
	for i, p := range points {
		ids = append(ids, r.do("entity.create_line", obj{"start": p, "end": points[(i+1)%len(points)]}).text("entity_id"))
	}
	return ids
}

// box makes a box with its lowest corner at a place.
func (r *rig) box(id string, at, size [3]float64) string {
	r.Helper()
	p := obj{"primitive_type": "box", "width": size[0], "depth": size[1], "height": size[2], "position": at}
	if id != "" {
		p["entity_id"] = id
	}
	want := body{flat: true, volume: size[0] * size[1] * size[2], faces: 6, edges: 12, corners: 8}
	for i := range 3 {
		want.area += 2 * size[i] * size[(i+1)%3]
		want.center[i], want.low[i], want.high[i] = at[i]+size[i]/2, at[i], at[i]+size[i]
	}
	return r.solid("solid.primitive", p, want)
}

// cylinder stands on a place along z.
func (r *rig) cylinder(id string, at [3]float64, radius, height float64) string {
	r.Helper()
	p := obj{"primitive_type": "cylinder", "radius": radius, "height": height, "axis_point": at}
	if id != "" {
		p["entity_id"] = id
	}
	return r.solid("solid.primitive", p, body{
		volume: math.Pi * radius * radius * height, area: 2 * math.Pi * radius * (radius + height),
		center: [3]float64{at[0], at[1], at[2] + height/2},
		low:    [3]float64{at[0] - radius, at[1] - radius, at[2]}, high: [3]float64{at[0] + radius, at[1] + radius, at[2] + height},
	})
}

func TestPrimitives(t *testing.T) {
	onEach(t, func(r *rig) {
		r.box("", [3]float64{1, 2, 3}, [3]float64{100, 80, 20})
		r.cylinder("", [3]float64{50, 40, -5}, 10, 40)
		r.solid("solid.primitive", obj{"primitive_type": "sphere", "radius": 10, "center": []float64{5, 5, 5}}, body{
			volume: 4000 * math.Pi / 3, area: 400 * math.Pi, center: [3]float64{5, 5, 5},
			low: [3]float64{-5, -5, -5}, high: [3]float64{15, 15, 15},
		})
		r.solid("solid.primitive", obj{"primitive_type": "cone", "radius1": 5, "radius2": 0, "height": 10}, body{
			volume: 250 * math.Pi / 3, area: math.Pi * 5 * (5 + math.Sqrt(125)), center: [3]float64{0, 0, 2.5},
			low: [3]float64{-5, -5, 0}, high: [3]float64{5, 5, 10},
		})
		r.solid("solid.primitive", obj{"primitive_type": "cone", "radius1": 5, "radius2": 3, "height": 10, "axis_direction": []float64{0, 0, -2}}, body{
			volume: 10 * math.Pi / 3 * (25 + 15 + 9), area: math.Pi * (25 + 9 + 8*math.Sqrt(104)), center: [3]float64{0, 0, -10 * (25 + 2*15 + 27) / 4.0 / (25 + 15 + 9)},
			low: [3]float64{-5, -5, -10}, high: [3]float64{5, 5, 0},
		})
		// Small and large ones, for which nobody names a tolerance.
		r.cylinder("", [3]float64{}, 0.5, 2)
		r.cylinder("", [3]float64{}, 40000, 10)
		r.solid("solid.primitive", obj{"primitive_type": "sphere", "radius": 500}, body{
			volume: 4 * math.Pi / 3 * 1.25e8, area: 1e6 * math.Pi, low: [3]float64{-500, -500, -500}, high: [3]float64{500, 500, 500},
		})
		// An oblique axis: extremes of the discs at both ends.
		h := 10 * math.Sqrt(2.0/3)
		r.solid("solid.primitive", obj{"primitive_type": "cylinder", "radius": 10, "height": 30, "axis_direction": []float64{1, 1, 1}}, body{
			volume: 3000 * math.Pi, area: 800 * math.Pi, center: [3]float64{15 / math.Sqrt(3), 15 / math.Sqrt(3), 15 / math.Sqrt(3)},
			low: [3]float64{-h, -h, -h}, high: [3]float64{30/math.Sqrt(3) + h, 30/math.Sqrt(3) + h, 30/math.Sqrt(3) + h},
		})
	})
}

func TestExtrusions(t *testing.T) {
	onEach(t, func(r *rig) {
		plate := r.loop([3]float64{0, 0, 0}, [3]float64{100, 0, 0}, [3]float64{100, 80, 0}, [3]float64{0, 80, 0})
		r.solid("solid.extrude", obj{"entity_ids": plate, "distance": 20}, body{
			flat: true, volume: 160000, area: 23200, center: [3]float64{50, 40, 10},
			high: [3]float64{100, 80, 20}, faces: 6, edges: 12, corners: 8,
		})
		r.solid("solid.extrude", obj{"entity_ids": plate, "distance": -5}, body{
			flat: true, volume: 40000, area: 17800, center: [3]float64{50, 40, -2.5}, low: [3]float64{0, 0, -5}, high: [3]float64{100, 80, 0},
		})
		r.solid("solid.extrude", obj{"entity_ids": plate, "distance": 5, "direction": []float64{3, 0, 4}}, body{
			flat: true, volume: 32000, area: 16000 + 2*100*4 + 2*80*5, center: [3]float64{51.5, 40, 2},
			high: [3]float64{103, 80, 4}, faces: 6, edges: 12, corners: 8,
		})
		hole := r.do("entity.create_circle", obj{"center": []float64{50, 40}, "radius": 10}).text("entity_id")
		r.solid("solid.extrude", obj{"entity_ids": append(plate, hole), "distance": 20}, body{
			volume: 160000 - 2000*math.Pi, area: 23200 - 200*math.Pi + 400*math.Pi, center: [3]float64{50, 40, 10}, high: [3]float64{100, 80, 20},
		})
		r.solid("solid.extrude", obj{"entity_id": hole, "distance": 3}, body{
			volume: 300 * math.Pi, area: 260 * math.Pi, center: [3]float64{50, 40, 1.5}, low: [3]float64{40, 30, 0}, high: [3]float64{60, 50, 3},
		})
		// A slot of two lines and two half circles.
		var slot []string
		for _, l := range [][2][2]float64{{{0, -1}, {5, -1}}, {{0, 1}, {5, 1}}} {
			slot = append(slot, r.do("entity.create_line", obj{"start": l[0], "end": l[1]}).text("entity_id"))
		}
		for x, turn := range map[float64]float64{5: -math.Pi / 2, 0: math.Pi / 2} {
			slot = append(slot, r.do("entity.create_arc", obj{"center": []float64{x, 0}, "radius": 1, "start_angle": turn, "end_angle": turn + math.Pi}).text("entity_id"))
		}
		r.solid("solid.extrude", obj{"entity_ids": slot, "distance": 5}, body{
			volume: 5 * (10 + math.Pi), area: 2*(10+math.Pi) + 5*(10+2*math.Pi), center: [3]float64{2.5, 0, 2.5}, low: [3]float64{-1, -1, 0}, high: [3]float64{6, 1, 5},
		})
		// A triangle in a plane that is nobody's own.
		tilted := r.loop([3]float64{1, 0, 0}, [3]float64{0, 1, 0}, [3]float64{0, 0, 1})
		o := r.do("solid.extrude", obj{"entity_ids": tilted, "distance": 2})
		r.near("volume of a tilted prism", o.number("volume"), 2*math.Sqrt(3)/2, 1e-6)

		r.refuse(env.InvalidGeometry, "distance", "solid.extrude", obj{"entity_ids": plate, "distance": 0})
		r.refuse(env.InvalidGeometry, "entity_ids", "solid.extrude", obj{"entity_ids": plate[:3], "distance": 1})
	})
}

func TestRevolutions(t *testing.T) {
	onEach(t, func(r *rig) {
		ring := r.loop([3]float64{10, 0, 0}, [3]float64{20, 0, 0}, [3]float64{20, 5, 0}, [3]float64{10, 5, 0})
		axis := obj{"entity_ids": ring, "axis_point": []float64{0, 0, 0}, "axis_direction": []float64{0, 1, 0}}
		turn := func(angle float64, want body) {
			axis["angle"] = angle
			r.solid("solid.revolve", axis, want)
		}
		turn(2*math.Pi, body{
			volume: 1500 * math.Pi, area: 2*300*math.Pi + 2*math.Pi*30*5, center: [3]float64{0, 2.5, 0},
			low: [3]float64{-20, 0, -20}, high: [3]float64{20, 5, 20},
		})
		// Counterclockwise seen from the tip of the axis: from x to -z.
		turn(math.Pi/2, body{
			volume: 375 * math.Pi, area: 150*math.Pi + math.Pi*15*5 + 100, center: [3]float64{99.0337422, 2.5, -99.0337422},
			low: [3]float64{0, 0, -20}, high: [3]float64{20, 5, 0},
		}.centered(28.0/3/(math.Pi/2)*5/3, 2.5, -28.0/3/(math.Pi/2)*5/3))
		turn(-math.Pi/2, body{
			volume: 375 * math.Pi, area: 150*math.Pi + math.Pi*15*5 + 100, low: [3]float64{0, 0, 0}, high: [3]float64{20, 5, 20},
		}.centered(28.0/3/(math.Pi/2)*5/3, 2.5, 28.0/3/(math.Pi/2)*5/3))
		circle := r.do("entity.create_circle", obj{"center": []float64{5, 0}, "radius": 1}).text("entity_id")
		r.solid("solid.revolve", obj{"profile_entity_id": circle, "axis_point": []float64{0, 0, 0}, "axis_direction": []float64{0, 1, 0}, "angle": 2 * math.Pi}, body{
			volume: 10 * math.Pi * math.Pi, area: 20 * math.Pi * math.Pi, low: [3]float64{-6, -1, -6}, high: [3]float64{6, 1, 6},
		})
		r.refuse(env.InvalidGeometry, "axis_point", "solid.revolve", obj{"profile_entity_id": circle, "axis_point": []float64{5, 0, 0}, "axis_direction": []float64{0, 1, 0}, "angle": 1})
		r.refuse(env.InvalidGeometry, "axis_point", "solid.revolve", obj{"profile_entity_id": circle, "axis_point": []float64{0, 0, 3}, "axis_direction": []float64{0, 1, 0}, "angle": 1})
	})
}

func (b body) centered(x, y, z float64) body {
	b.center = [3]float64{x, y, z}
	return b
}

func TestBooleans(t *testing.T) {
	onEach(t, func(r *rig) {
		hole := 2000 * math.Pi
		pair := func(n int) []string {
			a, b := fmt.Sprintf("plate_%d", n), fmt.Sprintf("drill_%d", n)
			return []string{r.box(a, [3]float64{}, [3]float64{100, 80, 20}), r.cylinder(b, [3]float64{50, 40, -5}, 10, 40)}
		}
		side := 20 * math.Pi
		made := r.solid("solid.boolean", obj{"operation": "subtract", "entity_ids": pair(1)}, body{
			volume: 160000 - hole, area: 23200 - 200*math.Pi + 20*side, center: [3]float64{50, 40, 10}, high: [3]float64{100, 80, 20},
		})
		r.refuse(env.EntityNotFound, "entity_id", "measure.mass", obj{"entity_id": "drill_1"}) // it was used up
		r.solid("solid.boolean.union", obj{"entity_ids": pair(2), "keep_inputs": true, "entity_id": "both"}, body{
			volume: 160000 + hole, area: 23200 + 20*side, center: unknown, low: [3]float64{0, 0, -5}, high: [3]float64{100, 80, 35},
		})
		r.do("measure.mass", obj{"entity_id": "drill_2"}) // it was kept
		r.solid("solid.boolean.intersect", obj{"entity_ids": pair(3)}, body{
			volume: hole, area: 200*math.Pi + 20*side, center: [3]float64{50, 40, 10}, low: [3]float64{40, 30, 0}, high: [3]float64{60, 50, 20},
		})
		// Flat faces that join are one face again.
		u := []string{r.box("", [3]float64{}, [3]float64{10, 10, 10}), r.box("", [3]float64{10, 0, 0}, [3]float64{5, 10, 10}), r.box("", [3]float64{15, 0, 0}, [3]float64{5, 10, 10})}
		r.solid("solid.boolean", obj{"operation": "union", "entity_ids": u}, body{
			flat: true, volume: 2000, area: 1000, center: [3]float64{10, 5, 5}, high: [3]float64{20, 10, 10}, faces: 6, edges: 12, corners: 8,
		})
		ball := r.do("solid.primitive", obj{"primitive_type": "sphere", "radius": 3, "center": []float64{500, 0, 0}}).text("entity_id")
		block := r.box("", [3]float64{}, [3]float64{1, 1, 1})
		r.refuse(env.TopologyError, "entity_ids", "solid.boolean", obj{"operation": "intersect", "entity_ids": []string{block, ball}})
		r.refuse(env.TopologyError, "entity_ids", "solid.boolean", obj{"operation": "subtract", "entity_ids": []string{block, made}})
		r.refuse(env.InvalidParameter, "operation", "solid.boolean", obj{"operation": "xor", "entity_ids": []string{block, ball}})
		r.refuse(env.InvalidParameter, "entity_ids", "solid.boolean", obj{"operation": "union", "entity_ids": []string{block}})
		r.refuse(env.EntityNotFound, "entity_ids", "solid.boolean", obj{"operation": "union", "entity_ids": []string{block, "none"}})
	})
}

func TestCopies(t *testing.T) {
	onEach(t, func(r *rig) {
		b := func() string { return r.box("", [3]float64{10, 0, 0}, [3]float64{5, 5, 5}) }
		r.solid("solid.pattern", obj{"base_entity_id": b(), "direction": []float64{2, 0, 0}, "spacing": 10, "count": 4}, body{
			flat: true, volume: 500, area: 600, center: [3]float64{27.5, 2.5, 2.5}, low: [3]float64{10, 0, 0}, high: [3]float64{45, 5, 5}, faces: 24, edges: 48, corners: 32,
		})
		r.solid("solid.pattern.linear", obj{"base_entity_id": b(), "direction": []float64{0, 1, 0}, "spacing": 3, "count": 3}, body{
			flat: true, volume: 275, area: 50 + 4*55, center: [3]float64{12.5, 5.5, 2.5}, low: [3]float64{10, 0, 0}, high: [3]float64{15, 11, 5}, faces: 6, edges: 12, corners: 8,
		})
		r.solid("solid.pattern.circular", obj{"base_entity_id": b(), "axis_point": []float64{0, 0, 0}, "axis_direction": []float64{0, 0, 1}, "count": 4}, body{
			flat: true, volume: 500, area: 600, center: [3]float64{0, 0, 2.5}, low: [3]float64{-15, -15, 0}, high: [3]float64{15, 15, 5},
		})
		r.solid("solid.pattern", obj{"base_entity_id": b(), "axis_point": []float64{0, 0, 0}, "axis_direction": []float64{0, 0, 1}, "count": 2, "angle": math.Pi / 2}, body{
			flat: true, volume: 250, area: 300, center: [3]float64{5, 7.5, 2.5}, low: [3]float64{-5, 0, 0}, high: [3]float64{15, 15, 5},
		})
		c := r.cylinder("pin", [3]float64{20, 3, 0}, 2, 10)
		r.solid("solid.mirror", obj{"base_entity_id": c, "mirror_plane_point": []float64{0, 0, 0}, "mirror_plane_normal": []float64{3, 0, 0}}, body{
			volume: 40 * math.Pi, area: 48 * math.Pi, center: [3]float64{-20, 3, 5}, low: [3]float64{-22, 1, 0}, high: [3]float64{-18, 5, 10},
		})
		moved := r.do("solid.transform", obj{"entity_id": c, "rotate": obj{"axis_point": []float64{0, 0, 0}, "axis_direction": []float64{0, 0, 1}, "angle": math.Pi / 2}, "translate": []float64{0, 0, 7}})
		r.compare("turned and moved", moved, body{
			volume: 40 * math.Pi, area: 48 * math.Pi, center: [3]float64{-3, 20, 12}, low: [3]float64{-5, 18, 7}, high: [3]float64{-1, 22, 17},
		})
		expect.Is(r, moved.text("entity_id"), "pin", "the moved solid is")
		r.refuse(env.InvalidParameter, "count", "solid.pattern", obj{"base_entity_id": c, "direction": []float64{1, 0, 0}, "spacing": 10, "count": 1})
		r.refuse(env.InvalidGeometry, "direction", "solid.pattern", obj{"base_entity_id": c, "direction": []float64{0, 0, 0}, "spacing": 10, "count": 2})
		r.refuse(env.InvalidGeometry, "mirror_plane_normal", "solid.mirror", obj{"base_entity_id": c, "mirror_plane_point": []float64{0, 0, 0}, "mirror_plane_normal": []float64{0, 0, 0}})
	})
}

func TestEdgesAndWalls(t *testing.T) {
	onEach(t, func(r *rig) {
		b := r.box("block", [3]float64{}, [3]float64{100, 80, 20})
		top := []any{[]float64{50, 0, 20}}
		if !r.about.Exact {
			r.unsupported("method", "solid.fillet", obj{"entity_id": b, "radius": 2, "edges": top})
			r.unsupported("method", "solid.chamfer", obj{"entity_id": b, "distance": 2})
			r.unsupported("method", "solid.shell", obj{"entity_id": b, "thickness": 2})
			return
		}
		for method, want := range map[string]struct {
			params obj
			volume float64
		}{
			"solid.fillet":  {obj{"radius": 2, "edges": top}, 160000 - 100*(4-math.Pi)},
			"solid.chamfer": {obj{"distance": 2, "edges": top}, 160000 - 200},
			"solid.shell":   {obj{"thickness": 2, "open_faces": []any{[]float64{50, 40, 20}}}, 160000 - 96*76*18},
		} {
			want.params["base_entity_id"], want.params["keep_inputs"] = b, true
			o := r.own(method, want.params)
			r.near(method, o.number("volume"), want.volume, 1e-6*want.volume)
		}
		e := r.refuse(env.InvalidGeometry, "radius", "solid.fillet", obj{"entity_id": b, "radius": 40})
		r.seen = r.seen[:len(r.seen)-1]
		expect.Is(r, e.Data.Value, 40.0, e.Data)
	})
}
