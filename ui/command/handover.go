package command

import (
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/face"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

// showHandover prints what the next operator should know.
func showHandover(c *call, h engine.Handover) error {
	return c.print(h, func(w io.Writer) error { return writeHandover(c, w, &h) })
}

func writeHandover(c *call, w io.Writer, h *engine.Handover) error {
	say := func(format string, args ...any) { fmt.Fprintln(w, term.Clean(fmt.Sprintf(format, args...))) }
	say("Hand-over of %s at %s, since %s", h.TenantID, face.Stamp(h.At), face.Stamp(h.Since))
	if h.EStop.On {
		say("EMERGENCY STOP IS ON since %s, by %s: %s", face.Stamp(h.EStop.At), h.EStop.By, h.EStop.Reason)
	}
	c.part(w, "Open approvals", nil, h.Approvals)
	c.part(w, "Decisions", nil, h.Decisions)
	c.part(w, "Failures", nil, h.Failures)
	c.part(w, "Agents in trouble", nil, h.Agents)
	c.part(w, "Budgets near their limit", nil, h.Budgets)
	c.part(w, "Emergency stops", nil, h.Stops)
	c.part(w, fmt.Sprintf("Running work (%d queued)", h.Counts.ByStatus[task.Queued]), nil, h.Running)
	if len(h.Cut) > 0 || h.To != "" {
		fmt.Fprintln(w)
	}
	if len(h.Cut) > 0 {
		say("More than is listed here: %s", strings.Join(h.Cut, ", "))
	}
	if h.To != "" {
		say("%s takes over; recorded as %s", h.To, h.EventID)
	}
	return nil
}

// part is one heading with its table; an empty one says so in a line.
func (c *call) part(w io.Writer, title string, f *face.Face, all any) {
	rows, _ := face.Rows(all)
	if rows.Len() == 0 {
		fmt.Fprintf(w, "\n%s: none\n", title)
		return
	}
	fmt.Fprintf(w, "\n%s: %d\n", title, rows.Len())
	c.table(w, f, all)
}
