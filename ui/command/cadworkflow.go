package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

func (t *tree) cadWorkflows() *cobra.Command {
	return t.group("workflow", "Runs of scenarios and of decomposed goals",
		lists(t, spec{use: "list", short: "List the workflows, newest first", effect: Reads}, core.Strings(cad.ExecutionStates()...), workflowColumns,
			func(c *call, f core.Filter) (core.Page[cad.Workflow], error) {
				return c.eng.CAD.Workflows(c.ctx, c.by.Tenant, f)
			}),
		t.command(spec{
			use: "show ID", short: "Show a workflow: its tasks, who does them and what came of them", effect: Reads, args: []string{"cadworkflow"},
			run: func(c *call, args []string) error {
				w, err := c.eng.CAD.Workflow(c.ctx, c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.workflow(w)
			},
		}),
		t.cadWorkflowWait(),
		t.cadWorkflowRetry(),
		t.cadWorkflowReassign(),
		t.command(spec{
			use: "cancel ID", short: "End a workflow: what runs is interrupted, what is completed stays", effect: Writes, args: []string{"cadworkflow"},
			flags: withReason,
			run: changes(workflowColumns, func(c *call, id string) (cad.Workflow, error) {
				return c.eng.CAD.CancelWorkflow(c.ctx, c.by, id, c.reason())
			}),
		}),
	)
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

func (t *tree) cadWorkflowWait() *cobra.Command {
	var w waiting
	return t.command(spec{
		use: "wait ID", short: "Have a workflow go on, and wait until it is over", effect: Reads, args: []string{"cadworkflow"},
		long:  "Wait until a workflow is over and print it; exit 1 unless it is completed. It goes on where an engine that ended has left it.",
		flags: func(f *pflag.FlagSet) { spanVar(f, &w.limit, "timeout", "give up after this `DURATION` (exit 4)") },
		check: func(c *call, _ []string) error {
			w.on, c.active = true, !c.g.ReadOnly
			return nil
		},
		run: func(c *call, args []string) error {
			flow, err := c.eng.CAD.Progress(c.ctx, c.by.Tenant, args[0])
			if err != nil {
				return err
			}
			return w.printWorkflow(c, flow)
		},
	})
}

func (t *tree) cadWorkflowRetry() *cobra.Command {
	var w waiting
	var task string
	return t.command(spec{
		use: "retry ID", short: "Have the failed tasks of a workflow done again", effect: Writes, args: []string{"cadworkflow"},
		long: "Have the failed tasks of a workflow done again, all or one; what waits for them follows. A task goes on where it failed.\n" +
			"An agent that was shut down is replaced by a new one of its role, in the same workspace.",
		example: "cad workflow retry wf_… --task t2 --wait",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&task, "task", "", "only this task, by its `ID` in the workflow")
			w.bind(f, "wait until it is over; exit 1 unless it is completed")
		},
		check: func(c *call, _ []string) error { return w.check(c) },
		run: func(c *call, args []string) error {
			flow, err := c.eng.CAD.RetryWorkflow(c.ctx, c.by, args[0], task)
			if err != nil {
				return err
			}
			return w.printWorkflow(c, flow)
		},
	})
}

func (t *tree) cadWorkflowReassign() *cobra.Command {
	var w waiting
	return t.command(spec{
		use: "reassign ID TASK AGENT", short: "Give a task of a workflow to another agent", effect: Writes, args: []string{"cadworkflow", "", "cadagent"},
		long: "Give a task that failed or has not begun to another agent, whose role must allow all of it. It is carried out in the\n" +
			"workspace that it was begun in; one that failed is done again.",
		flags: func(f *pflag.FlagSet) { w.bind(f, "wait until it is over; exit 1 unless it is completed") },
		check: func(c *call, _ []string) error { return w.check(c) },
		run: func(c *call, args []string) error {
			flow, err := c.eng.CAD.ReassignWorkflow(c.ctx, c.by, args[0], args[1], args[2])
			if err != nil {
				return err
			}
			return w.printWorkflow(c, flow)
		},
	})
}

// printWorkflow prints a workflow; with --wait, once it is over.
func (w *waiting) printWorkflow(c *call, flow cad.Workflow) error {
	if !w.on {
		return c.workflow(flow)
	}
	flow, err := w.follow(c, flow.WorkflowID, func(f *cad.Workflow) bool { return f.State.Final() })
	if err != nil {
		return err
	}
	if err := c.workflow(flow); err != nil {
		return err
	}
	if flow.State != cad.WorkflowCompleted {
		return &ExitError{Code: ExitFailed}
	}
	return nil
}

// follow looks at a workflow after each change until it is as wanted, and
// returns the whole of it. On a terminal it says once what each task waits for.
func (w *waiting) follow(c *call, id string, over func(*cad.Workflow) bool) (cad.Workflow, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	if w.limit > 0 {
		ctx, cancel = context.WithTimeout(c.ctx, w.limit)
	}
	defer cancel()
	bell := c.eng.Watch(ctx)
	told := map[string]bool{}
	for {
		flow, err := c.eng.CAD.Progress(c.ctx, c.by.Tenant, id)
		if err != nil {
			return flow, err
		}
		if over(&flow) {
			return c.eng.CAD.Workflow(c.ctx, c.by.Tenant, id)
		}
		if c.g.ReadOnly {
			return flow, core.Errorf(core.Denied, "workflow %s is %s, and nothing runs with --read-only", id, flow.State).With("field", "read-only")
		}
		for _, a := range flow.Assignments {
			c.tell(told, a.WorkflowID+"/"+a.TaskID, a.Waiting)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) && c.ctx.Err() == nil {
				return flow, fmt.Errorf("workflow %s is still %s after %s: %w", id, flow.Shown(), w.limit, op.ErrTimeout)
			}
			return flow, ctx.Err()
		case _, open := <-bell:
			if !open {
				return flow, core.Errorf(core.Unavailable, "the engine has closed")
			}
		}
	}
}

// tell says once on a terminal that something waits for an approval.
func (c *call) tell(told map[string]bool, what, approval string) {
	if approval == "" || told[approval] || c.g.Output == "json" {
		return
	}
	told[approval] = true
	fmt.Fprintf(c.env.Stderr, "%s\n", term.Clean(fmt.Sprintf("%s waits for approval %s", what, approval)))
}

// printAssignment prints one assignment; with --wait, once it is over.
func (w *waiting) printAssignment(c *call, a cad.TaskAssignment) error {
	if w.on && a.WorkflowID != "" {
		flow, err := w.follow(c, a.WorkflowID, func(f *cad.Workflow) bool {
			now := f.Assignments[a.Index]
			return f.State.Final() || now.Status == cad.Completed || now.Status == cad.Failed
		})
		if err != nil {
			return err
		}
		a = flow.Assignments[a.Index]
	} else if w.on {
		_, err := w.tasks(c, a.SwarmTask)
		if failed := new(op.Failed); err != nil && !errors.As(err, &failed) {
			return err
		}
		if a, err = c.eng.CAD.Assignment(c.ctx, c.by.Tenant, a.SwarmTask); err != nil {
			return err
		}
	}
	if err := record(c, a, assignmentColumns(c)); err != nil {
		return err
	}
	if w.on && a.Status != cad.Completed {
		return &ExitError{Code: ExitFailed}
	}
	return nil
}
