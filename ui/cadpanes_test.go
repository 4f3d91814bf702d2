package ui

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/themes"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
)

// drilled is a plate of a size with a round hole along z.
func drilled(half, hole, high float64) *mesh.Mesh {
	const n = 48
	m := &mesh.Mesh{}
	for i := range n {
		y, x := math.Sincos(2 * math.Pi * float64(i) / n)
		s := half / max(math.Abs(x), math.Abs(y))
		m.Vertices = append(m.Vertices, [3]float64{x * s, y * s, 0}, [3]float64{x * s, y * s, high}, [3]float64{x * hole, y * hole, 0}, [3]float64{x * hole, y * hole, high})
	}
	for i := range uint32(n) {
		a, b := 4*i, 4*((i+1)%n)
		for _, q := range [][4]uint32{{a, b, b + 1, a + 1}, {a + 3, b + 3, b + 2, a + 2}, {a + 1, b + 1, b + 3, a + 3}, {a + 2, b + 2, b, a}} {
			m.Triangles = append(m.Triangles, [3]uint32{q[0], q[1], q[2]}, [3]uint32{q[0], q[2], q[3]})
		}
	}
	return m
}

func solidOf(space, id string, m *mesh.Mesh) model.Entity {
	b, p := m.Bounds(), m.Properties()
	return model.Entity{ID: id, Type: model.Solid, WorkspaceID: space, CreatedBy: "ann", Properties: core.MustEncode(map[string]any{
		"volume": p.Volume, "surface_area": p.Area, "center_of_mass": p.Center, "bounding_box": map[string]any{"min": b.Min, "max": b.Max}, "tolerance": 0.01,
		"topology": map[string]any{"face_count": 7, "edge_count": 14, "vertex_count": 10, "is_closed": true, "is_manifold": true}, "operation": "extrude",
	})}
}

