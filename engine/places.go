package engine

import (
	"context"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
)

// PlacesOf are what file rules say of a process: of an agent of a role, or of a
// task's command, which is that of the agent who asked for the task.
func (e *Engine) PlacesOf(ctx context.Context, tenant, role, agent, task string) (files.Places, error) {
	if agent == "" && task != "" {
		t, err := e.Tasks.Get(ctx, tenant, task)
		if err != nil {
			return files.Places{}, fmt.Errorf("find who asked for task %s: %w", task, err)
		}
		if t.CreatedKind == core.Agent {
			agent = t.CreatedBy
			if a, err := e.Fleet.Agent(ctx, tenant, agent); err == nil { // else it was deleted meanwhile
				role = a.Role
			}
		}
	}
	p := e.Files.Places(tenant, role, agent)
	p.Read = append(p.Read, e.Trees.Reads(tenant, agent)...)
	return p, nil
}
