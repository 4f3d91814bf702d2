package screen

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Theme gives every role a look. It doesn't change after NewTheme, which works out all that
// drawing needs of it.
type Theme struct {
	Name   string
	styles [Roles]lipgloss.Style
	sgr    [Roles]string // selects the look whatever was selected before
	blank  [Roles]string // of spaces: a line under nothing would be a bar
	// figure and ground are the parameters of a role's two colours; shade those of its
	// colour at each brightness, without the digit that says which of the two it is.
	figure, ground [Roles]string
	shade          [Roles][TintLevels]string
	colored        bool
}

// NewTheme makes a theme; roles that are not in styles look like Text.
func NewTheme(name string, styles map[Role]lipgloss.Style) *Theme {
	t := &Theme{Name: name}
	for r := range Roles {
		s, ok := styles[r]
		if !ok {
			s = styles[Text]
		}
		t.styles[r], t.sgr[r], t.blank[r] = s, sgr(s), sgr(s.Underline(false))
		t.figure[r] = ansi.Style{}.ForegroundColor(said(s.GetForeground()))[0]
		t.ground[r] = ansi.Style{}.BackgroundColor(said(s.GetBackground()))[0]
		t.tints(r)
	}
	return t
}

// Style is the look of r.
func (t *Theme) Style(r Role) lipgloss.Style { return t.styles[r.known()] }

// sgr is the sequence that selects s whatever was selected before.
func sgr(s lipgloss.Style) string {
	open, _, _ := strings.Cut(s.Render("x"), "x")
	if open == "" {
		return plainSGR
	}
	return "\x1b[0;" + strings.TrimPrefix(open, "\x1b[")
}

// said is nil for the terminal's own colour.
func said(c ansi.Color) ansi.Color {
	if c == (lipgloss.NoColor{}) {
		return nil
	}
	return c
}