// newModels is newTalk with CAD agents in each state, workspaces with solids, a
// conflict and workflows.
func newModels() *fakeWorld {
	w := newTalk()
	agent := func(id, role string, status cad.Status, ops, good, breaches, row int, more func(*cad.Agent)) {
		a := cad.Agent{
			AgentID: id, Role: role, WorkspaceID: "ws_" + id, TenantID: tenant, Status: status, OperationCount: ops, SuccessCount: good, ErrorCount: ops - good,
			RoleViolations: breaches, ViolationsInRow: row, CreatedAt: sec(ago(time.Hour)), LastActive: sec(ago(2 * time.Minute)), CreatedEntities: []string{}, ErrorLog: []string{},
		}
		if more != nil {
			more(&a)
		}
		w.makers = append(w.makers, a)
	}
	agent("ann", "modeler", cad.Working, 24, 24, 0, 0, func(a *cad.Agent) { a.Operation, a.TaskID = "solid.boolean.subtract", id("tk", 3) })
	agent("bob", "designer", cad.Idle, 12, 9, 3, 3, func(a *cad.Agent) {
		a.ErrorLog = []string{"solid.extrude: ROLE_VIOLATION: a designer can't", "solid.fillet: ROLE_VIOLATION: \x1b[31m\u202eevil"}
		a.CreatedEntities, a.CreatedCount = []string{"point_1", "line_1"}, 2
	})
	agent("cid", "validator", cad.Failing, 5, 4, 0, 0, func(a *cad.Agent) { a.ErrorLog = []string{"measure.mass: ENTITY_NOT_FOUND: entity lid: not found"} })
	agent("dee", "integrator", cad.Idle, 3, 3, 0, 0, func(a *cad.Agent) { a.Waiting = id("ap", 1) })
	space := func(id, base, agent string, seq, entities, solids, conflicts int) {
		w.spaces = append(w.spaces, cad.Workspace{
			TenantID: tenant, WorkspaceID: id, Name: id, Base: base, AgentID: agent, Kernel: "embedded", Seq: seq, EntityCount: entities, SolidCount: solids, Conflicts: conflicts,
			CreatedAt: sec(ago(time.Hour)), UpdatedAt: sec(ago(3 * time.Minute)),
		})
	}
	space("ws_ann", "main", "ann", 6, 3, 2, 0)
	space("ws_bob", "main", "bob", 3, 2, 0, 0)
	space("main", "", "", 4, 1, 1, 1)
	mine, post, theirs := drilled(50, 20, 30), drilled(15, 8, 70), drilled(50, 30, 24)
	w.meshes = map[string]*mesh.Mesh{"ws_ann/plate": mine, "ws_ann/post": post, "main/plate": theirs}
	w.entities = map[string][]model.Entity{
		"ws_ann": {solidOf("ws_ann", "plate", mine), {ID: "point_1", Type: model.Point, WorkspaceID: "ws_ann", Properties: core.Raw(`{"coordinates":[1,2,0]}`)}, solidOf("ws_ann", "post", post)},
		"main":   {solidOf("main", "plate", theirs)},
	}
	w.journals = map[string][]model.Entry{"ws_ann": {
		{WorkspaceID: "ws_ann", Seq: 6, Method: "history.undo", AgentID: "operator ada", Undoes: 5, Removed: []string{"lid"}},
		{WorkspaceID: "ws_ann", Seq: 5, Method: "solid.primitive", AgentID: "ann", Put: []model.Entity{{ID: "lid"}}},
		{WorkspaceID: "ws_ann", Seq: 4, Method: "solid.extrude", AgentID: "ann", Put: []model.Entity{{ID: "post"}}},
		{WorkspaceID: "ws_ann", Seq: 3, Method: "solid.boolean", AgentID: "ann", Put: []model.Entity{{ID: "plate"}}, Removed: []string{"blank", "drill"}},
		{WorkspaceID: "ws_ann", Seq: 2, Method: "entity.create_point", AgentID: "ann", Put: []model.Entity{{ID: "point_1"}}},
		{WorkspaceID: "ws_ann", Seq: 1, Method: "workspace.create", AgentID: "ann"},
	}}
	w.conflicts = map[string][]model.Conflict{"main": {{
		Type: model.BothModified, EntityID: "plate", Source: "ws_ann", Target: "main", SourceHash: "a", TargetHash: "b", BaseHash: "c",
		Description: "plate was changed in ws_ann and in main since they parted",
	}}}
	w.flows = []cad.Workflow{{
		WorkflowID: id("wf", 2), TenantID: tenant, ScenarioName: "assembly_design", State: cad.PartialFailure, Completion: 60, Pattern: "parallel_then_merge",
		StartedAt: sec(ago(10 * time.Minute)), CompletedAt: sec(ago(9 * time.Minute)), CreatedAt: sec(ago(10 * time.Minute)), CreatedBy: "ada", TraceID: trace,
		Metrics:  cad.WorkflowMetrics{TotalOperations: 31, Successful: 29, Failed: 2, TotalDuration: 60, AgentsUsed: 3, Tasks: 5, Completed: 3, FailedNow: 1, Parallel: 3},
		Agents:   []cad.Seat{{AgentID: "ann", RoleName: "modeler", WorkspaceID: "ws_ann"}, {AgentID: "bob", RoleName: "designer", WorkspaceID: "ws_bob"}},
		Failures: []cad.AgentFailure{{AgentID: "bob", TaskID: "lid", Error: "the profile is not closed", ErrorCode: "OPERATION_FAILED", Operation: "solid.extrude", At: sec(ago(9 * time.Minute))}},
		Assignments: []cad.TaskAssignment{
			assigned("housing", "ann", "ws_ann", cad.Completed, 4, 4, "make the housing with its bore"),
			assigned("lid", "bob", "ws_bob", cad.Failed, 1, 3, "make the lid", "housing"),
			assigned("pins", "ann", "ws_ann", cad.Completed, 2, 2, "make four pins", "housing"),
			assigned("merge", "dee", "main", cad.Blocked, 0, 2, "bring all into main", "lid", "pins"),
			assigned("check", "cid", "main", cad.Blocked, 0, 1, "weigh the assembly", "merge"),
		},
	}, {
		WorkflowID: id("wf", 1), TenantID: tenant, Goal: "a box with a lid", State: cad.WorkflowRunning, Completion: 25, StartedAt: sec(ago(30 * time.Second)), CreatedAt: sec(ago(time.Minute)),
		Metrics: cad.WorkflowMetrics{Tasks: 4, Completed: 1, AgentsUsed: 2, TotalOperations: 7, Successful: 7},
	}}
	return w
}

func assigned(task, agent, space string, status cad.AssignmentStatus, done, ops int, what string, after ...string) cad.TaskAssignment {
	a := cad.TaskAssignment{TaskID: task, AgentID: agent, WorkspaceID: space, Status: status, Done: done, TenantID: tenant, WorkflowID: id("wf", 2)}
	a.Description, a.Dependencies, a.Operations = what, after, make([]cad.Step, ops)
	if status == cad.Completed {
		a.SwarmTask = id("tk", 5)
	}
	return a
}

// TestCADLooksRight draws every pane of CAD at the sizes that must be complete,
// and at one that shows more at once.
func TestCADLooksRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {120, 40}, {200, 50}}, func(t testing.TB, w, h int) *rig { return rigOn(t, newModels(), w, h, Options{}) }, [][2]string{
		{"cad-agents", "C"},
		{"cad-agent", "C j enter"},
		{"workspaces", "C w"},
		{"workspace", "C w enter"},
		{"solid", "C w v"},
		{"solid-four", "C w v v"},
		{"workflows", "C f"},
		{"workflow", "C f enter"},
		{"conflicts", "C o"},
		{"conflict", "C o enter"},
	})
}

