package command

import (
	"slices"

	"swarmdeck/engine/core"
)

// forAgents are the commands beside operations that a process of an agent or a task may run by a
// person's door: what an agent may look at by its own tools. What has an effect
// goes by those, where each call is judged.
func forAgents() []string {
	return []string{
		"version", "help",
		"cad agent list", "cad workspace list",
	}
}

// mayAgent holds the line of a process of the engine's against what such a
// process may do, whatever names and tenants it gives.
func (c *call) mayAgent(s spec) error {
	by, path := c.env.Caller, commandPath(c.cmd)
	if by.Kind != core.Agent {
		return nil
	}
	switch {
	case path == "":
		path = "the cockpit"
		if c.g.Script != "" {
			path = "--script"
		}
		fallthrough
	case s.effect != Reads || !s.forAgents && !slices.Contains(forAgents(), path):
		return core.Errorf(core.Denied, "%s: only a person may, and this process is one of %s", path, by.Name).With("field", "command")
	case c.flags.Changed("as"):
		return core.Errorf(core.Denied, "--as: this process is one of %s, whatever the line says", by.Name).With("field", "as")
	case c.g.Tenant != "" && c.g.Tenant != by.Tenant:
		return core.Errorf(core.Denied, "--tenant: this process is one of %s in %s, not of %s", by.Name, by.Tenant, core.Clip(c.g.Tenant)).With("field", "tenant")
	}
	return nil
}
