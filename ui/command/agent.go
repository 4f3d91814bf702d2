package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
)

func (t *tree) agents() *cobra.Command {
	return t.group("agent", "The fleet",
		t.agentCreate(),
		t.agentList(),
		t.command(spec{
			use: "show NAME", short: "Show an agent", effect: Reads, args: []string{"agent"},
			run: shows(agentShown),
		}),
		t.command(spec{
			use: "start NAME", short: "Make an agent ready for tasks", effect: Writes, args: []string{"agent"},
			run: changes(agentColumns, func(c *call, name string) (fleet.Agent, error) { return c.eng.Fleet.Start(c.ctx, c.by, name) }),
		}),
		t.command(spec{
			use: "stop NAME", short: "End an agent's process and take it offline", effect: Destroys, confirm: ConfirmAsk, args: []string{"agent"},
			run: changes(agentColumns, func(c *call, name string) (fleet.Agent, error) { return c.eng.Fleet.Stop(c.ctx, c.by, name) }),
		}),
		t.command(spec{
			use: "restart NAME", short: "End an agent's process, forget its failures, start anew", effect: Destroys, confirm: ConfirmAsk, args: []string{"agent"},
			run: changes(agentColumns, func(c *call, name string) (fleet.Agent, error) { return c.eng.Fleet.Restart(c.ctx, c.by, name) }),
		}),
		t.command(spec{
			use: "pause NAME", short: "Pause an agent; it shows pausing until it has acknowledged", effect: Writes, args: []string{"agent"},
			run: changes(agentColumns, func(c *call, name string) (fleet.Agent, error) { return c.eng.Fleet.Pause(c.ctx, c.by, name) }),
		}),
		t.command(spec{
			use: "resume NAME", short: "Let a paused agent go on", effect: Writes, args: []string{"agent"},
			run: changes(agentColumns, func(c *call, name string) (fleet.Agent, error) { return c.eng.Fleet.Resume(c.ctx, c.by, name) }),
		}),
		t.agentDelete(),
		t.agentAssign(),
		t.command(spec{
			use: "cancel NAME", short: "Interrupt an agent's task; it is idle within 5 s", effect: Destroys, confirm: ConfirmAsk, args: []string{"agent"},
			run: changes(agentColumns, func(c *call, name string) (fleet.Agent, error) { return c.eng.Fleet.CancelTask(c.ctx, c.by, name) }),
		}),
		t.agentHistory(),
		t.agentLog(),
	)
}

// shownAgent is an agent with what file rules say of it.
type shownAgent struct {
	fleet.Agent
	Files *files.Places `json:"files,omitempty"`
}

func agentShown(c *call, name string) (s shownAgent, err error) {
	s.Agent, err = c.eng.Fleet.Agent(c.ctx, c.by.Tenant, name)
	if p := c.eng.Files.Places(c.by.Tenant, s.Role, s.Name); p.Any() && (s.Profile == "reader" || s.Profile == "worker") {
		s.Files = &p
	}
	return s, err
}

func agentStates() []string {
	return words(fleet.Starting, fleet.Idle, fleet.Busy, fleet.Offline, fleet.Failed)
}

func (t *tree) agentCreate() *cobra.Command {
	var a fleet.Create
	var yes bool
	var command string
	var env []string
	var options string
	return t.command(spec{
		use: "create NAME [-- COMMAND…]", short: "Make an agent", effect: Writes, args: []string{"", "json"}, anyArg: true,
		long: "Make an agent. The exec runtime keeps a local command as an agent: give it as --command 'prog arg…'\n" +
			"or after --. It gets one JSON line per task on stdin and answers in JSON lines; one that just exits is fine too.\n" +
			"The acp runtime keeps any agent of the Agent Client Protocol the same way; --options says in which of its modes it asks.\n" +
			"The coder runtime makes a Coder workspace of it: the project is a template, the role a preset, and --options names the deployment.",
		example: "agent create lister --project tools --role reader -- ls -la",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&a.Project, "project", "", "`PROJECT` it belongs to")
			f.StringVar(&a.Role, "role", "", "`ROLE` within the project")
			f.StringVar(&a.Task, "task", "", "first task: `TEXT`")
			enumVar(f, &a.Runtime, "runtime", "", "exec", "what runs it: exec, acp, coder", "exec", "acp", "coder")
			f.StringVar(&command, "command", "", "`COMMAND` with arguments as one string, split like a shell does")
			f.StringVar(&a.Dir, "dir", "", "working `DIR` (default the current one)")
			f.StringArrayVar(&env, "env", nil, "`K=V` for its environment, or K=@SECRET; may be repeated")
			f.StringVar(&options, "options", "", "`JSON` object for its runtime; exec and acp: read, write, hide, inspect; exec: interrupt; acp: mode, fs, terminal, auth, home, skeleton, login, shared, fresh, user; coder: url, token_env or token_file, template, app_slug, interrupt, via, greeting, parameters, adopt")
			f.StringVar(&a.Session, "session", "", "session `ID` it works in")
			enumVar(f, &a.Profile, "profile", "", "", "what its processes reach: reader, worker (the default), open", "reader", "worker", "open")
			f.BoolVar(&yes, "yes", false, "make an open agent without a question: it reaches all that the engine's user reaches")
			source(f, "project", "project")
			source(f, "role", "role")
			source(f, "command", "json")
			source(f, "dir", "dir")
			source(f, "session", "session")
		},
		check: func(c *call, args []string) (err error) {
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
			a.Name = args[0]
			if command != "" {
				if a.Command, err = Split(command); err != nil {
					return err
				}
			}
			a.Dir = c.env.path(a.Dir)
			if options != "" {
				a.Options = core.Raw(options)
			}
			if a.Profile == "open" && !yes {
				return core.Errorf(core.Denied, "agent create: an open agent reaches all that the engine's user reaches, its secrets and the network among it: say --yes, or take a worker").With("field", "profile")
			}
			a.Env, err = pairs("env", env)
			return err
		},
		run: func(c *call, _ []string) error {
			if err := c.reach(a.Runtime, a.Options); err != nil {
				return err
			}
			if err := c.mayOpen("agent", a.Profile); err != nil {
				return err
			}
			made, err := c.eng.Fleet.Create(c.ctx, c.by, a)
			c.concealed(a.Env, made.Env)
			if made.Name != "" { // also when only its first task was refused
				if printErr := record(c, made, agentColumns(c)); err == nil {
					err = printErr
				}
			}
			return err
		},
	})
}

