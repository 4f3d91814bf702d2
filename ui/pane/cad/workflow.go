package cad

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Workflow shows one workflow.
type Workflow struct{ *pane.Detail[cad.Workflow] }

// NewWorkflow makes the sheet of one workflow: how far it is, which task waits
// for which, who does it, and what failed.
func NewWorkflow(of CAD) *Workflow {
	return &Workflow{pane.NewDetail(pane.DetailSpec[cad.Workflow]{
		Name: "workflow", Fetch: of.Workflow, Text: workflowText, Live: true, Item: workflowItem,
		Title: func(w *cad.Workflow) string { return "workflow " + cmp.Or(w.ScenarioName, w.Goal) },
		State: func(_ *pane.Env, w *cad.Workflow) pane.State { return workflowState(w) },
	})}
}

// Selected implements pane.Pane: the workflow, with the task under the cursor
// as its part.
func (p *Workflow) Selected(env pane.Env) pane.Item {
	it, under := p.Detail.Selected(env), p.Open(env)
	it.Part, it.Workspace, it.Agent, it.Approval = under.Part, under.Workspace, under.Agent, under.Approval
	return it
}

// Picture implements pane.Viewer: where the task under the cursor builds.
func (p *Workflow) Picture(env pane.Env) pane.Item { return pane.PictureOf(p.Open(env).Workspace, "") }

func workflowText(env pane.Env, w *cad.Workflow, out *pane.Paras) {
	st, m := workflowState(w), &w.Metrics
	out.Fields(&env, w, "why:cancelled,warn waits_for,warn")
	out.Add("done", bar(w.Completion, 20, env.ASCII()), st.Role())
	out.Fields(&env, w, "scenario:scenario_name goal")
	out.Add("pattern", strings.ReplaceAll(string(w.Pattern), "_", " "), screen.Text)
	out.Add("tasks", fmt.Sprintf("%d of %d completed, %d failed", m.Completed, m.Tasks, m.FailedNow), screen.Text)
	out.Add("operations", fmt.Sprintf("%d: %d well, %d failed; %d rounds of rework", m.TotalOperations, m.Successful, m.Failed, m.Rounds), screen.Text)
	out.Add("agents", fmt.Sprintf("%d, at most %d at once", m.AgentsUsed, m.Parallel), screen.Text)
	out.Add("took", workflowTook(&env, w), screen.Text)
	out.Fields(&env, w, "files:directory,dim")
	out.Head("tasks: what waits for what")
	out.Rows("", taskTree(env, w))
	failures(env, w, out)
	out.Head("agents")
	for _, s := range w.Agents {
		out.Link(s.RoleName, s.AgentID+" in "+s.WorkspaceID, screen.Accent, pane.Item{Kind: "cad-agent", ID: s.AgentID, Agent: s.AgentID, Workspace: s.WorkspaceID})
	}
	out.Add("created", pane.Made(env.Now, w.CreatedAt.Time(), w.CreatedBy), screen.Dim)
	out.Fields(&env, w, "workflow:workflow_id,dim trace:trace_id,dim")
}

// taskTree is the graph of assignments: below each stands what waits for it.
func taskTree(env pane.Env, w *cad.Workflow) (rows []pane.Row) {
	after := map[string][]*cad.TaskAssignment{}
	var roots []*cad.TaskAssignment
	known := map[string]bool{}
	for i := range w.Assignments {
		known[w.Assignments[i].TaskID] = true
	}
	for i := range w.Assignments {
		a := &w.Assignments[i]
		root := true
		for _, d := range a.Dependencies {
			if known[d] {
				after[d], root = append(after[d], a), false
			}
		}
		if root {
			roots = append(roots, a)
		}
	}
	tree := pane.Tree[*cad.TaskAssignment]{
		ID:   func(a *cad.TaskAssignment) string { return a.TaskID },
		Kids: func(a *cad.TaskAssignment) []*cad.TaskAssignment { return after[a.TaskID] },
	}
	for _, b := range tree.Branches(env.Glyphs, roots...) {
		st := taskState(b.Node)
		row := b.Row(taskLine(env, b.Node, st), st.Role())
		row.Item = taskItem(b.Node)
		rows = append(rows, row)
	}
	return rows
}

// taskLine is a task in a line.
func taskLine(env pane.Env, a *cad.TaskAssignment, st pane.State) string {
	text := st.Label(env.Glyphs) + " " + a.TaskID
	if who := cmp.Or(a.AgentID, a.Worker); who != "" {
		text += " " + who
	}
	if n := len(a.Operations); n > 0 {
		text += fmt.Sprintf(" %d/%d", a.Done-a.DoneBefore, n)
	}
	if a.Round > 0 {
		text += fmt.Sprintf(" round %d", a.Round+1)
	}
	return text + ": " + a.Description
}

