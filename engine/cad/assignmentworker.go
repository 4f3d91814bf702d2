package cad

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// delegate has an agent of the fleet do an assignment without operations: it is
// told what to do and in whose name, and carries the operations out itself.
func (r *run) delegate(a *Agent) (core.Raw, error) {
	if err := r.stand.enter(r.ctx); err != nil {
		return nil, err
	}
	defer r.stand.leave()
	role, err := r.c.Role(r.by.Tenant, a.Role)
	if err != nil {
		return nil, err
	}
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

// prompt is what the worker is told.
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
	fmt.Fprintf(&b, "\nCarry each operation out by the tool cad_operation {\"agent_id\":%[1]q,\"method\":…,\"params\":{…}} of the server swarmdeck, or by the command\n  swarmdeck cad op %[1]s METHOD 'PARAMS-JSON'\nwith one of the methods %[2]s.\n", a.AgentID, strings.Join(role.AllowedOperations, ", "))
	b.WriteString("Answer with a JSON object once it is done.\n")
	return b.String()
}
