package fleet

import (
	"testing"

	"charm.land/lipgloss/v2"

	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

func TestATerminalsPictureLooksAsItsProgramWants(t *testing.T) {
	theme := screen.NewTheme("", map[screen.Role]lipgloss.Style{screen.Good: lipgloss.NewStyle().Foreground(lipgloss.Green)})
	for _, s := range []struct {
		style terminal.Style
		want  string
	}{
		{terminal.Style{}, "x"},
		{terminal.Style{FG: terminal.RGB(255, 165, 0)}, "\x1b[m\x1b[38;2;255;165;0mx\x1b[m"},
		{terminal.Style{BG: terminal.Palette(57)}, "\x1b[m\x1b[48;5;57mx\x1b[m"},
		{terminal.Style{FG: terminal.Palette(1), BG: terminal.Palette(15)}, "\x1b[m\x1b[31;107mx\x1b[m"},
		{terminal.Style{Attrs: terminal.Bold | terminal.Italic | terminal.Reverse}, "\x1b[m\x1b[1;3;7mx\x1b[m"},
		{terminal.Style{Attrs: terminal.Faint | terminal.Underline | terminal.Blink | terminal.Strike}, "\x1b[m\x1b[2;5;9;4mx\x1b[m"},
		{terminal.Style{FG: terminal.Palette(1), Attrs: terminal.Conceal}, "\x1b[m\x1b[31m \x1b[m"},
	} {
		c := screen.New(1, 1)
		DrawScreen(c, &terminal.Screen{Size: terminal.Size{Cols: 1, Rows: 1}, Lines: []terminal.Line{{{Text: "x", Cells: 1, Style: s.style}}}})
		expect.Is(t, c.Render(theme), s.want)
	}
}

// What terminals disagree about is drawn in the cells that it has in its own.
func TestACharacterOfManyPartsMovesNothing(t *testing.T) {
	for text, want := range map[string]string{"👩\u200d👩\u200d👧": "👩|", "🇩🇪": "DE|", "👍🏽": "👍|", "❤\uFE0F": "❤ |", "น\u0E33": "น\u0E32\u0E4D|"} {
		c := screen.New(8, 1)
		DrawScreen(c, &terminal.Screen{Size: terminal.Size{Cols: 8, Rows: 1}, Lines: []terminal.Line{{{Text: text, Cells: 2}, {Text: "|", Cells: 1}}}})
		expect.Is(t, c.Plain()[0], want, text)
	}
}
