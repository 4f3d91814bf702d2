package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

func agentStates() []string {
	return words(fleet.Starting, fleet.Idle, fleet.Busy, fleet.Offline, fleet.Failed)
}

func (t *tree) agents() *cobra.Command {
	return t.group("agent", "The fleet",
		t.agentCreate(),
		t.agentList(),
		t.command(spec{
			use: "show NAME", short: "Show an agent", effect: Reads, args: []string{"agent"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				found, err := eng.Fleet.Agent(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
		t.agentVerb("start NAME", "Make an agent ready for tasks", ConfirmNone, func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error) {
			return eng.Fleet.Start(ctx, by, name)
		}),
		t.agentVerb("stop NAME", "End an agent's process and take it offline", ConfirmAsk, func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error) {
			return eng.Fleet.Stop(ctx, by, name)
		}),
		t.agentVerb("restart NAME", "End an agent's process, forget its failures, start anew", ConfirmAsk, func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error) {
			return eng.Fleet.Restart(ctx, by, name)
		}),
		t.agentVerb("pause NAME", "Pause an agent; it shows pausing until it has acknowledged", ConfirmNone, func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error) {
			return eng.Fleet.Pause(ctx, by, name)
		}),
		t.agentVerb("resume NAME", "Let a paused agent go on", ConfirmNone, func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error) {
			return eng.Fleet.Resume(ctx, by, name)
		}),
		t.agentDelete(),
		t.agentAssign(),
		t.agentVerb("cancel NAME", "Interrupt an agent's task; it is idle within 5 s", ConfirmAsk, func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error) {
			return eng.Fleet.CancelTask(ctx, by, name)
		}),
		t.agentHistory(),
		t.agentLog(),
	)
}

type agentFunc func(ctx context.Context, eng *engine.Engine, by core.Caller, name string) (fleet.Agent, error)

func (t *tree) agentVerb(use, text string, confirm Confirm, do agentFunc) *cobra.Command {
	effect := Writes
	if confirm != ConfirmNone {
		effect = Destroys
	}
	return t.command(spec{
		use: use, short: text, effect: effect, confirm: confirm, args: []string{"agent"},
		run: func(c *call, args []string) error {
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			changed, err := do(c.ctx, eng, by, args[0])
			if err != nil {
				return err
			}
			return record(c, changed, c.agentColumns())
		},
	})
}

func (t *tree) agentCreate() *cobra.Command {
	var a fleet.Create
	var command string
	var env []string
	return t.command(spec{
		use: "create NAME [-- COMMAND…]", short: "Make an agent", effect: Writes, args: []string{"", "file"}, anyArg: true,
		long: "Make an agent. The exec runtime keeps a local command as an agent: give it as --command 'prog arg…'\n" +
			"or after --. It gets one JSON line per task on stdin and answers in JSON lines; one that just exits is fine too.\n" +
			"For example: agent create lister --project tools --role reader -- ls -la",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&a.Project, "project", "", "`PROJECT` it belongs to")
			f.StringVar(&a.Role, "role", "", "`ROLE` within the project")
			f.StringVar(&a.Task, "task", "", "first task: `TEXT`")
			enumVar(f, &a.Runtime, "runtime", "", "exec", "what runs it: exec|acp|coder", "exec", "acp", "coder")
			f.StringVar(&command, "command", "", "exec: `COMMAND` with arguments as one string, split like a shell does")
			f.StringVar(&a.Dir, "dir", "", "working `DIR` (default the current one)")
			f.StringArrayVar(&env, "env", nil, "`K=V` for its environment; may be repeated")
			f.StringVar(&a.Session, "session", "", "session `ID` it works in")
			source(f, "project", "project")
			source(f, "role", "role")
			source(f, "command", "file")
			source(f, "dir", "dir")
			source(f, "session", "session")
		},
		run: func(c *call, args []string) error {
			dash := c.flags.ArgsLenAtDash()
			if dash >= 0 {
				args, a.Command = args[:dash], args[dash:]
			}
			switch {
			case len(args) == 0:
				return usage("name", "agent create: NAME is missing")
			case len(args) > 1:
				return usage("args", "agent create: unexpected argument %q; a command goes after --", clip(args[1]))
			case a.Project == "":
				return usage("project", "agent create: --project is missing")
			case dash >= 0 && command != "":
				return usage("command", "agent create: give the command by --command or after --, not both")
			}
			var err error
			a.Name = args[0]
			if command != "" {
				if a.Command, err = Split(command); err != nil {
					return usageError{err}
				}
			}
			if a.Env, err = pairs("env", env); err != nil {
				return err
			}
			a.Dir = c.env.path(a.Dir)
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			made, err := eng.Fleet.Create(c.ctx, by, a)
			if made.Name != "" { // also when only its first task was refused
				if printErr := record(c, made, c.agentColumns()); err == nil {
					err = printErr
				}
			}
			return err
		},
	})
}

