package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/pane"
)

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
