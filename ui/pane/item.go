package pane

import "strings"

// Item is a thing that a key, a mark or a copy acts on. The words of a bound
// command line are filled from it, so it holds what was drawn, by id, and
// never a row number.
type Item struct {
	Kind string // "task", "agent", "subagent", "approval", "skill", "bus-message", …; "" is no thing
	ID   string // task_id, agent name, …
	// The rest may be empty.
	Task     string
	Agent    string
	Session  string
	Trace    string
	Approval string
	Digest   string // of the approval whose card was drawn
	Shown    string // RFC 3339, when that card was drawn
	Row      string // the row as text, for copying
	Paused   bool   // it was drawn as paused or pausing

	Workspace string // of CAD agents
	Source    string // the workspace that a conflict of a merge comes from
	Part      string // of the thing, under the cursor: a task of a workflow, an entity of a workspace
}

// Empty reports whether there is no thing.
func (it Item) Empty() bool { return it.Kind == "" }

// Field returns the value of a placeholder of a bound command line.
func (it Item) Field(name string) (string, bool) {
	value := map[string]string{
		"id": it.ID, "name": it.ID, "kind": it.Kind, "task": it.Task, "agent": it.Agent, "session": it.Session, "trace": it.Trace,
		"approval": it.Approval, "digest": it.Digest, "shown": it.Shown,
		"workspace": it.Workspace, "source": it.Source, "part": it.Part,
	}[name]
	if name == "subagent" && it.Kind == name {
		value = it.ID
	}
	return value, value != ""
}

// String is the item as an operator would name it.
func (it Item) String() string { return strings.TrimSpace(it.Kind + " " + it.ID) }
