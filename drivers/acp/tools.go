package acp

import (
	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
)

// leadsHere reports whether its processes reach ports of the engine's: what has no
// wall on a host has that host's network.
func (p place) leadsHere() bool { return p.there == nil || p.Spec.Wall.Profile != cell.Open }

// servers are those that a session is given.
func (a *agent) servers(pe *peer) ([]acp.McpServer, error) {
	program := ""
	if t := a.place.there; t != nil {
		switch program = t.Hosts.Program(t.Spec.Whose.Tenant, t.Host); {
		case !a.place.leadsHere():
			return nil, core.Errorf(core.Unavailable, "an open agent on a host has no way to the engine")
		case !cell.HasPorts(pe.Proc.Missing()):
			return nil, core.Errorf(core.Unavailable, "host %s gives it no network of its own, and so no way to the engine", t.Host)
		case program == "":
			return nil, core.Errorf(core.Unavailable, "host %s has not said where this program is", t.Host)
		}
	}
	return a.r.Servers(a.rec, program)
}
