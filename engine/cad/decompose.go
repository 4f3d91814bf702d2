package cad

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
)

// Decompose asks for assignments that reach a goal (controller operation
// decompose_task).
type Decompose struct {
	Goal string // 1-1000 characters
	// Agent is an agent of the fleet that is asked; "" uses the built-in templates.
	Agent string
	// Run starts it at once, with agents and workspaces of its own. Otherwise it
	// waits until its tasks are assigned one by one.
	Run bool
	StartWorkflow
}

// Decompose turns a goal into a workflow: one that runs, or one that waits for
// its tasks to be assigned.
func (c *Controller) Decompose(ctx context.Context, by core.Caller, d Decompose) (Workflow, error) {
	if err := checkText("goal", d.Goal, maxText); err != nil {
		return Workflow{}, err
	}
	if err := c.checkStart(ctx, by, d.StartWorkflow); err != nil {
		return Workflow{}, err
	}
	roles := finderOf(c.Roles(by.Tenant))
	var s Scenario
	var err error
	if d.Agent == "" {
		s, err = planFor(d.Goal)
	} else {
		s, err = c.planBy(ctx, by, d, roles)
	}
	if err != nil {
		return Workflow{}, err
	}
	s, found := s.check(roles)
	if err := found.err(); err != nil {
		return Workflow{}, err
	}
	if d.Run {
		return c.work.start(ctx, by, s, d.StartWorkflow, d.Goal)
	}
	return c.work.plan(ctx, by, s, d.StartWorkflow, d.Goal)
}

// plan keeps a decomposed goal whose tasks nobody has been given yet. Who it
// names are suggestions.
func (s *workflows) plan(ctx context.Context, by core.Caller, sc Scenario, opt StartWorkflow, goal string) (Workflow, error) {
	var w Workflow
	err := s.c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		w = s.newWorkflow(tx, by, sc, opt, goal)
		w.Agents = sc.Agents
		all := w.assignments(sc, func(agent string) Seat { return *sc.seat(agent) })
		for _, a := range all {
			a.Unassigned, a.WorkspaceID = true, ""
			if err := s.c.addAssignment(tx, a, record.Event{Type: "cad.assignment.created"}); err != nil {
				return err
			}
		}
		return s.settleIn(tx, &w, all, "cad.workflow.created", map[string]any{"scenario_name": sc.Name, "agents": sc.Agents})
	})
	if err != nil {
		return Workflow{}, audit.Explain("keep the tasks of a goal", err)
	}
	return s.c.Workflow(ctx, by.Tenant, w.WorkflowID)
}

// AssignTask gives a task of a decomposed goal to an agent (controller operation
// assign_task): its id, WORKFLOW/ID, or the id alone for the newest. It begins
// once its dependencies are completed.
func (c *Controller) AssignTask(ctx context.Context, by core.Caller, task, agent string) (TaskAssignment, error) {
	if _, err := c.member(ctx, by, agent); err != nil {
		return TaskAssignment{}, err
	}
	id, name, ok := strings.Cut(task, "/")
	if !ok {
		var err error
		if id, name, err = c.openTask(ctx, by.Tenant, task); err != nil {
			return TaskAssignment{}, err
		}
	}
	flow, err := c.work.change(ctx, by, id, "cad.workflow.assigned", func(tx *audit.Tx, w *Workflow, all []*TaskAssignment) error {
		a, err := taskOf(w, all, name)
		if err != nil {
			return err
		}
		if !a.Unassigned {
			return core.Errorf(core.Conflict, "task %s of workflow %s is agent %s's and %s; workflow reassign gives it to another", name, id, a.AgentID, a.Status).With("field", "task").With("value", task)
		}
		if err := a.complete(tx); err != nil {
			return err
		}
		a.Unassigned = false
		if err := c.takeIn(tx, a, agent); err != nil {
			return err
		}
		if !slices.ContainsFunc(w.Agents, func(s Seat) bool { return s.AgentID == agent }) {
			w.Agents = append(slices.Clip(w.Agents), Seat{AgentID: agent, RoleName: a.RoleName, WorkspaceID: a.WorkspaceID})
		}
		if w.State == Initializing {
			if err := w.to(WorkflowRunning, seconds(tx.Now())); err != nil {
				return err
			}
		}
		return c.saveAssignment(tx, a, record.Event{Type: "cad.assignment.given", Detail: map[string]string{"agent_id": agent}})
	})
	if err != nil {
		return TaskAssignment{}, err
	}
	return *first(flow.Assignments, func(a *TaskAssignment) bool { return a.TaskID == name }), nil
}

// openTask finds the newest task of an id that nobody has been given.
func (c *Controller) openTask(ctx context.Context, tenant, task string) (workflow, name string, err error) {
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return c.kinds.workflow.Along(tx, bLive, live, func(w *Workflow) error {
			all, err := c.loadAssignments(tx, w.Number)
			for _, a := range all {
				if a.TaskID == task && a.Unassigned {
					workflow = a.WorkflowID
				}
			}
			return err
		})
	})
	switch {
	case workflow != "" && len(core.DamagedIn(err)) > 0: // of others
		err = nil
	case err == nil && workflow == "":
		err = core.Errorf(core.NotFound, "task %q: no task of a decomposed goal with this id waits to be assigned; cad decompose makes them", core.ClipTo(task, 80)).With("field", "task").With("value", core.ClipTo(task, 80))
	}
	return workflow, task, audit.Explain("find task "+task, err)
}

