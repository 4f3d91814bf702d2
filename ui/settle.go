package ui

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/tree"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/review"
)

// dispute is why work was not taken over: its base changed the same lines, or it still
// holds the marks of that.
type dispute struct {
	Agent     string   `json:"value"`
	Conflicts []string `json:"conflicts"`
	Marked    []string `json:"marked"`
}

// disputed reads it from what a line that failed printed.
func disputed(o output) (d dispute, ok bool) {
	e := o.failure()
	data, err := core.Encode(e.Details)
	if err != nil || e.Code != core.Conflict || core.DecodeStored(data, &d) != nil {
		return d, false
	}
	return d, d.Agent != "" && len(d.Conflicts)+len(d.Marked) > 0
}

// settle offers the two ways in which a conflict is settled: by the agent or by hand.
func (r *runner) settle(d dispute) tea.Cmd {
	menu := &overlay.Menu{Title: "Both changed " + tree.Named(d.Conflicts)}
	if len(d.Conflicts) == 0 {
		menu.Title = "Conflict markers in " + tree.Named(d.Marked)
	}
	byHand := ""
	if r.opt.Lend == nil {
		byHand = "no editor at this side"
	}
	menu.Items = []overlay.Item{
		{ID: "agent", Key: "g", Text: "give it to " + d.Agent, Help: "both sides, as a task"},
		{ID: "hand", Key: "e", Text: "edit it yourself", Help: "both sides, in its tree", Why: byHand},
	}
	return r.push(menu, overlay.Pick, func(a overlay.Action) tea.Cmd {
		switch {
		case a.ID == "hand" && len(d.Conflicts) == 0:
			return r.byHand(d.Agent, d.Marked)
		case a.ID == "hand":
			return r.bringIn(d.Agent)
		case len(d.Conflicts) == 0:
			text := "Resolve the conflict markers in " + tree.Named(d.Marked) + " so that both intentions are kept."
			return r.submit(job{lines: [][]string{{"review", "send", "--text", text, "--", d.Agent}}})
		}
		return r.submit(job{lines: [][]string{{"review", "update", "--conflicts", "send", "--", d.Agent}}})
	})
}

// bringIn brings both sides of a conflict into the tree of an agent.
func (r *runner) bringIn(agent string) tea.Cmd {
	return fetch(r.dialog, []string{"review", "update", "--conflicts", "keep", "-o", "json", "--", agent}, func(b op.Updated) tea.Cmd {
		if len(b.Conflicts) == 0 {
			return r.say(false, "", b.String())
		}
		return r.byHand(b.Agent, b.Conflicts)
	})
}

// byHand shows the work of an agent and has files of it edited, one after another.
func (r *runner) byHand(agent string, files []string) tea.Cmd {
	if p := r.focused(); p == nil || p.Name() != review.DiffName || r.selected().ID != "tree:"+agent {
		r.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + agent, Agent: agent, Part: files[0]})
	}
	return r.editFiles(agent, files)
}
