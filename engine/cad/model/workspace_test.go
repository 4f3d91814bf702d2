package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// by is an operation of a method, with nothing else to say.
func by(method string) Change {
	return Change{Method: method, AgentID: "a1", At: "2026-01-02T03:04:05Z"}
}

func start(t testing.TB, id string) (*Workspace, []Entry) {
	t.Helper()
	w, e, err := New(Record{ID: id, Name: id}, by("workspace.create"))
	expect.No(t, err)
	return w, []Entry{e}
}

func branch(t testing.TB, base *Workspace, id string) (*Workspace, []Entry) {
	t.Helper()
	w, e, err := Branch(base, Record{ID: id, Name: id}, by("workspace.create"))
	expect.No(t, err)
	return w, []Entry{e}
}

func point(id string, x float64) Entity {
	return Entity{ID: id, Type: Point, Properties: core.Raw(fmt.Sprintf(`{"coordinates":[%g,0,0]}`, x))}
}

func line(id string, x float64) Entity {
	return Entity{ID: id, Type: Line, Properties: core.Raw(fmt.Sprintf(`{"end":[%g,1],"start":[0,0]}`, x))}
}

func holds(id string, refs ...string) Entity {
	return Entity{ID: id, Type: Constraint, Properties: core.MustEncode(map[string]any{"constraint_type": "parallel", "entity_ids": refs})}
}

// box is a solid from x to x+size, and what it is made by.
func box(t testing.TB, id string, x, size float64) (Entity, Shape) {
	t.Helper()
	s := expect.Of(NewShape("box", core.Raw(fmt.Sprintf(`{"dimensions":[%g,10,10],"position":[%g,0,0]}`, size, x)), nil, ""))(t)
	return Entity{ID: id, Type: Solid, Shape: s.Hash, Properties: boxed(x, x+size)}, s
}

func boxed(from, to float64) core.Raw {
	return core.Raw(fmt.Sprintf(`{"bounding_box":{"max":[%g,10,10],"min":[%g,0,0]},"volume":%g}`, to, from, (to-from)*100))
}

func commit(t testing.TB, w *Workspace, c Change) Entry {
	t.Helper()
	if c.Method == "" {
		c.Method = "entity.create_point"
	}
	return expect.Of(w.Commit(c))(t)
}

func put(t testing.TB, w *Workspace, list ...Entity) Entry {
	t.Helper()
	return commit(t, w, Change{Put: list})
}

func putBox(t testing.TB, w *Workspace, id string, x, size float64) Entry {
	t.Helper()
	e, s := box(t, id, x, size)
	return commit(t, w, Change{Method: "solid.primitive", Put: []Entity{e}, Shapes: []Shape{s}})
}

// state is all that a workspace is, in words, to compare.
func state(w *Workspace) string {
	var b strings.Builder
	for e := range w.All() {
		fmt.Fprintf(&b, "%s %s %s %s %s %s %s\n", e.ID, e.Type, e.Hash, e.Base, e.Origin, e.CreatedBy, e.Properties)
	}
	for _, c := range w.Conflicts() {
		fmt.Fprintf(&b, "open %+v\n", c)
	}
	fmt.Fprintf(&b, "gone %v\nsettled %v\nrefs %v\n", w.gone, nonEmpty(w.settled), w.refs)
	return b.String()
}

func nonEmpty(all map[string]map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for k, v := range all {
		if len(v) > 0 {
			out[k] = v
		}
	}
	return out
}

func ids(w *Workspace) string {
	var list []string
	for e := range w.All() {
		list = append(list, e.ID)
	}
	return strings.Join(list, " ")
}

func TestEntitiesKeepTheOrderOfMaking(t *testing.T) {
	w, _ := start(t, Main)
	put(t, w, point("b", 1), point("a", 2))
	put(t, w, line("c", 3))
	put(t, w, point("b", 9))
	expect.Is(t, ids(w), "b a c", "order")
	page, total := w.Entities(Filter{Type: Point, Offset: 1, Limit: 5})
	expect.True(t, total == 2 && len(page) == 1 && page[0].ID == "a", "page %v of %d", page, total)
	e, ok := w.Entity("b")
	expect.True(t, ok && strings.Contains(string(e.Properties), "9") && e.Origin == "main:2" && e.CreatedBy == "", "entity %+v", e)
}

