package overlay

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Sizes of a form.
const (
	formWidth = 76
	jsonRows  = 8 // of the JSON field at hand
	formHelp  = 3 // rows that speak of the field at hand, below the fields
)

// rows is how many rows a field takes.
func (f *Form) rows(i int) int {
	e, n := f.fields[i], 1
	if e.Type == JSONField && i == f.at {
		n = min(max(len(e.area.lines), 3), jsonRows)
	}
	if e.problem != "" {
		n++
	}
	if e.Section != "" {
		n++
	}
	return n
}

// Draw draws the fields in sight, what the one at hand is for, and the keys.
func (f *Form) Draw(c *screen.Canvas) {
	total, first := 0, 0 // rows of all fields; the first row of the one at hand
	for i := range f.fields {
		if i < f.at {
			first += f.rows(i)
		}
		total += f.rows(i)
	}
	w := max(min(c.W()-4, formWidth), min(c.W(), 40))
	in := box(c, w, total+formHelp+4, f.Title)
	if in.H < 1 {
		return
	}
	below := 1
	if in.H >= min(total, 3)+formHelp+2 {
		below = formHelp + 2
	}
	list, help := in.SplitBottom(min(below, max(in.H-1, 0)))
	if f.at < len(f.fields) {
		f.top = screen.Window(f.top, first, list.H, total)
		f.top = screen.Window(f.top, first+f.rows(f.at)-1, list.H, total)
		f.top = min(f.top, first) // the head of a tall one rather than its end
	}
	label := 0
	for _, e := range f.fields {
		label = max(label, term.Width(clip(e.Name, 200))+1)
	}
	label = min(label, max(list.W/3, 1))
	y := -f.top
	for i := range f.fields {
		if n := f.rows(i); y+n > 0 && y < list.H {
			f.field(c.Sub(list), i, y, label)
		}
		y += f.rows(i)
	}
	f.below(c, help)
}

// field draws field i from row y of c on, its name in label cells.
func (f *Form) field(c *screen.Canvas, i, y, label int) {
	e, here := f.fields[i], i == f.at
	end := y + f.rows(i)
	if e.Section != "" {
		c.TextIn(0, y, c.W(), screen.Title, e.Section)
		y++
	}
	name, role := e.Name, screen.Dim
	if e.Required {
		name += "*"
	}
	if here {
		role = screen.Title
		c.Text(0, y, screen.FooterKey, string(c.Glyphs().Cursor))
	}
	c.TextIn(2, y, label, role, name)
	x := label + 3
	room := screen.Rect{X: x, Y: y, W: max(c.W()-x, 0), H: 1}
	switch {
	case e.chooses():
		e.drawChoices(c.Sub(room), here)
	case e.Type == JSONField && here:
		room.H = end - y
		if e.problem != "" {
			room.H--
		}
		c.Fill(room, screen.Input, ' ')
		e.area.draw(c, room)
	case e.text() == "" && e.Empty != "":
		if here {
			e.in.Draw(c, room.X, room.Y, 1)
			room.X, room.W = room.X+1, room.W-1
		}
		c.TextIn(room.X, room.Y, room.W, screen.Dim, e.Empty)
	case here:
		e.in.Draw(c, room.X, room.Y, room.W)
	default:
		c.TextIn(room.X, room.Y, room.W, screen.Input, strings.Join(strings.Fields(clip(e.text(), 4*room.W+400)), " "))
	}
	if e.problem != "" {
		c.TextIn(x, end-1, room.W, screen.Bad, "! "+strings.ReplaceAll(clip(e.problem, 2000), "\n", " "))
	}
}

// drawChoices draws the choices in a row, the chosen one in brackets; those
// that don't fit are counted.
func (e *entry) drawChoices(c *screen.Canvas, here bool) {
	total := 0
	for _, choice := range e.choices {
		total += term.Width(clip(choice, 200)) + 2
	}
	role := screen.Accent
	switch {
	case e.danger() != "":
		role = screen.Danger
	case here:
		role = screen.Selected
	}
	if total > c.W() {
		text := "(choose: left, right)"
		if e.at >= 0 {
			text = "[" + term.CutWith(e.choices[e.at], max(c.W()-12, 1), c.Glyphs().Ellipsis) + "]"
		}
		x := c.Text(0, 0, role, text)
		c.Text(x+1, 0, screen.Dim, fmt.Sprintf("%d/%d", e.at+1, len(e.choices)))
		return
	}
	x := 0
	for i, choice := range e.choices {
		if i == e.at {
			x = c.Text(x, 0, role, "["+choice+"]")
		} else {
			x = c.Text(x, 0, screen.Dim, " "+choice+" ")
		}
	}
	if e.at < 0 {
		c.Text(x, 0, screen.Dim, " ("+cmp.Or(e.Empty, "none")+")")
	}
}

// wrong draws what is wrong with the form over the rows that speak of a field:
// what is allowed comes last in it.
func (f *Form) wrong(c *screen.Canvas, r screen.Rect) {
	lines, room := term.WrapLine(clip(f.problem, 2000), max(r.W, 1)), max(r.H-1, 1)
	if len(lines) > room {
		lines = append(lines[:room-1], strings.Join(lines[room-1:], " "))
	}
	for i, line := range lines {
		c.TextIn(r.X, r.Y+r.H-len(lines)+i, r.W, screen.Bad, line)
	}
}

// below draws what the field at hand is for, and in the last row what is wrong
// with the form, or the keys.
func (f *Form) below(c *screen.Canvas, r screen.Rect) {
	last := r.Y + r.H - 1
	if r.H > 1 {
		c.HLine(r.X, r.Y, r.W, screen.Border)
	}
	if f.problem != "" && !f.leaving {
		f.wrong(c, r)
		return
	}
	if e := f.current(); e != nil && r.H > 1 {
		c.TextIn(r.X, r.Y+1, r.W, screen.Text, e.about())
		text, role := e.Description, screen.Dim
		if danger := e.danger(); danger != "" {
			text, role = danger, screen.Danger
		}
		if e.problem != "" { // its row may have been too short for all of it
			text, role = e.problem, screen.Bad
		}
		lines := term.Wrap(clip(text, 4*r.W*formHelp), max(r.W, 1))
		for i, line := range lines[:min(len(lines), formHelp-1)] {
			if i == formHelp-2 && len(lines) > formHelp-1 {
				line += c.Glyphs().Ellipsis
			}
			c.TextIn(r.X, r.Y+2+i, r.W, role, line)
		}
	}
	hint, role := "enter: done   tab: next field   esc: leave", screen.Dim
	e := f.current()
	switch {
	case f.leaving:
		hint, role = "esc again drops what was entered; any other key goes on", screen.Warn
	case e == nil:
		hint = "nothing to fill in   enter: done   esc: leave"
	case e.chooses():
		hint += "   left, right: choose"
	case len(e.Suggest) > 0:
		hint += "   right: " + fmt.Sprintf("one of %d known", len(e.Suggest))
	case e.Type == JSONField:
		hint += "   alt+enter: new line"
	}
	c.TextIn(r.X, last, r.W, role, hint)
}
