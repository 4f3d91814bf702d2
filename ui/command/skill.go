package command

import (
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/op"
	"swarmdeck/engine/skill"
)

// near is a path as seen from the current directory if it is below that.
func (c *call) near(path string) string { return op.Near(c.env.Dir, path) }

func changeColumns(c *call) []column[skill.Change] {
	type C = skill.Change
	return []column[C]{
		{title: "ACTION", text: func(x C) string { return x.Action }},
		{title: "SKILL", text: func(x C) string { return x.Name }},
		{title: "VERSION", text: func(x C) string { return x.Version }},
		{title: "DIGEST", wide: true, text: func(x C) string { return x.Digest }},
		{title: "SOURCE", text: func(x C) string { return c.near(x.Source) }},
	}
}

func skillColumns(c *call) []column[*skill.Skill] {
	type S = *skill.Skill
	return []column[S]{
		{title: "SKILL", text: func(s S) string { return s.Name }},
		{title: "VERSION", text: func(s S) string {
			if c.eng.Skills.Newest(s) {
				return s.Version
			}
			return s.Version + " (older)"
		}},
		{title: "RUNNER", text: func(s S) string { return s.Runner.Kind }},
		{title: "EFFECTS", text: func(s S) string { return strings.Join(core.Strings(s.Effects...), ",") }},
		{title: "NEEDS", most: 30, text: func(s S) string { return strings.Join(s.Dependencies, ",") }},
		{title: "TAGS", most: 24, text: func(s S) string { return strings.Join(s.Tags, ",") }},
		{title: "TIMEOUT", wide: true, right: true, text: func(s S) string { return fmt.Sprintf("%ds", s.Timeout) }},
		{title: "RETRIES", wide: true, right: true, text: func(s S) string { return count(int64(s.MaxRetries)) }},
		{title: "UPDATED", wide: true, text: func(s S) string { return stamp(s.UpdatedAt) }},
		{title: "DIGEST", wide: true, text: func(s S) string { return s.Digest }},
		{title: "SOURCE", wide: true, text: func(s S) string { return s.Source }},
		{title: "DESCRIPTION", most: 48, text: func(s S) string { return s.Description }},
	}
}

func sourceColumns(c *call) []column[skill.Source] {
	return []column[skill.Source]{
		{title: "PATH", text: func(s skill.Source) string { return c.near(s.Path) }},
		{title: "ADDED", text: func(s skill.Source) string { return stamp(s.AddedAt) }},
	}
}

func orderColumns(*call) []column[op.InOrder] {
	type S = op.InOrder
	return []column[S]{
		{title: "STEP", right: true, text: func(s S) string { return fmt.Sprint(s.Position) }},
		{title: "SKILL", text: func(s S) string { return s.Name }},
		{title: "VERSION", text: func(s S) string { return s.Version }},
		{title: "NEEDS", text: func(s S) string { return strings.Join(s.Dependencies, ",") }},
	}
}

func problemColumns(c *call) []column[document.Problem] {
	type P = document.Problem
	return []column[P]{
		{title: "FILE", text: func(p P) string { return fmt.Sprintf("%s:%d", c.near(p.File), p.Line) }},
		{title: "FIELD", text: func(p P) string { return p.Field }},
		{title: "PROBLEM", text: func(p P) string { return p.Message }},
	}
}

func skillFigureColumns(*call) []column[skill.Figures] {
	type F = skill.Figures
	return []column[F]{
		{title: "SKILL", text: func(f F) string { return f.Skill }},
		{title: "RUNS", right: true, text: func(f F) string { return fmt.Sprint(f.Total) }},
		{title: "P50", right: true, text: func(f F) string { return fmt.Sprintf("%d ms", f.P50MS) }},
		{title: "P95", right: true, text: func(f F) string { return fmt.Sprintf("%d ms", f.P95MS) }},
		{title: "FAILED", right: true, text: func(f F) string { return fmt.Sprintf("%.0f%%", 100*f.FailureRate) }},
	}
}

func executionColumns(c *call) []column[skill.Execution] {
	type E = skill.Execution
	return []column[E]{
		{title: "EXECUTION", text: func(e E) string { return e.ExecutionID }},
		{title: "SKILL", text: func(e E) string { return e.SkillName + "@" + e.SkillVersion }},
		{title: "STATUS", text: func(e E) string {
			if e.Broken() {
				return string(e.Status) + " (interrupted)"
			}
			return string(e.Status)
		}},
		{title: "TOOK", right: true, text: func(e E) string {
			if e.Status == skill.StatusPending {
				return ""
			}
			return (time.Duration(e.DurationMS) * time.Millisecond).String()
		}},
		{title: "RETRIES", right: true, text: func(e E) string { return count(int64(e.RetryCount)) }},
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.StartedAt) }},
		{title: "STEP", wide: true, text: func(e E) string { return e.Step }},
		{title: "AGENT", wide: true, text: func(e E) string { return e.AgentID }},
		{title: "TASK", wide: true, text: func(e E) string { return e.TaskID }},
		{title: "STARTED", wide: true, text: func(e E) string { return stamp(e.StartedAt) }},
		{title: "PARAMETERS", wide: true, most: 48, text: func(e E) string { return string(e.Parameters) }},
		{title: "OUTCOME", most: 48, text: func(e E) string {
			if e.Error != "" {
				return e.Error
			}
			return string(e.Result)
		}},
	}
}
