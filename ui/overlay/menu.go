package overlay

import (
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Item is one choice of a menu.
type Item struct {
	ID   string
	Text string
	Help string
	Key  string // chooses it, in place of its number; "" has none
	Why  string // when set, the item can't be chosen, and this is why
}

// Menu offers choices.
type Menu struct {
	Title string
	Items []Item

	at, top int
	in      screen.Rect // where it was drawn
}

// Update answers Pick with the item's ID, or Close.
func (m *Menu) Update(msg tea.Msg) Action {
	if click, is := msg.(tea.MouseClickMsg); is && click.Button == tea.MouseLeft && m.in.Contains(click.X, click.Y) {
		if i := m.top + click.Y - m.in.Y; i < len(m.Items) {
			m.at = i
			return m.pick(i)
		}
	}
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return Action{}
	}
	m.move(m.at)
	s := k.String()
	if i := slices.IndexFunc(m.Items, func(it Item) bool { return it.Key != "" && it.Key == s }); i >= 0 && !k.IsRepeat {
		m.at = i
		return m.pick(i)
	}
	switch s {
	case "esc", "q", "ctrl+c", "left", "h":
		return Action{Kind: Close}
	case "j", "down", "tab", "ctrl+n":
		m.move(m.at + 1)
	case "k", "up", "shift+tab", "ctrl+p":
		m.move(m.at - 1)
	case "g", "home":
		m.move(0)
	case "G", "end":
		m.move(len(m.Items))
	case "enter":
		if !k.IsRepeat {
			return m.pick(m.at)
		}
	default:
		if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= 9 && n <= len(m.Items) {
			m.at = n - 1
			return m.pick(m.at)
		}
	}
	return Action{}
}

// move puts the cursor on an item, or on the nearest that there is.
func (m *Menu) move(i int) { m.at = min(max(i, 0), max(len(m.Items)-1, 0)) }

func (m *Menu) pick(i int) Action {
	if i >= len(m.Items) || m.Items[i].Why != "" {
		return Action{}
	}
	return Action{Kind: Pick, ID: m.Items[i].ID, Text: m.Items[i].Text}
}

// Draw draws the choices in sight.
func (m *Menu) Draw(c *screen.Canvas) {
	in := box(c, 60, len(m.Items)+2, m.Title)
	m.in = in
	m.move(m.at)
	m.top = screen.Window(m.top, m.at, in.H, len(m.Items))
	for i := 0; i < in.H && m.top+i < len(m.Items); i++ {
		n := m.top + i
		it, role, y := m.Items[n], screen.Text, in.Y+i
		label := "  "
		switch {
		case it.Key != "":
			label = " " + it.Key
		case n < 9:
			label = " " + strconv.Itoa(n+1)
		}
		if n == m.at {
			label = string(c.Glyphs().Cursor) + label[1:]
		}
		help := it.Help
		if it.Why != "" {
			role, help = screen.Dim, it.Why
		}
		x := c.TextIn(in.X, y, min(3, in.W), screen.FooterKey, label)
		half := max(in.W-2, 0) / 2
		if help == "" {
			half = in.W - 3
		}
		x = c.TextIn(x, y, half, role, it.Text)
		c.TextIn(x, y, in.X+in.W-x, screen.Dim, " "+help)
		if n == m.at {
			c.Paint(screen.Rect{X: in.X, Y: y, W: in.W, H: 1}, screen.Selected)
		}
	}
}
