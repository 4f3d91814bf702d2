package command

import (
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/skill"
)

func invokedColumns(c *call) []column[op.Invoked] {
	var cols []column[op.Invoked]
	for _, col := range subagentColumns(c) {
		text := col.text
		cols = append(cols, column[op.Invoked]{
			title: col.title, right: col.right, wide: col.wide, most: col.most,
			text: func(v op.Invoked) string { return text(v.Subagent) },
		})
	}
	last := &cols[len(cols)-1]
	last.title, last.text = "OUTCOME", func(v op.Invoked) string {
		if v.Error != "" {
			return v.Error
		}
		return string(v.Result)
	}
	return cols
}

func subagentColumns(c *call) []column[skill.Subagent] {
	type A = skill.Subagent
	return []column[A]{
		{title: "SUBAGENT", text: func(a A) string { return a.AgentID }},
		{title: "NAME", most: 24, text: func(a A) string { return a.Name }},
		{title: "STATE", text: func(a A) string { return a.Shown() }},
		{title: "SKILL", text: func(a A) string { return a.Skill }},
		{title: "NOW", text: func(a A) string { return a.Step }},
		{title: "AGE", right: true, text: func(a A) string { return c.age(a.CreatedAt) }},
		{title: "RESULTS", wide: true, right: true, text: func(a A) string { return count(int64(len(a.Results))) }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "SESSION", wide: true, text: func(a A) string { return a.SessionID }},
		{title: "APPROVAL", wide: true, text: func(a A) string { return a.Waiting }},
		{title: "COMPLETED", wide: true, text: func(a A) string { return stamp(a.CompletedAt) }},
		{title: "ERROR", most: 48, text: func(a A) string { return a.Error }},
	}
}

// liveSubagents lists the subagents that a verb can be used on.
func liveSubagents(c *call, eng *engine.Engine, tenant, verb string) []Candidate {
	fits := func(skill.State) bool { return true }
	switch verb {
	case "idle":
		fits = func(s skill.State) bool { return s == skill.Idle }
	case "pause":
		fits = func(s skill.State) bool { return s == skill.Running }
	case "resume":
		fits = func(s skill.State) bool { return s == skill.Paused }
	case "end":
		fits = func(s skill.State) bool { return !s.Final() }
	}
	page, err := eng.Skills.Subagents(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	var kept []skill.Subagent
	for _, a := range page.Items {
		if fits(a.State) {
			kept = append(kept, a)
		}
	}
	return candidates(kept, err, func(a skill.Subagent) Candidate {
		return Candidate{a.AgentID, a.Shown() + " " + a.Name + " " + a.Skill}
	})
}

func liveExecutions(c *call, eng *engine.Engine, tenant string) []Candidate {
	page, err := eng.Skills.Executions(c.ctx, tenant, "", core.Filter{Size: core.MaxPageSize})
	return candidates(page.Items, err, func(e skill.Execution) Candidate {
		return Candidate{e.ExecutionID, string(e.Status) + " " + e.SkillName}
	})
}
