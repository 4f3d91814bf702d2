package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/skill"
)

func (t *tree) subagentList() *cobra.Command {
	var state string
	states := core.Strings(skill.States()...)
	return lists(t, spec{
		use: "list", short: "List the subagents, newest first", effect: Reads,
		example: "subagent list --state running",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &state, "state", "", "", "only in this `STATE`"+allowedList(states), states...)
			source(f, "agent", "subagent")
		},
		check: func(c *call, _ []string) error {
			if state != "" && c.flag("status") != "" && c.flag("status") != state {
				return usage("state", "--state and --status are the same; give one of them")
			}
			return nil
		},
	}, states, subagentColumns, func(c *call, f core.Filter) (core.Page[skill.Subagent], error) {
		if state != "" {
			f.Status = state
		}
		return c.eng.Skills.Subagents(c.ctx, c.by.Tenant, f)
	})
}

func (t *tree) subagentAssign() *cobra.Command {
	var v invoking
	return t.command(spec{
		use: "assign ID SKILL", short: "Give an idle subagent a skill to run", effect: Writes, args: []string{"subagent:idle", "skill"},
		example: `subagent assign a7f3c2e1-… navigate --params '{"location":"kitchen"}' --wait`,
		flags:   func(f *pflag.FlagSet) { v.bind(f) },
		check:   func(c *call, _ []string) error { return v.check(c) },
		run: func(c *call, args []string) error {
			v.Skill = args[1]
			made, err := c.eng.Skills.Assign(c.ctx, c.by, args[0], v.Invoke)
			if err != nil {
				return err
			}
			return v.w.printAgents(c, made)
		},
	})
}

func (t *tree) subagentParallel() *cobra.Command {
	var w waiting
	return t.command(spec{
		use: "run-parallel FILE", short: "Run many skills at once, each with a subagent of its own", effect: Writes, args: []string{sourceText},
		long: "Run many skills at once, each with a subagent of its own. FILE (YAML, or JSON by its name; - is YAML on stdin) is a\n" +
			"list of {skill, params, name, metadata}, of which only skill must be there. When one of them can't be run, none is.\n" +
			"With --wait: wait until all are over, print them, and exit 1 unless all are completed.",
		example: "subagent run-parallel tasks.yaml --wait",
		flags:   func(f *pflag.FlagSet) { w.bind(f, "wait until all are over") },
		check:   func(c *call, _ []string) error { return w.check(c) },
		run: func(c *call, args []string) error {
			all, err := c.invocations(args[0])
			if err != nil {
				return err
			}
			made, err := c.eng.Skills.RunParallel(c.ctx, c.by, all)
			if err != nil {
				if len(made) == 0 {
					return inFile(fmt.Errorf("%s: %w", core.Clip(args[0]), err))
				}
				if printErr := w.printAgents(c, made...); printErr != nil {
					return printErr
				}
				return err
			}
			return w.printAgents(c, made...)
		},
	})
}

// invocations reads what a file has run at once.
func (c *call) invocations(path string) ([]skill.Invoke, error) {
	data, err := c.file("file", path)
	if err != nil {
		return nil, err
	}
	r := document.NewReader(path)
	root, ok := r.Parse(data, maxArg)
	if !ok {
		return nil, inFile(r.Err())
	}
	all := document.Each(r, root, func(v document.Value) (in skill.Invoke) {
		r.Object(v, map[string]func(document.Value){
			"skill":    func(v document.Value) { in.Skill = r.Word(v) },
			"name":     func(v document.Value) { in.Name = r.Text(v) },
			"params":   func(v document.Value) { in.Params = r.Raw(v) },
			"metadata": func(v document.Value) { in.Metadata = r.Raw(v) },
		}, "skill")
		return in
	})
	if err := r.Err(); err != nil {
		return nil, inFile(err)
	}
	return all, nil
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
