package op

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

// untilOver is what doors say of waiting for a workflow.
const untilOver = "wait until it is over; exit 1 unless it is completed"

func cadScenarios() []*Op {
	return []*Op{
		define(Op{Name: "cad scenario list", Short: "List the scenarios", Effect: Reads},
			func(ctx context.Context, c *Call) (core.Page[cad.Scenario], error) {
				all, err := c.CAD.Scenarios(ctx, c.By.Tenant)
				return core.Page[cad.Scenario]{Items: all}, err
			}),
		show(Op{Name: "cad scenario show", Short: "Show a scenario: its agents, tasks and operations"}, arg("NAME", "cadscenario"),
			func(_ context.Context, c *Call, name string) (cad.Scenario, error) {
				return c.CAD.Scenario(c.By.Tenant, name)
			}),
		cadScenarioRun(),
		cadDecompose(),
		cadAssign(),
	}
}

// starting are the parameters of what starts a workflow.
func starting(s *cad.StartWorkflow, w *waiting, more ...*Param) []*Param {
	return append(append(w.params(untilOver),
		flag((*Path)(&s.Directory), "out", "`DIR` that the files of its workspaces lie in (default one for each, beside the data file)").from("file"),
		kernel(&s.Kernel, "`KERNEL` that computes its geometry (default the first that there is)"),
		flag(&s.Session, "session", "run its tasks within this session `ID`").from("session"),
	), more...)
}

func cadScenarioRun() *Op {
	var s cad.StartWorkflow
	var w waiting
	return change(Op{
		Name: "cad scenario run", Short: "Run a scenario with agents and workspaces of its own", Full: true, Undo: "cad workflow cancel", Done: "started",
		Long: "Make the agents and workspaces of a scenario, give the agents their tasks as the turn of each comes, and print the\n" +
			"workflow. Ids that an earlier run has taken get a number: lid_designer_2, ws_lid_2. With --wait: print it once it is over,\n" +
			"and exit 1 unless it is completed. When the engine ends, the next one goes on with it: `cad workflow wait ID`.",
		Example: "cad scenario run assembly_design --out parts --wait --override lid_designer=optimizer",
		Params: starting(&s, &w,
			&Param{Name: "override", About: "give an agent another role, `AGENT=ROLE`; may be repeated", Into: &s.Overrides, Whole: true}),
		Check: w.check,
	}, arg("NAME", "cadscenario"), func(ctx context.Context, c *Call, name string) (cad.Workflow, error) {
		s.Scenario = name
		made, err := c.CAD.RunScenario(ctx, c.By, s)
		return w.workflow(ctx, c, made, err)
	})
}

// Decomposed is the workflow that a goal was turned into. Unless it has begun its
// tasks wait for agents.
type Decomposed struct {
	cad.Workflow
	Begun bool `json:"-"`
}

func cadDecompose() *Op {
	var d cad.Decompose
	var w waiting
	return change(Op{
		Name: "cad decompose", Short: "Turn a goal into tasks for CAD agents", Undo: "cad workflow cancel", Done: "started",
		Long: "Turn a goal into tasks whose operations can be carried out, and print them. Known without asking anybody: box with or without\n" +
			"lid and supports, block, plate, bracket, shaft, cylinder, tube, washer, flange, their holes and bores, with sizes in mm, cm,\n" +
			"m or inch. Any other word or number is refused, with the ways to tell the part. With --agent an agent of the fleet is asked\n" +
			"about anything else; its answer is checked like a scenario, and against every parameter.\n" +
			"The tasks then wait: `cad assign TASK AGENT` gives one to an agent, `cad workflow cancel ID` drops them. With --run\n" +
			"they get agents and workspaces of their own and begin at once, and the workflow is printed.",
		Example: "cad decompose 'a box with lid, 100x80x20 mm, wall 2 mm'\ncad decompose 'bracket 60x40x5 mm with 2 holes diameter 6' --run --wait --out parts",
		Params: starting(&d.StartWorkflow, &w,
			flag(&d.Agent, "agent", "ask this agent of the fleet, by `NAME`").from("agent"),
			flag(&d.Run, "run", "begin at once, with agents and workspaces of its own")),
		Check: func(c *Call) error {
			switch {
			case w.on && !d.Run:
				return usage("wait", "--wait: nothing begins without --run")
			case d.Agent != "":
				return c.Activate()
			}
			return w.check(c)
		},
	}, arg("GOAL", ""), func(ctx context.Context, c *Call, goal string) (Decomposed, error) {
		d.Goal = goal
		made, err := c.CAD.Decompose(ctx, c.By, d)
		made, err = w.workflow(ctx, c, made, err)
		return Decomposed{made, d.Run}, err
	})
}

