package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/op"
)

// showWorkflow prints one workflow with its tasks.
func showWorkflow(c *call, w cad.Workflow) error {
	return c.print(w, func(out io.Writer) error {
		c.table(out, nil, w)
		fmt.Fprintln(out)
		c.table(out, nil, w.Assignments)
		if w.Waits != "" {
			fmt.Fprintf(out, "\nwaits for %s\n", w.Waits)
		}
		return nil
	})
}

// showDecomposed prints a workflow that has begun, or the tasks that wait.
func showDecomposed(c *call, d op.Decomposed) error {
	if d.Begun {
		return showWorkflow(c, d.Workflow)
	}
	return c.list(d.Assignments)
}
