package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/tree"
)

// ScopeOf is what a caller may name: a person of this machine what its user may open,
// one of another machine the directories of projects, an agent its own with what the
// file rules add.
func (e *Engine) ScopeOf(by core.Caller) reach.Scope {
	s := reach.Scope{Who: by.Name, Keep: e.own}
	switch {
	case by.Kind == core.Engine, by.Kind == core.Operator && !by.Far:
		s.Free = true
		return s
	case by.Kind == core.Operator:
		s.More = e.projectDirs(by.Tenant)
		s.Who += ", from another machine,"
	default:
		role := ""
		if now, is := e.Fleet.Now(by.Tenant, by.Name); is {
			if role = now.Agent.Role; now.Agent.Host == "" {
				s.Own = e.dirsOf(&now.Agent)
			}
			s.Who = "agent " + by.Name
		}
		s.More = e.Files.Places(by.Tenant, role, by.Name).Write
	}
	if e.places.Base != "" {
		s.Place = reach.Apart(filepath.Join(e.places.Base, "work"), by)
	}
	return s
}

// dirsOf are where an agent of this machine works, and the root of its tree.
func (e *Engine) dirsOf(a *fleet.Agent) []string {
	dir := a.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(e.dir, dir)
	}
	all := []string{dir}
	if t, has := e.Trees.Has(a.TenantID, a.Name); has && t.Host == "" && t.Path != dir {
		all = append(all, t.Path)
	}
	return all
}

// projectDirs are the directories of this machine in which persons have agents work:
// what their trees are made of, and those that agents share.
func (e *Engine) projectDirs(tenant string) (all []string) {
	for _, t := range e.Trees.All(tenant) {
		if t.Host == "" {
			all = append(all, t.Source)
		}
	}
	for _, a := range e.Fleet.Live(tenant) {
		if _, has := e.Trees.Has(tenant, a.Name); a.Host == "" && a.Dir != "" && !has {
			all = append(all, a.Dir)
		}
	}
	trees := e.Trees.All(tenant)
	all = slices.DeleteFunc(all, func(dir string) bool { // an agent's own, which it has made another work in
		return slices.ContainsFunc(trees, func(t tree.Tree) bool { return t.Path != "" && reach.Within(dir, t.Path) })
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// ScopeOfTask is what whoever asked for a task may name.
func (e *Engine) ScopeOfTask(ctx context.Context, tenant, id string) (reach.Scope, error) {
	t, err := e.Tasks.Get(ctx, tenant, id)
	if err != nil {
		return reach.Scope{}, fmt.Errorf("find who asked for task %s: %w", id, err)
	}
	return e.ScopeOf(t.Asker()), nil
}

// Names refuses what a caller names by a parameter and does not reach, and audits that by
// the parameter's name.
func (e *Engine) Names(ctx context.Context, by core.Caller, field string, use reach.Use, value string) (err error) {
	scope := e.ScopeOf(by)
	switch use {
	case reach.Command, reach.Argv:
		err = scope.Runs(field, "", value, "")
	case reach.Env:
		err = scope.Runs(field, "", "", value)
	default:
		_, err = scope.Named(field, value)
	}
	return e.unreached(ctx, by, field, err)
}

// Apart is where an agent works for which an operator of another machine names no
// directory: where the engine does if they reach that, else in a new one of its own.
func (e *Engine) Apart(by core.Caller) (string, error) {
	scope := e.ScopeOf(by)
	if dir, err := scope.Named("dir", e.dir); err == nil {
		return dir, nil
	}
	dir, err := scope.Dir("dir", "")
	if err == nil {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			err = fmt.Errorf("make a directory of its own: %w", err)
		}
	}
	return dir, err
}

func (e *Engine) unreached(ctx context.Context, by core.Caller, field string, err error) error {
	if err == nil {
		return nil
	}
	return e.Audit.Refuse(ctx, by, audit.Entry{Type: "reach.refused", Subject: "reach", ID: field}, err)
}

// placed settles the directory of a command, and its program, as whoever asks for it may
// name them.
func (e *Engine) placed(ctx context.Context, by core.Caller, input core.Raw) (core.Raw, error) {
	scope := e.ScopeOf(by)
	var fields map[string]core.Raw
	var in struct {
		Dir  string            `json:"dir"`
		Argv []string          `json:"argv"`
		Env  map[string]string `json:"env"`
	}
	if scope.Free || core.DecodeStored(input, &fields) != nil || core.DecodeStored(input, &in) != nil {
		return input, nil // its runner says what is wrong with it
	}
	field := "dir"
	dir, err := scope.Dir(field, in.Dir)
	if err == nil && len(in.Argv) > 0 {
		field = "argv"
		err = scope.Runs(field, dir, in.Argv[0], "")
	}
	if err == nil {
		field = "env"
		err = scope.Runs(field, dir, "", in.Env["PATH"])
	}
	if err != nil {
		return nil, e.unreached(ctx, by, field, err)
	}
	fields["dir"] = core.MustEncode(dir)
	return core.Encode(fields)
}

// PlacesOf are what file rules say of a process: of an agent of a role, or of a
// task's command, which is that of the agent who asked for the task.
func (e *Engine) PlacesOf(ctx context.Context, tenant, role, agent, task string) (files.Places, error) {
	if agent == "" && task != "" {
		t, err := e.Tasks.Get(ctx, tenant, task)
		if err != nil {
			return files.Places{}, fmt.Errorf("find who asked for task %s: %w", task, err)
		}
		if t.CreatedKind == core.Agent {
			agent = t.CreatedBy
			if a, err := e.Fleet.Agent(ctx, tenant, agent); err == nil { // else it was deleted meanwhile
				role = a.Role
			}
		}
	}
	p := e.Files.Places(tenant, role, agent)
	p.Read = append(p.Read, e.Trees.Reads(tenant, agent)...)
	p.Guard = e.Trees.GuardedOf(tenant, agent)
	return p, nil
}

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
func (e *Engine) onHost(tenant, name string) []string {
	if e.Fleet == nil { // it is opened later
		return nil
	}
	on := core.Where(e.Fleet.Live(tenant), func(a *fleet.Agent) bool { return a.Host == name })
	return slices.Sorted(slices.Values(core.Map(on, func(a *fleet.Agent) string { return a.Name })))
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
