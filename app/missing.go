//go:build linux

package app

import (
	"context"

	"swarmdeck/engine"
	"swarmdeck/engine/health"
)

// missing has an engine say what a tenant of a database refers to and this machine lacks,
// because an engine on another one had the tenant before: the key of its secrets, and
// states of what agents work on. Their trees tell of themselves.
func (h *instance) missing(ctx context.Context, eng *engine.Engine) {
	if h.base == nil || h.tenant == "" {
		return
	}
	if err := eng.Secrets.Fault(ctx, h.tenant); err != nil {
		eng.Health.Report(h.tenant, "secrets", "", err)
	}
	eng.Health.Report(h.tenant, "states", health.Elsewhere, eng.Resources.Fault(ctx, h.tenant))
}
