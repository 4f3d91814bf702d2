package ui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"swarmdeck/engine/core"
	"swarmdeck/themes"
	"swarmdeck/ui/command"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
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

// viewCommand runs a line about how the list in focus looks: columns, sort, view.
func (m *Model) viewCommand(words []string) (cmd tea.Cmd, ok bool) {
	list, is := m.focused().(pane.Chooser)
	arg := ""
	if len(words) == 2 {
		arg = words[1]
	}
	switch {
	case (words[0] == "columns" || words[0] == "sort") && len(words) <= 2:
		if !is {
			return m.say(true, "", words[0]+": go to a list first"), true
		}
		if words[0] == "sort" {
			return m.told(list.SortBy(m.env(), arg)), true
		}
		return m.told(list.Choose(listed(arg))), true
	case words[0] != "view" || len(words) < 2:
		return nil, false
	case words[1] == "save" && len(words) == 3:
		if !is {
			return m.say(true, "", "view save: go to a list first"), true
		}
		_, chosen := list.Columns()
		p := m.focused()
		line := []string{"view", "save", words[2], "--list", p.Name(), "--columns=" + strings.Join(chosen, ","), "--sort=" + list.Sorted(), "--match=" + p.FilterText()}
		return m.submit(job{lines: [][]string{line}}), true
	case words[1] == "use" && len(words) == 3:
		return m.useView(words[2]), true
	case arg != "" && m.words.Describe(words).Path == "":
		return m.useView(arg), true
	}
	return nil, false
}

// told says what is wrong, if anything is.
func (m *Model) told(err error) tea.Cmd {
	if err != nil {
		return m.say(true, "", core.AsError(err).Message)
	}
	return nil
}

// listed are words with commas between; none of an empty text.
func listed(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}

// useView reads a view of the operator's and shows it.
func (m *Model) useView(name string) tea.Cmd {
	return fetch(m.runner.dialog, []string{"view", "use", name, "-o", "json"}, m.show)
}

// show shows a list as a view has it, or says what of it is not there.
func (m *Model) show(v command.View) tea.Cmd {
	list, is := m.panes[v.List].(pane.Chooser)
	if !is || !slices.Contains(m.lists, v.List) {
		return m.say(true, "", core.AsError(core.Invalid("list", v.List, strings.Join(m.lists, ", "))).Message)
	}
	m.goTo(v.List)
	if err := cmp.Or(list.Choose(v.Columns), list.SortBy(m.env(), v.Sort)); err != nil {
		return m.told(err)
	}
	cmd, err := m.panes[v.List].Filter(m.env(), v.Match)
	if err != nil {
		return m.told(err)
	}
	return m.track(cmd)
}

// columnsOf offers columns of the list in focus after those that a line names already.
func (m *Model) columnsOf(line string) (cands []overlay.Candidate) {
	word, text, _ := strings.Cut(line, " ")
	list, is := m.focused().(pane.Chooser)
	if word != "columns" && word != "sort" || !is {
		return nil
	}
	before, last := "", text
	if i := strings.LastIndexAny(text, ",-"); word == "columns" && i >= 0 && text[i] == ',' || word == "sort" && strings.HasPrefix(text, "-") {
		i = max(i, 0)
		before, last = text[:i+1], text[i+1:]
	}
	all, _ := list.Columns()
	for _, name := range all {
		if strings.HasPrefix(name, last) && !slices.Contains(listed(before), name) {
			cands = append(cands, overlay.Candidate{Text: before + name})
		}
	}
	return cands
}