func (t *tree) agentList() *cobra.Command {
	var project string
	return lists(t, spec{
		use: "list", short: "List the agents", effect: Reads,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&project, "project", "", "only of this `PROJECT`")
			source(f, "project", "project")
		},
	}, agentStates(), agentColumns,
		func(c *call, f core.Filter) (core.Page[fleet.Agent], error) {
			if project != "" {
				return c.agentsOf(project, f)
			}
			return c.eng.Fleet.Agents(c.ctx, c.by.Tenant, f)
		})
}

// agentsOf lists the agents of one project: the engine's filter has none, so
// its pages are read through.
func (c *call) agentsOf(project string, f core.Filter) (core.Page[fleet.Agent], error) {
	all := f
	all.Page, all.Size = 1, core.MaxPageSize
	var found []fleet.Agent
	for {
		page, err := c.eng.Fleet.Agents(c.ctx, c.by.Tenant, all)
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
	return pick(found, nil, core.Filter{Page: f.Page, Size: f.Size}, func(fleet.Agent) traits { return traits{} })
}

func (t *tree) agentDelete() *cobra.Command {
	var yes bool
	return t.command(spec{
		use: "delete NAME", short: "Delete an agent in any state", effect: Destroys, confirm: ConfirmType, args: []string{"agent"},
		flags: func(f *pflag.FlagSet) { f.BoolVar(&yes, "yes", false, "it is meant") },
		check: func(_ *call, args []string) error {
			if !yes {
				return usage("yes", "agent delete: this can't be undone; say --yes to delete %q", clip(args[0]))
			}
			return nil
		},
		run: func(c *call, args []string) error {
			gone, err := c.eng.Fleet.Agent(c.ctx, c.by.Tenant, args[0])
			if err != nil {
				return err
			}
			if err := c.eng.Fleet.Delete(c.ctx, c.by, args[0]); err != nil {
				return err
			}
			return c.say(gone, "agent %s deleted", gone.Name)
		},
	})
}

func agentColumns(c *call) []column[fleet.Agent] {
	type A = fleet.Agent
	return []column[A]{
		{title: "NAME", text: func(a A) string { return a.Name }},
		{title: "STATE", text: A.State},
		{title: "PROJECT", most: 20, text: func(a A) string { return a.Project }},
		{title: "ROLE", most: 20, text: func(a A) string { return a.Role }},
		{title: "AGE", right: true, text: func(a A) string { return c.age(a.CreatedAt) }},
		{title: "STATUS", wide: true, text: func(a A) string { return string(a.Status) }},
		{title: "PROFILE", wide: true, text: func(a A) string { return a.Profile }},
		{title: "RUNTIME", wide: true, text: func(a A) string { return a.Runtime }},
		{title: "PID", wide: true, right: true, text: func(a A) string { return count(int64(a.PID)) }},
		{title: "RESTARTS", wide: true, right: true, text: func(a A) string { return count(int64(a.Restarts)) }},
		{title: "SESSION", wide: true, text: func(a A) string { return a.SessionID }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "ENDED", wide: true, text: func(a A) string { return string(a.LastStatus) }},
		{title: "TOKENS", wide: true, right: true, text: func(a A) string { return count(a.Usage.Tokens) }},
		{title: "COST", wide: true, right: true, text: func(a A) string { return fmt.Sprintf("$%.2f", a.Usage.CostUSD) }},
		{title: "COMMAND", wide: true, text: func(a A) string { return Join(a.Command) }},
		{title: "LAST", most: 48, text: func(a A) string {
			stuck := ""
			if a.Stuck != nil {
				stuck = a.Stuck.Text
			}
			for _, s := range []string{a.Reason, a.Attention, stuck, a.LastTask} {
				if strings.TrimSpace(s) != "" {
					return s
				}
			}
			return ""
		}},
	}
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
