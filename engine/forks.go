package engine

import (
	"context"
	"errors"
	"path/filepath"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
)

// forkable are the fleet's agents as resources and forks know them.
type forkable struct {
	e   *Engine
	dir string // where relative directories start from
}

var _ resource.Agents = forkable{}

func (f forkable) Agent(ctx context.Context, tenant, name string) (resource.Agent, error) {
	a, err := f.e.Fleet.Agent(ctx, tenant, name)
	if err != nil {
		return resource.Agent{}, err
	}
	out := resource.Agent{
		Name: a.Name, Dir: a.Dir, Elsewhere: a.Elsewhere(), Running: a.PID != 0 || a.TaskID != "",
		CreatedAt: a.CreatedAt, Alone: alone(a.Options), Forked: a.Forked,
	}
	if out.Dir == "" || out.Elsewhere {
		return out, nil
	}
	if !filepath.IsAbs(out.Dir) {
		out.Dir = filepath.Join(f.dir, out.Dir)
	}
	if real, err := filepath.EvalSymlinks(out.Dir); err == nil { // one that has gone is named as it was
		out.Dir = real
	}
	return out, nil
}

// alone reports agents that begin a new conversation for each task.
func alone(options core.Raw) bool {
	var o struct {
		Fresh bool `json:"fresh"`
	}
	return core.DecodeStored(options, &o) == nil && o.Fresh
}

// create is what the agent of a fork is made of: as the one that is forked, in
// a directory of its own.
func (f forkable) create(ctx context.Context, tenant string, m resource.Made) (fleet.Create, error) {
	a, err := f.e.Fleet.Agent(ctx, tenant, m.Origin.AgentID)
	if err != nil {
		return fleet.Create{}, err
	}
	if a.Host != "" {
		return fleet.Create{}, core.Errorf(core.Unavailable, "agent %s runs on host %s: agents on hosts can't be forked", a.Name, a.Host)
	}
	c := fleet.Create{
		Name: m.Name, Project: a.Project, Role: a.Role, Runtime: a.Runtime, Command: a.Command, Env: a.Env, Dir: a.Dir,
		Options: a.Options, Profile: a.Profile, Session: a.SessionID, Prompt: a.Prompt, Tools: a.Tools, Forked: &m.Origin,
	}
	if m.Dir != "" {
		c.Dir = m.Dir
	}
	return c, nil
}

func (f forkable) Check(ctx context.Context, tenant string, m resource.Made) error {
	m.Dir = "" // it is not there yet
	c, err := f.create(ctx, tenant, m)
	if err != nil {
		return err
	}
	if f.e.parties.Known(tenant, m.Name) {
		return core.Errorf(core.Conflict, "name: there is an agent %s already; allowed: another name", m.Name).With("field", "name")
	}
	if bad := f.e.Fleet.Check(c); len(bad) > 0 {
		return bad[0]
	}
	return nil
}

func (f forkable) Fork(ctx context.Context, by core.Caller, m resource.Made) error {
	if a, err := f.e.Fleet.Agent(ctx, by.Tenant, m.Name); err == nil && a.Forked != nil && a.Forked.Intent == m.Origin.Intent {
		return nil
	}
	c, err := f.create(ctx, by.Tenant, m)
	if err == nil {
		_, err = f.e.Fleet.Create(ctx, by, c)
	}
	return err
}

func (f forkable) Undo(ctx context.Context, tenant, name, intent string) error {
	a, err := f.e.Fleet.Agent(ctx, tenant, name)
	if err != nil {
		if errors.Is(err, core.Kind(core.NotFound)) {
			return nil
		}
		return err
	}
	if a.Forked == nil || a.Forked.Intent != intent {
		return nil
	}
	return f.e.Fleet.Delete(ctx, core.Self(tenant, "resources"), name)
}

func (f forkable) Assign(ctx context.Context, by core.Caller, name, text, key string) error {
	_, err := f.e.Swarm.Dispatch(ctx, by, swarm.Dispatch{
		Kind: fleet.KindPrompt, Agent: name, Input: core.MustEncode(map[string]string{"agent": name, "message": text}), IdempotencyKey: key,
	})
	return err
}

// past is what the fleet tells a fork before its first prompt.
func (e *Engine) past(ctx context.Context, a fleet.Agent) (string, error) {
	return e.Resources.Past(ctx, a.TenantID, *a.Forked, a.Dir)
}
