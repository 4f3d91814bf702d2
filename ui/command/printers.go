package command

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"

	"swarmdeck/engine/face"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// printer prints the results that are its own: those of a type, or those of
// operations that show a record in full.
type printer func(c *call, o *op.Op, out any) (is bool, err error)

// printers are looked through from the first on.
func printers() []printer {
	return []printer{
		text(showTree),
		text(showCause),
		text(showEStop),
		text(func(c *call, v op.DeletedAgent) error { return c.say(v.Agent, "agent %s deleted", v.Name) }),
		text(showTest),
		text(showBacktest),
		text(showExplanation),
		text(func(c *call, v op.Applied) error { return c.say(v, "done") }),
		text(showCADRoles),
		text(showAnswer),
		text(showDecomposed),
		text(func(c *call, v op.Checkpoint) error { return c.verbatim(v, []byte(v.Text)) }),
		text(func(c *call, v op.Proof) error { return c.verbatim(v, []byte(v.Text)) }),
		text(showReport),
		text(showDeltas),
		text(showState),
		text(showPlan),
		text(showLineage),
		text(showReplay),
		text(showComparison),
		text(showPicture),
		text(showCheck),
		text(showBackup),
		text(showHandover),
		text(showStatus),
		text(showOverview),
		inFull(showWork),
		text(showPatch),
		text(func(c *call, v op.TreeFile) error { return c.verbatim(v, c.shown(v.Content)) }),
		said,
		inFull(showWorkflow),
		inFull(showCard),
		halfApproved,
		inFull(showIntent),
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

// inFull prints a type in its own words where all of a record is asked for.
func inFull[T any](print func(*call, T) error) printer {
	own := text(print)
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
