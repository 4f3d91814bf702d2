package screen

import "strconv"

// Color is one colour of a style: the terminal's default (the zero value),
// one of its 256 palette entries, or red, green and blue.
type Color struct {
	kind    colorKind
	r, g, b uint8
}

type colorKind uint8

const (
	defaultColor colorKind = iota
	indexed
	trueColor
)

// Palette is entry n of the terminal's palette: 0-15 are its 16 colours.
func Palette(n uint8) Color { return Color{kind: indexed, r: n} }

// RGB is a true colour; the toolkit makes less of it where it must.
func RGB(r, g, b uint8) Color { return Color{trueColor, r, g, b} }

// RGB gives a true colour's parts; ok is false for the others.
func (c Color) RGB() (r, g, b uint8, ok bool) { return c.r, c.g, c.b, c.kind == trueColor }

// Index gives a palette entry; ok is false for the others.
func (c Color) Index() (n uint8, ok bool) { return c.r, c.kind == indexed }

// Style is the look of a role.
type Style struct {
	FG, BG                                Color
	Bold, Dim, Italic, Underline, Reverse bool
}

// Theme gives every role a look. It doesn't change after NewTheme.
type Theme struct {
	Name   string
	styles [Roles]Style
	sgr    [Roles]string
	blank  [Roles]string // of spaces: a line under nothing would be a bar
	// base are the roles' full colours for tints.
	base    [Roles]rgb
	colored bool
}

// NewTheme makes a theme; roles that are not in styles look like Text.
func NewTheme(name string, styles map[Role]Style) *Theme {
	t := &Theme{Name: name}
	for r := range Roles {
		s, ok := styles[r]
		if !ok {
			s = styles[Text]
		}
		t.styles[r], t.sgr[r] = s, s.sgr()
		s.Underline = false
		t.blank[r] = s.sgr()
	}
	t.tints()
	return t
}

// Style is the look of r.
func (t *Theme) Style(r Role) Style {
	if r >= Roles {
		r = Text
	}
	return t.styles[r]
}

// sgr is the sequence that selects s whatever was selected before.
func (s Style) sgr() string {
	b := []byte("\x1b[0")
	for _, a := range []struct {
		on   bool
		code string
	}{{s.Bold, ";1"}, {s.Dim, ";2"}, {s.Italic, ";3"}, {s.Underline, ";4"}, {s.Reverse, ";7"}} {
		if a.on {
			b = append(b, a.code...)
		}
	}
	b = s.FG.append(b, 30)
	b = s.BG.append(b, 40)
	if len(b) == len("\x1b[0") {
		return "\x1b[m"
	}
	return string(append(b, 'm'))
}

// append adds the colour's parameters; base is 30 for text, 40 for ground.
func (c Color) append(b []byte, base int) []byte {
	num := func(n int) { b = strconv.AppendInt(append(b, ';'), int64(n), 10) }
	switch c.kind {
	case indexed:
		switch {
		case c.r < 8:
			num(base + int(c.r))
		case c.r < 16:
			num(base + 60 + int(c.r) - 8)
		default:
			num(base + 8)
			num(5)
			num(int(c.r))
		}
	case trueColor:
		num(base + 8)
		num(2)
		num(int(c.r))
		num(int(c.g))
		num(int(c.b))
	}
	return b
}
