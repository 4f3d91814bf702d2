package conformance_test

import (
	"slices"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/expect"
)

func TestHistoryGoesBackAndForth(t *testing.T) {
	onEach(t, func(r *rig) {
		volume := func() float64 { return r.do("workspace.status", nil).number("volume") }
		a := r.box("a", [3]float64{}, [3]float64{10, 10, 10})
		b := r.box("b", [3]float64{5, 0, 0}, [3]float64{10, 10, 10})
		r.do("solid.boolean", obj{"operation": "union", "entity_ids": []string{a, b}, "entity_id": "u"})
		r.near("union", volume(), 1500, 1e-3)
		r.do("history.undo", nil)
		r.near("undone", volume(), 2000, 1e-3)
		r.do("history.undo", nil)
		r.near("undone again", volume(), 1000, 1e-3)
		r.do("history.redo", nil)
		r.do("history.redo", nil)
		r.near("redone", volume(), 1500, 1e-3)
		r.refuse(env.OperationInvalid, "", "history.redo", nil)
		r.do("history.undo", nil)
		r.box("c", [3]float64{50, 0, 0}, [3]float64{1, 1, 1})
		r.refuse(env.OperationInvalid, "", "history.redo", nil) // it is lost after a new operation
		h := r.do("history.list", obj{"limit": 100})
		expect.True(r, h.number("total_count") >= 3 && len(h.list("operations")) >= 3, "history %v", h)
		// What was undone can still be measured and combined.
		r.do("measure.mass", obj{"entity_id": "a"})
		r.solid("solid.boolean", obj{"operation": "union", "entity_ids": []string{a, b}}, body{
			flat: true, volume: 1500, area: 800, center: [3]float64{7.5, 5, 5}, high: [3]float64{15, 10, 10}, faces: 6, edges: 12, corners: 8,
		})
	})
}

// branch makes a workspace of main's content and lets a client work in it.
func (r *rig) branch(id string) {
	r.Helper()
	r.do("workspace.create", obj{"workspace_name": id, "workspace_id": id})
}

func (r *rig) boxIn(workspace, id string, at, size [3]float64) {
	r.Helper()
	r.do("solid.primitive", obj{"workspace_id": workspace, "entity_id": id, "primitive_type": "box", "position": at, "width": size[0], "depth": size[1], "height": size[2]})
}

func (r *rig) merge(from string) obj {
	r.Helper()
	return r.do("workspace.merge", obj{"source_workspace_id": from, "target_workspace_id": "main"})
}

func TestWorkspacesMerge(t *testing.T) {
	onEach(t, func(r *rig) {
		r.box("base", [3]float64{}, [3]float64{10, 10, 10})
		r.branch("left")
		r.branch("right")
		r.boxIn("left", "l", [3]float64{-20, 0, 0}, [3]float64{5, 5, 5})
		r.boxIn("right", "r", [3]float64{10, 0, 0}, [3]float64{5, 5, 5}) // touches the base
		if r.refuse(env.EntityNotFound, "entity_id", "entity.query", obj{"entity_id": "l"}); t.Failed() {
			return
		}
		for from, id := range map[string]string{"left": "l", "right": "r"} {
			m := r.own("workspace.merge", obj{"source_workspace_id": from, "target_workspace_id": "main"})
			if m.text("merge_result") != "success" || len(m.list("entities_added")) != 1 || m.list("entities_added")[0] != id || len(m.list("conflicts")) != 0 {
				r.Errorf("merge of %s: %v, want %s added without conflicts", from, m, id)
			}
		}
		s := r.do("workspace.status", nil)
		expect.True(r, s.number("entity_count") == 3, "%v, want three entities", s)
		r.near("volume", r.do("workspace.status", nil).number("volume"), 1250, 1e-3)
		l := r.do("workspace.list", nil)
		expect.True(r, l.number("total_count") == 3, "%v, want three workspaces", l)
		d := r.do("workspace.diff", obj{"source_workspace_id": "left", "target_workspace_id": "main"})
		expect.True(r, d.number("total_count") == 1, "%v, want one difference", d)
		r.do("workspace.switch", obj{"workspace_id": "left"})
		s = r.do("workspace.status", nil)
		expect.True(r, s.text("workspace_id") == "left", "%v, want left", s)
		r.refuse(env.EntityNotFound, "workspace_id", "workspace.switch", obj{"workspace_id": "nowhere"})
	})
}

// conflict finds the only conflict of a merge.
func (r *rig) conflict(m obj, kind, id string) obj {
	r.Helper()
	all := m.objects("conflicts")
	expect.Must(r, m.text("merge_result") == "has_conflicts" && len(all) == 1 && all[0].text("conflict_type") == kind && all[0].text("entity_id") == id,
		"merge %v, want one conflict %s of %s", m, kind, id)
	return all[0]
}

