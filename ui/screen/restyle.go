package screen

import uv "github.com/charmbracelet/ultraviolet"

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