func TestAnIDIsNeverGivenTwice(t *testing.T) {
	w, _ := start(t, "ws_a")
	id := w.NextID(Point)
	expect.Must(t, id == "ws_a_point_1", "%v", id)
	put(t, w, point("ws_a_point_1", 1), point("ws_a_point_2", 1), point("ws_a_point_4", 1))
	expect.Is(t, w.NextID(Point), "ws_a_point_3")
	expect.Is(t, w.NextID(Solid), "ws_a_solid_1")
	put(t, w, point("ws_a_point_3", 1))
	expect.Of(w.Undo(by("history.undo")))(t)
	commit(t, w, Change{Removed: []string{"ws_a_point_1"}})
	expect.Is(t, w.NextID(Point), "ws_a_point_5")
	expect.Same(t, w.NextIDs(Point, 3), []string{"ws_a_point_5", "ws_a_point_6", "ws_a_point_7"})
	put(t, w, point("ws_a_point_6", 1))
	expect.Same(t, w.NextIDs(Point, 2), []string{"ws_a_point_5", "ws_a_point_7"})
	m, _ := start(t, Main)
	expect.Is(t, m.NextID(Arc), "arc_1")
}

func TestWhatIsWrongIsRefusedAndChangesNothing(t *testing.T) {
	solid, shape := box(t, "s", 0, 10)
	free := solid
	free.Shape = ""
	other := shape
	other.Op = "sphere"
	for _, c := range []struct {
		name, says string
		change     Change
	}{
		{"nothing", "changes nothing", Change{}},
		{"no method", "method", Change{Method: " ", Put: []Entity{point("b", 1)}}},
		{"bad id", "entity_id", Change{Put: []Entity{point("1a", 1)}}},
		{"an id like a reference", "entity_id", Change{Put: []Entity{point("a.start", 1)}}},
		{"long id", "entity_id", Change{Put: []Entity{point(strings.Repeat("a", 65), 1)}}},
		{"unknown type", "entity_type", Change{Put: []Entity{{ID: "b", Type: "blob", Properties: core.Raw("{}")}}}},
		{"no properties", "properties", Change{Put: []Entity{{ID: "b", Type: Point}}}},
		{"properties are no object", "properties", Change{Put: []Entity{{ID: "b", Type: Point, Properties: core.Raw("[1]")}}}},
		{"numbers too large", "properties", Change{Put: []Entity{{ID: "b", Type: Point, Properties: core.Raw(`{"x":1e999}`)}}}},
		{"twice", "twice", Change{Put: []Entity{point("b", 1), point("b", 2)}}},
		{"put and removed", "twice", Change{Put: []Entity{point("a", 1)}, Removed: []string{"a"}}},
		{"unknown removed", "not found", Change{Put: []Entity{point("b", 1)}, Removed: []string{"zz"}}},
		{"solid without shape", "shape", Change{Put: []Entity{free}}},
		{"shape missing", "missing", Change{Put: []Entity{solid}}},
		{"shape that lies", "hash", Change{Put: []Entity{solid}, Shapes: []Shape{other}}},
		{"point with shape", "shape", Change{Put: []Entity{{ID: "b", Type: Point, Shape: shape.Hash, Properties: core.Raw("{}")}}, Shapes: []Shape{shape}}},
		{"constraint on nothing", "entity_ids", Change{Put: []Entity{holds("k")}}},
		{"constraint on what is not here", "not found", Change{Put: []Entity{holds("k", "zz.start")}}},
		{"held entity", "refers to it", Change{Removed: []string{"a"}}},
		{"own conflict", "source_workspace_id", Change{Resolved: []Resolved{{EntityID: "a", Source: Main, Strategy: KeepSource}}}},
		{"bad strategy", "strategy", Change{Resolved: []Resolved{{EntityID: "a", Source: "b", Strategy: "guess"}}}},
		{"blob that lies", "sha256", Change{Put: []Entity{point("b", 1)}, Blobs: []Blob{{Hash: "00", Data: []byte("x")}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := start(t, Main)
			put(t, w, point("a", 1), holds("k0", "a.center"))
			before := state(w)
			c.change.Method = strings.TrimSpace(or(c.change.Method, "test"))
			_, err := w.Commit(c.change)
			expect.True(t, err != nil && strings.Contains(err.Error(), c.says), "error %v, want one about %q", err, c.says)
			expect.True(t, core.AsError(err).Code != core.Internal, "%v is nobody's fault", err)
			if state(w) != before || w.Seq() != 2 {
				t.Errorf("changed:\n%s", state(w))
			}
		})
	}
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func TestABranchHoldsAllItNeeds(t *testing.T) {
	base, _ := start(t, Main)
	blob := NewBlob([]byte("solid"))
	imported := expect.Of(NewShape("import", core.Raw(`{"format":"STL"}`), nil, blob.Hash))(t)
	moved := expect.Of(NewShape("transform", core.Raw(`{"matrix":[1]}`), []string{imported.Hash}, ""))(t)
	commit(t, base, Change{
		Put:    []Entity{{ID: "part", Type: Solid, Shape: moved.Hash, Properties: core.Raw("{}")}, line("l", 1), holds("k", "l.end")},
		Shapes: []Shape{imported, moved}, Blobs: []Blob{blob},
	})
	w, journal := branch(t, base, "ws")
	put(t, base, line("l", 2))
	again := expect.Of(Load(journal))(t)
	if state(again) != state(w) {
		t.Errorf("replayed\n%s\nwant\n%s", state(again), state(w))
	}
	e, _ := again.Entity("l")
	expect.True(t, e.Base == e.Hash && e.WorkspaceID == "ws" && e.Origin == "main:2", "entity %+v", e)
	data, ok := again.Blob(blob.Hash)
	expect.True(t, ok && string(data) == "solid", "the file is missing")
	s, ok := again.Shape(moved.Hash)
	expect.True(t, ok && s.Inputs[0] == imported.Hash, "the shape is missing")
	expect.Same(t, again.Constraints("l"), []string{"k"}, "constraints")
}

func TestLoadRefusesAJournalThatDoesNotFit(t *testing.T) {
	base, journal := start(t, Main)
	journal = append(journal, put(t, base, point("a", 1)), put(t, base, point("b", 1)))
	undo := expect.Of(base.Undo(by("history.undo")))(t)
	journal = append(journal, undo)
	for _, c := range []struct {
		name, says string
		spoil      func(j []Entry) []Entry
	}{
		{"none", "begins", func([]Entry) []Entry { return nil }},
		{"no beginning", "begins", func(j []Entry) []Entry { return j[1:] }},
		{"gap", "can't follow", func(j []Entry) []Entry { return slices.Delete(j, 1, 2) }},
		{"another workspace", "is of workspace", func(j []Entry) []Entry { j[1].WorkspaceID = "x"; return j }},
		{"a second beginning", "first entry", func(j []Entry) []Entry { j[1].Record = j[0].Record; return j }},
		{"wrong hash", "hash", func(j []Entry) []Entry { j[1].Put = []Entity{j[2].Put[0]}; j[1].Put[0].Hash = "00"; return j }},
		{"wrong base", "base_hash", func(j []Entry) []Entry {
			j[1].Put = slices.Clone(j[1].Put)
			j[1].Put[0].Base = j[1].Put[0].Hash
			return j
		}},
		{"no origin", "origin", func(j []Entry) []Entry { j[1].Put = slices.Clone(j[1].Put); j[1].Put[0].Origin = ""; return j }},
		{"undo of another", "does not undo", func(j []Entry) []Entry { j[3].Undoes = 2; return j }},
		{"undo of something else", "does not undo", func(j []Entry) []Entry { j[3].Removed = []string{"a"}; return j }},
		{"undo too far", "nothing to undo", func(j []Entry) []Entry { j[1] = Entry{WorkspaceID: Main, Seq: 2, Method: "u", Undoes: 1}; return j }},
		{"redo of nothing", "nothing to redo", func(j []Entry) []Entry { j[3].Undoes, j[3].Redoes = 0, 3; return j }},
		{"bad time", "at", func(j []Entry) []Entry { j[1].At = "yesterday"; return j }},
		{"bad workspace", "workspace_id", func(j []Entry) []Entry {
			j[0].Record, j[0].WorkspaceID = &Record{ID: "../x"}, "../x"
			return j
		}},
	} {
		_, err := Load(c.spoil(slices.Clone(journal)))
		expect.True(t, err != nil && strings.Contains(err.Error(), c.says), "%s: error %v, want one about %q", c.name, err, c.says)
	}
	_, err := Load(journal)
	expect.No(t, err, "unspoiled")
}
