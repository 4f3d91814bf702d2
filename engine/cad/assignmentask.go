package cad

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

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
