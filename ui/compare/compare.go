// Package compare writes out how two runs differ: what each came to, and what was
// said and called, line by line. It draws nothing.
package compare

import (
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// around is how many steps that are the same stand around one that differs.
const around = 2

// Fact is one thing that both came to.
type Fact struct{ Name, A, B string }

// Facts are what both came to; what neither has is left out.
func Facts(c *dag.Comparison) (all []Fact) {
	for _, f := range []struct {
		name string
		of   func(*dag.Side) string
	}{
		{"subject", func(s *dag.Side) string { return s.Subject }},
		{"agent", func(s *dag.Side) string { return s.AgentID }},
		{"since", func(s *dag.Side) string { return s.Since[:min(13, len(s.Since))] }},
		{"exit", func(s *dag.Side) string { return s.Exit }},
		{"events", func(s *dag.Side) string {
			if s.More {
				return "the first " + strconv.FormatInt(s.Events, 10)
			}
			return strconv.FormatInt(s.Events, 10)
		}},
		{"messages", func(s *dag.Side) string { return strconv.FormatInt(s.Messages, 10) }},
		{"calls", func(s *dag.Side) string {
			if s.Failed > 0 {
				return fmt.Sprintf("%d, %d failed", s.Calls, s.Failed)
			}
			return strconv.FormatInt(s.Calls, 10)
		}},
		{"requests", func(s *dag.Side) string {
			if s.Requests == 0 { // a runtime that shows none
				return ""
			}
			return strconv.FormatInt(s.Requests, 10)
		}},
		{"tokens", func(s *dag.Side) string {
			switch {
			case s.Usage.TotalTokens == 0 && s.Spent == nil:
				return ""
			case s.Usage.TotalTokens == 0:
				return strconv.FormatInt(s.Spent.Tokens, 10)
			}
			return fmt.Sprintf("%d: %d in, %d out", s.Usage.TotalTokens, s.Usage.PromptTokens, s.Usage.CompletionTokens)
		}},
		{"cost", func(s *dag.Side) string {
			if s.Spent == nil {
				return ""
			}
			return pane.Cost(s.Spent.CostUSD)
		}},
		{"took", func(s *dag.Side) string { return face.Took(s.Last.Time().Sub(s.Started.Time())) }},
	} {
		if fact := (Fact{f.name, f.of(&c.A), f.of(&c.B)}); fact.A != "" || fact.B != "" {
			all = append(all, fact)
		}
	}
	return all
}

// Line is a line of the comparison, with the sign of a diff before it.
type Line struct {
	Sign  string
	Text  string
	Role  screen.Role
	Event string // that it is about
	File  string // whose diff it is about, as Diffs names it
}

// Lines are the steps that differ with some around them; what is left out is
// counted.
func Lines(c *dag.Comparison) (all []Line) {
	last := -1 // the newest step that is shown
	for i := range c.Steps {
		if !near(c.Steps, i) {
			continue
		}
		all = skipped(all, i-last-1)
		all = append(all, step(&c.Steps[i])...)
		last = i
	}
	return skipped(all, len(c.Steps)-last-1)
}

func near(steps []dag.ComparedStep, i int) bool {
	for k := max(0, i-around); k <= min(len(steps)-1, i+around); k++ {
		if steps[k].Op != dag.Same {
			return true
		}
	}
	return false
}

func skipped(all []Line, n int) []Line {
	if n == 0 {
		return all
	}
	return append(all, Line{Sign: " ", Text: fmt.Sprintf("… %d the same", n), Role: screen.Dim})
}

func step(s *dag.ComparedStep) (all []Line) {
	add := func(sign string, role screen.Role, act *dag.Act, text string) {
		if text != "" {
			all = append(all, Line{Sign: sign, Text: strings.Join(strings.Split(text, "\n"), " "), Role: role, Event: act.EventID})
		}
	}
	switch s.Op {
	case dag.Same:
		add(" ", screen.Text, s.A, s.A.Text)
	case dag.OnlyA:
		add("-", screen.Bad, s.A, s.A.Text)
		add("-", screen.Bad, s.A, under(s.A.Result))
	case dag.OnlyB:
		add("+", screen.Good, s.B, s.B.Text)
		add("+", screen.Good, s.B, under(s.B.Result))
	default:
		if s.A.Text == s.B.Text {
			add(" ", screen.Text, s.A, s.A.Text)
		} else {
			add("-", screen.Bad, s.A, s.A.Text)
		}
		if s.A.Result != s.B.Result {
			add("-", screen.Bad, s.A, under(s.A.Result))
		}
		if s.A.Text != s.B.Text {
			add("+", screen.Good, s.B, s.B.Text)
		}
		if s.A.Result != s.B.Result {
			add("+", screen.Good, s.B, under(s.B.Result))
		}
	}
	return all
}

// under is a result below its call.
func under(result string) string {
	if result == "" {
		return ""
	}
	return "  → " + result
}

// Files are the files that either changed.
func Files(c *dag.Comparison) (all []Line) {
	for i := range c.Files {
		f := &c.Files[i]
		l := Line{Sign: " ", Text: f.Path + "  " + f.A, Role: screen.Dim}
		switch f.Op {
		case dag.OnlyA:
			l.Sign, l.Role = "-", screen.Bad
		case dag.OnlyB:
			l.Sign, l.Text, l.Role = "+", f.Path+"  "+f.B, screen.Good
		case dag.Changed:
			l.Sign, l.Text, l.Role = "~", f.Path+"  "+f.A+" | "+f.B, screen.Warn
		}
		if drawn := diffsOf(f); len(drawn) > 0 {
			l.File = drawn[0].Name
		}
		all = append(all, l)
	}
	return all
}

// Diff is what one of the two, or both, did to a file.
type Diff struct {
	Name string // A: PATH, B: PATH, A and B: PATH
	Text string // hunks
}

// Diffs are what both did to files, as far as diffs tell.
func Diffs(c *dag.Comparison) (all []Diff) {
	for i := range c.Files {
		all = append(all, diffsOf(&c.Files[i])...)
	}
	return all
}

func diffsOf(f *dag.ComparedFile) (all []Diff) {
	if f.Op == dag.Same && f.DiffA != "" {
		return []Diff{{"A and B: " + f.Path, f.DiffA}}
	}
	if f.DiffA != "" {
		all = append(all, Diff{"A: " + f.Path, f.DiffA})
	}
	if f.DiffB != "" {
		all = append(all, Diff{"B: " + f.Path, f.DiffB})
	}
	return all
}
