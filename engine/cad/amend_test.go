package cad_test

import (
	"context"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestOperatorsUndoAndRedo(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.agent("ann", "designer")
	w.do("ann", "entity.create_point", `{"entity_id":"p"}`)
	before := w.now("ann").OperationCount
	if done, err := w.cad.Undo(ctx, alice, "ws_ann"); err != nil || done.Seq != 3 || strings.Join(done.Removed, " ") != "p" || w.ids("ws_ann") != "" {
		t.Fatalf("undo: %+v, %v; left %q", done, err, w.ids("ws_ann"))
	}
	expect.Is(t, code(expect.Fault(w.cad.Undo(ctx, alice, "ws_ann"))), core.Conflict, "undo of nothing")
	done, err := w.cad.Redo(ctx, alice, "ws_ann")
	expect.True(t, err == nil && strings.Join(done.Entities, " ") == "p" && w.ids("ws_ann") == "p", "redo: %+v, %v; there is %q", done, err, w.ids("ws_ann"))
	expect.Is(t, w.now("ann").OperationCount, before, "the agent counts")
	w.sound()
	w.again()
	expect.Is(t, w.ids("ws_ann"), "p", "after a restart there is")
}

// collided makes two workspaces with a point p each, of different places, and
// merges the first into the second.
func collided(t *testing.T, w *world) {
	t.Helper()
	w.agent("ann", "designer")
	w.agent("bob", "designer")
	w.do("ann", "entity.create_point", `{"entity_id":"p","x":1}`)
	w.do("ann", "entity.create_point", `{"entity_id":"q","x":1}`)
	w.do("bob", "entity.create_point", `{"entity_id":"p","x":2}`)
	done, err := w.cad.MergeInto(context.Background(), alice, "ws_ann", "ws_bob")
	expect.Must(t, err == nil && strings.Join(done.Entities, " ") == "q", "merge: %+v, %v", done, err)
}

func TestOperatorsMergeAndResolve(t *testing.T) {
	for strategy, want := range map[model.Strategy]string{model.KeepSource: `{"x":1}`, model.KeepTarget: `{"x":2}`, model.ManualMerge: `{"x":3}`} {
		t.Run(string(strategy), func(t *testing.T) {
			w := newWorld(t)
			ctx := context.Background()
			collided(t, w)
			open, err := w.cad.Conflicts(ctx, home, "ws_bob")
			expect.Must(t, err == nil && len(open) == 1 && open[0].EntityID == "p", "conflicts: %+v, %v", open, err)
			r := cad.Resolve{EntityID: "p", Source: "ws_ann", Target: "ws_bob", Strategy: strategy}
			if strategy == model.ManualMerge {
				r.Merged = core.Raw(want)
			}
			expect.Of(w.cad.ResolveConflict(ctx, alice, r))(t)
			all, err := w.cad.AllEntities(ctx, home, "ws_bob")
			expect.True(t, err == nil && string(all[0].Properties) == want && w.space("ws_bob").Conflicts == 0,
				"p is %s, %v; want %s", all[0].Properties, err, want)
			w.sound()
		})
	}
}

func TestAmendmentsAreRefused(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	collided(t, w)
	good := cad.Resolve{EntityID: "p", Source: "ws_ann", Target: "ws_bob", Strategy: model.KeepSource}
	resolve := func(change func(*cad.Resolve)) func() error {
		return func() error {
			r := good
			change(&r)
			_, err := w.cad.ResolveConflict(ctx, alice, r)
			return err
		}
	}
	for name, c := range map[string]struct {
		try  func() error
		want core.Code
		says string
	}{
		"by an agent":         {func() error { _, err := w.cad.Undo(ctx, robot, "ws_ann"); return err }, core.Denied, "in its own name"},
		"nowhere":             {func() error { _, err := w.cad.Undo(ctx, alice, "ws_nobody"); return err }, core.NotFound, "ws_nobody"},
		"of another tenant":   {func() error { _, err := w.cad.Undo(ctx, abbott, "ws_ann"); return err }, code(core.ErrForeign), "ws_ann"},
		"from nowhere":        {func() error { _, err := w.cad.MergeInto(ctx, alice, "ws_x", "ws_bob"); return err }, core.NotFound, "ws_x"},
		"strategy":            {resolve(func(r *cad.Resolve) { r.Strategy = "no_conflict" }), core.InvalidInput, "keep_source"},
		"nothing merged":      {resolve(func(r *cad.Resolve) { r.Strategy = model.ManualMerge }), core.InvalidInput, "merged_properties"},
		"merged and kept":     {resolve(func(r *cad.Resolve) { r.Merged = core.Raw(`{}`) }), core.InvalidInput, "merged_properties"},
		"merged is no object": {resolve(func(r *cad.Resolve) { r.Strategy, r.Merged = model.ManualMerge, core.Raw(`[1]`) }), core.InvalidInput, "merged_properties"},
		"not in conflict":     {resolve(func(r *cad.Resolve) { r.EntityID = "q" }), core.Conflict, "q"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.try()
			expect.True(t, code(err) == c.want && strings.Contains(err.Error(), c.says), "got %v, want %s with %q", err, c.want, c.says)
		})
	}
	w.sound()
}

func TestAWorkerThatIsLostChangesNothing(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.agent("ann", "designer")
	w.do("ann", "entity.create_point", `{"entity_id":"p"}`)
	w.pool.on(nil, func(context.Context, *fakeWorker, cad.Call) error { return errKilled })
	_, err := w.cad.Undo(ctx, alice, "ws_ann")
	expect.Is(t, code(err), core.Unavailable)
	w.pool.on(nil, nil)
	expect.Is(t, w.ids("ws_ann"), "p", "there is")
	_, err = w.cad.Undo(ctx, alice, "ws_ann")
	expect.True(t, err == nil && w.ids("ws_ann") == "", "the next try: %v", err)
	w.sound()
}

func TestSurfacesAreOfSolids(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.agent("max", "modeler")
	w.do("max", "entity.create_point", `{"entity_id":"p"}`)
	if all, more, err := w.cad.Surfaces(ctx, home, "ws_max"); err != nil || len(all) != 0 || more != 0 {
		t.Errorf("a workspace without solids: %v, %d, %v", all, more, err)
	}
	w.do("max", "solid.extrude", `{"width":3}`)
	id := strings.Fields(w.ids("ws_max"))[1]
	for _, ids := range [][]string{nil, {id}} {
		all, _, err := w.cad.Surfaces(ctx, home, "ws_max", ids...)
		if err != nil || len(all) != 1 || all[0].EntityID != id || len(all[0].Mesh.Triangles) != 1 || all[0].Mesh.Vertices[1] != [3]float64{3, 0, 0} {
			t.Errorf("surfaces of %v: %+v, %v", ids, all, err)
		}
	}
	for id, want := range map[string]core.Code{"p": core.InvalidInput, "nothing": core.NotFound} {
		_, _, err := w.cad.Surfaces(ctx, home, "ws_max", id)
		expect.Is(t, code(err), want, "surface of", id)
	}
	_, _, err := w.cad.Surfaces(ctx, abroad, "ws_max")
	expect.Err(t, err, core.ErrForeign, "from another tenant")
}
