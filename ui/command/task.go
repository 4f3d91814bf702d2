package command

import (
	"slices"
	"strings"

	"swarmdeck/engine/op"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

func showReason(c *call, why swarm.Reason) error {
	text := why.Text
	if why.Kind != "" {
		text = why.Kind + ": " + text
	}
	if why.Ref != "" && !strings.Contains(text, why.Ref) {
		text += " (" + why.Ref + ")"
	}
	return c.say(why, "%s is %s: %s", why.TaskID, why.Status, text)
}

// showTree prints tasks below those that they came of.
func showTree(c *call, all op.Tree) error {
	if c.g.Output == "json" {
		return c.list([]task.Task(all))
	}
	depth := map[string]int{}
	shown := slices.Clone(all)
	for i, t := range all {
		if parent, ok := depth[t.ParentTaskID]; ok {
			depth[t.TaskID] = parent + 1
		} else {
			depth[t.TaskID] = 0
		}
		shown[i].TaskID = strings.Repeat("· ", depth[t.TaskID]) + t.TaskID
	}
	return c.list([]task.Task(shown))
}
