package gate

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge/edits"
	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// arguments are those of one approval as its card shows them: texts that take each
// other's place as a diff, once, and the rest as it is.
type arguments struct {
	whole  string // all of them, indented
	rest   string // those that no diff shows; "" where that is all of them
	all    bool   // all are to be shown whatever the diffs show
	colors bool
	diffs  map[string]drawn // by their text
	wide   int              // cells of the widest line of a diff
}

// drawn is a diff that was read.
type drawn struct {
	files []*diff.Whole
	all   bool // they show all that it says
}

// newArguments are those of an approval; changes are what judge.Card read in them.
func newArguments(raw core.Raw, changes []edits.Change, colors bool) *arguments {
	a := &arguments{whole: cmp.Or(pane.Pretty(raw), "{}"), colors: colors, diffs: map[string]drawn{}}
	var shown []string
	for i := range changes {
		if c := &changes[i]; a.diff(c.Diff).all {
			shown = append(shown, c.Args...)
		}
	}
	if rest, err := without(raw, shown); len(shown) > 0 && err == nil {
		a.rest = pane.Pretty(rest)
	}
	return a
}

// diff reads a diff once.
func (a *arguments) diff(text string) drawn {
	d, ok := a.diffs[text]
	if !ok {
		d.files, d.all = diff.Wholes(text, a.colors)
		a.diffs[text] = d
		for _, f := range d.files {
			a.wide = max(a.wide, f.Width())
		}
	}
	return d
}

// write writes the arguments and returns the last paragraph of them.
func (a *arguments) write(t *pane.Paras) (last int) {
	text, note := a.rest, "the texts are the changes above; f shows all"
	switch {
	case a.rest == "":
		return t.Exact("arguments", a.whole, screen.Text)
	case a.all:
		text, note = a.whole, "all of them; f leaves out what the changes above show"
	}
	last = t.Exact("arguments", text, screen.Text)
	t.Add("", note, screen.Dim)
	return last
}

// change writes how one file would change.
func (a *arguments) change(c *edits.Change, t *pane.Paras) {
	files := a.diff(c.Diff).files
	if len(files) == 0 {
		t.Exact("changes", joined(c.Path, c.Diff, c.Note), screen.Accent)
	}
	for _, f := range files {
		name := c.Path
		if (len(files) > 1 || name == "") && f.Path != "" {
			name = f.Path
		}
		t.Exact("changes", joined(name, " "+f.Counts(), c.Note), screen.Accent)
		t.Flow(f)
	}
}

// without is JSON without the members at some pointers.
func without(raw core.Raw, pointers []string) (core.Raw, error) {
	var out bytes.Buffer
	in, to := jsontext.NewDecoder(bytes.NewReader(raw)), jsontext.NewEncoder(&out)
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err != nil {
			return nil, err
		}
		// The pointer of a member's name is that of its value.
		if kind, n := in.StackIndex(in.StackDepth()); kind == '{' && n%2 == 1 && slices.Contains(pointers, string(in.StackPointer())) {
			if err := in.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		if err := to.WriteToken(token); err != nil {
			return nil, err
		}
	}
}
