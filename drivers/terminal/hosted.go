package terminal

import (
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

func (r *Runtime) Hosted() bool { return r.opt.Hosts != nil }

// checkHosted reports why an agent can't have its place on a host, or the profile of its
// program there.
func (r *Runtime) checkHosted(c fleet.Create, o agentOptions) (cell.Profile, error) {
	profile, err := keeper.CheckHosted(r.opt.Hosts, c)
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
	return cell.Spec{
		Argv: a.Command, Env: a.Env, Dir: a.Dir, Limits: r.Limits,
		Whose: cell.Whose{Tenant: a.TenantID, Agent: a.Name, Role: a.Role}, Wall: cell.Wall{Profile: profile},
	}, nil, err
}

// start begins the agent's program where it has its place.
func (a *agent) start(spec cell.Spec) (keeper.Screened, error) {
	return keeper.Begin(a.sup, a.opt.Hosts, a.host, spec, keeper.Hosted{Whole: true})
}

// available reports why it can't be started now.
func (a *agent) available() error { return keeper.Available(a.opt.Hosts, a.host, a.spec) }

// maxBacklog bounds the lines that wait for the log of the next prompt.
const maxBacklog = 100

// linked is told that the link to its host is there, or why it is not.
func (a *agent) linked(why error) {
	a.mu.Lock()
	s, t := a.sess, a.turn
	if s == nil && !a.keep.Stopped && !a.keep.Over() && t == nil && a.keep.Paused() == nil {
		if a.keep.Well(); why != nil {
			a.keep.Fail(why.Error())
		} else {
			a.keep.Quiet()
			a.keep.Check(a.available())
		}
	}
	e := keeper.Linked(a.host, why)
	if s != nil && t == nil && len(a.backlog) < maxBacklog {
		a.backlog = append(a.backlog, e)
	}
	a.mu.Unlock()
	if s != nil && t != nil {
		t.Speak(func() { t.PassBounded(e) })
	}
}
