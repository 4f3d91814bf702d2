package env_test

import (
	"fmt"
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestWorkIsMergedAndOverlapsAreFound(t *testing.T) {
	c := start(t)
	for i, id := range []string{"a", "b", "c"} {
		c.do("workspace.create", fmt.Sprintf(`{"workspace_name":%q,"agent_id":"agent_%s"}`, id, id))
		c.do("workspace.switch", fmt.Sprintf(`{"workspace_id":%q}`, id))
		at := float64(10 * i)
		if id == "c" {
			at = 15 // into b's
		}
		c.box("", [3]float64{at}, [3]float64{10, 10, 10})
	}
	c.do("workspace.switch", `{"workspace_id":"main"}`)
	for _, id := range []string{"a", "b"} { // they touch
		out := c.do("workspace.merge", fmt.Sprintf(`{"source_workspace_id":%q,"target_workspace_id":"main"}`, id))
		expect.True(t, out["merge_result"] == "success" && fmt.Sprint(out["entities_added"]) == fmt.Sprintf("[%s_solid_1]", id), "%v", out)
	}
	out := c.do("workspace.merge", `{"source_workspace":"c","target_workspace":"main"}`)
	expect.Must(t, out["merge_result"] == "has_conflicts" && len(out["entities_added"].([]any)) == 0, "%v", out)
	conflict := out["conflicts"].([]any)[0].(map[string]any)
	expect.Row(t, conflict, "conflict_type", "geometry_overlap", "with_entity_id", "b_solid_1")
	c.near("overlap", conflict["overlap_volume"], 500, 1e-6)
	expect.Is(t, c.do("measure.interference", `{}`)["interference_count"], 0.0)
	out = c.do("workspace.resolve_conflict", `{"entity_id":"c_solid_1","source_workspace_id":"c","target_workspace_id":"main","strategy":"manual_merge","merged_properties":{"operation":"union"}}`)
	expect.Is(t, out["merge_result"], "success", out)
	c.near("united", c.do("measure.mass", `{"entity_id":"c_solid_1"}`)["volume"], 1500, 1e-6)
	c.near("volume", c.do("workspace.status", `{}`)["volume"], 2500, 1e-6)
	c.do("history.undo", `{}`)
	expect.Is(t, len(c.do("workspace.status", `{}`)["conflicts"].([]any)), 1, "conflicts are open after the decision was taken back")
	c.do("history.redo", `{}`)
	c.fails(env.OperationInvalid, "source_workspace_id", "workspace.merge", `{"source_workspace_id":"main","target_workspace_id":"main"}`)
	c.fails(env.EntityNotFound, "source_workspace_id", "workspace.merge", `{"source_workspace_id":"nope","target_workspace_id":"main"}`)
	c.fails(env.EntityNotFound, "entity_id", "workspace.resolve_conflict", `{"entity_id":"x","source_workspace_id":"c","target_workspace_id":"main","strategy":"keep_source"}`)
}

func TestCurvesAreMergedByHand(t *testing.T) {
	c := start(t)
	c.do("entity.create_line", `{"entity_id":"l","start":[0,0],"end":[10,0]}`)
	c.do("entity.create_point", `{"entity_id":"p","coordinates":[3,4,0]}`)
	c.do("workspace.create", `{"workspace_name":"w"}`)
	c.do("entity.update", `{"entity_id":"l","end":[20,0]}`)
	c.do("entity.update", `{"workspace_id":"w","entity_id":"l","end":[30,0]}`)
	c.do("workspace.merge", `{"source_workspace_id":"w","target_workspace_id":"main"}`)
	by := func(merged string) string {
		return `{"entity_id":"l","source_workspace_id":"w","target_workspace_id":"main","strategy":"manual_merge","merged_properties":` + merged + `}`
	}
	c.fails(env.InvalidParameter, "colour", "workspace.resolve_conflict", by(`{"colour":1}`))
	c.fails(env.InvalidParameter, "radius", "workspace.resolve_conflict", by(`{"radius":1}`))
	c.fails(env.InvalidParameter, "end", "workspace.resolve_conflict", by(`{"end":true}`))
	c.fails(env.InvalidGeometry, "end", "workspace.resolve_conflict", by(`{"end":[0,0]}`))
	c.fails(env.EntityNotFound, "end", "workspace.resolve_conflict", by(`{"end":"nowhere"}`))
	c.do("workspace.resolve_conflict", by(`{"end":"p","length":99}`))
	got := c.do("entity.query", `{"entity_id":"l"}`)["properties"].(map[string]any)
	expect.Is(t, fmt.Sprint(got["start"], got["end"], got["length"]), "[0 0 0] [3 4 0] 5", got)
}

func TestInterferenceIsMeasured(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 10, 10})
	c.box("b", [3]float64{10}, [3]float64{10, 10, 10}) // touches a
	c.box("d", [3]float64{8, 8, 8}, [3]float64{4, 4, 4})
	out := c.do("measure.interference", `{}`)
	expect.Row(t, out, "interference_count", 2.0, "checked_pairs", 3.0)
	first := out["interferences"].([]any)[0].(map[string]any)
	expect.Is(t, fmt.Sprint(first["entity_ids"], first["bounding_box"]), "[a d] map[max:[10 10 10] min:[8 8 8]]", first)
	c.near("shared", first["volume"], 8, 1e-9)
	expect.Is(t, c.do("measure.interference", `{"entity_ids":["a","b"]}`)["interference_count"], 0.0)
}

