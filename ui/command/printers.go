package command

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/face"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/task"
	"swarmdeck/store"
	"swarmdeck/ui/term"
)

// printer prints the results that are its own: those of a type, or those of
// operations that show a record in full.
type printer func(c *call, o *op.Op, out any) (is bool, err error)

// printers are looked through from the first on.
func printers() []printer {
	return []printer{
		text(showTree),
		page(showCause),
		text(showEStop),
		text(func(c *call, v op.DeletedAgent) error { return c.say(v.Agent, "agent %s deleted", v.Name) }),
		text(showTest),
		page(showBacktest),
		text(showExplanation),
		text(func(c *call, v op.Applied) error { return c.say(v, "done") }),
		text(showCADRoles),
		page(showAnswer),
		text(showDecomposed),
		text(func(c *call, v op.Checkpoint) error { return c.verbatim(v, []byte(v.Text)) }),
		text(func(c *call, v op.Proof) error { return c.verbatim(v, []byte(v.Text)) }),
		page(showReport),
		text(showDeltas),
		page(showState),
		page(showPlan),
		text(showLineage),
		page(showReplay),
		page(showComparison),
		page(showPicture),
		text(func(c *call, r *store.Report) error { return c.checked(r, r, r.Problems) }),
		text(showBackup),
		page(showHandover),
		page(showStatus),
		page(showOverview),
		inFull(text(showWork)),
		text(showPatch),
		text(func(c *call, v op.TreeFile) error { return c.verbatim(v, c.shown(v.Content)) }),
		said,
		inFull(page(showWorkflow)),
		inFull(page(showCard)),
		halfApproved,
		inFull(page(showIntent)),
		runEvents,
		ran,
		summary,
		full,
		faced,
	}
}

// streamed print what comes while an operation runs.
func streamed() []printer {
	return []printer{lines(logText), lines(messageText), text(written)}
}

// written are lines of a command that runs, each on the stream that it was written to.
func written(c *call, all []op.Line) error {
	for _, l := range all {
		w := c.env.Stdout
		if l.Err {
			w = c.env.Stderr
		}
		if _, err := fmt.Fprintln(w, term.Clean(l.Text)); err != nil {
			return err
		}
	}
	return nil
}

// ran prints nothing more of a command that has run: what it wrote is there.
func ran(c *call, o *op.Op, _ any) (bool, error) { return o.Name == "run" && c.g.Output != "json", nil }

// lines print each of the values that have come as a line of text.
func lines[T any](line func(v T, wide bool) string) printer {
	return text(func(c *call, values []T) error {
		var out bytes.Buffer
		for _, v := range values {
			if c.g.Output != "json" {
				for part := range strings.SplitSeq(line(v, c.g.Output == "wide"), "\n") {
					fmt.Fprintln(&out, term.Clean(part))
				}
			} else if err := putJSON(&out, v); err != nil {
				return err
			}
		}
		return c.flush(&out)
	})
}

// said prints what tells itself, a line for each of its own; nothing where it
// has nothing to tell.
func said(c *call, _ *op.Op, out any) (bool, error) {
	v, is := out.(fmt.Stringer)
	if !is || v.String() == "" {
		return is, nil
	}
	return true, c.print(v, func(w io.Writer) error {
		for line := range strings.SplitSeq(v.String(), "\n") {
			fmt.Fprintln(w, term.Clean(line))
		}
		return nil
	})
}

// text prints a type in its own words.
func text[T any](print func(*call, T) error) printer {
	return func(c *call, _ *op.Op, out any) (bool, error) {
		v, is := out.(T)
		if !is {
			return false, nil
		}
		return true, print(c, v)
	}
}

// page prints a type in what write makes of it.
func page[T any](write func(*call, io.Writer, T) error) printer {
	return text(func(c *call, v T) error {
		return c.print(v, func(w io.Writer) error { return write(c, w, v) })
	})
}

// inFull prints a type in its own words where all of a record is asked for.
func inFull(own printer) printer {
	return func(c *call, o *op.Op, out any) (is bool, err error) {
		if o.Full {
			is, err = own(c, o, out)
		}
		return is, err
	}
}

