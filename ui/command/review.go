package command

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"swarmdeck/engine/op"
	trees "swarmdeck/engine/tree"
	"swarmdeck/ui/term"
)

func workColumns(*call) []column[op.Work] {
	type W = op.Work
	return []column[W]{
		{title: "AGENT", text: func(w W) string { return w.Agent }},
		{title: "STATUS", text: func(w W) string { return string(w.Status) }},
		{title: "FILES", right: true, text: func(w W) string {
			if w.Away != "" {
				return "on " + w.Away
			}
			return fmt.Sprint(len(w.Changes))
		}},
		{title: "+", right: true, text: func(w W) string { return fmt.Sprint(w.Added) }},
		{title: "-", right: true, text: func(w W) string { return fmt.Sprint(w.Removed) }},
		{title: "BASE", text: func(w W) string { return baseOf(w) }},
		{title: "REMARKS", right: true, text: func(w W) string { return fmt.Sprint(len(w.Remarks)) }},
		{title: "CHECKS", text: func(w W) string { return checkedWord(w) }},
		{title: "SAME FILES AS", most: 40, text: func(w W) string { return strings.Join(w.Overlap, "; ") }},
		{title: "TREE", wide: true, text: func(w W) string { return w.Path }},
	}
}

func baseOf(w op.Work) string {
	base := w.Base
	if w.Kind == trees.Plain {
		base = w.Source
	}
	switch {
	case w.BehindBy > 0:
		base += fmt.Sprintf(" (moved on by %d)", w.BehindBy)
	case w.Behind:
		base += " (moved on)"
	}
	return base
}

func checkedWord(w op.Work) string {
	switch {
	case w.Checked == nil:
		return ""
	case w.Checked.State != w.State:
		return "of before"
	case w.Checked.OK:
		return "pass"
	}
	return "fail"
}

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
func showWork(c *call, o *op.Op, out any) (bool, error) {
	w, is := out.(op.Work)
	if !is || !o.Full {
		return false, nil
	}
	return true, c.work(w)
}

func (c *call) work(w op.Work) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "agent     %s (%s)\nof        %s, from %s\ntree      %s\nchanged   %d files, +%d -%d\n", w.Agent, w.Status, w.Source, baseOf(w), w.Dir(), len(w.Changes), w.Added, w.Removed)
	if word := checkedWord(w); word != "" {
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
func (c *call) showPatch(p op.Patch) error {
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
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(term.Clean(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return []byte(b.String())
}

func remarkColumns(*call) []column[trees.Remark] {
	type R = trees.Remark
	return []column[R]{
		{title: "N", right: true, text: func(r R) string { return fmt.Sprint(r.ID) }},
		{title: "PLACE", most: 60, text: func(r R) string { return r.Place() }},
		{title: "REMARK", most: 80, text: func(r R) string { return r.Text }},
		{title: "BY", text: func(r R) string { return r.By }},
	}
}

func viewedColumns(*call) []column[trees.Viewed] {
	type V = trees.Viewed
	return []column[V]{
		{title: "FILE", most: 80, text: func(v V) string { return v.File }},
		{title: "BY", text: func(v V) string { return v.By }},
	}
}

func checksColumns(*call) []column[trees.Checks] {
	type C = trees.Checks
	return []column[C]{
		{title: "PROJECT", text: func(p C) string { return p.Project }},
		{title: "CHECKS", most: 120, text: func(p C) string { return strings.Join(p.Lines, "; ") }},
		{title: "ENV", most: 120, text: func(p C) string { return assigned(p.Env) }},
		{title: "SETUP", most: 120, text: func(p C) string { return strings.Join(p.Setup, "; ") }},
		{title: "REMOTES", most: 200, text: func(p C) string { return assigned(p.Remotes) }},
		{title: "GUARDED", most: 200, text: func(p C) string { return strings.Join(p.Guarded, " ") }},
	}
}

// assigned writes names with their values, in the order of the names.
func assigned(values map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
	}
	return strings.Join(all, " ")
}
