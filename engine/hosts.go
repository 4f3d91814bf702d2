package engine

import (
	"context"
	"slices"
)

// linkHosts keeps the links to hosts until the fleet is over, which ends its agents
// over them.
func (e *Engine) linkHosts(ctx context.Context, over <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-over:
			stop()
		case <-ctx.Done():
		}
	}()
	return e.Hosts.Run(ctx)
}

// onHost are the agents that have their place on a host, by name.
func (e *Engine) onHost(tenant, name string) (agents []string) {
	if e.Fleet == nil { // it is opened later
		return nil
	}
	for _, a := range e.Fleet.Live(tenant) {
		if a.Host == name {
			agents = append(agents, a.Name)
		}
	}
	slices.Sort(agents)
	return agents
}

// OnHost is for what keeps places of agents on hosts.
func (e *Engine) OnHost(tenant, name string) []string { return e.onHost(tenant, name) }
