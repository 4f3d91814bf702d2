// Package themes holds the cockpit's built-in looks and reads those of users.
//
// A theme is a TOML file that gives roles (see ui/screen) their colours and
// decoration. The default, terminal, uses the terminal's own 16 colours and
// its own ground, so it suits dark and light terminals alike; mono uses none.
package themes

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/pelletier/go-toml/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Default is the name of the theme used when none is asked for; Auto that of the one in
// whose place a cockpit shows Light or Dark, as its terminal is.
const (
	Default = "terminal"
	Auto    = "auto"
	Dark    = "dark"
	Light   = "light"
)

// MaxFile bounds a theme file, in bytes.
const MaxFile = 64 << 10

//go:embed *.toml
var files embed.FS

// Names are the built-in themes, the default first.
func Names() []string { return []string{Default, Dark, Light, "high-contrast", "mono", Auto} }

// Builtin is the text of a built-in theme.
func Builtin(name string) (string, error) {
	if !slices.Contains(Names(), name) {
		return "", fmt.Errorf("theme %q is unknown; one of %s", term.Cut(name, 60), strings.Join(Names(), " "))
	}
	data, err := files.ReadFile(name + ".toml")
	if err != nil {
		return "", fmt.Errorf("built-in theme %s: %w", name, err)
	}
	return string(data), nil
}

// Load makes a built-in theme.
func Load(name string) (*screen.Theme, error) {
	text, err := Builtin(name)
	if err != nil {
		return nil, err
	}
	return Parse([]byte(text), name)
}

// Parse makes a theme from a file; name is what it is called and what mistakes
// are reported under. A file may extend a built-in theme.
func Parse(data []byte, name string) (*screen.Theme, error) {
	styles, err := read(data, name, 0)
	if err != nil {
		return nil, err
	}
	return screen.NewTheme(name, styles.resolve()), nil
}

// document is the TOML shape.
type document struct {
	Extends string          `toml:"extends"`
	Style   map[string]look `toml:"style"`
}

// look is what a file says of a style.
type look struct {
	FG        *string `toml:"fg"`
	BG        *string `toml:"bg"`
	Bold      *bool   `toml:"bold"`
	Dim       *bool   `toml:"dim"`
	Italic    *bool   `toml:"italic"`
	Underline *bool   `toml:"underline"`
	Reverse   *bool   `toml:"reverse"`
}

// over is what l says, and of the rest what below does.
func (l look) over(below lipgloss.Style) (s lipgloss.Style, err error) {
	color := func(text *string, set func(lipgloss.Style, color.Color) lipgloss.Style) {
		if text != nil && err == nil {
			var c color.Color
			if c, err = Color(*text); err == nil {
				s = set(s, c)
			}
		}
	}
	flag := func(on *bool, set func(lipgloss.Style, bool) lipgloss.Style) {
		if on != nil {
			s = set(s, *on)
		}
	}
	color(l.FG, lipgloss.Style.Foreground)
	color(l.BG, lipgloss.Style.Background)
	flag(l.Bold, lipgloss.Style.Bold)
	flag(l.Dim, lipgloss.Style.Faint)
	flag(l.Italic, lipgloss.Style.Italic)
	flag(l.Underline, lipgloss.Style.Underline)
	flag(l.Reverse, lipgloss.Style.Reverse)
	return s.Inherit(below), err
}

// sheet is what a file and those it extends say.
type sheet map[screen.Role]lipgloss.Style

func read(data []byte, name string, depth int) (sheet, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("theme %s: %d bytes, at most %d", name, len(data), MaxFile)
	}
	if depth > len(Names()) {
		return nil, fmt.Errorf("theme %s: extends goes round in a circle", name)
	}
	var doc document
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&doc); err != nil {
		return nil, mistake(name, err)
	}
	out := sheet{}
	if doc.Extends != "" {
		base, err := Builtin(doc.Extends)
		if err != nil {
			return nil, fmt.Errorf("theme %s: extends: %w", name, err)
		}
		if out, err = read([]byte(base), doc.Extends, depth+1); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(doc.Style)) {
		role, ok := screen.ParseRole(key)
		if !ok {
			return nil, fmt.Errorf("theme %s: style %q is unknown; one of %s", name, term.Cut(key, 60), strings.Join(screen.RoleNames(), " "))
		}
		style, err := doc.Style[key].over(out[role])
		if err != nil {
			return nil, fmt.Errorf("theme %s: style %s: %w", name, key, err)
		}
		out[role] = style
	}
	return out, nil
}

// resolve fills what a style doesn't say: its colours are those of text.
func (s sheet) resolve() map[screen.Role]lipgloss.Style {
	text := lipgloss.NewStyle().Foreground(s[screen.Text].GetForeground()).Background(s[screen.Text].GetBackground())
	for role := range screen.Roles {
		s[role] = s[role].Inherit(text)
	}
	return s
}

// palette are the names of the terminal's 16 colours.
var palette = [16]string{
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
	"bright-black", "bright-red", "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan", "bright-white",
}

// Color reads a colour: default, a name of the terminal's 16 colours such as
// bright-blue, a number from 0 to 255 of its palette, or #rrggbb.
func Color(text string) (color.Color, error) {
	number := text
	if i := slices.Index(palette[:], text); i >= 0 {
		number = strconv.Itoa(i)
	}
	_, notHex := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 24)
	_, notNumber := strconv.ParseUint(number, 10, 8)
	if text == "default" || len(text) == len("#rrggbb") && text[0] == '#' && notHex == nil || notNumber == nil {
		return lipgloss.Color(number), nil
	}
	return nil, fmt.Errorf("colour %q is unknown; default, black to bright-white, 0 to 255, or #rrggbb", term.Cut(text, 60))
}

// mistake names the line of what TOML refuses.
func mistake(name string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Errorf("theme %s:%d: field %q is unknown", name, row, term.Cut(last(strict.Errors[0].Key()), 60))
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		row, _ := de.Position()
		return fmt.Errorf("theme %s:%d: %s", name, row, term.Cut(de.Error(), 200))
	}
	return fmt.Errorf("theme %s: %s", name, term.Cut(err.Error(), 200))
}

// last is the field's own name.
func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
