package pane

import (
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/skill"
)

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

	File  string // of an agent's work, and FILE:HUNK, as they are in State
	Piece string
	State string
}

// Empty reports whether there is no thing.
func (it Item) Empty() bool { return it.Kind == "" }

// Field returns the value of a placeholder of a bound command line.
func (it Item) Field(name string) (string, bool) {
	value := map[string]string{
		"id": it.ID, "name": it.ID, "kind": it.Kind, "task": it.Task, "agent": it.Agent, "session": it.Session, "trace": it.Trace,
		"approval": it.Approval, "digest": it.Digest, "shown": it.Shown,
		"workspace": it.Workspace, "source": it.Source, "part": it.Part,
		"file": it.File, "piece": it.Piece, "state": it.State,
	}[name]
	if name == "subagent" && it.Kind == name {
		value = it.ID
	}
	return value, value != ""
}

// String is the item as an operator would name it.
func (it Item) String() string { return strings.TrimSpace(it.Kind + " " + it.ID) }

// ItemOf is a thing of which no more is known than what it is.
func ItemOf(kind, id string) Item {
	it := Item{Kind: kind, ID: id}
	switch kind {
	case "agent", "cad-agent":
		it.Agent = id
	case "task":
		it.Task = id
	case "session":
		it.Session = id
	case "approval":
		it.Approval = id
	case "workspace":
		it.Workspace = id
	}
	return it
}

// SubagentItem is a subagent as a thing under the cursor.
func SubagentItem(a *skill.Subagent) Item {
	return Item{
		Kind: "subagent", ID: a.AgentID, Task: a.TaskID, Session: a.SessionID, Trace: a.TraceID, Approval: a.Waiting,
		Paused: a.State == skill.Paused,
	}
}

// CADAgentItem is a CAD agent as a thing under the cursor.
func CADAgentItem(a *cad.Agent) Item {
	return Item{Kind: "cad-agent", ID: a.AgentID, Agent: a.AgentID, Task: a.TaskID, Approval: a.Waiting, Workspace: a.WorkspaceID}
}

// TimelineOf is the timeline of a thing, empty for one that has none.
func TimelineOf(it Item) Item {
	kind, id := it.Kind, it.ID
	switch {
	case kind == "agent" || kind == "task" || kind == "session":
	case kind == "record" && it.Part != "": // an event knows its run
		kind, id = "run", it.Part
	case it.Task != "":
		kind, id = "task", it.Task
	case it.Agent != "":
		kind, id = "agent", it.Agent
	default:
		return Item{}
	}
	return Item{Kind: "timeline", ID: kind + ":" + id, Task: it.Task, Agent: it.Agent, Session: it.Session}
}

// LineageOf is the graph around a node of the agents' record.
func LineageOf(ref dag.NodeRef) Item {
	if ref.ID == "" {
		return Item{}
	}
	return Item{Kind: "lineage", ID: ref.String()}
}

// PictureOf is the picture of a workspace's solids, or of one of them; empty
// for no workspace.
func PictureOf(workspace, solid string) Item {
	if workspace == "" {
		return Item{}
	}
	return Item{Kind: "solid", ID: strings.TrimSuffix(workspace+"/"+solid, "/"), Workspace: workspace, Part: solid}
}