func cadAssign() *Op {
	var task, agent string
	var own core.Raw
	var w waiting
	return define(Op{
		Name: "cad assign", Short: "Give a task to a CAD agent", Done: "gave",
		Long: "Give a CAD agent a task that `cad decompose` made: its id for the newest of this name, or WORKFLOW/ID. The agent's role\n" +
			"must allow all that the task needs; it begins once its dependencies are completed. Or give it a task of its own, as JSON:\n" +
			`{"description":"…","operations":[{"id":"p","method":"entity.create_point","params":{"coordinates":[1,2]}}],"check":"size(entities) == 1"}.`,
		Example: "cad assign box modeler_a\ncad assign @plate.json modeler_a --wait",
		Params: append(w.params("wait until the task is over; exit 1 unless it is completed"),
			place(&task, "TASK", ""), place(&agent, "AGENT", "cadagent")),
		Check: func(c *Call) (err error) {
			if task == "-" || strings.HasPrefix(task, "@") || strings.HasPrefix(strings.TrimSpace(task), "{") {
				if own, err = c.Read("task", task); err != nil {
					return err
				}
			}
			return w.check(c)
		},
	}, func(ctx context.Context, c *Call) (a cad.TaskAssignment, err error) {
		if own == nil {
			a, err = c.CAD.AssignTask(ctx, c.By, task, agent)
		} else {
			a, err = c.CAD.Assign(ctx, c.By, agent, own)
		}
		return w.assignment(ctx, c, a, err)
	})
}

func cadWorkflows() []*Op {
	type W = cad.Workflow
	id := arg("ID", "cadworkflow")
	return []*Op{
		list(Op{Name: "cad workflow list", Short: "List the workflows, newest first", Statuses: core.Strings(cad.ExecutionStates()...)},
			byTenant(func(c *Call) tenantRead[core.Filter, core.Page[W]] { return c.CAD.Workflows })),
		show(Op{Name: "cad workflow show", Short: "Show a workflow: its tasks, who does them and what came of them"}, id,
			func(ctx context.Context, c *Call, id string) (W, error) { return c.CAD.Workflow(ctx, c.By.Tenant, id) }),
		cadWait(),
		cadRetry(),
		cadReassign(),
		changeWhy(Op{Name: "cad workflow cancel", Short: "End a workflow: what runs is interrupted, what is completed stays", Undo: "cad workflow retry", Done: "cancelled"}, id,
			withReason(func(c *Call) callerWhy[W] { return c.CAD.CancelWorkflow })),
	}
}

func cadWait() *Op {
	w := waiting{on: true}
	return show(Op{
		Name: "cad workflow wait", Short: "Have a workflow go on, and wait until it is over",
		Long:   "Wait until a workflow is over and print it; exit 1 unless it is completed. It goes on where an engine that ended has left it.",
		Params: []*Param{flag(&w.limit, "timeout", "give up after this `DURATION` (exit 4)")},
		Check:  (*Call).look,
	}, arg("ID", "cadworkflow"), func(ctx context.Context, c *Call, id string) (cad.Workflow, error) {
		return w.workflow(ctx, c, cad.Workflow{WorkflowID: id}, nil)
	})
}

