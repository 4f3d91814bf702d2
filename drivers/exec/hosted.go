package exec

import (
	"context"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

func (r *Runtime) Hosted() bool { return r.opt.Hosts != nil }

// checkHosted is Check of an agent on another machine. What needs this one there,
// or is not carried over yet, is refused.
func (r *Runtime) checkHosted(c fleet.Create, o agentOptions) error {
	profile, err := keeper.CheckHosted(r.opt.Hosts, c)
	if err != nil {
		return err
	}
	with := ""
	switch given := o.Outside(); {
	case len(given) > 0:
		with = strings.Fields(strings.ReplaceAll(given[0], ",", ""))[0]
	case o.Inspect:
		with = "inspect"
	}
	if with != "" || o.Given() {
		return core.Invalid("options."+with, "given", "only interrupt and record_models, for an agent on a host")
	}
	_, err = keeper.ModelsThere(o.RecordModels, c.Env, profile)
	return err
}

// openHosted is Open of an agent on another machine: it is offline while its host
// is.
func (r *Runtime) openHosted(ctx context.Context, a fleet.Agent, own agentOptions, notify func(fleet.Health)) (fleet.Handle, error) {
	if err := r.checkHosted(fleet.Create{Command: a.Command, Env: a.Env, Dir: a.Dir, Profile: a.Profile}, own); err != nil {
		return nil, err
	}
	h := &agent{sup: r.Cells, opt: r.opt, tenant: a.TenantID, host: a.Host, spec: cell.Spec{
		Argv: a.Command, Env: a.Env, Dir: a.Dir, Limits: r.Limits,
		Whose: cell.Whose{Tenant: a.TenantID, Agent: a.Name, Role: a.Role}, Wall: cell.Wall{Profile: cell.Profile(a.Profile)},
	}}
	if own.Interrupt != "" {
		h.opt.CancelLine, h.opt.Interrupt = []byte(own.Interrupt), 0
	}
	models, err := keeper.ModelsThere(own.RecordModels, a.Env, h.spec.Wall.Profile)
	if err != nil {
		return nil, err
	}
	if err := h.record(models); err != nil {
		return nil, err
	}
	h.keep = keeper.New(ctx, a.Restarts, notify, h.pid, h.retry)
	h.mu.Lock()
	h.keep.Check(h.available())
	h.mu.Unlock()
	h.unfollow = r.opt.Hosts.Follow(a.TenantID, a.Host, func(why error) { go h.linked(why) })
	h.unhook = context.AfterFunc(ctx, func() { _ = h.Close() })
	return h, nil
}

// start begins the agent's process where it has its place.
func (a *agent) start(spec cell.Spec) (keeper.Process, error) {
	return keeper.Begin(a.sup, a.opt.Hosts, a.host, spec, keeper.Hosted{})
}

// available reports why it can't be started now.
func (a *agent) available() error { return keeper.Available(a.opt.Hosts, a.host, a.spec) }

// linked is told that the link to its host is there, or why it is not.
func (a *agent) linked(why error) {
	a.mu.Lock()
	s := a.sess
	if s == nil && !a.keep.Stopped && !a.keep.Over() && a.turn == nil && a.keep.Paused() == nil {
		if a.keep.Well(); why != nil {
			a.keep.Fail(why.Error())
		} else {
			a.keep.Quiet()
			a.keep.Check(a.available())
		}
	}
	a.mu.Unlock()
	if s != nil {
		s.emit(keeper.Linked(a.host, why))
	}
}
