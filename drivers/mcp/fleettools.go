package mcp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

var agentName = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

func agentParam() param {
	return param{name: "agent_name", kind: text, about: "name of the agent", required: true, pattern: agentName}
}

type agentArg struct {
	AgentName string `json:"agent_name"`
}

type agentAnswer struct {
	Agent   agentView `json:"agent"`
	Message string    `json:"message,omitempty"`
}

// fleetTools are the eleven operations of the fleet (requirement 4.2).
func fleetTools() []tool {
	create := createAgent()
	return []tool{
		define("list_agents", "List agents", "List the agents of the fleet, newest first.", reads, append([]param{
			{name: "status_filter", kind: text, about: "only of this status", enum: []string{"starting", "idle", "busy", "offline", "failed"}},
			{name: "project_filter", kind: text, about: "only of this project", min: 1, max: 64},
		}, pageParams(core.MaxPageSize)...), listAgents),
		define("show_agent", "Show an agent", "Show one agent: its status with the reason, what it works on, what it spent.", reads,
			[]param{agentParam()}, func(ctx context.Context, c *call, in agentArg) (agentAnswer, error) {
				a, err := c.eng.Fleet.Agent(ctx, c.id.Tenant, in.AgentName)
				return agentAnswer{Agent: viewAgent(a)}, err
			}),
		define("list_agent_projects", "List projects", "List the projects that agents can be made in.", reads, nil, listProjects),
		define("list_agent_roles", "List roles", "List the roles of a project.", reads, []param{
			{name: "project", kind: text, about: "name of the project", required: true, min: 1, max: 64},
		}, listRoles),
		create,
		define("delete_agent", "Delete an agent", "Delete an agent in any state: its task is cancelled, its processes end.", destroys,
			[]param{agentParam()}, func(ctx context.Context, c *call, in agentArg) (agentAnswer, error) {
				a, err := c.eng.Fleet.Agent(ctx, c.id.Tenant, in.AgentName)
				if err == nil {
					err = c.eng.Fleet.Delete(ctx, c.by, in.AgentName)
				}
				return agentAnswer{viewAgent(a), fmt.Sprintf("Agent '%s' deleted", a.Name)}, err
			}),
		define("restart_agent", "Restart an agent", "End an agent's process, forget its failures and start it anew.", destroys,
			[]param{agentParam()}, func(ctx context.Context, c *call, in agentArg) (agentAnswer, error) {
				a, err := c.eng.Fleet.Restart(ctx, c.by, in.AgentName)
				return agentAnswer{viewAgent(a), fmt.Sprintf("Agent '%s' restarted", a.Name)}, err
			}),
		define("start_agent_task", "Start a task", "Give an idle agent a task. An agent that is not idle refuses (CONFLICT). The task goes on after the call: look at it with show_task.",
			writes, []param{
				agentParam(),
				{name: "task", kind: text, about: "what to do, with objectives and constraints", required: true, min: 1, max: 100_000},
				{name: "uri", kind: text, about: "what it is about: a URL or a file", min: 1, max: 2048},
			}, startTask),
		define("cancel_agent_task", "Cancel an agent's task", "Interrupt what an agent works on; it is idle within 5 seconds.", destroys,
			[]param{agentParam()}, func(ctx context.Context, c *call, in agentArg) (agentAnswer, error) {
				a, err := c.eng.Fleet.CancelTask(ctx, c.by, in.AgentName)
				return agentAnswer{viewAgent(a), fmt.Sprintf("Task of agent '%s' cancelled", a.Name)}, err
			}),
		define("show_agent_task_history", "Show task history", "List what an agent was asked, newest first.", reads,
			append([]param{agentParam()}, pageParams(core.DefaultPageSize)...), history),
		define("show_agent_log", "Show an agent's log", "Show an agent's conversation log, newest first; one entry unless page_size says more.", reads,
			append([]param{agentParam()}, pageParams(1)...), agentLog),
	}
}

type listAgentsArgs struct {
	paging
	StatusFilter  string `json:"status_filter"`
	ProjectFilter string `json:"project_filter"`
}

type listAgentsAnswer struct {
	Agents []agentView `json:"agents"`
	pageView
}