func cadRetry() *Op {
	var task string
	var w waiting
	return change(Op{
		Name: "cad workflow retry", Short: "Have the failed tasks of a workflow done again", Full: true, Undo: "cad workflow cancel", Done: "goes on:",
		Long: "Have the failed tasks of a workflow done again, all or one; what waits for them follows. A task goes on where it failed.\n" +
			"An agent that was shut down is replaced by a new one of its role, in the same workspace.",
		Example: "cad workflow retry wf_… --task t2 --wait",
		Params:  append(w.params(untilOver), flag(&task, "task", "only this task, by its `ID` in the workflow")),
		Check:   w.check,
	}, arg("ID", "cadworkflow"), func(ctx context.Context, c *Call, id string) (cad.Workflow, error) {
		made, err := c.CAD.RetryWorkflow(ctx, c.By, id, task)
		return w.workflow(ctx, c, made, err)
	})
}

func cadReassign() *Op {
	var task, agent string
	var w waiting
	return change(Op{
		Name: "cad workflow reassign", Short: "Give a task of a workflow to another agent", Full: true, Done: "reassigned a task of",
		Long: "Give a task that failed or has not begun to another agent, whose role must allow all of it. It is carried out in the\n" +
			"workspace that it was begun in; one that failed is done again.",
		Params: append(w.params(untilOver), place(&task, "TASK", ""), place(&agent, "AGENT", "cadagent")),
		Check:  w.check,
	}, arg("ID", "cadworkflow"), func(ctx context.Context, c *Call, id string) (cad.Workflow, error) {
		made, err := c.CAD.ReassignWorkflow(ctx, c.By, id, task, agent)
		return w.workflow(ctx, c, made, err)
	})
}

// workflow gives back a workflow; with --wait, once it is over.
func (w *waiting) workflow(ctx context.Context, c *Call, flow cad.Workflow, err error) (cad.Workflow, error) {
	if err != nil || !w.on {
		return flow, err
	}
	if flow, err = c.awaitWorkflow(ctx, flow.WorkflowID, w.limit, func(*cad.Workflow) bool { return false }); err == nil && flow.State != cad.WorkflowCompleted {
		err = &Failed{}
	}
	return flow, err
}

// assignment gives back an assignment; with --wait, once it is over.
func (w *waiting) assignment(ctx context.Context, c *Call, a cad.TaskAssignment, err error) (cad.TaskAssignment, error) {
	switch {
	case err != nil || !w.on:
		return a, err
	case a.WorkflowID == "":
		if _, err = c.AwaitTasks(ctx, "", w.limit, a.SwarmTask); err == nil || errors.As(err, new(*Failed)) {
			a, err = c.CAD.Assignment(ctx, c.By.Tenant, a.SwarmTask)
		}
	default:
		var flow cad.Workflow
		if flow, err = c.awaitWorkflow(ctx, a.WorkflowID, w.limit, func(f *cad.Workflow) bool { return f.Assignments[a.Index].Over() }); err == nil {
			a = flow.Assignments[a.Index]
		}
	}
	if err == nil && a.Status != cad.Completed {
		err = &Failed{}
	}
	return a, err
}

// awaitWorkflow waits until a workflow is over or has come as far as is wanted.
func (c *Call) awaitWorkflow(ctx context.Context, id string, limit time.Duration, far func(*cad.Workflow) bool) (w cad.Workflow, err error) {
	within, cancel := limited(ctx, limit)
	defer cancel()
	if err := c.await(within, func() (still, why string, err error) {
		if w, err = c.CAD.Progress(ctx, c.By.Tenant, id); err != nil || w.State.Final() || far(&w) {
			return "", "", err
		}
		if w.Waits != "" {
			why = "workflow " + id + " waits for " + w.Waits
		}
		return fmt.Sprintf("workflow %s is still %s", id, w.Shown()), why, nil
	}); err != nil {
		return w, err
	}
	return c.CAD.Workflow(ctx, c.By.Tenant, id)
}
