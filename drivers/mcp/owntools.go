package mcp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
)

var agentName = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

// ownTools are no operations of the registry: commands about the same read
// files, follow, or make an agent of other things.
func ownTools() []tool {
	return []tool{
		createAgent(),
	}
}

// createArgs say what a new agent is made of. Project and role stand for what
// their agents are made of: without a command it is made like another of them.
type createArgs struct {
	Name    string `json:"name"`
	Project string `json:"project"`
	Role    string `json:"role"`
	Task    string `json:"task"`
	Runtime string `json:"runtime,omitempty"`
	Command string `json:"command,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Like    string `json:"like,omitempty"`
}

type agentAnswer struct {
	Agent   agentView `json:"agent"`
	Message string    `json:"message,omitempty"`
}

func createAgent() tool {
	t := define("create_agent", "Create an agent",
		"Create an agent and give it its first task. Without a command it is made like the newest agent of the same project and role.",
		op.Writes, []param{
			{name: "name", kind: text, about: "unique short name, such as Sony or Papi", required: true, pattern: agentName},
			{name: "project", kind: text, about: "name of its project", required: true, min: 1, max: 64},
			{name: "task", kind: text, about: "its first task, with objectives and constraints", required: true, min: 1, max: 100_000},
			{name: "role", kind: text, about: "its role in the project", def: "coder", min: 1, max: 64},
			{name: "runtime", kind: text, about: "what keeps it; with a command exec, unless said", min: 1, max: 32},
			{name: "command", kind: text, about: "shell command that is the agent; none takes that of an agent like it", min: 1, max: 10_000},
			{name: "dir", kind: text, about: "absolute directory that it works in", min: 1, max: 4096},
			{name: "like", kind: text, about: "agent to take runtime, command, environment and directory from", pattern: agentName},
		}, makeAgent)
	t.fill = func(c *call, args core.Raw) (core.Raw, error) {
		var in createArgs
		if err := core.Decode(args, &in); err != nil {
			return nil, err
		}
		if in.Dir != "" && !filepath.IsAbs(in.Dir) {
			return nil, core.Invalid("dir", clean(in.Dir), "an absolute path")
		}
		switch {
		case in.Command != "" && in.Like != "":
			return nil, core.Invalid("like", in.Like, "none beside a command")
		case in.Command == "" && in.Runtime != "":
			return nil, core.Invalid("runtime", clean(in.Runtime), "none without a command")
		case in.Command == "" && in.Like == "":
			like := newestLike(c, in)
			if like == "" {
				return nil, core.Errorf(core.InvalidInput, "command: missing, and project %q has no agent with role %q to make it like",
					clean(in.Project), clean(in.Role)).With("field", "command")
			}
			in.Like = like
		case in.Command != "" && in.Runtime == "":
			in.Runtime = "exec"
		}
		return core.Canonical(core.MustEncode(in))
	}
	return t
}

func newestLike(c *call, in createArgs) (name string) {
	var newest *fleet.Agent
	for _, a := range c.eng.Fleet.Live(c.id.Tenant) {
		if a.Project == in.Project && a.Role == in.Role && (newest == nil || a.CreatedAt.After(newest.CreatedAt)) {
			newest = a
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Name
}

func makeAgent(ctx context.Context, c *call, in createArgs) (agentAnswer, error) {
	want := fleet.Create{Name: in.Name, Project: in.Project, Role: in.Role, Task: in.Task, Runtime: in.Runtime, Dir: in.Dir}
	if in.Command != "" {
		want.Command = []string{"sh", "-c", in.Command}
		if want.Dir == "" {
			want.Dir = c.dir
		}
	} else {
		like, err := c.eng.Fleet.Agent(ctx, c.id.Tenant, in.Like)
		if err != nil {
			return agentAnswer{}, fmt.Errorf("like: %w", err)
		}
		want.Runtime, want.Command, want.Env, want.Options = like.Runtime, like.Command, like.Env, like.Options
		if want.Dir == "" {
			want.Dir = like.Dir
		}
	}
	if c.agent != nil { // what an agent makes draws on the budgets it works on
		want.Session = c.agent.SessionID
	}
	a, err := c.eng.Fleet.Create(ctx, c.by, want)
	if a.Name == "" {
		return agentAnswer{}, err
	}
	out := agentAnswer{viewAgent(nil, a), fmt.Sprintf("Agent '%s' created", a.Name)}
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return out, err
		}
		out.Message = line(core.AsError(err).Message, 1024)
	}
	return out, nil
}

func pageParams(size int) []param {
	return []param{
		{name: "page", kind: integer, about: "page, from 1; one past the end is empty", def: 1, min: 1, max: 1_000_000},
		{name: "page_size", kind: integer, about: "how many to a page", def: size, min: 1, max: core.MaxPageSize},
	}
}
