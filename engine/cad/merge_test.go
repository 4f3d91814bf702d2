package cad_test

import (
	"context"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/expect"
)

func TestConflictsOfAMergeStayOpenUntilTheyAreResolved(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.cad.PutRole(t.Context(), alice, cad.RoleTemplate{
		Name: "all", Description: "All.", AllowedOperations: cad.MethodNames(), ExampleTasks: []string{"x"},
	})
	expect.No(t, err)
	w.agent("ann", "all")
	w.agent("bob", "all")
	for i, id := range []string{"ann", "bob"} {
		w.do(id, "entity.create_point", `{"entity_id":"p","x":`+string('1'+rune(i))+`}`)
		w.do(id, "entity.create_point", `{"entity_id":"q","x":`+string('3'+rune(i))+`}`)
		w.do(id, "entity.create_line", `{}`)
	}
	open := func() (ids string) {
		t.Helper()
		all, err := w.cad.Conflicts(context.Background(), home, "ws_ann")
		expect.Must(t, err == nil && len(all) == w.space("ws_ann").Conflicts, "%+v, %v, counted %d", all, err, w.space("ws_ann").Conflicts)
		for _, c := range all {
			expect.Is(t, c.Type, model.IDCollision, c)
			ids += c.EntityID
		}
		return ids
	}
	conflicts := func(after, want string) {
		t.Helper()
		expect.Is(t, open(), want, "after", after)
		w.sound()
	}
	w.do("ann", "workspace.merge", `{"source_workspace_id":"ws_bob","target_workspace_id":"ws_ann"}`)
	conflicts("the merge", "pq")
	expect.Is(t, w.ids("ws_ann"), "p q ws_ann_line_1 ws_bob_line_1", "merged")
	w.do("ann", "workspace.resolve_conflict", `{"source_workspace_id":"ws_bob","target_workspace_id":"ws_ann","entity_id":"p","strategy":"keep_source"}`)
	conflicts("one decision", "q")
	w.do("ann", "history.undo", `{}`)
	conflicts("taking it back", "pq")
	w.do("ann", "history.undo", `{}`)
	conflicts("taking the merge back", "")
	w.do("ann", "history.redo", `{}`)
	w.do("ann", "history.redo", `{}`)
	conflicts("doing both again", "q")
	w.again()
	w.do("ann", "workspace.resolve_conflict", `{"source_workspace_id":"ws_bob","target_workspace_id":"ws_ann","entity_id":"q","strategy":"keep_target"}`)
	conflicts("the other decision", "")
}
