package pane

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/task"
	"swarmdeck/ui/markdown"
	"swarmdeck/ui/screen"
)

// said is a line of a log that is laid out: what an agent says as Markdown, what it
// thinks and plans folded. It belongs to a Split, and keeps the rows of one width.
type said struct {
	log   *Split
	text  string
	fold  string // what it is when folded; "" does not fold
	role  screen.Role
	width int
	open  bool
	rows  []screen.Styled
	glyph *screen.Glyphs
}

// mostSaid is how many lines are kept laid out: more than are in sight.
const mostSaid = 512

// said lays out a line that is not simply text; nil for one that is.
func (s *Split) said(l *task.LogLine) *said {
	switch l.Source {
	case "message", "thought", "plan", "result":
	default:
		return nil
	}
	if x := s.laid[l.Seq]; x != nil {
		return x
	}
	x := &said{log: s, text: l.Message}
	switch l.Source {
	case "thought":
		x.fold, x.role = thought(l.Message), screen.Dim
	case "plan":
		x.fold = planned(l.Message)
	}
	if len(s.laid) >= mostSaid || s.laid == nil {
		s.laid = map[uint64]*said{}
	}
	s.laid[l.Seq] = x
	return x
}

func (x *said) Lines(width int) []screen.Styled {
	env := &x.log.now
	if x.rows != nil && x.width == width && x.open == x.log.unfolded && x.glyph == env.Glyphs {
		return x.rows
	}
	x.width, x.open, x.glyph = width, x.log.unfolded, env.Glyphs
	if x.fold == "" {
		x.rows = markdown.Render(x.text, markdown.Options{Width: width, Glyphs: env.Glyphs, Links: env.Links})
		return x.rows
	}
	sign := env.Glyphs.Closed
	if x.open {
		sign = env.Glyphs.Open
	}
	head := screen.Styled{Text: string(sign) + " " + x.fold, Role: screen.Dim}
	x.rows = head.Wrap(max(width, 1), 1)
	if x.open {
		x.rows = append(x.rows, markdown.Render(x.text, markdown.Options{Width: width, Glyphs: env.Glyphs, Links: env.Links, Role: x.role})...)
	}
	return x.rows
}

// thought is a thought in one line.
func thought(text string) string {
	text = strings.TrimSpace(text)
	n := strings.Count(text, "\n") + 1
	first, _, _ := strings.Cut(text, "\n")
	if n == 1 {
		return "a thought of " + Plural(len(strings.Fields(first)), "word")
	}
	return fmt.Sprintf("a thought of %d lines, %s", n, Plural(len(strings.Fields(text)), "word"))
}

// planned is a plan in one line, as the log has it.
func planned(text string) string {
	all, done, now := 0, 0, ""
	for line := range strings.Lines(text) {
		all++
		switch {
		case strings.HasPrefix(line, "[x]"):
			done++
		case strings.HasPrefix(line, "[>]") && now == "":
			now = ", now: " + strings.TrimSpace(line[3:])
		}
	}
	return fmt.Sprintf("%d of %d done%s", done, all, now)
}

// unfold folds what the agent thought and planned, or opens it.
func (s *Split) unfold() bool {
	folds := func(l task.LogLine) bool { return l.Source == "thought" || l.Source == "plan" }
	if s.tail == nil || !s.view.Wrapped() || !slices.ContainsFunc(s.tail.lines, folds) { // nothing at hand
		return false
	}
	s.unfolded = !s.unfolded
	return true
}
