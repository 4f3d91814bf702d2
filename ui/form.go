package ui

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

// fill opens a pane's form; asked says that a key has just asked for it.
func (r *runner) fill(f pane.Fill, asked bool) tea.Cmd {
	form := overlay.NewForm(f.Title, f.Fields)
	form.Check = f.Check
	return r.openForm(form, f.Line, asked)
}

// openForm runs the line that comes of a form. When it is refused the form
// comes back with the reason, unless the operator has gone on meanwhile.
func (r *runner) openForm(form *overlay.Form, line func(core.Raw) []string, asked bool) tea.Cmd {
	then := func(a overlay.Action) tea.Cmd {
		if a.Kind != overlay.Submit {
			return nil
		}
		j := job{lines: [][]string{line(core.Raw(a.Text))}}
		j.refused = func(o output) tea.Cmd {
			form.Refuse(refusal(o))
			return r.openForm(form, line, false)
		}
		return r.submit(j)
	}
	if asked {
		r.over.Push(form, then)
		return nil
	}
	r.over.PushUnasked(form, then, r.now)
	r.guard.from = r.now.Add(deadTime)
	return r.opt.After(deadTime, settled{})
}

// refusal is the error that a command printed.
func refusal(o output) error {
	if e := o.failure(); e.Message != "" {
		return e
	}
	return errors.New(reason(o))
}
