package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"swarmdeck/engine/op"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

// showCause prints why something is as it is, and below it what is next.
func showCause(c *call, why op.Cause) error {
	text := why.Text
	if why.Kind != "" {
		text = why.Kind + ": " + text
	}
	if why.Ref != "" && !strings.Contains(text, why.Ref) {
		text += " (" + why.Ref + ")"
	}
	return c.print(why, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\nnext: swarmdeck %s\n", term.Clean(fmt.Sprintf("%s is %s: %s", why.ID, why.Status, text)), term.Clean(strings.Join(why.Next, "  or  ")))
		return err
	})
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
