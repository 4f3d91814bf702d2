package overlay

import (
	"strings"

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
}

// Entries are the help for bindings in force (keymap.Bindings), with the scope
// as section. why, which may be nil, tells why a binding doesn't work now.
func Entries(binds []keymap.Binding, why func(keymap.Binding) string) []Entry {
	out := make([]Entry, 0, len(binds))
	for _, b := range binds {
		e := Entry{Section: b.Scope, Keys: b.Label(), Text: b.Help, What: b.What()}
		if why != nil {
			e.Why = why(b)
		}
		out = append(out, e)
	}
	return out
}

// Help shows entries, and those that a typed key or word finds.
type Help struct {
	Title   string
	Entries []Entry
	Notes   []string // lines after the entries, shown while nothing is searched

	input Input
	top   int
	page  int
}

// Update scrolls, searches, or answers Close. Esc clears the search first.
func (h *Help) Update(msg tea.Msg) Action {
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "esc":
			if h.input.Value() == "" {
				return Action{Kind: Close}
			}
			h.input.SetValue("")
			h.top = 0
			return Action{}
		case "ctrl+c", "enter":
			return Action{Kind: Close}
		case "?":
			if h.input.Value() == "" {
				return Action{Kind: Close}
			}
		case "down":
			h.top++
			return Action{}
		case "up":
			h.top = max(h.top-1, 0)
			return Action{}
		case "pgdown", "ctrl+f":
			h.top += max(h.page, 1)
			return Action{}
		case "pgup", "ctrl+b":
			h.top = max(h.top-max(h.page, 1), 0)
			return Action{}
		case "ctrl+d":
			h.top += max(h.page/2, 1)
			return Action{}
		case "ctrl+u":
			if h.input.Value() == "" {
				h.top = max(h.top-max(h.page/2, 1), 0)
				return Action{}
			}
		}
	}
	if h.input.Update(msg) {
		h.top = 0
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
	title := h.Title
	if title == "" {
		title = "Keys"
	}
	in := box(c, max(c.W()-4, min(c.W(), 60)), max(c.H()-2, min(c.H(), 10)), title)
	if in.H < 1 || in.W < 4 {
		return
	}
	lines := h.lines()
	body := in.H - 2
	h.page = max(body, 1)
	h.top = max(0, min(h.top, len(lines)-body))
	keyW := min(18, in.W/3)
	for i := 0; i < body && h.top+i < len(lines); i++ {
		h.drawLine(c, screen.Rect{X: in.X, Y: in.Y + 2 + i, W: in.W, H: 1}, lines[h.top+i], keyW)
	}
	if len(lines) == 0 && body > 0 {
		c.TextIn(in.X, in.Y+2, in.W, screen.Dim, "no key and no command like this")
	}
	label := "search a key or a word: "
	x := c.TextIn(in.X, in.Y, min(term.Width(label), in.W/2), screen.Dim, label)
	h.input.Draw(c, x, in.Y, in.X+in.W-x)
}

// line is one line of the help: a section's head, an entry, or a note.
type line struct {
	head  string
	entry *Entry
	note  string
}

func (h *Help) lines() []line {
	var out []line
	section := ""
	found := h.found()
	for i := range found {
		if found[i].Section != section || i == 0 {
			section = found[i].Section
			out = append(out, line{head: section})
		}
		out = append(out, line{entry: &found[i]})
	}
	if h.input.Value() == "" {
		for _, n := range h.Notes {
			out = append(out, line{note: n})
		}
	}
	return out
}

func (h *Help) drawLine(c *screen.Canvas, r screen.Rect, l line, keyW int) {
	switch {
	case l.entry == nil && l.head != "":
		c.TextIn(r.X, r.Y, r.W, screen.Title, l.head)
	case l.entry == nil:
		c.TextIn(r.X, r.Y, r.W, screen.Dim, l.note)
	default:
		e := l.entry
		x := c.TextIn(r.X+1, r.Y, keyW, screen.FooterKey, e.Keys)
		left := r.X + r.W - x - 1
		if e.Why != "" {
			c.TextIn(x+1, r.Y, left, screen.Dim, e.Text+" (not now: "+e.Why+")")
			return
		}
		textW := left
		if w := term.Width(e.Text); left > w+20 && strings.Contains(e.What, " ") {
			textW = w
		}
		x = c.TextIn(x+1, r.Y, textW, screen.Text, e.Text)
		if textW < left {
			c.TextIn(x+2, r.Y, left-textW-2, screen.Dim, e.What)
		}
	}
}