// faced prints what has columns: a record as one line of a table, and more as many.
func faced(c *call, _ *op.Op, out any) (bool, error) {
	_, of := face.Rows(out)
	f := op.FaceOf(of)
	switch {
	case f == nil || len(f.Columns(false)) == 0:
		return false, nil
	case reflect.TypeOf(out) == of: // one
		return true, c.print(out, func(w io.Writer) error { c.table(w, f, out); return nil })
	}
	return true, c.listBy(f, out)
}

// full prints all members of what is asked for in full.
func full(c *call, o *op.Op, out any) (bool, error) {
	if !o.Full {
		return false, nil
	}
	return true, c.show(out)
}

// logText is a log line as it is followed; what an entry has more stands below it.
func logText(l task.LogLine, wide bool) string {
	text := strings.ReplaceAll(strings.TrimRight(l.Message, "\n"), "\n", "\n  ")
	if wide {
		return fmt.Sprintf("%s %-5s %s %s", face.Stamp(l.Timestamp), l.Level, l.Source, text)
	}
	return fmt.Sprintf("%s %-5s %s", l.Timestamp.UTC().Format("15:04:05"), l.Level, text)
}

// messageText is a message as it is followed.
func messageText(m bus.Message, wide bool) string {
	when := m.Timestamp.UTC().Format("15:04:05")
	if wide {
		when = face.Stamp(m.Timestamp) + " " + m.MessageID
	}
	return fmt.Sprintf("%s %s %s %s: %s", when, face.Address(m.Topic, m.RecipientID), m.MessageType, m.SenderID, m.Payload)
}

func showEStop(c *call, e estop.State) error {
	if !e.On {
		return c.say(e, "emergency stop: off")
	}
	waiting := "all have acknowledged"
	if len(e.Waiting) > 0 {
		waiting = fmt.Sprintf("not acknowledged yet: %s", strings.Join(e.Waiting, " "))
	}
	return c.say(e, "emergency stop: ON since %s by %s: %s; %d frozen; %s", face.Stamp(e.At), e.By, e.Reason, e.Frozen, waiting)
}

// showReport prints what became of the log's proof: its lists a line for each.
func showReport(_ *call, w io.Writer, r audit.Report) error {
	bare := r
	bare.Keys, bare.Witnesses, bare.Problems = nil, nil, nil
	if err := details(w, bare); err != nil {
		return err
	}
	for _, k := range r.Keys {
		to, by := "on", "the first"
		if k.Last > 0 {
			to = fmt.Sprintf("to %d", k.Last)
		}
		if k.Unsigned {
			by = "UNSIGNED"
		} else if k.SignedBy != "" {
			by = "signed by " + k.SignedBy
		}
		fmt.Fprintln(w, term.Clean(fmt.Sprintf("key        %s from event %d %s, %s", k.KeyID, k.First, to, by)))
	}
	for _, x := range r.Witnesses {
		fmt.Fprintln(w, term.Clean(fmt.Sprintf("witness    %s: %d checkpoints, the newest of %d events", x.Witness, x.Checkpoints, x.Newest)))
	}
	for _, p := range r.Problems {
		fmt.Fprintln(w, term.Clean("problem    "+p))
	}
	return nil
}

func showDeltas(c *call, all op.Deltas) error {
	if len(all) == 0 {
		if c.g.Output == "json" {
			return nil
		}
		return c.say(nil, "no unexplained difference")
	}
	return c.list([]audit.Delta(all))
}

// showCard prints an approval, and below it what its files hold.
func showCard(c *call, w io.Writer, card judge.Approval) error {
	bare := card
	bare.Action.Files = nil
	if err := details(w, bare); err != nil {
		return err
	}
	for i := range card.Action.Files {
		f := &card.Action.Files[i]
		if fmt.Fprintf(w, "\nfile  %s\n", term.Reveal(f.Line())); f.Diff+f.Text == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(f.Diff+f.Text, "\n"), "\n") {
			fmt.Fprintf(w, "  %s\n", term.Reveal(line))
		}
	}
	if c.g.Output != "text" {
		return nil
	}
	call := c.forOp()
	why, err := call.CauseOf(c.ctx, "approval", card)
	fmt.Fprintln(w)
	putLines(w, why)
	return err
}

