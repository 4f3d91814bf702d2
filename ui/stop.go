package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/skill"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
)

// estop freezes all work of the tenant at once, without a question; when it is
// frozen already, it asks for the reason to thaw.
func (r *runner) estop() tea.Cmd {
	if !r.snap.EStop.On {
		return r.submit(job{lines: [][]string{{"estop", "on", "--reason", "stopped from the cockpit"}}})
	}
	return r.prompt("Reason to thaw tenant "+r.tenant, func(text string) tea.Cmd {
		return r.submit(job{lines: [][]string{{"estop", "off", "--reason", text}}, confirm: command.ConfirmNone})
	})
}

// pause pauses what runs and resumes what is paused, for the marked things or
// the selected one.
func (r *runner) pause() tea.Cmd {
	items := r.chosen()
	j := job{targets: items, confirm: command.ConfirmNone}
	for _, it := range items {
		if !slices.Contains([]string{"agent", "subagent", "task", "session"}, it.Kind) {
			return r.say(false, "", "nothing to pause here")
		}
		verb := "pause"
		if r.paused(it) {
			verb = "resume"
		}
		j.lines = append(j.lines, []string{it.Kind, verb, it.ID})
	}
	return r.submit(j)
}

// chosen are the things that are marked, else the one under the cursor.
func (ps *places) chosen() []pane.Item {
	if p := ps.focused(); p != nil && len(p.Marks()) > 0 {
		return p.Marks()
	}
	return []pane.Item{ps.selected()}
}

// paused asks the snapshot first: a sheet's item may be older than it.
func (sh *shared) paused(it pane.Item) bool {
	switch it.Kind {
	case "agent":
		for _, a := range sh.snap.Agents {
			if a.Name == it.ID {
				return a.Paused || a.Pausing
			}
		}
	case "subagent":
		for _, a := range sh.snap.Subagents {
			if a.AgentID == it.ID {
				return a.State == skill.Paused
			}
		}
	case "session":
		for _, s := range sh.snap.Sessions {
			if s.SessionID == it.ID {
				return s.State == "paused"
			}
		}
	}
	return it.Paused
}
