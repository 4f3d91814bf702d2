package cad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// KindAssignment is the kind of task that carries out an assignment.
const KindAssignment = "cad.assignment"

// AssignmentInput is the input of a cad.assignment task.
type AssignmentInput struct {
	TaskID  string `json:"task_id,omitempty"`
	AgentID string `json:"agent_id"`
	// WorkspaceID is where it is carried out; "" is the agent's own.
	WorkspaceID string `json:"workspace_id,omitempty"`
	Brief

	// What follows is a workflow's to give.

	WorkflowID string `json:"workflow_id,omitempty"`
	Round      int    `json:"round,omitzero"`
	Try        int    `json:"try,omitzero"`
	Given      given  `json:"given,omitzero"`
}

// given is what the operations may refer to beside each other.
type given struct {
	Tasks  map[string]map[string]core.Raw `json:"tasks,omitempty"`  // task, then operation, workspace_id or agent_id
	Own    map[string]core.Raw            `json:"own,omitempty"`    // operations of earlier rounds
	Rework core.Raw                       `json:"rework,omitempty"` // what a review found
}

// readAssignment decodes and checks an input as far as it can be seen alone.
func readAssignment(input core.Raw) (AssignmentInput, error) {
	var in AssignmentInput
	if err := core.CheckObject("input", input, core.MaxInput); err != nil {
		return in, err
	}
	if err := core.Decode(input, &in); err != nil {
		return in, fmt.Errorf("input: %w", err)
	}
	if err := checkAgentID("agent_id", in.AgentID); err != nil {
		return in, err
	}
	if in.TaskID != "" && !namePattern().MatchString(in.TaskID) {
		return in, core.Invalid("task_id", in.TaskID, planName)
	}
	if in.WorkspaceID != "" {
		if err := model.CheckWorkspaceID(in.WorkspaceID); err != nil {
			return in, err
		}
	}
	if in.Round < 0 || in.Try < 0 {
		return in, core.Invalid("round", in.Round, "0 or more")
	}
	var f problems
	if in.Brief = in.Brief.check("", &f); len(f) == 0 {
		in.checkReferences(&f)
	}
	return in, f.err()
}

// checkReferences looks at what the operations refer to.
func (in *AssignmentInput) checkReferences(f *problems) {
	r := references{before: slices.Sorted(maps.Keys(in.Given.Tasks)), of: func(task string) []Step {
		var known []Step
		for id := range in.Given.Tasks[task] {
			known = append(known, Step{ID: id})
		}
		return known
	}}
	r.check("operations", in.Operations, f)
	r.rework = true
	r.earlier = append(r.earlier, slices.Sorted(maps.Keys(in.Given.Own))...)
	r.check("rework_operations", in.ReworkOperations, f)
}

// assigner is the runner of cad.assignment tasks.
type assigner struct{ c *Controller }

var (
	_ swarm.Runner  = assigner{}
	_ task.Follower = assigner{}
)

// Runner carries out cad.assignment tasks for the swarm.
func (c *Controller) Runner() swarm.Runner { return assigner{c} }

// Check implements swarm.Runner: there is such an agent, its role allows all
// that is to be done, and there is something to do.
func (r assigner) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	in, err := readAssignment(input)
	if err != nil {
		return "", judge.Action{}, err
	}
	a, err := r.c.Agent(context.Background(), tenant, in.AgentID)
	if err != nil {
		return "", judge.Action{}, err
	}
	if a.Status == Terminated {
		return "", judge.Action{}, core.Errorf(core.Conflict, "agent %s is terminated", a.AgentID).With("field", "agent_id").With("value", a.AgentID)
	}
	role, err := r.c.Role(tenant, a.Role)
	if err != nil {
		return "", judge.Action{}, err
	}
	if err := in.fits(cmp.Or(in.TaskID, "the assignment"), &role); err != nil {
		return "", judge.Action{}, err
	}
	args, err := core.Encode(in)
	if err != nil {
		return "", judge.Action{}, fmt.Errorf("encode the assignment: %w", err)
	}
	return assignmentTitle(&in), judge.Action{Kind: KindAssignment, Tool: in.AgentID, Args: args}, nil
}

// assignmentTitle is one line for lists.
func assignmentTitle(in *AssignmentInput) string {
	text := strings.Join(strings.Fields(in.Description), " ")
	if in.TaskID != "" {
		text = in.TaskID + " " + text
	}
	return core.ClipTo(text, 120)
}

// Resumes tells the queue that an assignment of operations goes on where it was:
// each that is done is on disk under its mark, and is not done twice. An agent
// that does the work itself is asked anew.
func (assigner) Resumes(input core.Raw) bool {
	var in AssignmentInput
	return core.DecodeStored(input, &in) == nil && len(in.Operations) > 0
}

// Target is the agent that an input names.
func (assigner) Target(input core.Raw) string { return textOf(input, "agent_id") }

// AgentRef is what the judge's rules may know about a CAD agent.
func (r assigner) AgentRef(tenant, id string) judge.AgentRef {
	ref := judge.AgentRef{Name: id}
	if a, err := r.c.Agent(context.Background(), tenant, id); err == nil {
		ref.Role = a.Role
	}
	return ref
}

