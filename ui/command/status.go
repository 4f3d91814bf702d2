package command

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/op"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

// showStatus prints what a person wants to know first, on a page.
func showStatus(c *call, w io.Writer, s op.Status) error {
	for _, part := range []struct {
		title string
		rows  any
		n     int
	}{{"Needs you", s.Needs, len(s.Needs)}, {"Failed", s.Failed, len(s.Failed)}, {"Working", s.Working, len(s.Working)}} {
		if part.n == 0 {
			fmt.Fprintf(w, "%s: nothing\n", part.title)
			continue
		}
		fmt.Fprintf(w, "%s: %d\n", part.title, part.n)
		c.table(w, nil, part.rows)
		fmt.Fprintln(w)
	}
	if len(s.More) > 0 {
		fmt.Fprintf(w, "More than is listed here: %s\n", strings.Join(s.More, ", "))
	}
	if away := c.now().Sub(s.NobodySince); !s.NobodySince.IsZero() && away >= time.Minute { // this engine's own line is no night
		fmt.Fprintf(w, "Nobody here: since %s (%s)\n", s.NobodySince.Local().Format("Mon 15:04"), face.Span(away))
	}
	_, err := fmt.Fprintf(w, "Idle: %d. Cost: %d tokens, $%.2f, %d tasks\n", s.Idle, s.Cost.Tokens, s.Cost.CostUSD, s.Cost.Tasks)
	return err
}

// showOverview prints how it goes at a glance, a line a figure, and who cost most.
func showOverview(c *call, w io.Writer, o op.Overview) error {
	fmt.Fprintf(w, "%d working, %d waiting for you, %d failing, %d idle; the last %s:\n", o.Now.Working, o.Now.Waiting, o.Now.Failing, o.Now.Idle, o.Over)
	for _, l := range face.TrendLines(&o.Overview, 60, c.g.ASCII) {
		fmt.Fprintf(w, "%-10s %s %s\n", l.Name, l.Chart, l.Text)
	}
	fmt.Fprintln(w)
	c.table(w, nil, o.Shares())
	_, err := fmt.Fprintf(w, "\nWhat happened meanwhile: swarmdeck story --since %s\n", o.Points[0].From.Format(time.RFC3339))
	return err
}

// summary prints what a record is, why it is so and what is next; of a task and an agent
// in a person's words. All that is kept of it comes with -o wide.
func summary(c *call, o *op.Op, out any) (bool, error) {
	bare := op.Bare(out)
	rows, of := face.Rows(bare)
	f := op.FaceOf(of)
	if !o.Full || c.g.Output != "text" || f == nil || !f.Lists() {
		return false, nil
	}
	call := c.forOp()
	why, err := call.CauseOf(c.ctx, f.Noun, bare)
	if err != nil {
		return true, err
	}
	return true, c.print(out, func(w io.Writer) error {
		fmt.Fprintln(w, term.Clean(strings.TrimSpace(f.Noun+" "+why.ID+": "+string(why.Status))))
		if !reflect.TypeOf(bare).AssignableTo(reflect.TypeOf(out)) { // a task or an agent
			putLines(w, why, inWords(c, f, face.Row(rows, 0), out)...)
			return nil
		}
		err := details(w, out)
		putLines(w, why)
		return err
	})
}

// inWords are a record's columns, and of a task what it was given and came to.
func inWords(c *call, f *face.Face, v, out any) (lines []labelled) {
	lines = append(lines, labelled{"about", f.Head(v)})
	for _, col := range f.Columns(false) {
		if text := col.Text(v, c.at()); !strings.HasPrefix(col.Title, "STAT") && text != f.ID(v) && text != f.Head(v) {
			lines = append(lines, labelled{strings.ToLower(col.Title), text})
		}
	}
	switch v := out.(type) {
	case op.ShownTask:
		lines = append(lines, labelled{"input", taskInput(v.Task)})
		if v.Result != nil {
			lines = append(lines, labelled{"output", string(v.Result.Output)})
		}
	case op.ShownAgent:
		lines = append(lines, labelled{"command", core.Join(v.Command)}, labelled{"dir", v.Dir}, labelled{"profile", v.Profile})
	}
	return lines
}

// labelled is a line of a summary.
type labelled struct{ name, text string }

// putLines writes what is known of a record, why it is so and what is next.
func putLines(w io.Writer, why op.Cause, lines ...labelled) {
	lines = append(lines, labelled{"why", why.Text})
	for _, next := range why.Next {
		lines = append(lines, labelled{"next", "swarmdeck " + next})
	}
	last := ""
	for _, l := range lines {
		for text := range strings.SplitSeq(l.text, "\n") {
			name := l.name
			if name == last {
				name = ""
			}
			if last = l.name; text != "" {
				fmt.Fprintf(w, "  %-9s %s\n", name, term.Clean(text))
			}
		}
	}
}

// taskInput is what a task was given, as a person would write it.
func taskInput(t task.Task) string {
	var in struct {
		Argv    []string `json:"argv"`
		Dir     string   `json:"dir"`
		Message string   `json:"message"`
	}
	if core.DecodeStored(t.Input, &in) != nil || in.Message == "" && in.Argv == nil {
		return string(t.Input)
	}
	if in.Message != "" {
		return in.Message
	}
	return strings.TrimSuffix(core.Join(in.Argv)+" in "+in.Dir, " in ")
}