func (t *tree) agentList() *cobra.Command {
	var l filter
	var project string
	return t.command(spec{
		use: "list", short: "List the agents", effect: Reads,
		flags: func(f *pflag.FlagSet) {
			l.bind(f, agentStates()...)
			f.StringVar(&project, "project", "", "only of this `PROJECT`")
			source(f, "project", "project")
		},
		run: func(c *call, _ []string) error {
			f, err := l.read(c, agentStates()...)
			if err != nil {
				return err
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			if project != "" {
				page, err := c.agentsOf(eng, by.Tenant, project, f)
				if err != nil {
					return err
				}
				return list(c, page, c.agentColumns())
			}
			page, err := eng.Fleet.Agents(c.ctx, by.Tenant, f)
			if err != nil {
				return err
			}
			return list(c, page, c.agentColumns())
		},
	})
}

// agentsOf lists the agents of one project: the engine's filter has none, so
// its pages are read through.
func (c *call) agentsOf(eng *engine.Engine, tenant, project string, f core.Filter) (core.Page[fleet.Agent], error) {
	all := f
	all.Page, all.Size = 1, core.MaxPageSize
	var found []fleet.Agent
	for {
		page, err := eng.Fleet.Agents(c.ctx, tenant, all)
		if err != nil {
			return core.Page[fleet.Agent]{}, err
		}
		for _, a := range page.Items {
			if a.Project == project {
				found = append(found, a)
			}
		}
		if !page.Info.Next {
			break
		}
		all.Page++
	}
	return pick(found, core.Filter{Page: f.Page, Size: f.Size}, func(fleet.Agent) traits { return traits{} })
}

func (t *tree) agentDelete() *cobra.Command {
	var yes bool
	return t.command(spec{
		use: "delete NAME", short: "Delete an agent in any state", effect: Destroys, confirm: ConfirmType, args: []string{"agent"},
		flags: func(f *pflag.FlagSet) { f.BoolVar(&yes, "yes", false, "it is meant") },
		run: func(c *call, args []string) error {
			if !yes {
				return usage("yes", "agent delete: this can't be undone; say --yes to delete %q", clip(args[0]))
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			gone, err := eng.Fleet.Agent(c.ctx, by.Tenant, args[0])
			if err != nil {
				return err
			}
			if err := eng.Fleet.Delete(c.ctx, by, args[0]); err != nil {
				return err
			}
			return c.say(gone, "agent %s deleted", gone.Name)
		},
	})
}

// startingWait is how long assign --wait has patience with an agent that is
// starting: the engine may have begun to run with this very command.
const startingWait = 10 * time.Second

func (t *tree) agentAssign() *cobra.Command {
	var uri string
	var wait bool
	var limit time.Duration
	return t.command(spec{
		use: "assign NAME TEXT", short: "Give an idle agent a task", effect: Writes, args: []string{"agent:idle"},
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&uri, "uri", "", "what it is about: `URI`")
			f.BoolVar(&wait, "wait", false, "wait for its end; exit 1 unless it succeeded")
			spanVar(f, &limit, "wait-timeout", "give up waiting after this `DURATION` (exit 4); the task goes on")
		},
		run: func(c *call, args []string) error {
			if wait {
				if err := c.activate(); err != nil {
					return err
				}
			}
			if strings.TrimSpace(args[1]) == "" {
				return usage("text", "agent assign: TEXT is empty")
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			if !wait {
				made, err := eng.Fleet.Assign(c.ctx, by, args[0], args[1], uri)
				if err != nil {
					return err
				}
				return record(c, made, c.taskColumns())
			}
			made, err := eng.Fleet.AssignWhenReady(c.ctx, by, args[0], args[1], uri, startingWait)
			if err != nil {
				return err
			}
			return c.waitAndPrint(eng, by.Tenant, []string{made.TaskID}, "", limit)
		},
	})
}
