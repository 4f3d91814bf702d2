package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/command"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/overlay"
)

// openHelp shows the keys of the focused pane, searchable.
func (m *Model) openHelp() tea.Cmd {
	scopes := m.scopes()
	entries := overlay.Entries(m.opt.Keys.Bindings(scopes), m.whyNot)
	for _, c := range own {
		entries = append(entries, overlay.Entry{Section: "palette", Keys: ":" + c.Text, Text: c.Help})
	}
	m.over.Push(&overlay.Help{Title: "help: " + scopes[0], Entries: entries, Notes: []string{
		"filter: word, !not, ~fuzzy, col:value   copying goes by OSC 52 (tmux: set -g set-clipboard on)",
	}}, func(a overlay.Action) tea.Cmd {
		if line, own := strings.CutPrefix(a.Text, ":"); own && line != "" {
			return m.openPalette(line + " ")
		}
		return m.pressed(strings.Fields(a.Text))
	})
	return nil
}

// changes reports whether a binding is there to change something.
func (r *runner) changes(b keymap.Binding) bool {
	if b.Line == "" {
		return b.Guard || b.Action == "pause" || b.Action == "estop" || b.Action == "invoke" || b.Action == "create"
	}
	words, err := command.Split(b.Line)
	return err == nil && r.words.Describe(words).Effect != command.Reads
}

// whyNot says why a binding does nothing now, "" when it works.
func (an *answers) whyNot(b keymap.Binding) string {
	if an.opt.ReadOnly && an.changes(b) {
		return "read-only"
	}
	if b.Guard {
		if ok, why := an.card.Ready(); !ok {
			return why
		}
		if ok, why := an.card.Armed(); !ok && b.Action != "deny" && b.Action != "abort" && b.Action != "defer" {
			return why
		}
	}
	return ""
}
