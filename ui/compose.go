package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/overlay"
)

// longer marks the label of a question that is answered with lines of text.
const longer = "…"

// compose asks for a text of any number of lines, for an agent if it names one.
func (d *dialog) compose(title, agent string, then func(string) tea.Cmd) tea.Cmd {
	p := overlay.NewCompose(title)
	d.over.Push(p, func(a overlay.Action) tea.Cmd {
		switch a.Kind {
		case overlay.Submit:
			return then(a.Text)
		case overlay.Edit:
			return d.inEditor("text.md", a.Text, func(text string) tea.Cmd {
				p.SetValue(strings.TrimSuffix(text, "\n")) // which editors end a file with
				return nil
			})
		}
		return nil
	})
	return d.offerWords(p, agent)
}
