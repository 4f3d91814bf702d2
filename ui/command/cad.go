package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
func showAnswer(_ *call, w io.Writer, a op.Answer) error {
	fmt.Fprintf(w, "%s by %s in %s: done\n", a.Done.Method, a.Done.AgentID, a.Done.WorkspaceID)
	return details(w, a.Data)
}

// showWorkflow prints one workflow with its tasks.
func showWorkflow(c *call, out io.Writer, w cad.Workflow) error {
	c.table(out, nil, w)
	fmt.Fprintln(out)
	c.table(out, nil, w.Assignments)
	if w.Waits != "" {
		fmt.Fprintf(out, "\nwaits for %s\n", w.Waits)
	}
	return nil
}

// showDecomposed prints a workflow that has begun, or the tasks that wait.
func showDecomposed(c *call, d op.Decomposed) error {
	if d.Begun {
		return c.print(d.Workflow, func(w io.Writer) error { return showWorkflow(c, w, d.Workflow) })
	}
	return c.list(d.Assignments)
}

// CADEnv is how the CAD environment is to be served.
type CADEnv struct {
	Kernel    string  // embedded or occt
	Dir       string  // where files of workspaces lie
	Journal   bool    // work for an engine that keeps the journals
	Tolerance float64 // mm; 0 is the kernel's own
}

func (t *tree) cadEnv() *cobra.Command {
	var e CADEnv
	return t.command(spec{
		stays: true, use: "env", short: "Serve CAD workspaces on stdin and stdout", effect: Reads, ownScope: true,
		long: "Serve workspaces of real solids to a program on stdin and stdout: JSON-RPC 2.0, one message to the line. Lengths are\n" +
			"millimetres, angles radians. It opens no data file and keeps nothing but the files that are exported; system.hello\n" +
			"tells what there is. Kernel occt needs FreeCAD.",
		example: "cad env\ncad env --kernel occt --dir parts",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &e.Kernel, "kernel", "", "embedded", "what models the solids: embedded|occt", "embedded", "occt")
			f.StringVar(&e.Dir, "dir", ".", "the `DIR` that files are exported to and imported from, and nothing outside")
			f.BoolVar(&e.Journal, "journal", false, "answer what changed, and let an engine load workspaces")
			f.Float64Var(&e.Tolerance, "tolerance", 0, "chord tolerance of curves in `MM`, 0.000001 to 10 (default the kernel's: 0.01)")
			source(f, "dir", "dir")
		},
		check: func(c *call, _ []string) error {
			if c.env.Doors.CADEnv == nil || c.env.Caller.Door != core.DoorCLI {
				return core.Errorf(core.Unavailable, "cad env: only from the command line")
			}
			if e.Tolerance != 0 && !(e.Tolerance >= 1e-6 && e.Tolerance <= 10) {
				return usage("tolerance", "--tolerance: %g is not allowed; allowed: 0.000001 to 10", e.Tolerance)
			}
			return nil
		},
		run: func(c *call, _ []string) error {
			e.Dir = c.env.path(e.Dir)
			return c.env.Doors.CADEnv(c.ctx, c.env, e)
		},
	})
}