func TestUndoAndRedo(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 10, 10})
	c.do("solid.primitive", `{"entity_id":"b","primitive_type":"cylinder","radius":3,"height":10,"axis_point":[5,5,0]}`)
	both := c.do("entity.list", `{}`)
	c.do("solid.boolean", `{"operation":"subtract","entity_ids":["a","b"],"entity_id":"a"}`)
	cut := c.do("entity.list", `{}`)
	c.do("history.undo", `{}`)
	got := c.do("entity.list", `{}`)
	expect.True(t, fmt.Sprint(got) == fmt.Sprint(both), "%v\n%v", got, both)
	c.near("mass", c.do("measure.mass", `{"entity_id":"a"}`)["volume"], 1000, 1e-9)
	c.do("history.redo", `{}`)
	got = c.do("entity.list", `{}`)
	expect.True(t, fmt.Sprint(got) == fmt.Sprint(cut), "%v\n%v", got, cut)
	c.do("history.undo", `{}`)
	h := c.do("history.list", `{"include_future":true}`)
	expect.Is(t, h["total_count"], 4.0, h)
	c.box("e", [3]float64{100}, [3]float64{1, 1, 1})
	c.fails(env.OperationInvalid, "", "history.redo", `{}`)
	for range 3 {
		c.do("history.undo", `{}`)
	}
	c.fails(env.OperationInvalid, "", "history.undo", `{}`)
}

func TestAJournalIsReplayedExactly(t *testing.T) {
	journal := func(o *env.Options) { o.Journal = true }
	c := start(t, journal)
	c.fails(env.EntityNotFound, "workspace_id", "entity.list", `{}`)
	var entries []core.Raw
	do := func(method, params string) map[string]any {
		t.Helper()
		r := c.try(method, params)
		expect.Must(t, r.Error == nil, "%s: %+v", method, r.Error)
		if e := r.Result.Metadata.Entry; len(e) > 0 {
			entries = append(entries, e)
		}
		return r.Result.Data
	}
	do("workspace.create", `{"workspace_name":"main","base_workspace_id":""}`)
	do("entity.create_circle", `{"entity_id":"c","center":[0,0],"radius":5}`)
	do("solid.extrude", `{"entity_id":"c","distance":7}`)
	do("solid.primitive", `{"entity_id":"s","primitive_type":"sphere","radius":4,"center":[0,0,7]}`)
	do("solid.boolean.union", `{"entity_ids":["solid_1","s"]}`)
	do("entity.list", `{}`)
	do("history.undo", `{}`)
	do("history.redo", `{}`)
	expect.Must(t, len(entries) == 7, "%d entries", len(entries))
	want := c.state("main")

	d := start(t, journal)
	load := func(from int, part []core.Raw) string {
		return fmt.Sprintf(`{"workspace_id":"main","from":%d,"entries":%s}`, from, core.MustEncode(part))
	}
	d.fails(env.WorkspaceConflict, "from", "workspace.load", load(3, entries[2:]))
	expect.Row(t, d.do("workspace.load", load(1, entries[:3])), "seq", 3.0)
	d.fails(env.WorkspaceConflict, "from", "workspace.load", load(5, entries[4:]))
	d.do("workspace.load", load(4, entries[3:]))
	got := d.state("main")
	expect.True(t, got == want, "replayed\n%s\nwant\n%s", got, want)
	solid := d.do("entity.list", `{"entity_type":"solid"}`)["entities"].([]any)[0].(map[string]any)
	d.near("rebuilt", d.do("measure.mass", fmt.Sprintf(`{"entity_id":%q}`, solid["entity_id"]))["volume"], solid["properties"].(map[string]any)["volume"].(float64), 1e-12)
	d.do("workspace.unload", `{"workspace_id":"main"}`)
	d.fails(env.EntityNotFound, "workspace_id", "entity.list", `{}`)
	d.do("workspace.load", load(1, entries))
	entries[6] = entries[5]
	d.fails(env.InvalidParameter, "", "workspace.load", load(1, entries))
	expect.Is(t, d.state("main"), want, "a journal that is none replaced the workspace")
	start(t).fails(env.OperationInvalid, "method", "workspace.load", load(1, entries))
}

func TestAgentsAreCounted(t *testing.T) {
	c := start(t)
	c.do("entity.create_point", `{"coordinates":[1,2],"agent_id":"ann"}`)
	c.fails(env.InvalidGeometry, "radius", "entity.create_circle", `{"center":[1,2],"radius":0,"agent_id":"ann"}`)
	m := c.do("agent.metrics", `{"agent_id":"ann"}`)
	expect.True(t, m["operation_count"] == 2.0 && m["success_rate"] == 0.5 && fmt.Sprint(m["errors"]) == "map[INVALID_GEOMETRY:1]", "%v", m)
	expect.Row(t, c.do("entity.query", `{"entity_id":"point_1"}`), "created_by", "ann")
}

