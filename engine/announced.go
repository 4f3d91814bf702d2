package engine

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Announced records what an MCP server of a tenant says of its resources, in
// each recorded run that goes on: that their list has changed, or those at
// uris, of 1-4096 bytes each. (Model 4, MCP notifications.)
func (e *Engine) Announced(ctx context.Context, tenant, server string, list bool, uris []string) error {
	var all []dag.Body
	for _, uri := range uris {
		all = append(all, &dag.MCPResourceUpdated{Server: server, URI: uri})
	}
	if list {
		all = append(all, &dag.MCPListChanged{Server: server})
	}
	return e.Audit.Append(ctx, core.Self(tenant, "recorder"), func(tx *audit.Tx) error {
		return e.DAG.NotifyIn(tx, all...)
	})
}
