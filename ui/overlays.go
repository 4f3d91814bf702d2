package ui

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/log"
	"swarmdeck/ui/screen"
)

// dialog is what stands over the panes, and what is said to the operator.
type dialog struct {
	*places
	over    overlay.Stack // has the keys
	toasts  overlay.Toasts
	copied  string            // what the clipboard was sent last
	filters map[string]string // the last of each pane
}

// overlayKey hands a key to the overlay on top. A y that may be a held key
// confirms nothing.
func (d *dialog) overlayKey(k tea.KeyPressMsg, repeat bool) tea.Cmd {
	if q, ok := d.over.Top().(*overlay.Confirm); ok && q.Type == "" && repeat {
		return nil
	}
	cmd, _ := d.over.Update(k, d.now)
	return cmd
}

// paste goes into a text field or nowhere: pasted text is never a key.
func (m *Model) paste(text string) tea.Cmd {
	if hand := m.hand(); hand != nil {
		if m.rec != nil && !hand.Secret() {
			m.rec.paste(text, m.now)
		}
		return m.track(hand.Paste(m.env(), text))
	}
	if !m.over.Typing() {
		return nil
	}
	if m.rec != nil {
		m.rec.paste(text, m.now)
	}
	cmd, _ := m.over.Update(tea.PasteMsg{Content: text}, m.now)
	return cmd
}

// confirm asks before something costly: y, or the text to type. The question
// is dead at first, so that nothing typed ahead answers it.
func (d *dialog) confirm(text, typed string, yes func() tea.Cmd) tea.Cmd {
	return d.ask(overlay.Confirm{Title: "sure?", Verb: "do it", Lines: strings.Split(text, "\n"), Type: typed}, func(is bool) tea.Cmd {
		if is {
			return yes()
		}
		return d.say(false, "", "left as it is")
	})
}

// ask puts a question that no key has opened.
func (d *dialog) ask(q overlay.Confirm, then func(yes bool) tea.Cmd) tea.Cmd {
	q.Trigger = d.guard.last
	d.over.PushUnasked(&q, func(a overlay.Action) tea.Cmd { return then(a.Kind == overlay.Yes) }, d.now)
	d.guard.from = d.now.Add(deadTime)
	return d.opt.After(deadTime, settled{})
}

// offer opens a login with the screen given up for it, if whoever sits there wants it.
func (d *dialog) offer(l Login) tea.Cmd {
	return d.ask(overlay.Confirm{Title: l.Name + " is not logged in", Verb: "log it in here", Lines: []string{core.Join(l.Argv)}}, func(yes bool) tea.Cmd {
		if !yes {
			l.Over <- nil
			return nil
		}
		return d.lend(l.Argv, func(err error) tea.Msg {
			l.Over <- err
			return nil
		})
	})
}

// push opens an overlay, and goes on with an answer of one kind.
func (d *dialog) push(o overlay.Overlay, kind overlay.Kind, then func(overlay.Action) tea.Cmd) tea.Cmd {
	d.over.Push(o, func(a overlay.Action) tea.Cmd {
		if a.Kind == kind {
			return then(a)
		}
		return nil
	})
	return nil
}

// prompt asks for one line.
func (d *dialog) prompt(title string, then func(string) tea.Cmd) tea.Cmd {
	return d.push(&overlay.Prompt{Title: title}, overlay.Submit, func(a overlay.Action) tea.Cmd { return then(a.Text) })
}

// menu offers choices by number.
func (d *dialog) menu(title string, choices []string, then func(int) tea.Cmd) tea.Cmd {
	menu := &overlay.Menu{Title: title}
	for i, c := range choices {
		menu.Items = append(menu.Items, overlay.Item{ID: strconv.Itoa(i), Text: c})
	}
	return d.push(menu, overlay.Pick, func(a overlay.Action) tea.Cmd {
		i, _ := strconv.Atoi(a.ID)
		return then(i)
	})
}

// filterLine is the `/` line: the list narrows while it is typed.
type filterLine struct {
	input overlay.Input
	last  string // filter that up brings back
}

func (f *filterLine) Update(msg tea.Msg) overlay.Action {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "enter":
			return overlay.Action{Kind: overlay.Submit, Text: f.input.Value()}
		case "esc":
			return overlay.Action{Kind: overlay.Close}
		case "up", "ctrl+p":
			f.input.SetValue(f.last)
			return overlay.Action{Kind: overlay.Complete, Text: f.last}
		}
	}
	if f.input.Update(msg) {
		return overlay.Action{Kind: overlay.Complete, Text: f.input.Value()}
	}
	return overlay.Action{}
}

func (f *filterLine) Typing() bool { return true }

func (f *filterLine) Draw(c *screen.Canvas) {
	y := c.H() - 1
	x := c.Text(0, y, screen.FooterKey, "/")
	f.input.Draw(c, x, y, c.W()-x)
}

func (d *dialog) openFilter() tea.Cmd {
	p := d.focused()
	if p == nil {
		return nil
	}
	before := p.FilterText()
	line := &filterLine{last: cmp.Or(before, d.filters[p.Name()])}
	d.over.Push(line, func(a overlay.Action) tea.Cmd {
		text := a.Text
		switch {
		case a.Kind == overlay.Close:
			text = before
		case a.Kind == overlay.Submit && text != "":
			d.filters[p.Name()] = text
		}
		cmd, err := p.Filter(d.env(), text)
		if err != nil {
			if a.Kind == overlay.Complete {
				return nil // half a word; Enter says what is wrong with it
			}
			return d.say(true, "", err.Error())
		}
		return d.track(cmd)
	})
	return nil
}

// say tells the operator something: a toast now, and a message that is kept.
// Errors stay until dismissed.
func (d *dialog) say(bad bool, line, text string) tea.Cmd {
	d.keep(bad, line, text)
	level := overlay.Info
	if bad {
		level = overlay.Error
	}
	d.toasts.Add(d.now, level, firstLine(text))
	d.dirty = true
	return nil
}

// keep adds to the messages without a toast.
func (d *dialog) keep(bad bool, line, text string) {
	d.notes.Add(d.env(), log.Message{At: d.now, Bad: bad, Line: line, Text: text})
}

// dismissBad takes away the error toasts and reports whether there were any.
func (d *dialog) dismissBad() bool {
	had, bad := false, func(t overlay.Toast) bool { return t.Level == overlay.Error }
	for slices.ContainsFunc(d.toasts.Visible(), bad) && d.toasts.Dismiss() {
		had = true
	}
	return had
}

// editor opens a JSON document.
func (d *dialog) editor(title, text string, then func(string) tea.Cmd) tea.Cmd {
	check := func(text string) error { return core.CheckObject("arguments", []byte(text), core.MaxInput) }
	return d.push(overlay.NewEditor(title, text, check), overlay.Submit, func(a overlay.Action) tea.Cmd { return then(a.Text) })
}

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
