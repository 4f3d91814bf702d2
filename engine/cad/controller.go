package cad

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
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
		var set settings
		if _, err := fetch(tx, bController, []byte(controllerKey), &set); err != nil {
			return err
		}
		was := set.MaxConcurrent
		set.MaxConcurrent = n
		seq, err := tx.Record(audit.Entry{
			Type: "cad.controller.changed", Subject: "cad.controller", ID: controllerKey, State: auditedSettings{n},
			Detail: map[string]int{"max_concurrent_agents": n, "before": was}, Prev: set.AuditSeq,
		})
		if err != nil {
			return err
		}
		set.AuditSeq = seq
		tx.OnCommit(func() {
			t := c.of(by.Tenant)
			c.mu.Lock()
			t.set = set
			c.mu.Unlock()
			t.slots.resize(n)
		})
		tx.Changed("cad.controller", controllerKey, set)
		return put(tx, bController, []byte(controllerKey), set)
	})
	if err != nil {
		return Info{}, explain("set the number of CAD agents that work at once", err)
	}
	return c.Info(by.Tenant), nil
}

type auditedSettings struct {
	MaxConcurrent int `json:"max_concurrent_agents"`
}
