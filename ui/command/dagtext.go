package command

import (
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/face"
	"swarmdeck/ui/term"
)

// What people read of a state and of a fork that is planned. With -o json they
// get what the engine says.

// showState prints what was so after an event: what the event's run, agent, task
// and session were at, who had what, and what was said last.
func showState(c *call, s dag.State) error {
	type one struct {
		Of string
		dag.RunState
	}
	return c.print(s, func(w io.Writer) error {
		fmt.Fprintf(w, "event   %s\nplace   %d of its run, %d of the record\nts      %s\n", s.EventID, s.Seq, s.Pos, s.TS)
		if s.Policy != "" {
			fmt.Fprintf(w, "policy  %s\n", term.Clean(s.Policy))
		}
		var runs []one
		if s.Run != nil {
			runs = append(runs, one{"run", *s.Run})
		}
		for i, g := range []*dag.GroupState{s.Agent, s.Task, s.Session} {
			for n := 0; g != nil && n < len(g.Runs); n++ {
				runs = append(runs, one{[]string{"agent", "task", "session"}[i], g.Runs[n]})
			}
		}
		c.part(w, "Runs", face.Of[one]{
			Columns: "OF:Of RUN:run_id,20 AGENT:agent_id,20 STATUS EVENTS:events STARTED:started_at", Wide: "TASK:task_id HEAD:head,13",
			Cells: face.Cells[one]{"STATUS": func(o *one, _ face.At) string { return strings.TrimSpace(o.Status + " " + o.Exit) }},
		}.Face(), runs)
		c.part(w, "Mounts", nil, s.Mounts)
		c.part(w, "Messages", nil, s.Messages)
		return nil
	})
}

// showPlan prints a fork as it would be, with what becomes of each resource.
func showPlan(c *call, p resource.Proposal) error {
	return c.print(p, func(w io.Writer) error {
		err := details(w, struct {
			resource.Proposal `json:",embed"`
			Parts             *int `json:"resources,omitzero"` // they follow
		}{Proposal: p})
		c.part(w, "Resources", nil, p.Parts)
		return err
	})
}
