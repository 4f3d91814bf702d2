package op

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

func agents() []*Op {
	type A = fleet.Agent
	name := arg("NAME", "agent")
	return []*Op{
		agentCreate(),
		agentList(),
		show(Op{
			Name: "agent show", Short: "Show an agent", ForAgents: true,
			Tool: Tool{Name: "show_agent", About: "Show one agent: its status with the reason, what it works on, what it spent."},
		}, name, shownAgent),
		change(Op{Name: "agent start", Short: "Make an agent ready for tasks", Undo: "agent stop", Done: "started"}, name,
			func(ctx context.Context, c *Call, name string) (A, error) { return c.Fleet.Start(ctx, c.By, name) }),
		change(Op{Name: "agent stop", Short: "End an agent's process and take it offline", Effect: Destroys, Confirm: ConfirmAsk, Undo: "agent start", Done: "stopped"}, name,
			func(ctx context.Context, c *Call, name string) (A, error) { return c.Fleet.Stop(ctx, c.By, name) }),
		change(Op{Name: "agent restart", Short: "End an agent's process, forget its failures, start anew", Effect: Destroys, Confirm: ConfirmAsk, Done: "restarted", Tool: Tool{Name: "restart_agent"}}, name,
			func(ctx context.Context, c *Call, name string) (A, error) { return c.Fleet.Restart(ctx, c.By, name) }),
		change(Op{Name: "agent pause", Short: "Pause an agent; it shows pausing until it has acknowledged", Undo: "agent resume", Done: "asked to pause:"}, name,
			func(ctx context.Context, c *Call, name string) (A, error) { return c.Fleet.Pause(ctx, c.By, name) }),
		change(Op{Name: "agent resume", Short: "Let a paused agent go on", Undo: "agent pause", Done: "resumed"}, name,
			func(ctx context.Context, c *Call, name string) (A, error) { return c.Fleet.Resume(ctx, c.By, name) }),
		agentDelete(),
		agentAssign(), agentTell("agent tell"), agentQueue(), agentWithdraw(), agentMove(), agentMode(), agentModel(),
		change(Op{Name: "agent cancel", Short: "Interrupt an agent's task; it is idle within 5 s", Effect: Destroys, Confirm: ConfirmAsk, Done: "cancelled the task of", Tool: Tool{Name: "cancel_agent_task"}}, name,
			func(ctx context.Context, c *Call, name string) (A, error) { return c.Fleet.CancelTask(ctx, c.By, name) }),
		listOf(Op{Name: "agent history", Short: "List what an agent was asked, newest first", ForAgents: true, Statuses: TaskStatuses(), Tool: Tool{Name: "show_agent_task_history"}}, name,
			func(ctx context.Context, c *Call, name string, f core.Filter) (core.Page[fleet.HistoryItem], error) {
				return c.Fleet.History(ctx, c.By.Tenant, name, f)
			}),
		agentLog(),
		agentDiff(),
	}
}

// ShownAgent is an agent with what file rules say of it.
type ShownAgent struct {
	fleet.Agent
	Files *files.Places    `json:"files,omitempty"`
	Tree  *tree.Tree       `json:"tree,omitempty"`
	Queue []*fleet.Message `json:"queue,omitempty"` // what waits for it, the next first
}

func shownAgent(ctx context.Context, c *Call, name string) (s ShownAgent, err error) {
	s.Agent, err = c.Fleet.Agent(ctx, c.By.Tenant, name)
	s.Queue = c.Fleet.Queued(c.By.Tenant, name)
	if p := c.Files.Places(c.By.Tenant, s.Role, s.Name); p.Any() && (s.Profile == "reader" || s.Profile == "worker") {
		s.Files = &p
	}
	if t, ok := c.Trees.Has(c.By.Tenant, s.Name); ok {
		s.Tree = &t
	}
	return s, err
}

func agentList() *Op {
	var project string
	return list(Op{
		Name: "agent list", Short: "List the agents", ForAgents: true,
		Statuses: core.Strings(fleet.Starting, fleet.Idle, fleet.Busy, fleet.Offline, fleet.Failed),
		Params:   []*Param{flag(&project, "project", "only of this `PROJECT`").from("project")},
		Tool:     Tool{Name: "list_agents", Names: map[string]string{"status": "status_filter", "project": "project_filter"}, Size: core.MaxPageSize},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[fleet.Agent], error) {
		if project == "" {
			return c.Fleet.Agents(ctx, c.By.Tenant, f)
		}
		// The engine's filter has no project, so its pages are read through.
		all := f
		all.Page, all.Size = 1, core.MaxPageSize
		var found []fleet.Agent
		for {
			page, err := c.Fleet.Agents(ctx, c.By.Tenant, all)
			if err != nil {
				return page, err
			}
			found = append(found, core.Where(page.Items, func(a fleet.Agent) bool { return a.Project == project })...)
			if !page.Info.Next {
				break
			}
			all.Page++
		}
		return core.Pick(found, nil, core.Filter{Page: f.Page, Size: f.Size}, func(fleet.Agent) core.Traits { return core.Traits{} })
	})
}

