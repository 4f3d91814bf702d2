package overlay

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/keymap"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Entry is one line of the help.
type Entry struct {
	Section string // entries of a section stand together
	Keys    string // "j, down"
	Text    string
	What    string // the command line or the action
	Why     string // when set, it doesn't work now, and this is why
	Guard   bool   // it answers something, which the help hides: no click does it
}

// Entries are the help for bindings in force (keymap.Bindings), with the scope
// as section. why, which may be nil, tells why a binding doesn't work now.
func Entries(binds []keymap.Binding, why func(keymap.Binding) string) []Entry {
	out := make([]Entry, 0, len(binds))
	for _, b := range binds {
		e := Entry{Section: b.Scope, Keys: b.Label(), Text: b.Help, What: b.What(), Guard: b.Guard}
		if why != nil {
			e.Why = why(b)
		}
		out = append(out, e)
	}
	return out
}

// Help shows entries, and those that a typed key or word finds.
type Help struct {
	letters
	Title   string
	Entries []Entry
	Notes   []string // lines after the entries, shown while nothing is searched

	input Input
	view  viewport.Model
	in    screen.Rect // where the entries were drawn
	lines []string    // the first key of each line of them, "" for none
}

// Update scrolls, searches, answers Pick with the first key of the entry that was clicked
// on, or Close. Esc clears the search first.
func (h *Help) Update(msg tea.Msg) Action {
	if click, is := msg.(tea.MouseClickMsg); is && click.Button == tea.MouseLeft && h.in.Contains(click.X, click.Y) {
		if i := h.view.YOffset() + click.Y - h.in.Y; i < len(h.lines) && h.lines[i] != "" {
			return Action{Kind: Pick, Text: h.lines[i]}
		}
	}
	k, _ := msg.(tea.KeyPressMsg)
	empty := h.input.Value() == ""
	switch name := k.String(); {
	case name == "ctrl+c", name == "enter", empty && (name == "esc" || name == "?"):
		return Action{Kind: Close}
	case name == "esc":
		h.input.SetValue("")
		h.view.GotoTop()
	case name == "down":
		h.view.ScrollDown(1)
	case name == "up":
		h.view.ScrollUp(1)
	case name == "pgdown", name == "ctrl+f":
		h.view.PageDown()
	case name == "pgup", name == "ctrl+b":
		h.view.PageUp()
	case name == "ctrl+d":
		h.view.HalfPageDown()
	case name == "ctrl+u" && empty:
		h.view.HalfPageUp()
	case h.input.Update(msg):
		h.view.GotoTop()
	}
	return Action{}
}

// found are the entries for what was typed: those with exactly this key
// first, then those with the word in their keys, text or command.
func (h *Help) found() []Entry {
	q := strings.TrimSpace(h.input.Value())
	if q == "" {
		return h.Entries
	}
	low := strings.ToLower(q)
	var first, rest []Entry
	for _, e := range h.Entries {
		exact := false
		for k := range strings.SplitSeq(e.Keys, ", ") {
			exact = exact || k == q
		}
		switch {
		case exact:
			first = append(first, e)
		case strings.Contains(strings.ToLower(e.Keys), low) && len([]rune(q)) > 1,
			strings.Contains(strings.ToLower(e.Text), low), strings.Contains(strings.ToLower(e.What), low),
			strings.Contains(strings.ToLower(e.Section), low):
			rest = append(rest, e)
		}
	}
	return append(first, rest...)
}

// Draw draws the help.
func (h *Help) Draw(c *screen.Canvas) {
	in := box(c, max(c.W()-4, min(c.W(), 60)), max(c.H()-2, min(c.H(), 10)), cmp.Or(h.Title, "Keys"))
	if in.H < 1 || in.W < 4 {
		return
	}
	h.view.SetWidth(in.W)
	h.view.SetHeight(max(in.H-2, 0))
	h.view.SetContent(h.content(in.W, c.Glyphs().Ellipsis))
	h.in = screen.Rect{X: in.X, Y: in.Y + 2, W: in.W, H: in.H - 2}
	c.Widget(h.in, screen.Text, h.view.View())
	label := "search a key or a word: "
	x := c.TextIn(in.X, in.Y, min(term.Width(label), in.W/2), screen.Dim, label)
	h.input.Draw(c, x, in.Y, in.X+in.W-x)
}

// content is what was found, section by section, in lines of w cells.
func (h *Help) content(w int, more string) string {
	found, dim := h.found(), screen.Look(screen.Dim)
	h.lines = h.lines[:0]
	if len(found) == 0 {
		return dim.Render(term.CutWith("no key and no command like this", w, more))
	}
	table := help.New()
	table.Styles = help.Styles{FullKey: screen.Look(screen.FooterKey), FullDesc: screen.Look(screen.Text)}
	keys := min(18, w/3)
	var parts []string
	for len(found) > 0 {
		n := slices.IndexFunc(found, func(e Entry) bool { return e.Section != found[0].Section })
		if n < 0 {
			n = len(found)
		}
		var lines []key.Binding
		h.lines = append(h.lines, "")
		for _, e := range found[:n] {
			first, _, _ := strings.Cut(e.Keys, ", ")
			if e.Why != "" || e.Guard {
				first = ""
			}
			h.lines = append(h.lines, first)
			name := " " + term.CutWith(e.Keys, keys, more)
			lines = append(lines, key.NewBinding(key.WithKeys(e.Keys), key.WithHelp(name+strings.Repeat(" ", 1+keys-term.Width(name)), e.about(w-keys-2, more))))
		}
		parts = append(parts, screen.Look(screen.Title).Render(term.CutWith(found[0].Section, w, more)), table.FullHelpView([][]key.Binding{lines}))
		found = found[n:]
	}
	if h.input.Value() == "" {
		for _, n := range h.Notes {
			parts = append(parts, dim.Render(term.CutWith(n, w, more)))
		}
	}
	return strings.Join(parts, "\n")
}

// about is what the entry does, in w cells, and the command that does it where
// there is room.
func (e *Entry) about(w int, more string) string {
	if e.Why != "" {
		return screen.Look(screen.Dim).Render(term.CutWith(e.Text+" (not now: "+e.Why+")", w, more))
	}
	text := term.CutWith(e.Text, w, more)
	if room := w - term.Width(text) - 2; room >= 18 && strings.Contains(e.What, " ") {
		text += screen.Look(screen.Dim).Render("  " + term.CutWith(e.What, room, more))
	}
	return text
}
