package themes_test

import (
	"image/color"
	"math"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/themes"
	"swarmdeck/ui/screen"
)

func load(t *testing.T, name string) *screen.Theme {
	t.Helper()
	return expect.Of(themes.Load(name))(t)
}

var none color.Color = lipgloss.NoColor{}

// luminance and ratio are those of WCAG 2.2, 1.4.3.
func luminance(t *testing.T, c color.Color) float64 {
	t.Helper()
	rgb, ok := c.(color.RGBA)
	expect.Must(t, ok, "%v is no true colour", c)
	lin := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(rgb.R) + 0.7152*lin(rgb.G) + 0.0722*lin(rgb.B)
}

func ratio(t *testing.T, s lipgloss.Style) float64 {
	t.Helper()
	a, b := luminance(t, s.GetForeground()), luminance(t, s.GetBackground())
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

func TestTextStandsOutFromItsGround(t *testing.T) {
	for name, least := range map[string]float64{"dark": 4.5, "light": 4.5, "high-contrast": 7} {
		th := load(t, name)
		for r := range screen.Roles {
			want := least
			if r == screen.Border && least < 7 {
				want = 3 // not text (1.4.11)
			}
			got := ratio(t, th.Style(r))
			expect.True(t, got >= want, "%s: %s has contrast %.2f, want %.1f", name, r, got, want)
		}
	}
}

func TestTheDefaultUsesTheTerminalsColours(t *testing.T) {
	th := load(t, themes.Default)
	for r := range screen.Roles {
		s := th.Style(r)
		for _, c := range []color.Color{s.GetForeground(), s.GetBackground()} {
			n, basic := c.(ansi.BasicColor)
			if c != none && (!basic || n%8 == 0 || n%8 == 7) {
				t.Errorf("%s has %v", r, c)
			}
		}
	}
	s := th.Style(screen.Selected)
	expect.True(t, s.GetReverse() && s.GetForeground() == none, "selected is %+v", s)
}

func TestMonoHasNoColour(t *testing.T) {
	th := load(t, "mono")
	for r := range screen.Roles {
		s := th.Style(r)
		expect.True(t, s.GetForeground() == none && s.GetBackground() == none && !s.GetItalic() && !s.GetFaint(), "%s is %+v", r, s)
	}
}

// What a person must tell apart looks different in every theme.
func TestWhatMattersLooksDifferent(t *testing.T) {
	pairs := [][2]screen.Role{
		{screen.Text, screen.Selected},
		{screen.Text, screen.SelectedOff},
		{screen.Selected, screen.SelectedOff},
		{screen.Text, screen.Marked},
		{screen.Border, screen.BorderFocus},
		{screen.Text, screen.Match},
		{screen.Header, screen.HeaderHot},
		{screen.Text, screen.Danger},
		{screen.Added, screen.Removed},
		{screen.Added, screen.AddedWord},
		{screen.Removed, screen.RemovedWord},
		{screen.Text, screen.Hidden},
		{screen.Toast, screen.ToastBad},
		{screen.Footer, screen.FooterKey},
	}
	for _, name := range themes.Names() {
		th := load(t, name)
		for _, p := range pairs {
			expect.True(t, th.Style(p[0]).Render("x") != th.Style(p[1]).Render("x"), "%s: %s and %s look alike", name, p[0], p[1])
		}
	}
}

func TestUserThemesExtend(t *testing.T) {
	th := expect.Of(themes.Parse([]byte("extends = \"dark\"\n[style]\ngood = { fg = \"#ffffff\", bold = true }\nbad = { bg = \"bright-red\" }\n"), "mine"))(t)
	dark := load(t, "dark")
	for role, want := range map[screen.Role]lipgloss.Style{
		screen.Good: lipgloss.NewStyle().Foreground(lipgloss.Color("#ffffff")).Background(dark.Style(screen.Text).GetBackground()).Bold(true),
		screen.Bad:  dark.Style(screen.Bad).Background(lipgloss.BrightRed),
		screen.Warn: dark.Style(screen.Warn),
	} {
		expect.Is(t, th.Style(role).Render("x"), want.Render("x"), role)
	}
	expect.Is(t, th.Name, "mine")
}

func TestMistakesAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"extends = \"nope\"\n":                       `theme mine: extends: theme "nope" is unknown; one of terminal dark`,
		"[style]\nglow = { bold = true }\n":          `theme mine: style "glow" is unknown; one of text dim`,
		"[style]\ngood = { fg = \"pink\" }\n":        `theme mine: style good: colour "pink" is unknown`,
		"[style]\ngood = { fg = \"#12345\" }\n":      `colour "#12345" is unknown`,
		"[style]\ngood = { fg = \"256\" }\n":         `colour "256" is unknown`,
		"[style]\n\ngood = { blink = true }\n":       `theme mine:3: field "blink" is unknown`,
		"[style\n":                                   `theme mine:1:`,
		strings.Repeat("#", themes.MaxFile+1):        `at most 65536`,
		"[style]\ngood = { fg = \"\\u001b[31m\" }\n": `colour "" is unknown`,
	} {
		expect.Says(t, expect.Fault(themes.Parse([]byte(file), "mine")), want)
	}
	expect.Fails(t, expect.Fault(themes.Load("../themes")), "an unknown name was loaded")
}

func FuzzParse(f *testing.F) {
	for _, n := range themes.Names() {
		text, _ := themes.Builtin(n)
		f.Add(text)
	}
	f.Add("extends = \"dark\"\n[style]\ngood = { fg = \"#fff\" }\n")
	f.Fuzz(func(t *testing.T, file string) {
		th, err := themes.Parse([]byte(file), "f")
		if err != nil {
			expect.Must(t, !strings.ContainsAny(err.Error(), "\x1b\u202e"), "the message holds control characters: %q", err)
			return
		}
		c := screen.New(3, 1)
		c.Text(0, 0, screen.Good, "abc")
		out := c.Render(th)
		expect.Must(t, strings.Contains(out, "abc"), "got %q", out)
	})
}