// taskItem is a task of the workflow; enter opens the task of the queue that
// carries it out.
func taskItem(a *cad.TaskAssignment) pane.Item {
	it := pane.Item{Kind: "assignment", ID: a.TaskID, Part: a.TaskID, Workspace: a.WorkspaceID, Agent: a.AgentID, Approval: a.Waiting}
	if a.SwarmTask != "" {
		it.Kind, it.ID, it.Task = "task", a.SwarmTask, a.SwarmTask
	}
	return it
}

// taskState is how far a task is.
func taskState(a *cad.TaskAssignment) pane.State {
	word := strings.ReplaceAll(string(a.Status), "_", " ")
	switch {
	case a.Waiting != "":
		return pane.State{State: screen.Waiting, Word: "needs you"}
	case a.Open():
		return pane.State{State: screen.Queued, Word: "unassigned"}
	case a.Status == cad.InProgress:
		return pane.State{State: screen.Working, Word: word}
	}
	return pane.State{State: screen.StateOf(string(a.Status)), Word: word}
}

// failures lists what failed, the newest first, those done again since dimmed.
func failures(env pane.Env, w *cad.Workflow, out *pane.Paras) {
	if len(w.Failures) == 0 {
		return
	}
	out.Head(fmt.Sprintf("failures (%d)", len(w.Failures)))
	for i := len(w.Failures) - 1; i >= 0; i-- {
		f := &w.Failures[i]
		role, note := screen.Bad, ""
		if f.Again {
			role, note = screen.Dim, " (done again)"
		}
		what := f.TaskID + " by " + f.AgentID
		if f.Operation != "" {
			what += ", " + f.Operation
		}
		if f.ErrorCode != "" {
			what += " " + f.ErrorCode
		}
		out.Add(pane.Age(env.Now, f.At.Time())+" ago", what+": "+f.Error+note, role)
	}
}

// NewWorkflows makes the pane of the runs of scenarios and goals, newest first.
func NewWorkflows(of CAD) *pane.Table[cad.Workflow] {
	return pane.NewTable(pane.Spec[cad.Workflow]{
		Name: "workflows", Title: "workflows", Empty: "no workflows: press + to run a scenario",
		Face: face.For[cad.Workflow](),
		Cells: map[string]pane.Cell[cad.Workflow]{
			"STATE": pane.StateCell(workflowState),
			"DONE": func(env *pane.Env, w *cad.Workflow) (string, screen.Role) {
				return bar(w.Completion, 10, env.ASCII()), workflowState(w).Role()
			},
			"SCENARIO": func(env *pane.Env, w *cad.Workflow) (string, screen.Role) {
				return cmp.Or(w.ScenarioName, w.Goal), screen.Accent
			},
			"FAILED": func(env *pane.Env, w *cad.Workflow) (string, screen.Role) {
				if n := w.Metrics.FailedNow; n > 0 {
					return fmt.Sprint(n), screen.Bad
				}
				return "", screen.Dim
			},
			"TOOK": func(env *pane.Env, w *cad.Workflow) (string, screen.Role) {
				return workflowTook(env, w), screen.Text
			},
		},
		Item:  workflowItem,
		Fetch: of.Workflows,
	})
}

// workflowItem is a workflow as a thing under the cursor.
func workflowItem(w *cad.Workflow) pane.Item {
	return pane.Item{Kind: "workflow", ID: w.WorkflowID, Session: w.SessionID, Trace: w.TraceID}
}

// workflowState is how far a workflow is.
func workflowState(w *cad.Workflow) pane.State {
	word := strings.ReplaceAll(string(w.State), "_", " ")
	state := screen.StateOf(string(w.State))
	switch {
	case w.Cancelled != "":
		state, word = screen.Cancelled, "cancelled"
	case w.State == cad.Initializing:
		state = screen.Queued
	case w.State == cad.PartialFailure:
		state = screen.Blocked
	}
	return pane.State{State: state, Word: word}
}

// workflowTook is how long a workflow ran, or has been running.
func workflowTook(env *pane.Env, w *cad.Workflow) string {
	switch {
	case w.StartedAt == 0:
		return ""
	case w.CompletedAt == 0:
		return face.Took(env.Now.Sub(w.StartedAt.Time()))
	}
	return face.Took(w.CompletedAt.Time().Sub(w.StartedAt.Time()))
}

// bar shows how much is done, 0 to 100, in w cells and as a number.
func bar(done float64, w int, ascii bool) string {
	full, empty := "█", "░"
	if ascii {
		full, empty = "#", "-"
	}
	n := min(max(int(done/100*float64(w)+0.5), 0), w)
	return strings.Repeat(full, n) + strings.Repeat(empty, w-n) + fmt.Sprintf(" %.0f%%", done)
}
