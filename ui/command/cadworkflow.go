package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

func scenarioColumns(*call) []column[cad.Scenario] {
	type S = cad.Scenario
	return []column[S]{
		{title: "SCENARIO", text: func(s S) string { return s.Name }},
		{title: "PATTERN", text: func(s S) string { return string(s.Pattern) }},
		{title: "AGENTS", right: true, text: func(s S) string { return fmt.Sprint(len(s.Agents)) }},
		{title: "TASKS", right: true, text: func(s S) string { return fmt.Sprint(len(s.Tasks)) }},
		{title: "ESTIMATE", right: true, text: func(s S) string { return fmt.Sprintf("%gs", s.EstimatedDuration) }},
		{title: "ORIGIN", text: func(s S) string {
			if s.Builtin {
				return "builtin"
			}
			return "swarm file"
		}},
		{title: "DESCRIPTION", most: 60, text: func(s S) string { return s.Description }},
	}
}

func workflowColumns(c *call) []column[cad.Workflow] {
	type W = cad.Workflow
	return []column[W]{
		{title: "WORKFLOW", text: func(w W) string { return w.WorkflowID }},
		{title: "SCENARIO", text: func(w W) string { return w.ScenarioName }},
		{title: "STATE", text: func(w W) string { return string(w.State) }},
		{title: "DONE", right: true, text: func(w W) string { return fmt.Sprintf("%.0f%%", w.Completion) }},
		{title: "TASKS", right: true, text: func(w W) string { return fmt.Sprintf("%d/%d", w.Metrics.Completed, w.Metrics.Tasks) }},
		{title: "OPS", right: true, text: func(w W) string { return fmt.Sprint(w.Metrics.TotalOperations) }},
		{title: "AGENTS", right: true, text: func(w W) string { return fmt.Sprint(w.Metrics.AgentsUsed) }},
		{title: "TOOK", right: true, text: func(w W) string { return fmt.Sprintf("%.1fs", w.Metrics.TotalDuration) }},
		{title: "STARTED", wide: true, text: func(w W) string { return stamp(w.StartedAt.Time()) }},
		{title: "FILES", wide: true, text: func(w W) string { return c.near(w.Directory) }},
		{title: "FAILURE", most: 60, text: func(w W) string {
			for i := len(w.Failures) - 1; i >= 0; i-- {
				if f := w.Failures[i]; !f.Again {
					return f.TaskID + " (" + f.AgentID + "): " + f.Error
				}
			}
			return w.Cancelled
		}},
	}
}

// fullWorkflow prints a workflow that is asked for in full with its tasks.
func fullWorkflow(c *call, o *op.Op, out any) (bool, error) {
	w, is := out.(cad.Workflow)
	if !is || !o.Full {
		return false, nil
	}
	return true, c.workflow(w)
}

// workflow prints one workflow with its tasks.
func (c *call) workflow(w cad.Workflow) error {
	return c.print(w, func(out io.Writer) error {
		wide := c.g.Output == "wide"
		table(out, []cad.Workflow{w}, workflowColumns(c), wide)
		fmt.Fprintln(out)
		table(out, w.Assignments, assignmentColumns(c), wide)
		if w.Waits != "" {
			fmt.Fprintf(out, "\nwaits for %s\n", w.Waits)
		}
		return nil
	})
}

// showDecomposed prints a workflow that has begun, or the tasks that wait.
func (c *call) showDecomposed(d op.Decomposed) error {
	if d.Begun {
		return c.workflow(d.Workflow)
	}
	return list(c, core.Page[cad.TaskAssignment]{Items: d.Assignments}, assignmentColumns(c))
}

func assignmentColumns(*call) []column[cad.TaskAssignment] {
	type A = cad.TaskAssignment
	return []column[A]{
		{title: "TASK", text: func(a A) string { return a.TaskID }},
		{title: "STATUS", text: func(a A) string {
			switch {
			case a.Waiting != "":
				return "waiting for you"
			case a.Open():
				return "unassigned"
			}
			return string(a.Status)
		}},
		{title: "AGENT", text: func(a A) string { return a.AgentID }},
		{title: "ROLE", text: func(a A) string { return a.RoleName }},
		{title: "WORKSPACE", wide: true, text: func(a A) string { return a.WorkspaceID }},
		{title: "NEEDS", most: 30, text: func(a A) string { return strings.Join(a.Dependencies, ",") }},
		{title: "OPS", right: true, text: func(a A) string { return fmt.Sprintf("%d/%d", a.Done, a.DoneBefore+a.Steps()) }},
		{title: "WORKFLOW", wide: true, text: func(a A) string { return a.WorkflowID }},
		{title: "CARRIED OUT BY", wide: true, text: func(a A) string { return a.SwarmTask }},
		{title: "DESCRIPTION", most: 60, text: func(a A) string { return cmp.Or(a.Failure().Message, a.Description) }},
	}
}
