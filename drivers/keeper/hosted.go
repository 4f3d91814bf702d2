package keeper

import (
	"path/filepath"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// CheckHosted reports why an agent's command can't run on a host, as far as that is the
// same for every runtime, and the profile of its processes there.
func CheckHosted(hosts Hosts, c fleet.Create) (cell.Profile, error) {
	if hosts == nil {
		return "", core.Errorf(core.Unavailable, "host: no agents can be started on hosts here").With("field", "host")
	}
	if err := cell.CheckCommand("command", c.Command); err != nil {
		return "", err
	}
	if err := cell.CheckEnv(c.Env); err != nil {
		return "", err
	}
	if c.Dir != "" && (!filepath.IsAbs(c.Dir) || filepath.Clean(c.Dir) != c.Dir) {
		return "", core.Invalid("dir", c.Dir, "an absolute directory of the host, or none for one of the agent's own")
	}
	return cell.ParseProfile("profile", c.Profile)
}

// SpecThere is how an agent's command is run on a host.
func (l Local) SpecThere(a fleet.Agent, profile cell.Profile) cell.Spec {
	return cell.Spec{
		Argv: a.Command, Env: a.Env, Dir: a.Dir, Limits: l.Limits,
		Whose: cell.Whose{Tenant: a.TenantID, Agent: a.Name, Role: a.Role}, Wall: cell.Wall{Profile: profile},
	}
}

// ModelsThere are the APIs behind the option record_models of an agent on a host, as
// modelproxy.Read has them. The way to their recorder is one out of its cell.
func ModelsThere(names []string, env map[string]string, profile cell.Profile) (modelproxy.Upstreams, error) {
	if profile != cell.Open {
		return modelproxy.Read(names, env)
	}
	if len(names) > 0 {
		return nil, core.Invalid("options.record_models", strings.Join(names, ", "), "none, for an open agent on a host: it has no way to the engine")
	}
	return nil, nil
}

// Begin starts a run where its agent has its place: on a host, or with "" at this
// machine.
func Begin(cells *cell.Supervisor, hosts Hosts, host string, spec cell.Spec, o Hosted) (Screened, error) {
	if host != "" {
		return hosts.Start(spec.Whose.Tenant, host, spec, o)
	}
	p, err := cells.Start(spec)
	if err != nil {
		return nil, err
	}
	return NewHere(p), nil
}

// Available reports why it can't be started there now.
func Available(hosts Hosts, host string, spec cell.Spec) error {
	if host != "" {
		return hosts.Available(spec.Whose.Tenant, host)
	}
	return spec.Available()
}

// Linked is the line of an agent's log on the link to its host, which is there or is
// lost for a reason, while its process lives.
func Linked(host string, why error) fleet.Event {
	if why != nil {
		return fleet.Event{Type: "log", Level: "WARN", Text: why.Error() + "; its process goes on there until the lease is over"}
	}
	return fleet.Event{Type: "log", Level: "INFO", Text: "the link to host " + host + " is back"}
}
