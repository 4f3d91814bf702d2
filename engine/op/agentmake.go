package op

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/tree"
)

// MakeAgent makes one agent. Where own says nothing it has a tree of its own if it works
// in a git repository. One that was made though its first task was refused comes with
// the error.
func (c *Call) MakeAgent(ctx context.Context, a fleet.Create, own *bool, base string) (made fleet.Agent, err error) {
	here := a.Host == "" && a.On == ""
	if a.Dir == "" && here && c.By.Far && a.Runtime != "coder" {
		if a.Dir, err = c.Apart(c.By); err != nil {
			return made, err
		}
	}
	treed := own != nil && *own || own == nil && here && a.Runtime != "coder" && c.Trees.Repository(a.Dir) != ""
	if treed && a.Runtime == "coder" {
		return made, core.Invalid("tree", true, "none: a Coder workspace has files of its own")
	}
	c.Brings(&a, "")
	if treed {
		if err := c.Fleet.Place(ctx, c.By, &a); err != nil {
			return made, err
		}
		t, err := c.Trees.Prepare(ctx, c.By, tree.Wanted{Project: a.Project, Agent: a.Name, Host: a.Host, Dir: a.Dir, Base: base})
		if err != nil {
			return made, err
		}
		a.Dir = t.Dir()
		if len(t.Lacks) > 0 {
			c.Note(fmt.Sprintf("these submodules are empty in the tree of %s, since %s does not have their commits; git submodule update fetches them: %s", a.Name, t.Source, strings.Join(t.Lacks, ", ")))
		}
		if p := t.Pointers; p.Files > 0 {
			c.Note(fmt.Sprintf("these files of git LFS stay pointers in the tree of %s: %s and %d more; %s does not have their objects, which git lfs fetch brings, or they have more than 512 MiB", a.Name, p.First, p.Files-1, t.Source))
		}
		if told := t.Included.Told(a.Name); told != "" {
			c.Note(told)
		}
		env := c.Trees.EnvOf(c.By.Tenant, a.Project, t)
		maps.Copy(env, a.Env) // what is said of the agent itself counts
		a.Env = env
	}
	if with := c.sharers(a.Dir); len(with) > 0 && !treed && a.Dir != "" && here {
		c.Note(fmt.Sprintf("%s shares %s with %s: each sees what the others change; --tree gives it files of its own", a.Name, a.Dir, strings.Join(with, ", ")))
	}
	made, err = c.Fleet.Create(ctx, c.By, a)
	c.concealed(a.Env, made.Env)
	if made.Name != "" && err != nil { // only its first task was refused
		err = &Failed{err}
	}
	return made, err
}

// Brings gives an agent that names no PATH the one that it had, else that of who makes
// it, where its program is found there and not in the engine's own.
func (c *Call) Brings(a *fleet.Create, had string) {
	if len(a.Command) == 0 || a.Host != "" || a.On != "" || a.Env["PATH"] != "" || reach.Program(a.Command[0], os.Getenv("PATH")) != "" {
		return
	}
	for _, path := range []string{had, c.Path} {
		if reach.Program(a.Command[0], path) != "" {
			env := map[string]string{"PATH": path}
			maps.Copy(env, a.Env)
			a.Env = env
			return
		}
	}
}

// AwaitAgent waits until an agent is no longer starting, for limit: until one that keeps
// a process has one that is ready. One that still is starting then says why itself.
func (c *Call) AwaitAgent(ctx context.Context, name string, limit time.Duration) (a fleet.Agent, err error) {
	within, cancel := limited(ctx, limit)
	defer cancel()
	err = c.await(within, func() (still, why string, err error) {
		a, err = c.Fleet.Agent(ctx, c.By.Tenant, name)
		if between := a.Status == fleet.Idle && a.PID == 0 && a.Runtime != "exec"; err != nil || a.Status != fleet.Starting && !between {
			return "", "", err
		}
		return "agent " + name + " is still starting", "", nil
	})
	if errors.Is(err, ErrTimeout) {
		err = nil
	}
	return a, err
}

// sharers are the agents that work in a directory.
func (c *Call) sharers(dir string) []string {
	there := core.Where(c.Fleet.Live(c.By.Tenant), func(a *fleet.Agent) bool { return a.Dir == dir && a.Host == "" })
	return core.Map(there, func(a *fleet.Agent) string { return a.Name })
}
