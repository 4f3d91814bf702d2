package screen

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Look is the style to give a part of the toolkit so that Widget draws it in a role.
func Look(r Role) lipgloss.Style { return lipgloss.NewStyle().Foreground(LookColor(r)) }

// LookColor is the colour that stands for a role in what a part of the toolkit renders.
func LookColor(r Role) ansi.Color { return lipgloss.ANSIColor(r) }

// Widget draws what a part of the toolkit rendered in the styles of Look, the rest of r in
// a role. It is made as harmless as any text. Where the part shows a cursor, reversed, is
// the terminal's.
func (c *Canvas) Widget(r Rect, role Role, rendered string) {
	w := widget{Canvas: c.Sub(r), role: role}
	uv.NewStyledString(rendered).Draw(&w, uv.Rect(0, 0, w.W(), w.H()))
}

// widget is a canvas as the toolkit draws on it; it implements uv.Screen.
type widget struct {
	*Canvas
	role Role
	last uv.Cell
}

func (w *widget) Bounds() uv.Rectangle        { return uv.Rect(0, 0, w.W(), w.H()) }
func (w *widget) WidthMethod() uv.WidthMethod { return ansi.WcWidth }

// CellAt is asked for the cell drawn last, for marks that follow it.
func (w *widget) CellAt(int, int) *uv.Cell { return &w.last }

func (w *widget) SetCell(x, y int, k *uv.Cell) {
	role := w.role
	if k == nil {
		w.Set(x, y, ' ', role, 0, 0)
		return
	}
	w.last = *k
	if n, is := k.Style.Fg.(ansi.IndexedColor); is {
		role = Role(n).known()
	}
	w.Text(x, y, role, k.Content)
	if k.Style.Attrs&uv.AttrReverse != 0 {
		w.SetCursor(x, y)
	}
}

// maxStyles bounds the styles in a picture.
const maxStyles = 1<<16 - 1

// Restyle has the cells of r look as a program says that they are to, in place of their
// roles, until they are drawn anew. A colour that is left out is that of Text. A theme
// without colours keeps the attributes and reverses what has a ground of its own.
func (c *Canvas) Restyle(r Rect, s uv.Style) {
	g := c.g
	if r = r.Clip(c.Bounds()); r.Empty() || s.IsZero() || len(g.styles) >= maxStyles {
		return
	}
	if n := len(g.styles); n == 0 || g.styles[n-1] != s {
		g.styles = append(g.styles, s)
	}
	for k := range c.cellsOf(r) {
		k.style = uint16(len(g.styles))
	}
}

// appendStyle selects a style whatever was selected before.
func (t *Theme) appendStyle(out []byte, s uv.Style) []byte {
	if !t.colored {
		if s.Bg != nil {
			s.Attrs |= uv.AttrReverse
		}
		s.Fg, s.Bg = nil, nil
	}
	if out = append(out, t.sgr[Text]...); s.IsZero() {
		return out
	}
	return append(out, s.String()...)
}

// maxLink bounds a link, in bytes: terminals take no longer ones.
const maxLink = 2000

// maxLinks bounds the links in a picture.
const maxLinks = 1<<16 - 1

// Opens reports whether a terminal may be handed a link to open: one of the web, in
// printable ASCII, without the semicolon that the toolkit takes for an end.
func Opens(to string) bool {
	if len(to) > maxLink || !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		return false
	}
	for i := range len(to) {
		if to[i] <= ' ' || to[i] > '~' || to[i] == ';' {
			return false
		}
	}
	return true
}

// Link makes the cells of r open a link in terminals that can (OSC 8), until they are drawn
// anew. What may not be opened is left out.
func (c *Canvas) Link(r Rect, to string) {
	g := c.g
	if r = r.Clip(c.Bounds()); r.Empty() || !Opens(to) || len(g.links) >= maxLinks {
		return
	}
	if n := len(g.links); n == 0 || g.links[n-1] != to {
		g.links = append(g.links, to)
	}
	for k := range c.cellsOf(r) {
		k.link = uint16(len(g.links))
	}
}

// appendLink begins a link, or ends the one that is open.
func (g *cells) appendLink(out []byte, n uint16) []byte {
	out = append(out, "\x1b]8;;"...)
	if n > 0 && int(n) <= len(g.links) {
		out = append(out, g.links[n-1]...)
	}
	return append(out, "\x1b\\"...)
}

// TellLinks says whether a terminal is told of links when the picture is drawn on it.
func (c *Canvas) TellLinks(on bool) { c.g.silent = !on }

// Links are what cells of the window open, each once, in reading order.
func (c *Canvas) Links() (all []string) {
	seen := map[uint16]bool{0: true}
	for y := range c.H() {
		for _, k := range c.row(y) {
			if !seen[k.link] && int(k.link) <= len(c.g.links) && !slices.Contains(all, c.g.links[k.link-1]) {
				all = append(all, c.g.links[k.link-1])
			}
			seen[k.link] = true
		}
	}
	return all
}

// LinkAt is what a cell of the window opens, "" for nothing.
func (c *Canvas) LinkAt(x, y int) string {
	if k := c.cell(x, y); k.link > 0 && int(k.link) <= len(c.g.links) {
		return c.g.links[k.link-1]
	}
	return ""
}
