package cad_test

import (
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/expect"
)

func TestWhatWasLookedAtIsNotAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.agent("max", "modeler")
	w.agent("mia", "modeler")
	look := func(workspace string) []cad.Surface {
		t.Helper()
		all, _, err := w.cad.Surfaces(t.Context(), home, workspace)
		expect.No(t, err)
		return all
	}
	w.do("max", "solid.extrude", `{"width":3}`)
	look("ws_max")
	w.do("max", "solid.extrude", `{"width":4}`)
	if all := look("ws_max"); len(all) != 2 || all[0].EntityID != "ws_max_solid_1" || all[1].EntityID != "ws_max_solid_2" || all[1].Mesh.Vertices[1] != [3]float64{4, 0, 0} {
		t.Errorf("%+v", all)
	}
	expect.Is(t, w.pool.of("view.mesh"), 2, "the worker was asked")
	w.do("mia", "solid.extrude", `{"width":4}`) // the same shape elsewhere
	if all := look("ws_mia"); len(all) != 1 || all[0].EntityID != "ws_mia_solid_1" || w.pool.of("view.mesh") != 2 {
		t.Errorf("%+v after %d questions", all, w.pool.of("view.mesh"))
	}
}
