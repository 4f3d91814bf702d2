//go:build linux

package app

import (
	"context"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/egress"
	"swarmdeck/drivers/host"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/task"
)

// carry takes a connection out of a cell.
func (h *instance) carry(c cell.Conn) {
	from := originOf(c.Whose, c.Run, c.Profile)
	from.PID, from.Process = c.Process()
	if shared := h.shared.Load(); shared != nil && from.Agent == "" && from.Task == "" {
		from.Agents = func() []string { return shared.Sharing(c.Run) }
	}
	h.egress.Serve(context.Background(), c.Conn, kindOf(c.Port), from, c.Authority)
}

// carryFar takes a connection out of a cell on a host, as carry does one from here.
func (h *instance) carryFar(w host.Way) {
	from := originOf(w.Whose, w.Run, w.Profile)
	from.PID, from.Process = w.PID, w.Process
	h.egress.Serve(context.Background(), w.Conn, kindOf(w.Port), from, nil)
}

func originOf(w cell.Whose, run string, profile cell.Profile) egress.Origin {
	return egress.Origin{Tenant: w.Tenant, Agent: w.Agent, Role: w.Role, Profile: string(profile), Task: w.Task, Run: run}
}

func kindOf(port int) egress.Kind {
	if port == cell.PortSOCKS {
		return egress.SOCKS
	}
	return egress.HTTP
}

// over tells the egress that a run is over. What can't be written down now is
// when the engine closes.
func (h *instance) over(w cell.Whose, run string) {
	if eng := h.running.Load(); eng != nil {
		_ = eng.Egress.EndRun(context.Background(), w.Tenant, run)
	}
}

// held writes down what a run was refused by its wall, or could have laid: in the audit
// log, and in the log that a person looks at who looks at the run. It is refused all the
// same when that fails.
func (h *instance) held(r cell.Held) {
	eng := h.running.Load()
	if eng == nil {
		return
	}
	ctx := context.Background()
	run := operator.Run{Name: r.Run, Tenant: r.Whose.Tenant, Agent: r.Whose.Agent, Task: r.Whose.Task}
	held, level := operator.Held{
		Deed: r.Deed, Call: r.Call, Severity: operator.High, Tried: r.Tried, Program: r.Program, PID: r.PID,
		Laid: r.Laid, When: r.When, Role: r.Whose.Role, TaskID: r.Whose.Task,
	}, "WARN"
	if r.Usual {
		held.Severity, level = operator.Low, "INFO"
	}
	stream := held.TaskID
	if run.Agent != "" {
		stream = "agent:" + run.Agent
		if a, err := eng.Fleet.Agent(ctx, run.Tenant, run.Agent); err == nil && held.TaskID == "" {
			held.TaskID = a.TaskID
		}
	}
	held.TraceID = traceOf(ctx, eng, run.Tenant, held.TaskID)
	_ = eng.Operators.Held(ctx, run, held)
	if stream == "" {
		return
	}
	by := core.Caller{Tenant: run.Tenant, Name: run.Who(), Kind: core.Agent, Door: core.DoorEngine}
	_ = eng.Tasks.AppendLog(ctx, by, stream, []task.LogLine{{Level: level, Message: held.String(), TaskID: held.TaskID, Source: "wall"}})
}

func traceOf(ctx context.Context, eng *engine.Engine, tenant, task string) string {
	if task == "" {
		return ""
	}
	t, err := eng.Tasks.Get(ctx, tenant, task)
	if err != nil {
		return ""
	}
	return t.TraceID
}

// places asks the engine what file rules say of a run. Without an engine there
// is no run: a rule that hides something must not be missed.
func (h *instance) places(w cell.Whose) (files.Places, error) {
	eng := h.running.Load()
	if eng == nil {
		return files.Places{}, core.Errorf(core.Unavailable, "the engine is not open")
	}
	return eng.PlacesOf(context.Background(), w.Tenant, w.Role, w.Agent, w.Task)
}

// scope asks the engine what whoever asked for a task may name.
func (h *instance) scope(w cell.Whose) (reach.Scope, error) { return h.scopeOf(w.Tenant, w.Task) }

func (h *instance) scopeOf(tenant, task string) (reach.Scope, error) {
	eng := h.running.Load()
	if eng == nil {
		return reach.Scope{}, core.Errorf(core.Unavailable, "the engine is not open")
	}
	return eng.ScopeOfTask(context.Background(), tenant, task)
}
