package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/overlay"
)

// longer marks the label of a question that is answered with lines of text.
const longer = "…"

// compose asks for a text of any number of lines, for an agent if it names one.
func (m *Model) compose(title, agent string, then func(string) tea.Cmd) tea.Cmd {
	p := overlay.NewCompose(title)
	m.over.Push(p, func(a overlay.Action) tea.Cmd {
		switch a.Kind {
		case overlay.Submit:
			return then(a.Text)
		case overlay.Edit:
			return m.editText(p, a.Text)
		}
		return nil
	})
	return m.offerWords(p, agent)
}

// editText has a text edited in the operator's editor.
func (m *Model) editText(p *overlay.Compose, text string) tea.Cmd {
	return m.inEditor("text.md", text, core.MaxInput, func(text string) tea.Cmd {
		p.SetValue(strings.TrimSuffix(text, "\n")) // which editors end a file with
		return nil
	})
}
