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
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// Default is the name of the theme used when none is asked for.
const Default = "terminal"

// MaxFile bounds a theme file, in bytes.
const MaxFile = 64 << 10

//go:embed *.toml
var files embed.FS

// Names are the built-in themes, the default first.
func Names() []string { return []string{Default, "dark", "light", "high-contrast", "mono"} }

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

// look is a style of which only what is said is known.
type look struct {
	FG        *string `toml:"fg"`
	BG        *string `toml:"bg"`
	Bold      *bool   `toml:"bold"`
	Dim       *bool   `toml:"dim"`
	Italic    *bool   `toml:"italic"`
	Underline *bool   `toml:"underline"`
	Reverse   *bool   `toml:"reverse"`
}

// sheet is what a file and those it extends say.
type sheet map[screen.Role]look

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
		l := doc.Style[key]
		for _, c := range []*string{l.FG, l.BG} {
			if c == nil {
				continue
			}
			if _, err := Color(*c); err != nil {
				return nil, fmt.Errorf("theme %s: style %s: %w", name, key, err)
			}
		}
		out[role] = over(out[role], l)
	}
	return out, nil
}

// over lays what b says over a.
func over(a, b look) look {
	pick := func(to **bool, from *bool) {
		if from != nil {
			*to = from
		}
	}
	if b.FG != nil {
		a.FG = b.FG
	}
	if b.BG != nil {
		a.BG = b.BG
	}
	pick(&a.Bold, b.Bold)
	pick(&a.Dim, b.Dim)
	pick(&a.Italic, b.Italic)
	pick(&a.Underline, b.Underline)
	pick(&a.Reverse, b.Reverse)
	return a
}

// resolve fills what a style doesn't say: its colours are those of text.
func (s sheet) resolve() map[screen.Role]screen.Style {
	out := map[screen.Role]screen.Style{}
	text := s[screen.Text]
	for role := range screen.Roles {
		l := over(look{FG: text.FG, BG: text.BG}, s[role])
		st := screen.Style{
			Bold: l.Bold != nil && *l.Bold, Dim: l.Dim != nil && *l.Dim, Italic: l.Italic != nil && *l.Italic,
			Underline: l.Underline != nil && *l.Underline, Reverse: l.Reverse != nil && *l.Reverse,
		}
		if l.FG != nil {
			st.FG, _ = Color(*l.FG) // checked while reading
		}
		if l.BG != nil {
			st.BG, _ = Color(*l.BG)
		}
		out[role] = st
	}
	return out
}

// palette are the names of the terminal's 16 colours.
var palette = [16]string{
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
	"bright-black", "bright-red", "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan", "bright-white",
}

// Color reads a colour: default, a name of the terminal's 16 colours such as
// bright-blue, a number from 0 to 255 of its palette, or #rrggbb.
func Color(text string) (screen.Color, error) {
	if text == "default" {
		return screen.Color{}, nil
	}
	if i := slices.Index(palette[:], text); i >= 0 {
		return screen.Palette(uint8(i)), nil
	}
	if hex, ok := strings.CutPrefix(text, "#"); ok && len(hex) == 6 {
		if n, err := strconv.ParseUint(hex, 16, 32); err == nil {
			return screen.RGB(uint8(n>>16), uint8(n>>8), uint8(n)), nil
		}
	}
	if n, err := strconv.ParseUint(text, 10, 8); err == nil {
		return screen.Palette(uint8(n)), nil
	}
	return screen.Color{}, fmt.Errorf("colour %q is unknown; default, black to bright-white, 0 to 255, or #rrggbb", term.Cut(text, 60))
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
