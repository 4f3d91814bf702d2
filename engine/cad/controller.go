package cad

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Bounds of max_concurrent_agents (seed 5, Controller).
const (
	leastConcurrent   = 1
	mostConcurrent    = 50
	defaultConcurrent = 10
)

// settings is what a tenant has set of its controller.
type settings struct {
	MaxConcurrent int    `json:"max_concurrent_agents"`
	AuditSeq      uint64 `json:"audit_seq,omitzero"`
}

// Info is the controller of a tenant (seed 5, Controller).
type Info struct {
	ControllerID  string   `json:"controller_id"`
	MaxConcurrent int      `json:"max_concurrent_agents"`
	Agents        int      `json:"agent_count"` // not terminated
	Working       int      `json:"working_agents"`
	Workspaces    int      `json:"workspace_count"`
	Roles         []string `json:"role_templates"`
	Kernels       []Kernel `json:"kernels"`
}

// Info is the controller of a tenant. There is one of each, named for it.
func (c *Controller) Info(tenant string) Info {
	info := Info{ControllerID: "cad_" + core.TenantTag(tenant), MaxConcurrent: defaultConcurrent}
	for _, a := range c.Live(tenant) {
		info.Agents++
		if a.Status == Working {
			info.Working++
		}
	}
	for _, r := range c.Roles(tenant) {
		info.Roles = append(info.Roles, r.Name)
	}
	if c.opt.Pool != nil {
		info.Kernels = c.opt.Pool.Kernels()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if t := c.tenants[tenant]; t != nil {
		info.MaxConcurrent, info.Workspaces = t.set.MaxConcurrent, len(t.spaces)
	}
	return info
}

// SetMaxConcurrent sets how many agents of the tenant carry something out at
// once, 1-50. Operations that are under way go on.
func (c *Controller) SetMaxConcurrent(ctx context.Context, by core.Caller, n int) (Info, error) {
	if n < leastConcurrent || n > mostConcurrent {
		return Info{}, core.Invalid("max_concurrent_agents", n, fmt.Sprintf("%d-%d", leastConcurrent, mostConcurrent))
	}
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		set, err := c.kinds.settings.Load(tx, settingsID)
		if err != nil {
			return err
		}
		now, before := settings{MaxConcurrent: n}, 0
		if set != nil {
			before = set.MaxConcurrent
		}
		return c.kinds.settings.Save(tx, record.Event{
			Type: "cad.controller.changed", Detail: map[string]int{"max_concurrent_agents": n, "before": before},
		}, set, &now)
	})
	if err != nil {
		return Info{}, explain("set the number of CAD agents that work at once", err)
	}
	return c.Info(by.Tenant), nil
}

type auditedSettings struct {
	MaxConcurrent int `json:"max_concurrent_agents"`
}
