package ui

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/themes"
	"swarmdeck/ui/screen"
)

// setTheme shows the cockpit in a theme; ground says that the terminal's ground asked for it.
func (m *Model) setTheme(name string, ground bool) tea.Cmd {
	if m.opt.Themes == nil {
		return m.say(true, "", "theme: no themes are available here")
	}
	find := m.opt.Themes
	return beside(m.runner.dialog, func() (*screen.Theme, error) { return find(name) }, func(theme *screen.Theme) tea.Cmd { // it reads a file
		if ground {
			if m.auto {
				m.theme = theme
			}
			return nil
		}
		m.theme, m.auto = theme, theme.Name == themes.Auto
		return tea.Batch(m.say(false, "", "theme "+name), m.askGround())
	})
}

// askGround asks the terminal for its ground and to tell of a change while the
// theme follows it, and to tell no more after that.
func (m *Model) askGround() tea.Cmd {
	switch told := m.toldGround; {
	case m.auto:
		m.toldGround = true
		return tea.Batch(tea.RequestBackgroundColor, tea.Raw(ansi.SetModeLightDark))
	case told:
		m.toldGround = false
		return tea.Raw(ansi.ResetModeLightDark)
	}
	return nil
}

// onGround takes the look for the terminal's ground.
func (m *Model) onGround(dark bool) tea.Cmd {
	switch {
	case !m.auto:
		return nil
	case dark:
		return m.setTheme(themes.Dark, true)
	}
	return m.setTheme(themes.Light, true)
}
