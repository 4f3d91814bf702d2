package command

import "swarmdeck/engine/core"

// mayAgent holds the line of a process of the engine's against what such a
// process may do, whatever names and tenants it gives: look at what operations let
// it, by a person's door. What has an effect goes by its own tools, where each call
// is judged.
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
	case s.effect != Reads || !s.forAgents && path != "version" && path != "help":
		return core.Errorf(core.Denied, "%s: only a person may, and this process is one of %s", path, by.Name).With("field", "command")
	case c.flags.Changed("as"):
		return core.Errorf(core.Denied, "--as: this process is one of %s, whatever the line says", by.Name).With("field", "as")
	case c.g.Tenant != "" && c.g.Tenant != by.Tenant:
		return core.Errorf(core.Denied, "--tenant: this process is one of %s in %s, not of %s", by.Name, by.Tenant, core.Clip(c.g.Tenant)).With("field", "tenant")
	}
	return nil
}
