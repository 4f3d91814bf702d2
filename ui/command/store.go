package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/store"
	"swarmdeck/ui/term"
)

// onFile says that the line works on the file itself: it is one of the command
// line, and no engine that is running carries it out for another process.
func (c *call) onFile() bool { return c.env.Caller.Door == core.DoorCLI && !c.env.Attached }

// showCheck prints what a check of the data file found.
func showCheck(c *call, r *store.Report) error { return c.checked(r, r, r.Problems) }

// showBackup prints a backup with what was copied beside it.
func showBackup(c *call, b op.Backup) error {
	with := make([]string, len(b.With))
	for i, path := range b.With {
		with[i] = "with " + path
	}
	return c.checked(b, b.Report, append(b.Problems, with...))
}

// checked prints a report; in text only what matters.
func (c *call) checked(v any, r *store.Report, more []string) error {
	if c.g.Output != "text" {
		return c.show(v)
	}
	return c.print(v, func(w io.Writer) error {
		fmt.Fprintln(w, term.Clean(op.Verdict(r)))
		for _, line := range more {
			fmt.Fprintln(w, "  "+term.Clean(line))
		}
		return nil
	})
}
