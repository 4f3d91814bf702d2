package screen_test

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

func TestTintsAreShadesOfTheRole(t *testing.T) {
	th := screen.NewTheme("test", map[screen.Role]lipgloss.Style{
		screen.Good: lipgloss.NewStyle().Foreground(lipgloss.Color("#f07818")), screen.Bad: lipgloss.NewStyle().Foreground(lipgloss.BrightRed).Bold(true),
	})
	expect.Must(t, th.Colored(), "the theme counts as without colours")
	full, half := screen.TintOf(screen.Good, screen.TintLevels), screen.TintOf(screen.Good, screen.TintLevels/2)
	for _, c := range []struct {
		name string
		draw func(c *screen.Canvas)
		want string
	}{
		{"figure and ground", func(c *screen.Canvas) { c.Set(0, 0, 'x', screen.Good, full, half) }, "\x1b[0;38;2;240;120;24;48;2;120;60;12mx\x1b[m   "},
		{"only what changes", func(c *screen.Canvas) {
			c.Set(0, 0, '▀', screen.Good, full, half)
			c.Set(1, 0, '▀', screen.Good, full, full)
			c.Set(2, 0, '▀', screen.Good, full, full)
		}, "\x1b[0;38;2;240;120;24;48;2;120;60;12m▀\x1b[48;2;240;120;24m▀▀\x1b[m "},
		{"the figure of a space is not seen", func(c *screen.Canvas) {
			c.Set(0, 0, '▀', screen.Good, full, half)
			c.Set(1, 0, ' ', screen.Good, 0, half)
		}, "\x1b[0;38;2;240;120;24;48;2;120;60;12m▀ \x1b[m  "},
		{"a ground that ends", func(c *screen.Canvas) {
			c.Set(0, 0, 'a', screen.Good, full, half)
			c.Set(1, 0, 'b', screen.Good, full, 0)
			c.Set(2, 0, 'c', screen.Good, 0, 0)
		}, "\x1b[0;38;2;240;120;24;48;2;120;60;12ma\x1b[49mb\x1b[0;38;2;240;120;24mc\x1b[m "},
		{"another weight", func(c *screen.Canvas) {
			c.Set(0, 0, 'a', screen.Good, full, 0)
			c.Set(1, 0, 'b', screen.Bad, screen.TintOf(screen.Bad, screen.TintLevels), 0)
		}, "\x1b[0;38;2;240;120;24;49ma\x1b[0;1;38;2;255;76;76;49mb\x1b[m  "},
		{"painted over", func(c *screen.Canvas) {
			c.Set(0, 0, 'a', screen.Text, full, half)
			c.Paint(c.Bounds(), screen.Text)
		}, "a   "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cv := screen.New(4, 1)
			c.draw(cv)
			roles := strings.Join(cv.Roles(), "")
			expect.Is(t, cv.Render(th), c.want)
			expect.Is(t, strings.Join(cv.Roles(), ""), roles, "drawing changed the roles")
		})
	}
}

func TestThemesWithoutColoursDrawNoTints(t *testing.T) {
	th := screen.NewTheme("mono", map[screen.Role]lipgloss.Style{screen.Good: lipgloss.NewStyle().Bold(true)})
	c := screen.New(2, 1)
	c.Set(0, 0, 'x', screen.Good, screen.TintOf(screen.Good, 9), screen.TintOf(screen.Good, 3))
	got, want := c.Render(th), "\x1b[0;1mx\x1b[m "
	expect.True(t, !th.Colored() && got == want, "got %q, want %q", got, want)
}

func TestSetTakesOneCell(t *testing.T) {
	c := screen.New(4, 1)
	c.Text(0, 0, screen.Text, "世界")
	c.Set(1, 0, '⣿', screen.Good, 0, 0)
	c.Set(3, 0, '世', screen.Good, 0, 0)
	c.Set(4, 0, 'x', screen.Good, 0, 0)
	c.Set(-1, 0, 'x', screen.Good, 0, 0)
	c.Set(0, 0, '\x1b', screen.Role(200), screen.Tint(0xffff), 0)
	expect.Is(t, c.Plain()[0], " ⣿")
	figure, _ := c.Tints(0, 0)
	expect.True(t, figure == 0xffff, "tint is %x", figure)
	whole(t, c)
}
