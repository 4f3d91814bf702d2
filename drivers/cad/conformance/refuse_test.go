package conformance_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/expect"
)

func TestTheSameRefusalsForTheSameBadInput(t *testing.T) {
	onEach(t, func(r *rig) {
		b := r.box("b", [3]float64{}, [3]float64{10, 10, 10})
		r.do("entity.create_point", obj{"entity_id": "p", "coordinates": []float64{0, 0}})
		type bad struct {
			code          env.Code
			field, method string
			params        obj
		}
		box := func(change obj) obj {
			p := obj{"primitive_type": "box", "width": 1, "depth": 1, "height": 1}
			for name, v := range change {
				p[name] = v
			}
			return p
		}
		for _, c := range []bad{
			{env.InvalidCommand, "method", "solid.melt", nil},
			{env.InvalidCommand, "method", "solid.loft", nil},
			{env.InvalidParameter, "widht", "solid.primitive", box(obj{"widht": 3})},
			{env.InvalidParameter, "width", "solid.primitive", box(obj{"width": "wide"})},
			{env.InvalidParameter, "width", "solid.primitive", box(obj{"width": 1e6})},
			{env.InvalidParameter, "width", "solid.primitive", box(obj{"width": nil})},
			{env.InvalidGeometry, "width", "solid.primitive", box(obj{"width": 0})},
			{env.InvalidGeometry, "height", "solid.primitive", box(obj{"height": -4})},
			{env.InvalidParameter, "radius", "solid.primitive", box(obj{"radius": 1})},
			{env.InvalidParameter, "primitive_type", "solid.primitive", box(obj{"primitive_type": "teapot"})},
			{env.InvalidParameter, "entity_id", "solid.primitive", box(obj{"entity_id": "no spaces"})},
			{env.WorkspaceConflict, "entity_id", "solid.primitive", box(obj{"entity_id": "b"})},
			{env.EntityNotFound, "workspace_id", "solid.primitive", box(obj{"workspace_id": "nowhere"})},
			{env.InvalidParameter, "deadline_ms", "solid.primitive", box(obj{"deadline_ms": 0.5})},
			{env.InvalidParameter, "deadline_ms", "solid.primitive", box(obj{"deadline_ms": 600_001})},
			{env.InvalidGeometry, "radius", "solid.primitive", obj{"primitive_type": "sphere", "radius": 0}},
			{env.InvalidGeometry, "radius1", "solid.primitive", obj{"primitive_type": "cone", "radius1": 0, "radius2": 0, "height": 5}},
			{env.InvalidGeometry, "axis_direction", "solid.primitive", obj{"primitive_type": "cylinder", "radius": 1, "height": 5, "axis_direction": []float64{0, 0, 0}}},
			{env.InvalidGeometry, "radius", "entity.create_circle", obj{"center": []float64{0, 0}, "radius": -1}},
			{env.InvalidGeometry, "end", "entity.create_line", obj{"start": "p", "end": "p"}},
			{env.InvalidParameter, "coordinates", "entity.create_point", obj{"coordinates": []float64{1}}},
			{env.InvalidParameter, "limit", "entity.list", obj{"limit": 0}},
			{env.InvalidParameter, "entity_type", "entity.list", obj{"entity_type": "solids"}},
			{env.OperationInvalid, "entity_id", "measure.mass", obj{"entity_id": "p"}},
			{env.OperationInvalid, "base_entity_id", "solid.mirror", obj{"base_entity_id": "p", "mirror_plane_point": []float64{0, 0}, "mirror_plane_normal": []float64{1, 0}}},
			{env.InvalidGeometry, "angle", "solid.pattern", obj{"base_entity_id": b, "axis_direction": []float64{0, 0, 1}, "count": 3, "angle": 7}},
			{env.InvalidParameter, "tolerance", "solid.primitive", obj{"primitive_type": "sphere", "radius": 1, "tolerance": 100}},
			{env.FileNotFound, "file_path", "file.import", obj{"file_path": "none.stl"}},
			{env.InvalidParameter, "file_path", "file.export", obj{"file_path": "../out.stl"}},
			{env.UnsupportedFormat, "format", "file.export", obj{"file_path": "out.amf"}},
			{env.InvalidParameter, "tessellation_quality", "file.export", obj{"file_path": "out.stl", "tessellation_quality": "best"}},
			{env.WorkspaceConflict, "workspace_id", "workspace.create", obj{"workspace_name": "main"}},
			{env.OperationInvalid, "source_workspace_id", "workspace.merge", obj{"source_workspace_id": "main", "target_workspace_id": "main"}},
			{env.OperationInvalid, "method", "workspace.load", obj{"workspace_id": "main"}},
			{env.OperationInvalid, "entity_ids", "solid.boolean", obj{"operation": "union", "entity_ids": []string{b, b}}},
		} {
			r.refuse(c.code, c.field, c.method, c.params)
		}
		// Nothing of it left a trace.
		h := r.do("history.list", nil)
		expect.True(r, h.number("total_count") == 3, "%v operations, want the workspace's own, the box and the point", h["total_count"])
	})
}

