package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

func (c *call) showReason(why swarm.Reason) error {
	text := why.Text
	if why.Kind != "" {
		text = why.Kind + ": " + text
	}
	if why.Ref != "" && !strings.Contains(text, why.Ref) {
		text += " (" + why.Ref + ")"
	}
	return c.say(why, "%s is %s: %s", why.TaskID, why.Status, text)
}

func (c *call) showTree(all op.Tree) error {
	depth := map[string]int{}
	cols := taskColumns(c)
	cols[0].text = func(t task.Task) string {
		d := 0
		if parent, ok := depth[t.ParentTaskID]; ok {
			d = parent + 1
		}
		depth[t.TaskID] = d
		return strings.Repeat("· ", d) + t.TaskID
	}
	return list(c, core.Page[task.Task]{Items: all}, cols)
}

func taskColumns(c *call) []column[task.Task] {
	type T = task.Task
	return []column[T]{
		{title: "TASK", text: func(t T) string { return t.TaskID }},
		{title: "STATUS", text: func(t T) string {
			switch {
			case t.Waiting != "":
				return string(t.Status) + " (" + t.Waiting + ")"
			case t.Paused && !t.Status.Terminal():
				return string(t.Status) + " (paused)"
			}
			return string(t.Status)
		}},
		{title: "KIND", most: 24, text: func(t T) string { return t.Kind }},
		{title: "AGENT", text: func(t T) string { return t.Agent }},
		{title: "PRI", right: true, text: func(t T) string { return fmt.Sprint(t.Priority) }},
		{title: "TRY", right: true, text: func(t T) string { return fmt.Sprintf("%d/%d", t.Attempt+1, max(1, t.MaxAttempts)) }},
		{title: "AGE", right: true, text: func(t T) string { return c.age(t.CreatedAt) }},
		{title: "SESSION", wide: true, text: func(t T) string { return t.SessionID }},
		{title: "TRACE", wide: true, text: func(t T) string { return t.TraceID }},
		{title: "PARENT", wide: true, text: func(t T) string { return t.ParentTaskID }},
		{title: "CREATED", wide: true, text: func(t T) string { return stamp(t.CreatedAt) }},
		{title: "COMPLETED", wide: true, text: func(t T) string { return stamp(t.CompletedAt) }},
		{title: "APPROVAL", wide: true, text: func(t T) string { return t.ApprovalID }},
		{title: "ERROR", wide: true, text: func(t T) string { return t.ErrorCode }},
		{title: "TITLE", most: 40, text: func(t T) string { return t.Title }},
	}
}
