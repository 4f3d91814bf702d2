package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
)

// estop freezes all work of the tenant at once, without a question; when it is
// frozen already, it asks for the reason to thaw.
func (m *Model) estop() tea.Cmd {
	if !m.snap.EStop.On {
		return m.submit(job{lines: [][]string{{"estop", "on", "--reason", "stopped from the cockpit"}}})
	}
	return m.prompt("Reason to thaw tenant "+m.tenant, "", func(text string) tea.Cmd {
		return m.submit(job{lines: [][]string{{"estop", "off", "--reason", text}}, confirm: command.ConfirmNone})
	})
}

// pause pauses what runs and resumes what is paused, for the marked things or
// the selected one.
func (m *Model) pause() tea.Cmd {
	p := m.focused()
	if p == nil {
		return nil
	}
	items := p.Marks()
	if len(items) == 0 {
		items = []pane.Item{p.Selected(m.env())}
	}
	j := job{targets: items, confirm: command.ConfirmNone}
	for _, it := range items {
		if !slices.Contains([]string{"agent", "subagent", "task", "session"}, it.Kind) {
			return m.say(false, "", "nothing to pause here")
		}
		verb := "pause"
		if m.paused(it) {
			verb = "resume"
		}
		j.lines = append(j.lines, []string{it.Kind, verb, it.ID})
	}
	return m.submit(j)
}

// paused asks the snapshot first: a sheet's item may be older than it.
func (m *Model) paused(it pane.Item) bool {
	switch it.Kind {
	case "agent":
		for _, a := range m.snap.Agents {
			if a.Name == it.ID {
				return a.Paused || a.Pausing
			}
		}
	case "subagent":
		for _, a := range m.snap.Subagents {
			if a.AgentID == it.ID {
				return a.State == skill.Paused
			}
		}
	case "session":
		for _, s := range m.snap.Sessions {
			if s.SessionID == it.ID {
				return s.State == "paused"
			}
		}
	}
	return it.Paused
}

// checkObject refuses edited arguments that are no JSON object.
func checkObject(text string) error {
	return core.CheckObject("arguments", []byte(text), core.MaxInput)
}