func TestParametersGoByName(t *testing.T) {
	onEach(t, func(r *rig) {
		for _, params := range []any{[]int{1}, "box", 7} {
			err := r.conn.Call(context.Background(), "solid.primitive", params, nil)
			var refused *jsonrpc.Error
			expect.True(r, errors.As(err, &refused) && (env.Code(refused.Code) == env.InvalidParameter || env.Code(refused.Code) == env.InvalidRequest),
				"params %v: %v, want a refusal", params, err)
		}
	})
}

func TestADeadlineChangesNothing(t *testing.T) {
	onEach(t, func(r *rig) {
		ball := r.do("solid.primitive", obj{"primitive_type": "sphere", "radius": 30, "entity_id": "ball"}).text("entity_id")
		r.do("solid.primitive", obj{"primitive_type": "cylinder", "radius": 3, "height": 90, "axis_point": []float64{0, 0, -45}, "entity_id": "drill"})
		// Hundreds of balls that overlap take any kernel long.
		heavy := obj{"base_entity_id": ball, "direction": []float64{1, 0.3, 0.1}, "spacing": 0.37, "count": 900, "deadline_ms": 400}
		r.refuse(env.Timeout, "deadline_ms", "solid.pattern", heavy)
		s := r.do("workspace.status", nil)
		expect.True(r, s.number("entity_count") == 2, "%v, want the ball and the drill as they were", s)
		// The kernel that is opened next builds them again from their recipes.
		want := 4 * math.Pi / 3 * math.Pow(900-9, 1.5) // what a hole leaves of a ball depends on the hole's length alone
		o := r.do("solid.boolean", obj{"operation": "subtract", "entity_ids": []string{"ball", "drill"}})
		r.near("volume of a ball with a hole", o.number("volume"), want, r.relative*want)
	})
}

func TestALongOperationTellsItsProgressAndCanBeCancelled(t *testing.T) {
	onEach(t, func(r *rig) {
		const balls = 80 // of which every two overlap: thousands of pairs to compare
		for i := range balls {
			r.own("solid.primitive", obj{"primitive_type": "sphere", "radius": 30, "tolerance": 0.1, "center": []float64{0.37 * float64(i), 0.1 * float64(i), 0}})
		}
		r.asked++
		heavy := r.conn.Start("measure.interference", nil)
		id := r.asked
		for r.progress.Load() < 2 { // after a second, and again half a second later
			select {
			case <-heavy.Done:
				t.Fatalf("%v, before it told its progress", heavy.Err)
			case <-time.After(20 * time.Millisecond):
			}
		}
		expect.Row(r, r.do("system.cancel", obj{"id": id}), "cancelled", true)
		<-heavy.Done
		var refused *jsonrpc.Error
		expect.True(r, errors.As(heavy.Err, &refused) && env.Code(refused.Code) == env.OperationInvalid, "%v, want that it was cancelled", heavy.Err)
		s := r.do("workspace.status", nil)
		expect.True(r, s.number("entity_count") == balls, "%v, want the balls alone", s)
		expect.Row(r, r.do("system.cancel", obj{"id": id}), "cancelled", false)
		r.box("after", [3]float64{}, [3]float64{1, 1, 1})
		r.do("system.shutdown", nil)
	})
}
