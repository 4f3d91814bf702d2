package exec

import (
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// checkHosted is Check of an agent on another machine. What needs this one there,
// or is not carried over yet, is refused.
func (r *Runtime) checkHosted(c fleet.Create, o agentOptions) (profile cell.Profile, models modelproxy.Upstreams, err error) {
	if profile, err = keeper.CheckHosted(r.Hosts, c); err != nil {
		return profile, nil, err
	}
	with := ""
	switch given := o.Outside(); {
	case len(given) > 0:
		with = strings.Fields(strings.ReplaceAll(given[0], ",", ""))[0]
	case o.Inspect:
		with = "inspect"
	}
	if with != "" || o.Given() {
		return profile, nil, core.Invalid("options."+with, "given", "only interrupt, record_models, wire and fresh, for an agent on a host")
	}
	models, err = keeper.ModelsThere(o.RecordModels, c.Env, profile)
	return profile, models, err
}

// place is how an agent's command is run, the home that is kept for it here, and the
// APIs that are recorded.
func (r *Runtime) place(a fleet.Agent, o agentOptions) (spec cell.Spec, kept *home.Home, models modelproxy.Upstreams, err error) {
	if a.Host != "" {
		profile, models, err := r.checkHosted(fleet.Create{Command: a.Command, Env: a.Env, Dir: a.Dir, Profile: a.Profile}, o)
		return r.SpecThere(a, profile), nil, models, err
	}
	if spec, kept, err = r.Spec(a, o.Choices); err == nil {
		models, err = modelproxy.Read(o.RecordModels, a.Env)
	}
	return spec, kept, models, err
}
