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

// OnHost are those with anything on a host, for what keeps their places there: a tree is
// made before its agent.
func (e *Engine) OnHost(tenant, name string) []string {
	agents := e.onHost(tenant, name)
	for _, t := range e.Trees.All(tenant) {
		if t.Host == name && !slices.Contains(agents, t.Agent) {
			agents = append(agents, t.Agent)
		}
	}
	return agents
}