func listAgents(_ context.Context, c *call, in listAgentsArgs) (listAgentsAnswer, error) {
	all := slices.Clone(c.eng.Fleet.Live(c.id.Tenant))
	all = slices.DeleteFunc(all, func(a *fleet.Agent) bool {
		return in.StatusFilter != "" && in.StatusFilter != string(a.Status) || in.ProjectFilter != "" && in.ProjectFilter != a.Project
	})
	slices.SortStableFunc(all, func(a, b *fleet.Agent) int { return b.CreatedAt.Compare(a.CreatedAt) })
	f := core.Filter{Page: in.Page, Size: in.PageSize}
	from := min(f.Offset(), len(all))
	page := core.NewPage(all[from:min(from+f.Size, len(all))], f, len(all))
	return listAgentsAnswer{views(page.Items, func(a *fleet.Agent) agentView { return viewAgent(*a) }), viewPage(page.Info)}, nil
}

type projectView struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type projectsAnswer struct {
	Projects   []projectView `json:"projects"`
	TotalCount int           `json:"total_count"`
}

func listProjects(ctx context.Context, c *call, _ struct{}) (projectsAnswer, error) {
	all, err := c.eng.Fleet.Projects(ctx, c.id.Tenant)
	return projectsAnswer{views(all, func(p fleet.Project) projectView { return projectView{p.ID, p.Name, p.Description} }), len(all)}, err
}

type roleView struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ProjectID   string `json:"project_id"`
	ProjectName string `json:"project_name"`
}

type rolesAnswer struct {
	Roles      []roleView `json:"roles"`
	TotalCount int        `json:"total_count"`
}

func listRoles(ctx context.Context, c *call, in struct {
	Project string `json:"project"`
},
) (rolesAnswer, error) {
	all, err := c.eng.Fleet.Roles(ctx, c.id.Tenant, in.Project)
	return rolesAnswer{views(all, func(r fleet.Role) roleView { return roleView{r.ID, r.Name, r.ProjectID, r.ProjectName} }), len(all)}, err
}

type startTaskArgs struct {
	agentArg
	Task string `json:"task"`
	URI  string `json:"uri"`
}

type taskAnswer struct {
	Task    taskView `json:"task"`
	Message string   `json:"message,omitempty"`
}

func startTask(ctx context.Context, c *call, in startTaskArgs) (taskAnswer, error) {
	t, err := c.eng.Fleet.Assign(ctx, c.by, in.AgentName, in.Task, in.URI)
	return taskAnswer{viewTask(t), fmt.Sprintf("Task %s is %s", t.TaskID, t.Status)}, err
}

type pageOfAgent struct {
	agentArg
	paging
}

type historyView struct {
	Message            string      `json:"message"`
	URI                string      `json:"uri,omitempty"`
	NeedsUserAttention bool        `json:"needs_user_attention"`
	CreatedAt          string      `json:"created_at"`
	TaskID             string      `json:"task_id"`
	Status             task.Status `json:"status"`
}

type historyAnswer struct {
	AgentName string        `json:"agent_name"`
	Tasks     []historyView `json:"tasks"`
	pageView
}

func history(ctx context.Context, c *call, in pageOfAgent) (historyAnswer, error) {
	page, err := c.eng.Fleet.History(ctx, c.id.Tenant, in.AgentName, core.Filter{Page: in.Page, Size: in.PageSize})
	return historyAnswer{in.AgentName, views(page.Items, func(h fleet.HistoryItem) historyView {
		return historyView{h.Message, h.URI, h.NeedsUserAttention, stamp(h.CreatedAt), h.TaskID, h.Status}
	}), viewPage(page.Info)}, err
}

type logView struct {
	Timestamp string `json:"timestamp"`
	Message   string `json:"message"`
	Level     string `json:"level"`
	TaskID    string `json:"task_id,omitempty"`
	Source    string `json:"source,omitempty"`
}

type logAnswer struct {
	AgentName string    `json:"agent_name"`
	Logs      []logView `json:"logs"`
	pageView
}

func agentLog(ctx context.Context, c *call, in pageOfAgent) (logAnswer, error) {
	page, err := c.eng.Fleet.Log(ctx, c.id.Tenant, in.AgentName, core.Filter{Page: in.Page, Size: in.PageSize})
	return logAnswer{in.AgentName, views(page.Items, func(l task.LogLine) logView {
		return logView{stamp(l.Timestamp), l.Message, l.Level, l.TaskID, l.Source}
	}), viewPage(page.Info)}, err
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

func createAgent() tool {
	t := define("create_agent", "Create an agent",
		"Create an agent and give it its first task. Without a command it is made like the newest agent of the same project and role.",
		writes, []param{
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
	out := agentAnswer{viewAgent(a), fmt.Sprintf("Agent '%s' created", a.Name)}
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return out, err
		}
		out.Message = line(core.AsError(err).Message, 1024)
	}
	return out, nil
}
