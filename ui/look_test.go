package ui

import (
	"image/color"
	"testing"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"swarmdeck/expect"
	"swarmdeck/themes"
)

func TestAutoIsLightOrDarkAsTheTerminalIs(t *testing.T) {
	r := rigOn(t, newWorld(), 80, 24, Options{Theme: expect.Of(themes.Load(themes.Auto))(t), Themes: themes.Load})
	for _, step := range []struct {
		msg  tea.Msg
		want string
	}{
		{nil, "auto"},
		{tea.BackgroundColorMsg{Color: color.White}, "light"},
		{uv.DarkColorSchemeEvent{}, "dark"},
		{uv.LightColorSchemeEvent{}, "light"},
		{followUp(func() tea.Cmd { return r.m.setTheme("mono", false) }), "mono"},
		{uv.DarkColorSchemeEvent{}, "mono"},
	} {
		r.send(step.msg)
		expect.Is(t, r.m.theme.Name, step.want, step.msg)
	}
	expect.True(t, !r.m.toldGround, "the terminal still tells of its ground")
	r.keys(":", "t", "h", "e", "m", "e", "space", "a", "u", "t", "o", "enter")
	r.send(tea.BackgroundColorMsg{Color: color.White})
	expect.Is(t, r.m.theme.Name, "light")
}
