package face

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/document"
	"swarmdeck/engine/skill"
)

func skills() []*Face {
	return []*Face{
		Of[skill.Skill]{
			Noun: "skill", ID: "REF", Head: "description",
			Tool: `name version description dependencies tags effects runner=runner.kind timeout max_retries digest
				parameters_schema,one returns_schema,one`,
			Columns: "SKILL:name VERSION RUNNER:runner.kind EFFECTS:effects NEEDS:dependencies,30 TAGS:tags,24 DESCRIPTION:description,48",
			Wide:    "TIMEOUT:timeout,s RETRIES:max_retries UPDATED:updated_at DIGEST:digest SOURCE:source",
			Cells: Cells[skill.Skill]{
				"REF": func(s *skill.Skill, _ At) string { return s.Ref() },
				"VERSION": func(s *skill.Skill, at At) string {
					if at.Newest == nil || at.Newest(s) {
						return s.Version
					}
					return s.Version + " (older)"
				},
			},
		}.Face(),
		Of[skill.Change]{
			Noun: "skill", ID: "REF",
			Columns: "ACTION:action SKILL:name VERSION:version SOURCE",
			Wide:    "DIGEST:digest",
			Cells: Cells[skill.Change]{
				"REF":    func(x *skill.Change, _ At) string { return x.Name + "@" + x.Version },
				"SOURCE": func(x *skill.Change, at At) string { return at.Near(x.Source) },
			},
		}.Face(),
		Of[skill.Source]{
			ID:      "path",
			Columns: "PATH ADDED:added_at",
			Cells: Cells[skill.Source]{
				"PATH": func(s *skill.Source, at At) string { return at.Near(s.Path) },
			},
		}.Face(),
		Of[document.Problem]{
			Columns: "FILE FIELD:field PROBLEM:message",
			Cells: Cells[document.Problem]{
				"FILE": func(p *document.Problem, at At) string { return fmt.Sprintf("%s:%d", at.Near(p.File), p.Line) },
			},
		}.Face(),
		Of[skill.Figures]{
			Columns: "SKILL:skill RUNS:total P50,right P95,right FAILED,right",
			Cells: Cells[skill.Figures]{
				"P50":    func(f *skill.Figures, _ At) string { return fmt.Sprintf("%d ms", f.P50MS) },
				"P95":    func(f *skill.Figures, _ At) string { return fmt.Sprintf("%d ms", f.P95MS) },
				"FAILED": func(f *skill.Figures, _ At) string { return fmt.Sprintf("%.0f%%", 100*f.FailureRate) },
			},
		}.Face(),
		Of[skill.Execution]{
			Noun: "execution", ID: "execution_id",
			List:    "STATUS:11 SKILL:16*2km STEP:12*2/5m TOOK:6/1 RETRIES:7/4 AGE:4/3 OUTCOME:16*4/2 -EXECUTION",
			Columns: "EXECUTION:execution_id SKILL STATUS TOOK:duration_ms,ms RETRIES:retry_count AGE:started_at,age OUTCOME,48",
			Wide:    "STEP:step AGENT:agent_id TASK:task_id STARTED:started_at PARAMETERS:parameters,48",
			Cells: Cells[skill.Execution]{
				"SKILL": func(e *skill.Execution, _ At) string { return e.SkillName + "@" + e.SkillVersion },
				"STATUS": func(e *skill.Execution, _ At) string {
					if e.Broken() {
						return string(e.Status) + " (interrupted)"
					}
					return string(e.Status)
				},
				"OUTCOME": func(e *skill.Execution, _ At) string { return cmp.Or(e.Error, string(e.Result)) },
			},
		}.Face(),
		Of[skill.Subagent]{
			Noun: "subagent", ID: "agent_id", Head: "name",
			List:    "STATE:11 NAME:12*2km SKILL:14*2/1 NOW:10*1/4m AGE:4/3 ERROR:16*3/2 -SUBAGENT",
			Columns: "SUBAGENT:agent_id NAME:name,24 STATE SKILL:skill NOW:step AGE:created_at,age ERROR:error,48",
			Wide:    "RESULTS:results,len TASK:task_id SESSION:session_id APPROVAL:waiting COMPLETED:completed_at",
			Cells: Cells[skill.Subagent]{
				"STATE": func(a *skill.Subagent, _ At) string { return a.Shown() },
			},
		}.Face(),
	}
}