// DeletedAgent is an agent as it was when it was deleted.
type DeletedAgent struct{ fleet.Agent }

func agentDelete() *Op {
	var yes, discard bool
	return change(Op{
		Name: "agent delete", Short: "Delete an agent in any state", Effect: Destroys, Confirm: ConfirmType, Done: "deleted",
		Tool:   Tool{Name: "delete_agent", About: "Delete an agent in any state: its task is cancelled, its processes end."},
		Long:   "Delete an agent in any state: its task is cancelled, its processes end. Its tree goes with it: where that holds work\nwhich was not taken over, the agent stays, unless --discard says that the work may be lost.",
		Params: []*Param{sure(&yes), flag(&discard, "discard", "lose the work in its tree that was not taken over")},
	}, arg("NAME", "agent"), func(ctx context.Context, c *Call, name string) (gone DeletedAgent, err error) {
		if !yes {
			lost := ""
			if err := c.Trees.MayLeave(ctx, c.By.Tenant, name); err != nil {
				lost = " --discard, which loses what was not taken over (" + core.AsError(err).Message + ")"
			}
			return gone, usage("yes", "agent delete: this can't be undone; say --yes%s to delete it", lost)
		}
		if gone.Agent, err = c.Fleet.Agent(ctx, c.By.Tenant, name); err == nil && !discard {
			err = c.Trees.MayLeave(ctx, c.By.Tenant, name)
		}
		if err == nil {
			err = c.Fleet.Delete(ctx, c.By, name)
		}
		return gone, err
	})
}

// startingWait is how long assign has patience with an agent that is starting
// when its caller waits: the engine may have begun to run with this very call.
const startingWait = 10 * time.Second

func agentAssign() *Op {
	var name, text, uri string
	var attach []string
	var w waiting
	return define(Op{
		Name: "agent assign", Short: "Give an idle agent a task", Undo: "task undo", Done: "gave work to",
		Long: "Give an idle agent a task. With --wait an agent that is just starting gets a moment; without a running\n" +
			"engine the task waits in the queue until one starts the agent. Any other agent refuses.",
		Example: "agent assign lister 'what is in this directory?' --wait",
		Tool: Tool{
			Name: "start_agent_task", Names: map[string]string{"text": "task", "attach": "-"},
			About: "Give an idle agent a task. An agent that is not idle refuses (CONFLICT). The task goes on after the call: look at it with show_task.",
		},
		Params: append(w.params("wait for its end; exit 1 unless it succeeded"),
			place(&name, "NAME", "agent:idle"),
			place(&text, "TEXT", "").bounds(1, 100_000).client("what to do, with objectives and constraints"),
			flag(&uri, "uri", "what it is about: `URI`").bounds(1, 2048).client("what it is about: a URL or a file"), attaching(&attach)),
		Check: w.check,
	}, func(ctx context.Context, c *Call) (made task.Task, err error) {
		if text, err = c.Fleet.WithFiles(c.By.Tenant, name, text, attach); err != nil {
			return made, err
		}
		if w.on {
			made, err = c.Fleet.AssignWhenReady(ctx, c.By, name, text, uri, startingWait)
		} else {
			made, err = c.Fleet.Assign(ctx, c.By, name, text, uri)
		}
		return w.task(ctx, c, made, err)
	})
}

func agentMode() *Op {
	return agentChoose(fleet.SetMode, "Set the mode of an agent's own permissions",
		"Set the mode of an agent's own permissions, one of those that it offers (agent show): at once, also while it works, and in\n"+
			"all of its conversations to come. What it may do without asking depends on it. A change that nobody asked for is still\n"+
			"reported, and undone with its next task.", "agent mode ada default")
}

func agentModel() *Op {
	return agentChoose(fleet.SetModel, "Set the model that an agent uses",
		"Set the model that an agent uses, one of those that it offers (agent show): at once, and in all of its conversations to come.",
		"agent model ada small-2")
}

func agentChoose(what fleet.Setting, short, long, example string) *Op {
	var name, value string
	return define(Op{
		Name: "agent " + string(what), Short: short, Done: "set the " + string(what) + " of", Long: long, Example: example,
		Params: []*Param{place(&name, "NAME", "agent"), place(&value, "VALUE", "agent-"+string(what)).bounds(1, 128)},
	}, func(ctx context.Context, c *Call) (fleet.Agent, error) {
		return c.Fleet.Choose(ctx, c.By, name, what, value)
	})
}
