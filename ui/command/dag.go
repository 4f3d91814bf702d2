package command

import (
	"cmp"
	"fmt"
	"io"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
	"swarmdeck/ui/compare"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// showLineage prints the steps of a lineage.
func (c *call) showLineage(l dag.Lineage) error {
	if err := list(c, core.Page[dag.Step]{Items: l.Steps}, stepColumns()); err != nil || !l.More || c.g.Output == "json" {
		return err
	}
	return c.say(nil, "there is more: see --depth and --most")
}

// showComparison prints how two runs differ.
func (c *call) showComparison(v dag.Comparison) error {
	return c.print(v, func(w io.Writer) error {
		type F = compare.Fact
		table(w, compare.Facts(&v), []column[F]{
			{title: "", text: func(f F) string { return f.Name }},
			{title: "A", most: 60, text: func(f F) string { return f.A }},
			{title: "B", most: 60, text: func(f F) string { return f.B }},
		}, false)
		for _, part := range [][]compare.Line{compare.Files(&v), compare.Lines(&v)} {
			if len(part) > 0 {
				fmt.Fprintln(w)
			}
			for _, l := range part {
				if _, err := fmt.Fprintln(w, l.Sign+" "+core.Cut(term.Clean(l.Text), 400)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// showReplay prints what a policy would answer to recorded calls.
func (c *call) showReplay(v engine.Replay) error {
	return c.print(v, func(w io.Writer) error {
		if len(v.Items) > 0 {
			table(w, v.Items, replayedColumns(), c.g.Output == "wide")
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
	})
}

func replayedColumns() []column[engine.ReplayedCall] {
	type R = engine.ReplayedCall
	return []column[R]{
		{title: "WAS", text: func(r R) string { return r.Was }},
		{title: "WOULD", text: func(r R) string { return r.Would }},
		{title: "TOOL", most: 24, text: func(r R) string { return r.Tool }},
		{title: "BECAUSE", most: 24, text: func(r R) string { return r.Reason }},
		{title: "AGENT", most: 20, text: func(r R) string { return r.AgentID }},
		{title: "EVENT", most: briefID, text: func(r R) string { return r.EventID }},
		{title: "RULE", wide: true, text: func(r R) string { return r.RuleID }},
		{title: "CALL", wide: true, text: func(r R) string { return r.CallID }},
		{title: "ARGS", most: 40, text: func(r R) string { return string(r.Args) }},
	}
}

// showPicture draws a part of the record.
func (c *call) showPicture(p op.Picture) error {
	return c.print(p, func(w io.Writer) error { return draw(c, w, p) })
}

func draw(c *call, w io.Writer, p op.Picture) error {
	if c.g.Accessible { // a list of its edges
		for _, e := range p.Edges {
			if _, err := fmt.Fprintln(w, term.Clean(graph.Edge(p.Graph, e))); err != nil {
				return err
			}
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
		if _, err := fmt.Fprintln(w, row); err != nil {
			return err
		}
	}
	return nil
}

// liveSubjects offers agents and tasks that a timeline may be of.
func liveSubjects(t *tree, c *call, eng *engine.Engine, tenant string) (all []Candidate) {
	agents, err := eng.Fleet.Agents(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	all = candidates(agents.Items, err, func(a fleet.Agent) Candidate { return Candidate{"agent:" + a.Name, a.Role} })
	for _, of := range t.liveTasks(c, eng, tenant, "") {
		all = append(all, Candidate{"task:" + of.Text, of.Help})
	}
	return all
}

// liveResources offers what is looked after, and the snapshots of it.
func liveResources(c *call, eng *engine.Engine, tenant, kind string) []Candidate {
	page, err := eng.Resources.List(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	if kind == "resource" {
		return candidates(page.Items, err, func(v resource.View) Candidate { return Candidate{v.ID, v.Name} })
	}
	var all []Candidate
	for _, v := range page.Items {
		snaps, err := eng.Resources.Snapshots(c.ctx, tenant, v.ID, core.Filter{Size: 20})
		all = append(all, candidates(snaps.Items, err, func(s resource.Shown) Candidate { return Candidate{s.ID, v.Name} })...)
	}
	return all
}

// liveRecord offers the newest events, or the runs that they are of.
func liveRecord(c *call, eng *engine.Engine, tenant, kind string) []Candidate {
	page, err := eng.DAG.Events(c.ctx, tenant, dag.Query{Filter: core.Filter{Size: core.MaxPageSize}})
	if kind == "record" {
		return candidates(page.Items, err, func(e dag.Recorded) Candidate { return Candidate{e.Event.EventID, string(e.Event.Kind)} })
	}
	var runs []Candidate
	seen := map[string]bool{}
	for _, e := range page.Items {
		if id := e.Event.RunID; id != "" && !seen[id] {
			seen[id] = true
			runs = append(runs, Candidate{id, e.Event.AgentID})
		}
	}
	return runs
}