// Assign gives an agent an assignment of its own, which belongs to no workflow
// (controller operation assign_task): an AssignmentInput, the agent's id filled
// in.
func (c *Controller) Assign(ctx context.Context, by core.Caller, agent string, input core.Raw) (TaskAssignment, error) {
	if err := core.CheckObject("task", input, core.MaxInput); err != nil {
		return TaskAssignment{}, err
	}
	input, err := withMembers(input, map[string]any{"agent_id": agent})
	if err != nil {
		return TaskAssignment{}, fmt.Errorf("task: %w", err)
	}
	t, err := c.opt.Swarm.Dispatch(ctx, by, swarm.Dispatch{Kind: KindAssignment, Input: input})
	if err != nil {
		return TaskAssignment{}, err
	}
	return c.Assignment(ctx, by.Tenant, t.TaskID)
}

// agentPatience is how long an agent may take to decompose a goal.
const agentPatience = 10 * time.Minute

// planTries is how often an agent may answer: one that is wrong is sent back with
// all that is wrong.
const planTries = 3

// planBy has an agent of the fleet decompose a goal. Its answer is checked like a
// scenario file, every method, reference and role, and every operation against
// the parameters of its method, before anything runs.
func (c *Controller) planBy(ctx context.Context, by core.Caller, d Decompose, roles roleFinder) (Scenario, error) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	message := c.goalPrompt(by.Tenant, d.Goal)
	for try := 1; ; try++ {
		answer, err := c.ask(ctx, by, d.Agent, message, swarm.Dispatch{Session: d.Session, Intent: "decompose a goal into CAD tasks"})
		if err != nil {
			return Scenario{}, err
		}
		if open := missingIn(answer); len(open) > 0 {
			return Scenario{}, core.Errorf(core.InvalidInput, "goal: agent %s says it is ambiguous; missing: %s", d.Agent, strings.Join(open, "; ")).
				With("field", "goal").With("value", d.Goal).With("missing", open)
		}
		s, err := parseScenario("answer.json", answer, roles)
		if err = errors.Join(err, c.checkParameters(&s).err()); err == nil {
			return s, nil
		}
		if try == planTries {
			return Scenario{}, core.Errorf(core.InvalidInput, "the answer of agent %s can't be used, after %d tries:\n%s", d.Agent, try, err).With("field", "agent").With("value", d.Agent)
		}
		message = c.goalPrompt(by.Tenant, d.Goal) + "\nYour last answer can't be used:\n" + core.ClipTo(err.Error(), maxWrong) + "\n"
	}
}

// maxWrong bounds in bytes what an agent is told of its mistakes.
const maxWrong = 16 << 10

// checkParameters holds every operation of a plan against what its method takes.
func (c *Controller) checkParameters(s *Scenario) (wrong problems) {
	if c.opt.Parameters == nil {
		return nil
	}
	for i := range s.Tasks {
		for _, list := range []struct {
			name  string
			steps []Step
		}{{"operations", s.Tasks[i].Operations}, {"rework_operations", s.Tasks[i].ReworkOperations}} {
			for n, step := range list.steps {
				at := fmt.Sprintf("task_sequence[%d].%s[%d]", i, list.name, n)
				if hasMember(step.Params, "agent_id") && step.Method != "agent.metrics" {
					wrong.refuse(at+".params.agent_id", "agent_id is the task's own agent; leave it out")
				}
				if _, known := FindMethod(step.Method); !known {
					continue // said already
				}
				for _, err := range c.opt.Parameters.Check(step.Method, step.Params) {
					wrong.note(at+".params", fmt.Errorf("%s: %w", step.Method, err))
				}
			}
		}
	}
	return wrong
}

// missingIn is what an answer says that a goal leaves open.
func missingIn(answer core.Raw) []string {
	var a struct {
		Missing []string `json:"missing"`
	}
	if core.DecodeStored(answer, &a) != nil {
		return nil
	}
	for i, text := range a.Missing {
		words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
		a.Missing[i] = core.ClipTo(strings.Join(words, " "), 200)
	}
	return a.Missing[:min(len(a.Missing), 20)]
}

// goalPrompt asks for a plan in the form of a scenario file.
func (c *Controller) goalPrompt(tenant, goal string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan how a team of CAD agents makes this: %s\n\n", goal)
	b.WriteString(`Answer with one JSON object and nothing else:
{"scenario_name":"a_name","description":"…","workflow_pattern":"mixed","success_criteria":"…",
 "agent_assignments":[{"agent_id":"a","role_name":"modeler","workspace_id":"ws_a"}],
 "task_sequence":[{"task_id":"t1","agent_id":"a","description":"…","dependencies":[],"success_criteria":"…",
   "check":"size(solids) == 1","operations":[{"id":"op1","method":"entity.create_line","params":{"start":[0,0,0],"end":[10,0,0]}}]}]}
Each agent has a workspace of its own, other than main. Lengths are millimetres. Params may hold ${op1.entity_id} for what an
earlier operation of the task answered, ${tasks.t1.workspace_id} for where a task among the dependencies built, and
${agent.workspace_id}. An operation's entity_id names what it makes.
check is CEL over solids, entities, volume (mm³), conflicts, interferences, files and results.
If the goal leaves open what has to be known, answer {"missing":["…"]} instead.
Roles and the only methods that they may use:
`)
	var methods []string
	for _, r := range c.Roles(tenant) {
		fmt.Fprintf(&b, "- %s: %s\n", r.Name, strings.Join(r.AllowedOperations, ", "))
		methods = append(methods, r.AllowedOperations...)
	}
	if c.opt.Parameters == nil {
		return b.String()
	}
	b.WriteString("What the methods take beside workspace_id and deadline_ms; * must be given, angles are radians:\n")
	slices.Sort(methods)
	for _, m := range slices.Compact(methods) {
		if takes := c.opt.Parameters.Takes(m); takes != "" {
			fmt.Fprintf(&b, "- %s: %s\n", m, takes)
		}
	}
	return b.String()
}
