package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/op"
)

// fullWorkflow prints a workflow that is asked for in full with its tasks.
func fullWorkflow(c *call, o *op.Op, out any) (bool, error) {
	w, is := out.(cad.Workflow)
	if !is || !o.Full {
		return false, nil
	}
	return true, c.workflow(w)
}

// workflow prints one workflow with its tasks.
func (c *call) workflow(w cad.Workflow) error {
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
		return c.workflow(d.Workflow)
	}
	return c.list(d.Assignments)
}