// Slot implements swarm.Runner: a CAD agent takes one task at a time, which the
// swarm sees to. One that is terminated takes its task too, which then fails
// and says why.
func (r assigner) Slot(name, id string) (bool, string) {
	known := false
	r.c.look(name, func(t *tenantState) { known = t.members[id] != nil })
	if !known {
		return false, "there is no CAD agent " + id
	}
	return true, ""
}

const cancelWait = 5 * time.Second

// ask gives an agent of the fleet a prompt through the queue and returns its
// answer. When ctx ends before, the prompt is cancelled.
func (c *Controller) ask(ctx context.Context, by core.Caller, agent, message string, as swarm.Dispatch) (core.Raw, error) {
	once := 0
	as.Kind, as.Input, as.MaxAttempts = "agent.prompt", core.MustEncode(map[string]string{"agent": agent, "message": message}), &once
	given, err := c.opt.Swarm.Dispatch(ctx, by, as)
	if err != nil {
		return nil, fmt.Errorf("ask agent %s: %w", agent, err)
	}
	t, err := c.opt.Tasks.Wait(ctx, by.Tenant, given.TaskID, "")
	if ctx.Err() != nil {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
		defer stop()
		_, bad := c.opt.Swarm.Cancel(end, by, given.TaskID, "whoever asked has gone")
		if errors.Is(bad, core.Kind(core.Conflict)) { // it is over
			bad = nil
		}
		return nil, errors.Join(context.Cause(ctx), bad)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for agent %s: %w", agent, err)
	}
	res, err := c.opt.Tasks.Result(ctx, by.Tenant, given.TaskID)
	if err != nil {
		return nil, fmt.Errorf("read the answer of agent %s: %w", agent, err)
	}
	if t.Status == task.Succeeded {
		return objectOf(res.Output), nil
	}
	why := string(t.Status)
	if res.Error != nil {
		why += ": " + res.Error.Message
	}
	return nil, core.Errorf(core.Unavailable, "agent %s: task %s ended %s", agent, given.TaskID, why).With("field", "agent").With("value", agent)
}

// objectOf is an agent's output, or the one JSON object that its text is, in a
// code fence or bare.
func objectOf(output core.Raw) core.Raw {
	var text string
	_ = mapping.EachText(output, func(dec *jsontext.Decoder, name bool, s string) error {
		if at := strings.TrimPrefix(mapping.Place(dec.StackPointer()), "."); !name && (at == "text" || at == "stdout") {
			text = s
		}
		return nil
	})
	text = strings.TrimSpace(text)
	if from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}'); from >= 0 && to > from {
		if inner := core.Raw(text[from : to+1]); core.CheckObject("answer", inner, core.MaxInput) == nil {
			return inner
		}
	}
	return output
}

// delegate has an agent of the fleet do an assignment without operations: it is
// told what to do and in whose name, and carries the operations out itself.
func (r *run) delegate(a *Agent) (core.Raw, error) {
	if err := r.stand.pass(r.ctx); err != nil {
		return nil, err
	}
	role, err := r.c.Role(r.by.Tenant, a.Role)
	if err != nil {
		return nil, err
	}
	if _, err := r.c.Acting(r.ctx, r.by, a.AgentID, "worker"); err != nil { // who may not act as it has nobody do so
		return nil, err
	}
	defer r.c.delegate(r.by.Tenant, r.in.Worker, a.AgentID)()
	t := &r.job.Task
	reply, err := r.c.ask(r.ctx, r.by, r.in.Worker, r.prompt(a, &role), swarm.Dispatch{
		Parent: t.TaskID, Session: t.SessionID, Priority: &t.Priority, Trace: t.TraceID,
		Intent: "CAD task " + r.in.TaskID + " as agent " + a.AgentID,
	})
	if err != nil && r.ctx.Err() == nil {
		e := core.AsError(err)
		return nil, &stepError{FailedResult: FailedResult{Code: "WORKER_FAILED", Message: e.Message, Field: "worker"}}
	}
	return reply, err
}

func (r *run) prompt(a *Agent, role *RoleTemplate) string {
	var b strings.Builder
	fmt.Fprintf(&b, "You work as the CAD agent %s, whose role is %s, in workspace %s. Lengths are millimetres.\n\n", a.AgentID, a.Role, r.place)
	fmt.Fprintf(&b, "Task: %s\n", r.in.Description)
	if r.in.SuccessCriteria != "" {
		fmt.Fprintf(&b, "It is done when: %s\n", r.in.SuccessCriteria)
	}
	if r.in.Check != "" {
		fmt.Fprintf(&b, "This CEL expression over the workspace decides: %s\n", r.in.Check)
	}
	if len(r.in.Given.Rework) > 0 {
		fmt.Fprintf(&b, "A review rejected what came of your last work: %s\n", r.in.Given.Rework)
	}
	if len(r.in.Given.Tasks) > 0 {
		fmt.Fprintf(&b, "What the tasks before came to: %s\n", core.MustEncode(r.in.Given.Tasks))
	}
	fmt.Fprintf(&b, "\nCarry each operation out by the tool cad_operation {\"agent_id\":%q,\"method\":…,\"params\":{…}} of the server swarmdeck, with one of the methods %s.\n", a.AgentID, strings.Join(role.AllowedOperations, ", "))
	b.WriteString("Answer with a JSON object once it is done.\n")
	return b.String()
}
