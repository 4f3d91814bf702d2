// Package tasks is the pane of a tenant's tasks, newest first, over a history
// of any size: it holds only the pages around the window.
package tasks

import (
	"strconv"

	"swarmdeck/engine/task"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "tasks"

// Pane lists tasks.
type Pane struct{ *pane.Table[task.Task] }

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewTable(pane.Spec[task.Task]{
		Name: Name, Title: "tasks", Empty: "no tasks: press d to dispatch one",
		Cols: []grid.Column{
			{Title: "STATUS", Min: 11},
			{Title: "PRI", Min: 3, Priority: 4, Right: true},
			{Title: "KIND", Min: 12, Weight: 1, Priority: 3},
			{Title: "TITLE", Min: 28, Weight: 5},
			{Title: "AGENT", Min: 8, Weight: 1, Priority: 2},
			{Title: "AGE", Min: 4, Priority: 1, Right: true},
			{Title: "ID", Min: 19, Priority: 1, Key: true},
		},
		ID:    func(t *task.Task) string { return t.TaskID },
		Row:   row,
		Item:  Item,
		Fetch: pane.World.Tasks,
		Total: func(env *pane.Env) int { return int(env.Snap.Counts.Total) },
	})}
}

// Item is a task as a thing under the cursor.
func Item(t *task.Task) pane.Item {
	return pane.Item{
		Kind: "task", ID: t.TaskID, Task: t.TaskID, Agent: t.Agent, Session: t.SessionID,
		Trace: t.TraceID, Approval: t.ApprovalID, Paused: t.Paused,
	}
}

func row(env *pane.Env, t *task.Task, set func(int, string, screen.Role)) {
	st := pane.TaskState(env, t)
	set(0, st.Label(env.Glyphs), st.Role())
	set(1, strconv.Itoa(t.Priority), screen.Dim)
	set(2, t.Kind, screen.Dim)
	title := t.Title
	if title == "" {
		title = t.Kind
	}
	set(3, title, screen.Text)
	set(4, t.Agent, screen.Accent)
	set(5, pane.Age(env.Now, t.CreatedAt), screen.Dim)
	set(6, t.TaskID, screen.Accent)
}
