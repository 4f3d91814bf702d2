// Package workflow is the sheet of one workflow: how far it is, which task waits
// for which, who does it, and what failed.
package workflow

import (
	"fmt"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/workflows"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "workflow"

// Pane shows one workflow.
type Pane struct{ *pane.Detail[cad.Workflow] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[cad.Workflow]{
		Name: Name, Fetch: pane.World.Workflow, Text: text, Live: true, Item: workflows.Item,
		Title: func(env pane.Env, w *cad.Workflow) string {
			return "workflow " + workflows.Label(w) + " " + workflows.State(w).Label(env.Glyphs)
		},
	})}
}

// Selected implements pane.Pane: the workflow, with the task under the cursor
// as its part.
func (p *Pane) Selected(env pane.Env) pane.Item {
	it, under := p.Detail.Selected(env), p.Open(env)
	it.Part, it.Workspace, it.Agent, it.Approval = under.Part, under.Workspace, under.Agent, under.Approval
	return it
}

// Picture implements pane.Viewer: where the task under the cursor builds.
func (p *Pane) Picture(env pane.Env) pane.Item { return pane.PictureOf(p.Open(env).Workspace, "") }

func text(env pane.Env, w *cad.Workflow, out *pane.Paras) {
	st, m := workflows.State(w), &w.Metrics
	out.Add("state", st.Label(env.Glyphs), st.Role())
	out.Add("why", w.Cancelled, screen.Warn)
	out.Add("waits for", w.Waits, screen.Warn)
	out.Add("done", pane.Bar(w.Completion, 20, env.ASCII()), st.Role())
	out.Add("scenario", w.ScenarioName, screen.Text)
	out.Add("goal", w.Goal, screen.Text)
	out.Add("pattern", strings.ReplaceAll(string(w.Pattern), "_", " "), screen.Text)
	out.Add("tasks", fmt.Sprintf("%d of %d completed, %d failed", m.Completed, m.Tasks, m.FailedNow), screen.Text)
	out.Add("operations", fmt.Sprintf("%d: %d well, %d failed; %d rounds of rework", m.TotalOperations, m.Successful, m.Failed, m.Rounds), screen.Text)
	out.Add("agents", fmt.Sprintf("%d, at most %d at once", m.AgentsUsed, m.Parallel), screen.Text)
	out.Add("took", workflows.Took(&env, w), screen.Text)
	out.Add("files", w.Directory, screen.Dim)
	out.Head("tasks: what waits for what")
	out.Rows("", tasks(env, w))
	failures(env, w, out)
	out.Head("agents")
	for _, s := range w.Agents {
		out.Link(s.RoleName, s.AgentID+" in "+s.WorkspaceID, screen.Accent, pane.Item{Kind: "cad-agent", ID: s.AgentID, Agent: s.AgentID, Workspace: s.WorkspaceID})
	}
	out.Add("created", pane.When(env.Now, w.CreatedAt.Time())+by(w.CreatedBy), screen.Dim)
	out.Add("workflow", w.WorkflowID, screen.Dim)
	out.Add("trace", w.TraceID, screen.Dim)
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// tasks is the graph of assignments: below each stands what waits for it.
func tasks(env pane.Env, w *cad.Workflow) (rows []pane.Row) {
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
		st := State(b.Node)
		row := b.Row(line(env, b.Node, st), st.Role())
		row.Item = item(b.Node)
		rows = append(rows, row)
	}
	return rows
}

// line is a task in a line.
func line(env pane.Env, a *cad.TaskAssignment, st pane.State) string {
	text := st.Label(env.Glyphs) + " " + a.TaskID
	if a.AgentID != "" {
		text += " " + a.AgentID
	} else if a.Worker != "" {
		text += " " + a.Worker
	}
	if n := len(a.Operations); n > 0 {
		text += fmt.Sprintf(" %d/%d", a.Done-a.DoneBefore, n)
	}
	if a.Round > 0 {
		text += fmt.Sprintf(" round %d", a.Round+1)
	}
	return text + ": " + a.Description
}

// item is a task of the workflow; enter opens the task of the queue that
// carries it out.
func item(a *cad.TaskAssignment) pane.Item {
	it := pane.Item{Kind: "assignment", ID: a.TaskID, Part: a.TaskID, Workspace: a.WorkspaceID, Agent: a.AgentID, Approval: a.Waiting}
	if a.SwarmTask != "" {
		it.Kind, it.ID, it.Task = "task", a.SwarmTask, a.SwarmTask
	}
	return it
}

// State is how far a task is.
func State(a *cad.TaskAssignment) pane.State {
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
