package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/face"
	"swarmdeck/engine/op"
	"swarmdeck/ui/compare"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// showLineage prints the steps of a lineage.
func showLineage(c *call, l dag.Lineage) error {
	if err := c.list(l.Steps); err != nil || !l.More || c.g.Output == "json" {
		return err
	}
	return c.say(nil, "there is more: see --depth and --most")
}

// showComparison prints how two runs differ.
func showComparison(c *call, w io.Writer, v dag.Comparison) error {
	c.table(w, face.Of[compare.Fact]{Columns: "_:Name A:A,60 B:B,60"}.Face(), compare.Facts(&v))
	for _, part := range [][]compare.Line{compare.Files(&v), compare.Lines(&v)} {
		if len(part) > 0 {
			fmt.Fprintln(w)
		}
		for _, l := range part {
			fmt.Fprintln(w, l.Sign+" "+core.Cut(term.Clean(l.Text), 400))
		}
	}
	return nil
}

// showReplay prints what a policy would answer to recorded calls.
func showReplay(c *call, w io.Writer, v engine.Replay) error {
	if len(v.Items) > 0 {
		c.table(w, nil, v.Items)
	}
	more := ""
	if v.Unjudged > 0 {
		more = fmt.Sprintf(" Of %d the record has no decision.", v.Unjudged)
	}
	if v.More {
		more += fmt.Sprintf(" Only the first %d were asked about.", engine.MaxReplayed)
	}
	_, err := fmt.Fprintf(w, "%d of %d calls would be answered otherwise by %s %s.%s\n", v.Changed, v.Calls, cmp.Or(v.PolicyID, "the file"), v.Version[:min(12, len(v.Version))], more)
	return err
}

// showPicture draws a part of the record.
func showPicture(c *call, w io.Writer, p op.Picture) error {
	if c.g.Accessible { // a list of its edges
		for _, e := range p.Edges {
			fmt.Fprintln(w, term.Clean(graph.Edge(p.Graph, e)))
		}
		return nil
	}
	canvas := screen.New(p.W, p.H)
	if c.g.ASCII {
		canvas.SetGlyphs(screen.ASCII())
	}
	var m graph.Map
	m.Set(p.Graph)
	m.Draw(canvas, c.now(), false)
	rows := canvas.Plain()
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	if p.More {
		rows = append(rows, "there is more: see --depth and --most")
	}
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	return nil
}

// runEvents prints the events of one run in its own columns.
func runEvents(c *call, o *op.Op, out any) (bool, error) {
	page, is := out.(core.Page[dag.Recorded])
	if !is || !o.Given("run") {
		return false, nil
	}
	// What is the same for all events of a run is left out, and what they say has the room.
	return true, c.listBy(face.Of[dag.Recorded]{
		Columns: "SEQ:Seq TIME EVENT:Event.event_id,9 KIND:Event.kind WHAT,100", // 8 digits are enough to find one by
		Wide:    "POS:Pos TS:Event.ts CORRELATION:Event.correlation_id TASK:Event.task_id TRACE:Event.trace_id",
		Cells: face.Cells[dag.Recorded]{
			"TIME": func(e *dag.Recorded, _ face.At) string { return e.Event.TS.Time().UTC().Format("15:04:05.000") },
			"WHAT": func(e *dag.Recorded, _ face.At) string { return e.Event.Brief() },
		},
	}.Face(), page)
}

// showIntent prints one intent in full, with its steps.
func showIntent(c *call, w io.Writer, i control.Intent) error {
	bare := struct {
		control.Intent `json:",embed"`
		Steps          *int `json:"steps,omitzero"` // they follow
	}{Intent: i}
	if err := details(w, bare); err != nil {
		return err
	}
	fmt.Fprintln(w)
	c.table(w, nil, i.Steps)
	return nil
}

// What people read of a state and of a fork that is planned. With -o json they
// get what the engine says.

// showState prints what was so after an event: what the event's run, agent, task
// and session were at, who had what, and what was said last.
func showState(c *call, w io.Writer, s dag.State) error {
	type one struct {
		Of string
		dag.RunState
	}
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
}

// showPlan prints a fork as it would be, with what becomes of each resource.
func showPlan(c *call, w io.Writer, p resource.Proposal) error {
	err := details(w, struct {
		resource.Proposal `json:",embed"`
		Parts             *int `json:"resources,omitzero"` // they follow
	}{Proposal: p})
	c.part(w, "Resources", nil, p.Parts)
	return err
}
