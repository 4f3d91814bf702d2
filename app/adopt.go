//go:build linux

package app

import (
	"context"
	"errors"
	"slices"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/exec"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// takeOver puts what a former engine's run left into the logs of the tasks that it
// was at work on, and of its agent. A log that has it already does not get it
// again; who is no more needs none.
func takeOver(ctx context.Context, eng *engine.Engine, k cell.Kept) error {
	tenant := k.Whose.Tenant
	if _, err := eng.Swarm.Tenant(ctx, tenant); err != nil {
		return known(err)
	}
	tasks := k.Tasks
	if k.Whose.Task != "" {
		tasks = []string{k.Whose.Task}
	}
	var errs []error
	for _, task := range tasks {
		_, err := eng.Tasks.Get(ctx, tenant, task)
		if err == nil {
			err = logOnce(ctx, eng, tenant, task, task, exec.Former(k))
		}
		errs = append(errs, known(err))
	}
	if agent := k.Whose.Agent; agent != "" {
		_, err := eng.Fleet.Agent(ctx, tenant, agent)
		if err == nil {
			task := ""
			if len(tasks) == 1 {
				task = tasks[0]
			}
			err = logOnce(ctx, eng, tenant, "agent:"+agent, task, exec.Former(k))
		}
		errs = append(errs, known(err))
	}
	return errors.Join(errs...)
}

// leftThere is takeOver of what a host says of a former engine's run. It counts for an
// agent that has its place there, and for tasks that were this agent's.
func (h *instance) leftThere(ctx context.Context, tenant, host string, k cell.Kept) error {
	eng, err := h.working()
	if err != nil {
		return err
	}
	if !slices.Contains(eng.OnHost(tenant, host), k.Whose.Agent) {
		return nil
	}
	k.Tasks = slices.DeleteFunc(k.Tasks, func(id string) bool {
		t, err := eng.Tasks.Get(ctx, tenant, id)
		return err != nil || t.Agent != k.Whose.Agent
	})
	err = takeOver(ctx, eng, k)
	eng.Health.Report(tenant, "hosts", "what a former engine's runs left on "+host, err)
	return err
}

// known is no error where there is only nobody any more.
func known(err error) error {
	if errors.Is(err, core.Kind(core.NotFound)) {
		return nil
	}
	return err
}

// logOnce adds lines of one source to a log, at once. They are there already if
// the engine was killed before it had removed what they came from: then they are
// the last ones.
func logOnce(ctx context.Context, eng *engine.Engine, tenant, stream, tk string, lines []task.LogLine) error {
	const page = 1000
	_, last, err := eng.Tasks.Log(ctx, tenant, stream, 0, 0)
	if err != nil {
		return err
	}
	there, _, err := eng.Tasks.Log(ctx, tenant, stream, max(last, page)-page+1, page)
	if err != nil || slices.ContainsFunc(there, func(l task.LogLine) bool { return l.Source == lines[0].Source }) {
		return err
	}
	for i := range lines {
		lines[i].TaskID = tk
	}
	return eng.Tasks.AppendLog(ctx, core.Self(tenant, "recovery"), stream, lines)
}
