package screen

import (
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
