package screen_test

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

// theme gives every role a look of its own.
func theme() *screen.Theme {
	styles := map[screen.Role]lipgloss.Style{screen.Text: {}}
	for r := screen.Text + 1; r < screen.Roles; r++ {
		styles[r] = lipgloss.NewStyle().Foreground(lipgloss.ANSIColor(r)).Bold(r%2 == 0)
	}
	return screen.NewTheme("test", styles)
}

// whole fails unless every row of the picture is exactly as wide as it says,
// by both ways of counting.
func whole(t *testing.T, c *screen.Canvas) {
	t.Helper()
	rows := strings.Split(c.Render(theme()), "\n")
	if c.H() == 0 {
		return
	}
	if len(rows) != c.H() {
		t.Fatalf("%d rows, want %d", len(rows), c.H())
	}
	for y, row := range rows {
		got := ansi.StringWidth(row)
		expect.Must(t, got == c.W(), "row %d is %d cells wide, want %d: %q", y, got, c.W(), row)
		got = ansi.StringWidthWc(row)
		expect.Must(t, got == c.W(), "row %d is %d wcwidth cells wide, want %d: %q", y, got, c.W(), row)
	}
}

func TestDrawing(t *testing.T) {
	tests := []struct {
		name  string
		draw  func(c *screen.Canvas)
		text  string
		roles string
	}{
		{"text", func(c *screen.Canvas) { c.Text(1, 0, screen.Good, "ok") }, " ok", ".gg"},
		{"clipped text", func(c *screen.Canvas) { c.Text(7, 0, screen.Bad, "abcdefg") }, "       abc", ".......xxx"},
		{"text from the left of the window", func(c *screen.Canvas) { c.Text(-2, 0, screen.Bad, "abcd") }, "cd", "xx"},
		{"wide text at the edge", func(c *screen.Canvas) { c.Text(8, 0, screen.Text, "a世") }, "        a", ""},
		{"half a wide character overwritten", func(c *screen.Canvas) {
			c.Text(0, 0, screen.Text, "世界")
			c.Text(1, 0, screen.Good, "x")
		}, " x界", ".g"},
		{"cut text", func(c *screen.Canvas) { c.TextIn(0, 0, 4, screen.Dim, "abcdef") }, "abc…", "dddd"},
		{"padded text", func(c *screen.Canvas) { c.TextIn(0, 0, 4, screen.Dim, "ab") }, "ab", "dddd"},
		{"cut wide text", func(c *screen.Canvas) { c.TextIn(0, 0, 4, screen.Dim, "世界人") }, "世 …", "dddd"},
		{"right", func(c *screen.Canvas) { c.TextRight(0, 0, 4, screen.Dim, "12") }, "  12", "dddd"},
		{"middle", func(c *screen.Canvas) { c.TextMiddle(0, 0, 5, screen.Dim, "abcdefghij") }, "ab…ij", "ddddd"},
		{"escape sequences", func(c *screen.Canvas) { c.Text(0, 0, screen.Text, "\x1b[31mred\x1b]52;c;AAAA\x07!") }, "red!", ""},
		{"tab", func(c *screen.Canvas) { c.Text(1, 0, screen.Text, "a\tb") }, " a   b", ""},
		{"unknown role", func(c *screen.Canvas) { c.Text(0, 0, 200, "a") }, "a", ""},
		{"paint", func(c *screen.Canvas) {
			c.Text(0, 0, screen.Text, "abc")
			c.Paint(screen.Rect{X: 1, W: 50, H: 9}, screen.Selected)
		}, "abc", ".sssssssss"},
		{"window", func(c *screen.Canvas) {
			c.Sub(screen.Rect{X: 2, Y: -1, W: 3, H: 2}).Text(0, 0, screen.Text, "abcdef")
		}, "  abc", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := screen.New(10, 1)
			tt.draw(c)
			expect.Is(t, c.Plain()[0], tt.text, "text")
			expect.Is(t, c.Roles()[0], tt.roles, "roles")
			whole(t, c)
		})
	}
}

func TestBoxDrawsFrameAndTitle(t *testing.T) {
	c := screen.New(12, 3)
	in := c.Box(c.Bounds(), screen.BorderFocus, "Tasks")
	want := []string{"┌ Tasks ───┐", "│          │", "└──────────┘"}
	if got := c.Plain(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n%s", strings.Join(got, "\n"))
	}
	expect.Must(t, in == (screen.Rect{X: 1, Y: 1, W: 10, H: 1}), "inside is %v", in)
	c.SetGlyphs(screen.ASCII())
	c.Box(c.Bounds(), screen.Border, "")
	got := c.Plain()[0]
	expect.Must(t, got == "+----------+", "got %q", got)
}

func TestRenderChangesStyleOnlyWithTheRole(t *testing.T) {
	c := screen.New(6, 2)
	c.Text(0, 0, screen.Good, "ab")
	c.Text(2, 0, screen.Bad, "c")
	th := screen.NewTheme("test", map[screen.Role]lipgloss.Style{
		screen.Good: lipgloss.NewStyle().Foreground(lipgloss.Green).Bold(true), screen.Bad: lipgloss.NewStyle().Foreground(lipgloss.Color("#010203")).Background(lipgloss.Color("200")),
	})
	got, want := c.Render(th), "\x1b[0;1;32mab\x1b[0;38;2;1;2;3;48;5;200mc\x1b[m   \n      "
	expect.Must(t, got == want, "got %q, want %q", got, want)
}

func TestNoLineStandsUnderBlanks(t *testing.T) {
	c := screen.New(6, 1)
	c.TextIn(0, 0, 6, screen.Title, "ab")
	lined := screen.NewTheme("lined", map[screen.Role]lipgloss.Style{screen.Title: lipgloss.NewStyle().Underline(true).Bold(true)})
	got, want := c.Render(lined), "\x1b[0;1;4;4mab\x1b[0;1m    \x1b[m"
	expect.True(t, got == want, "rendered %q, want %q", got, want)
}

func TestEveryGlyphTakesOneCell(t *testing.T) {
	for _, g := range []*screen.Glyphs{screen.Unicode(), screen.ASCII()} {
		runes := []rune{
			g.Horizontal, g.Vertical, g.TopLeft, g.TopRight, g.BottomLeft, g.BottomRight, g.Mark, g.Cursor,
			g.Up, g.Down, g.More, g.Separator, g.Bullet, g.ScrollBar, g.ScrollTrack,
			g.Branch, g.LastBranch, g.Open, g.Closed,
		}
		runes = append(append(runes, g.State[:]...), []rune(g.Ellipsis)...)
		for _, r := range runes {
			c := screen.New(2, 1)
			c.Fill(c.Bounds(), screen.Text, r)
			got := c.Plain()[0]
			expect.True(t, r == ' ' || got == string([]rune{r, r}), "glyph %q is drawn as %q", r, got)
		}
	}
}