func TestCADWithoutUTF8IsASCII(t *testing.T) {
	for _, keys := range []string{"C", "C j j enter", "C w", "C w enter", "C w v", "C w v s", "C w v v", "C w v m", "C w v m m", "C f", "C f enter", "C o", "C o enter"} {
		for _, w := range []int{80, 120} {
			r := rigOn(t, newModels(), w, 40, Options{ASCII: true})
			r.keys(strings.Fields(keys)...)
			screentest.ASCII(t, r.m.Frame())
		}
	}
}

func TestKeysOfCADAreCommands(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"C w u", "cad workspace undo ws_ann"},
		{"C w U", "cad workspace redo ws_ann"},
		{"C w enter u", "cad workspace undo ws_ann"},
		{"C w v u", "cad workspace undo ws_ann"},
		{"C f r", "cad workflow retry " + id("wf", 2)},
		{"C f enter R", "cad workflow retry " + id("wf", 2)},
		{"C o s", "cad workspace resolve main plate --from ws_ann --keep source"},
		{"C o t", "cad workspace resolve main plate --from ws_ann --keep target"},
		{"C o enter s", "cad workspace resolve main plate --from ws_ann --keep source"},
		{"C o enter t", "cad workspace resolve main plate --from ws_ann --keep target"},
	} {
		for _, w := range []int{80, 200} {
			t.Run(fmt.Sprintf("%s at %d", c.keys, w), func(t *testing.T) {
				r := rigOn(t, newModels(), w, 50, Options{})
				for _, key := range strings.Fields(c.keys) {
					r.keys(key)
					r.wait(deadTime)
				}
				expect.True(t, len(r.ran) == 1 && r.ran[0] == c.want, "ran %q, want %q", r.ran, c.want)
			})
		}
	}
}

func TestATaskOfAWorkflowIsRetriedAndReassigned(t *testing.T) {
	r := rigOn(t, newModels(), 80, 24, Options{})
	r.keys("C", "f", "enter")
	for range 40 {
		if strings.Contains(r.m.focused().Selected(r.m.env()).Row, "lid bob") {
			break
		}
		r.keys("j")
	}
	r.wait(deadTime)
	r.keys("r")
	want := "cad workflow retry " + id("wf", 2) + " --task lid"
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == want, "ran %q, want %q", r.ran, want)
	r.keys("A")
	r.wait(deadTime)
	r.typeText("ann")
	r.keys("enter")
	want = "cad workflow reassign " + id("wf", 2) + " lid ann"
	expect.Must(t, len(r.ran) == 2 && r.ran[1] == want, "ran %q, want %q", r.ran, want)
}

func TestAConflictIsDecidedByHand(t *testing.T) {
	r := rigOn(t, newModels(), 80, 24, Options{})
	r.keys("C", "o", "enter", "e")
	r.wait(deadTime)
	r.typeText(`{"operation":"union"}`)
	r.keys("enter")
	want := `cad workspace resolve main plate --from ws_ann --keep merged --merged {"operation":"union"}`
	expect.Must(t, len(r.ran) == 1 && r.ran[0] == want, "ran %q, want %q", r.ran, want)
}

func TestAWorkspaceIsLookedAtAgainOnlyWhenItChanged(t *testing.T) {
	w := newModels()
	r := rigOn(t, w, 80, 24, Options{})
	r.keys("C", "w", "v")
	r.has("plate")
	looked := w.looks
	for range 3 {
		r.change(func() {})
	}
	r.keys("l", "l", "s", "m")
	expect.Is(t, w.looks, looked, "nothing has changed")
	r.change(func() { w.spaces[0].Seq++ })
	expect.Is(t, w.looks, looked+1, "the workspace has changed")
}

func TestTrueColourShowsShades(t *testing.T) {
	for profile, want := range map[colorprofile.Profile]bool{colorprofile.TrueColor: true, colorprofile.ANSI256: false, colorprofile.ASCII: false} {
		theme := expect.Of(themes.Load(themes.Default))(t)
		r := rigOn(t, newModels(), 80, 24, Options{Theme: theme})
		r.send(tea.ColorProfileMsg{Profile: profile})
		r.keys("C", "w", "v")
		shades := false
		c := r.m.Frame()
		for y := range c.H() {
			for x := range c.W() {
				_, ground := c.Tints(x, y)
				shades = shades || ground != 0
			}
		}
		expect.Is(t, shades, want, profile, "shades")
		got := cellRole(c, "shaded")
		expect.True(t, (got != 0) == want, "%v: the title names shaded: %v", profile, got != 0)
	}
}

// cellRole counts the rows in which a text stands.
func cellRole(c *screen.Canvas, text string) (n int) {
	for _, row := range c.Plain() {
		if strings.Contains(row, text) {
			n++
		}
	}
	return n
}

func TestTheFleetListsCADAgentsToo(t *testing.T) {
	r := rigOn(t, newModels(), 120, 30, Options{})
	for _, want := range []string{"ann", "3 times in a row", "measure.mass: ENT"} {
		r.has(want)
	}
}