// halfApproved prints approvals of which some need another one, or made a rule, and says so.
func halfApproved(c *call, o *op.Op, out any) (bool, error) {
	all, is := out.([]judge.Approval)
	if !is || c.g.Output == "json" || !slices.ContainsFunc(all, func(a judge.Approval) bool { return a.Status == judge.Open || a.Always != "" }) {
		return false, nil
	}
	if err := c.list(all); err != nil {
		return true, err
	}
	return true, c.say(all, "%s", o.Sentence(all))
}

// showCause prints why something is as it is, and below it what is next.
func showCause(_ *call, w io.Writer, why op.Cause) error {
	text := why.Text
	if why.Kind != "" {
		text = why.Kind + ": " + text
	}
	if why.Ref != "" && !strings.Contains(text, why.Ref) {
		text += " (" + why.Ref + ")"
	}
	fmt.Fprintf(w, "%s\nnext: swarmdeck %s\n", term.Clean(fmt.Sprintf("%s is %s: %s", why.ID, why.Status, text)), term.Clean(strings.Join(why.Next, "  or  ")))
	return nil
}

// showTree prints tasks below those that they came of.
func showTree(c *call, all op.Tree) error {
	if c.g.Output == "json" {
		return c.list([]task.Task(all))
	}
	depth := map[string]int{}
	shown := slices.Clone(all)
	for i, t := range all {
		if parent, ok := depth[t.ParentTaskID]; ok {
			depth[t.TaskID] = parent + 1
		} else {
			depth[t.TaskID] = 0
		}
		shown[i].TaskID = strings.Repeat("· ", depth[t.TaskID]) + t.TaskID
	}
	return c.list([]task.Task(shown))
}

// showHandover prints what the next operator should know.
func showHandover(c *call, w io.Writer, h engine.Handover) error {
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

// What people read of a test, a backtest and a question. With -o json they get
// what the engine says.

// showTest fails when a case does.
func showTest(c *call, t op.TestedPolicy) error {
	err := c.print(t, func(w io.Writer) error {
		if len(t.Cases) > 0 {
			c.table(w, nil, t.Cases)
		}
		for _, r := range t.Cases {
			if r.Passed {
				continue
			}
			for _, said := range []string{r.Rationale, r.Stderr} {
				if said != "" {
					fmt.Fprintf(w, "%s: %s\n", term.Clean(r.Name), term.Cut(term.Clean(said), 300))
				}
			}
		}
		how := ""
		if t.Unsandboxed {
			how = ", without a jail: this system can't make one"
		}
		switch {
		case t.Summary.Total == 0:
			fmt.Fprintln(w, "no cases: without any it can't be activated")
		case t.Summary.Failed == 0:
			fmt.Fprintf(w, "%d of %d cases pass%s\n", t.Summary.Total, t.Summary.Total, how)
		default:
			fmt.Fprintf(w, "%d of %d cases FAIL%s\n", t.Summary.Failed, t.Summary.Total, how)
		}
		return nil
	})
	if err == nil && t.Summary.Failed > 0 {
		err = &ExitError{Code: ExitFailed}
	}
	return err
}

func showBacktest(c *call, w io.Writer, r judge.BacktestReport) error {
	if len(r.Groups) > 0 {
		c.table(w, nil, r.Groups)
	}
	more := ""
	if r.Unknown > 0 {
		more += fmt.Sprintf(" %d can't be made anew: what they were about was not kept.", r.Unknown)
	}
	if r.Sampled {
		more += " Only some were: a program that stays (--serve) tries them all."
	}
	fmt.Fprintf(w, "%d of %d decisions would change; the last %d were looked at.%s\n", r.Flips, r.Checked, r.Last, more)
	return nil
}

func showExplanation(c *call, e judge.Explanation) error {
	if c.g.Output == "json" {
		return c.show(e)
	}
	return c.show(struct {
		judge.Explanation `json:",embed"`
		Values            core.Raw `json:"values,omitzero"`
		Tried             string   `json:"tried,omitempty"`
	}{e, valuesText(e.Values), strings.Join(e.Tried, ", ")})
}

// valuesText is what a rule read; none where it read nothing.
func valuesText(v map[string]any) core.Raw {
	if len(v) == 0 {
		return nil
	}
	return core.MustEncode(v)
}
