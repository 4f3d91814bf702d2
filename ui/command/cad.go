package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// showCADRoles prints a list of roles, and in full the one that was named.
func showCADRoles(c *call, page core.Page[cad.RoleTemplate]) error {
	if len(page.Items) == 1 {
		return c.show(page.Items[0])
	}
	return c.list(page)
}

// showAnswer prints what came of an operation.
func showAnswer(c *call, a op.Answer) error {
	return c.print(a, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "%s by %s in %s: done\n", a.Done.Method, a.Done.AgentID, a.Done.WorkspaceID); err != nil {
			return err
		}
		return details(w, a.Data)
	})
}