func TestOverlapsAreConflicts(t *testing.T) {
	onEach(t, func(r *rig) {
		resolve := func(from, strategy string, merged obj) obj {
			p := obj{"entity_id": from + "_part", "source_workspace_id": from, "target_workspace_id": "main", "strategy": strategy}
			if merged != nil {
				p["merged_properties"] = merged
			}
			return r.do("workspace.resolve_conflict", p)
		}
		for _, c := range []struct {
			name, strategy string
			merged         obj
			volume         float64
			count          float64
		}{
			{"replace", "keep_source", nil, 1000, 1},
			{"leave", "keep_target", nil, 1000, 1},
			{"join", "manual_merge", obj{"operation": "union"}, 1500, 1},
			{"cut", "manual_merge", obj{"operation": "subtract"}, 1500, 2},
			{"both", "manual_merge", obj{"operation": "keep_both"}, 2000, 2},
		} {
			r.box("base", [3]float64{}, [3]float64{10, 10, 10})
			r.branch(c.name)
			r.boxIn(c.name, c.name+"_part", [3]float64{5, 0, 0}, [3]float64{10, 10, 10})
			found := r.conflict(r.merge(c.name), "geometry_overlap", c.name+"_part")
			r.near(c.name+": overlap", found.number("overlap_volume"), 500, 1e-3)
			resolve(c.name, c.strategy, c.merged)
			s := r.do("workspace.status", nil)
			r.near(c.name+": volume", s.number("volume"), c.volume, 1e-3)
			expect.True(r, s.number("entities.solid") == c.count && len(s.list("conflicts")) == 0,
				"%s: %v, want %g solids and nothing open", c.name, s, c.count)
			for _, e := range r.own("entity.list", nil).objects("entities") {
				r.own("entity.delete", obj{"entity_id": e.text("entity_id")})
			}
		}
	})
}

func TestChangesOnBothSidesAreConflicts(t *testing.T) {
	onEach(t, func(r *rig) {
		r.do("entity.create_circle", obj{"entity_id": "changed", "center": []float64{0, 0}, "radius": 1})
		r.do("entity.create_circle", obj{"entity_id": "gone", "center": []float64{0, 0}, "radius": 1})
		r.branch("work")
		in := func(workspace string, id string, radius float64) {
			r.do("entity.update", obj{"workspace_id": workspace, "entity_id": id, "radius": radius})
		}
		in("work", "changed", 2)
		in("main", "changed", 3)
		in("work", "gone", 2)
		r.do("entity.delete", obj{"entity_id": "gone"})
		r.do("entity.create_point", obj{"workspace_id": "work", "entity_id": "same", "coordinates": []float64{1, 0}})
		r.do("entity.create_point", obj{"entity_id": "same", "coordinates": []float64{2, 0}})
		m := r.merge("work")
		var kinds []string
		for _, c := range m.objects("conflicts") {
			kinds = append(kinds, c.text("conflict_type")+" "+c.text("entity_id"))
		}
		slices.Sort(kinds)
		want := []string{"both_modified changed", "deleted_modified gone", "id_collision same"}
		expect.Must(r, slices.Equal(kinds, want), "conflicts %v, want %v", kinds, want)
		resolve := func(id, strategy string, merged obj) {
			p := obj{"entity_id": id, "source_workspace_id": "work", "target_workspace_id": "main", "strategy": strategy}
			if merged != nil {
				p["merged_properties"] = merged
			}
			r.do("workspace.resolve_conflict", p)
		}
		resolve("changed", "manual_merge", obj{"center": []float64{0, 0, 0}, "radius": 2.5})
		resolve("gone", "keep_source", nil)
		resolve("same", "keep_target", nil)
		r.near("changed", r.do("entity.query", obj{"entity_id": "changed"}).number("properties.radius"), 2.5, 0)
		r.near("gone", r.do("entity.query", obj{"entity_id": "gone"}).number("properties.radius"), 2, 0)
		r.near("same", r.do("entity.query", obj{"entity_id": "same"}).vector("properties.coordinates")[0], 2, 0)
		r.refuse(env.EntityNotFound, "entity_id", "workspace.resolve_conflict", obj{"entity_id": "same", "source_workspace_id": "work", "target_workspace_id": "main", "strategy": "keep_source"})
	})
}

func TestAHundredEntitiesMergeInTime(t *testing.T) {
	onEach(t, func(r *rig) {
		r.branch("work")
		for i := range 100 {
			r.own("solid.primitive", obj{"workspace_id": "work", "primitive_type": "cylinder", "radius": 1, "height": 5, "axis_point": []float64{float64(i%10) * 3, float64(i/10) * 3, 0}})
		}
		m := r.merge("work")
		expect.True(r, len(m.list("entities_added")) == 100 && m.text("merge_result") == "success",
			"%d added, %v", len(m.list("entities_added")), m["merge_result"])
	})
}
