package terminal

import (
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// checkHosted reports why an agent can't have its place on a host, or the profile of its
// program there.
func (r *Runtime) checkHosted(c fleet.Create, o agentOptions) (cell.Profile, error) {
	profile, err := keeper.CheckHosted(r.Hosts, c)
	if err != nil {
		return "", err
	}
	for option, given := range map[string]bool{"read, write and hide": o.Any(), "inspect": o.Inspect, "home, skeleton and login": o.Given()} {
		if given {
			return "", core.Invalid("options", option, "only cols, rows, prompt, quiet_ms and interrupt, for an agent on a host")
		}
	}
	return profile, nil
}

// place is how an agent's program is run, and the home that is kept for it here.
func (r *Runtime) place(a fleet.Agent, o agentOptions) (spec cell.Spec, kept *home.Home, err error) {
	if a.Host == "" {
		return r.Spec(a, o.Choices)
	}
	profile, err := r.checkHosted(fleet.Create{Command: a.Command, Env: a.Env, Dir: a.Dir, Profile: a.Profile}, o)
	return r.SpecThere(a, profile), nil, err
}
