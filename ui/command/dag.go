package command

import (
	"cmp"
	"fmt"
	"io"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
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
func showComparison(c *call, v dag.Comparison) error {
	return c.print(v, func(w io.Writer) error {
		c.table(w, face.Of[compare.Fact]{Columns: "_:Name A:A,60 B:B,60"}.Face(), compare.Facts(&v))
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
func showReplay(c *call, v engine.Replay) error {
	return c.print(v, func(w io.Writer) error {
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
	})
}

// showPicture draws a part of the record.
func showPicture(c *call, p op.Picture) error {
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