func TestTwoClientsShareWorkspaces(t *testing.T) {
	o := env.Options{Open: engine.Open, Dir: t.TempDir()}
	e := expect.Of(env.New(t.Context(), o))(t)
	t.Cleanup(func() { e.Close() })
	a, b := connect(t, e, o.Dir), connect(t, e, o.Dir)
	a.do("workspace.create", `{"workspace_name":"w"}`)
	a.do("workspace.switch", `{"workspace_id":"w"}`)
	a.box("x", [3]float64{}, [3]float64{1, 1, 1})
	b.fails(env.EntityNotFound, "entity_id", "entity.query", `{"entity_id":"x"}`)
	expect.Row(t, b.do("entity.query", `{"entity_id":"x","workspace_id":"w"}`), "workspace_id", "w")
}

func TestAMeshIsShown(t *testing.T) {
	c := start(t)
	c.do("solid.primitive", `{"entity_id":"s","primitive_type":"cylinder","radius":5,"height":10}`)
	solids := c.do("view.mesh", `{"entity_ids":["s"],"deflection":0.5}`)["solids"].([]any)
	m := solids[0].(map[string]any)
	vertices, volume := m["vertices"].([]any), 0.0
	for _, tri := range m["triangles"].([]any) {
		var p [3][3]float64
		for i, v := range tri.([]any) {
			p[i] = numbers(vertices[int(v.(float64))])
		}
		volume += (p[0][0]*(p[1][1]*p[2][2]-p[1][2]*p[2][1]) + p[0][1]*(p[1][2]*p[2][0]-p[1][0]*p[2][2]) + p[0][2]*(p[1][0]*p[2][1]-p[1][1]*p[2][0])) / 6
	}
	c.near("volume", volume, math.Pi*250, 5e-3)
	if len(m["faces"].([]any)) != len(m["triangles"].([]any)) || m["tolerance"].(float64) <= 0 {
		t.Error(m["tolerance"], len(m["faces"].([]any)))
	}
}

func TestAHostileJournalHarmsNothing(t *testing.T) {
	c := start(t, func(o *env.Options) { o.Journal = true })
	seq := 0
	loaded := 0
	load := func(put string) {
		seq++
		record := ""
		if seq == 1 {
			record = `,"workspace":{"workspace_id":"w","workspace_name":"w"}`
		}
		r := c.try("workspace.load", fmt.Sprintf(`{"workspace_id":"w","from":%d,"entries":[{"workspace_id":"w","seq":%d,"method":"x","put":[%s]%s}]}`, seq, seq, put, record))
		if r.Error == nil && put != "" {
			loaded++
		}
	}
	entity := func(id, kind, properties, more string) string {
		properties = string(canonical(t, properties))
		hash := expect.Of(core.Digest([]any{kind, core.Raw(properties)}))(t)
		return fmt.Sprintf(`{"entity_id":%q,"entity_type":%q,"workspace_id":"w","properties":%s,"hash":%q,"origin":"w:%d"%s}`, id, kind, properties, hash, seq+1, more)
	}
	for _, put := range []func() string{
		func() string { return "" }, func() string { return entity("k", "constraint", `{"entity_ids":[]}`, "") },
		func() string { return entity("l", "line", `{"start":[0,0,0],"end":[0,0,0]}`, "") },
		func() string { return entity("l", "line", `{"start":"x"}`, "") },
		func() string {
			return entity("c", "circle", `{"center":[0,0,0],"radius":1e-300,"normal":[0,0,0]}`, "")
		},
		func() string { return entity("c", "circle", `{"center":[0,0,0],"radius":5,"normal":[0,0,0]}`, "") },
		func() string { return entity("s", "solid", `{}`, `,"shape":"`+fmt.Sprintf("%064d", 1)+`"`) },
	} {
		load(put())
		if r := c.try("entity.list", `{"workspace_id":"w"}`); r.Error != nil { // it was unloaded
			seq = 0
			load("")
		}
		for _, ask := range []string{
			`constraint.status","params":{"include_dof_analysis":true,`, `constraint.status","params":{"constraint_id":"k",`, `measure.interference","params":{`, `view.mesh","params":{`,
			`solid.extrude","params":{"entity_ids":["l","c"],"distance":1,`, `entity.update","params":{"entity_id":"c","radius":2,`, `measure.mass","params":{"entity_id":"s",`, `workspace.status","params":{`,
		} {
			c.send(`{"jsonrpc":"2.0","id":1,"method":"` + ask + `"workspace_id":"w"}}`)
			c.receive()
		}
	}
	expect.True(t, loaded != 0, "nothing was tried")
}

func canonical(t *testing.T, text string) core.Raw {
	t.Helper()
	return expect.Of(core.Canonical([]byte(text)))(t)
}
