package ui

import (
	"strings"

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

// mayUndo notes what takes back what a job did, if something can.
func (r *runner) mayUndo(did *ranMsg) {
	var lines [][]string
	for i, line := range did.job.lines {
		if did.outs[i].code != 0 {
			continue
		}
		if back := r.undoOf(line, did.outs[i].out); back != nil {
			lines = append(lines, back)
		}
	}
	if lines != nil {
		r.undo = lines
	}
}

// undoOf is the line that takes back what a line has done, of the record that it told of,
// else of what it was about; nil where none does, or only one that has to be told more.
func (r *runner) undoOf(line []string, told string) []string {
	info := r.words.Describe(line)
	undo := r.words.Describe(strings.Fields(info.Undo))
	use := strings.Fields(undo.Use)
	if info.Undo == "" || undo.Needs != "" || len(use) > 2 {
		return nil
	}
	back := strings.Fields(info.Undo)
	if len(use) < 2 { // it takes back what is newest
		return back
	}
	noun := back[0]
	if use[1] == "TASK" {
		noun = "task"
	}
	for word := range strings.FieldsFuncSeq(told, func(c rune) bool { return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') }) {
		if prefix, _, _, is := core.ParseID(word); is && core.IDNoun(prefix) == noun {
			return append(back, word)
		}
	}
	for _, word := range line[len(strings.Fields(info.Path)):] {
		if !strings.HasPrefix(word, "-") {
			return append(back, word)
		}
	}
	return nil
}

// takeBack undoes what the operator did last, once.
func (r *runner) takeBack() tea.Cmd {
	if len(r.undo) == 0 {
		return r.say(false, "", "there is nothing to undo")
	}
	j := job{lines: r.undo}
	r.undo = nil
	for _, line := range j.lines {
		j.targets = append(j.targets, pane.Item{ID: lastWord(line)})
	}
	return r.submit(j)
}
