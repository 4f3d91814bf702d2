package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"swarmdeck/engine/op"
	trees "swarmdeck/engine/tree"
	"swarmdeck/ui/term"
)

// setupWord is how far a tree is set up.
func setupWord(s *trees.Setup) string {
	switch {
	case s.Done:
		return "done"
	case s.Task == "":
		return "not yet"
	}
	return "not done, by " + s.Task
}

// ranLines are commands with how each ended.
func ranLines(all []trees.Ran) string {
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "          %d  %s\n", r.Code, term.Clean(strings.Join(r.Command[min(2, len(r.Command)):], " ")))
	}
	return b.String()
}

// showWork shows what an agent changed: review show.
func showWork(c *call, w op.Work) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "agent     %s (%s)\nof        %s, from %s\ntree      %s\nchanged   %d files, +%d -%d\n", w.Agent, w.Status, w.Source, w.BaseText(), w.Dir(), len(w.Changes), w.Added, w.Removed)
	if word := w.CheckedText(); word != "" {
		fmt.Fprintf(&b, "checks    %s\n", word)
		b.WriteString(ranLines(w.Checked.Runs))
	}
	if s := w.Setup; s != nil {
		fmt.Fprintf(&b, "setup     %s\n", setupWord(s))
		b.WriteString(ranLines(s.Runs))
	}
	for _, o := range w.Overlap {
		fmt.Fprintf(&b, "also      %s\n", term.Clean(o))
	}
	b.WriteString(changedFiles(w.Changes, w.Viewed))
	for _, m := range w.Remarks {
		sent := ""
		if m.Sent != "" {
			sent = ", sent as " + m.Sent
		}
		fmt.Fprintf(&b, "\n%d. %s (%s%s)\n", m.ID, term.Clean(m.Place()), m.By, sent)
		for line := range strings.Lines(strings.TrimSpace(m.Text)) {
			b.WriteString("   " + term.Clean(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	return c.verbatim(w, b.Bytes())
}

func changedFiles(all []trees.Change, viewed map[string][]string) string {
	var b strings.Builder
	for _, f := range all {
		lines := fmt.Sprintf("+%d -%d", f.Added, f.Removed)
		if f.Binary {
			lines = "binary"
		}
		name := f.Path
		if f.From != "" {
			name = f.From + " → " + f.Path
		}
		name = term.Clean(name)
		if f.LFS > 0 {
			name += fmt.Sprintf("  LFS object, %d bytes", f.LFS)
		}
		if by := viewed[f.Path]; len(by) > 0 {
			name += "  viewed by " + strings.Join(by, ", ")
		}
		fmt.Fprintf(&b, "%-8s  %-12s  %s\n", f.Status, lines, name)
	}
	return b.String()
}

// showPatch shows how two states differ: agent diff.
func showPatch(c *call, p op.Patch) error {
	text := p.Text
	if text == "" {
		return c.verbatim(p, []byte(changedFiles(p.Changes, nil)))
	}
	return c.verbatim(p, c.shown(text))
}

// shown is what somebody else wrote, as it goes out: a file or a pipe gets every byte, and
// a terminal nothing that steers it.
func (c *call) shown(text string) []byte {
	if file, ok := c.env.Stdout.(*os.File); ok && !term.IsTerminal(file) {
		return []byte(text)
	}
	return []byte(term.CleanLines(text))
}
