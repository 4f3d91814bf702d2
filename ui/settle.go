package ui

import (
	"encoding/json"

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
	var said struct {
		Error struct {
			Code    core.Code `json:"code"`
			Details dispute   `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(lastLine(o.err)), &said) != nil || said.Error.Code != core.Conflict {
		return d, false
	}
	d = said.Error.Details
	return d, d.Agent != "" && len(d.Conflicts)+len(d.Marked) > 0
}

// settle offers the two ways in which a conflict is settled: by the agent or by hand.
func (r *runner) settle(d dispute) tea.Cmd {
	menu := &overlay.Menu{Title: "Both changed " + tree.Named(d.Conflicts)}
	if len(d.Conflicts) == 0 {
		menu.Title = "Conflict markers in " + tree.Named(d.Marked)
	}
	byHand := ""
	if r.opt.Editor == nil {
		byHand = "no editor at this side"
	}
	menu.Items = []overlay.Item{
		{ID: "agent", Key: "g", Text: "give it to " + d.Agent, Help: "both sides, as a task"},
		{ID: "hand", Key: "e", Text: "edit it yourself", Help: "both sides, in its tree", Why: byHand},
	}
	r.over.Push(menu, func(a overlay.Action) tea.Cmd {
		if a.Kind != overlay.Pick {
			return nil
		}
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
	return nil
}

// broughtMsg is a tree into which its base was brought, to be edited by hand.
type broughtMsg struct {
	op.Updated
	says string // why it was not
}

// bringIn brings both sides of a conflict into the tree of an agent.
func (r *runner) bringIn(agent string) tea.Cmd {
	ctx, tenant, run := r.ctx, r.tenant, r.opt.Run
	return r.track(func() tea.Msg {
		out, says, code := run(ctx, tenant, []string{"review", "update", "--conflicts", "keep", "-o", "json", "--", agent})
		var b broughtMsg
		if err := json.Unmarshal([]byte(out), &b.Updated); code != 0 || err != nil {
			b.says = reason(output{out: out, err: says, code: code})
		}
		return b
	})
}

func (r *runner) brought(b broughtMsg) tea.Cmd {
	switch {
	case b.says != "":
		return r.say(true, "", b.says)
	case len(b.Conflicts) == 0:
		return r.say(false, "", b.String())
	}
	return r.byHand(b.Agent, b.Conflicts)
}

// byHand shows the work of an agent and has files of it edited, one after another.
func (r *runner) byHand(agent string, files []string) tea.Cmd {
	if p := r.focused(); p == nil || p.Name() != review.DiffName || p.Selected(r.env()).ID != "tree:"+agent {
		r.openItem(pane.Item{Kind: review.DiffName, ID: "tree:" + agent, Agent: agent, Part: files[0]})
	}
	return r.editFiles(agent, files)
}
