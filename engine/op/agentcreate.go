package op

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/host"
	"swarmdeck/engine/reach"
)

func agentCreate() *Op {
	var a fleet.Create
	var line, after Words
	var env []string
	var shell, like, base, from string
	var times int
	var yes, own, treed bool // own: it is made of what its maker says, not like another
	command := flag(&line, "command", "`COMMAND` with arguments as one string, split like a shell does").names(reach.Command).from("json")
	rest := &Param{Name: "argv", About: "COMMAND", Rest: true, Into: (*[]string)(&after), Names: reach.Command}
	name := place(&a.Name, "NAME", "").bounds(1, 20).client("unique short name, such as Sony or Papi: letters, digits, hyphens")
	name.Valid = func() error { return fleet.CheckNewName(a.Name) }
	alike := flag(&like, "like", "`AGENT` to take runtime, command, environment, options and directory from").from("agent")
	// whom finds the agent that it is made like where a tool's client, who knows no
	// commands, names none. On a command line that is a mistake.
	whom := func(c *Call) error {
		if own || like != "" || from != "" || c.By.Door != core.DoorMCP {
			return nil
		}
		if like = c.newest(a.Project, a.Role); like == "" {
			return usage("command", "command: missing, and project %q has no agent with role %q to make it like", core.Clip(a.Project), core.Clip(a.Role))
		}
		alike.Given = true
		return nil
	}
	wantsTree := flag(&treed, "tree", "give it a work tree of its own of the directory: a branch of its repository, or a copy; the default in a git repository; =false, or --dir alone, shares the directory")
	dir := flag(&a.Dir, "dir", "working `DIR` (default the current one, or that of the agent it is made like)").from("dir").bounds(1, 4096).client("absolute directory that it works in")
	a.Role = "coder"
	onHost := flag(&a.Host, "host", "`HOST` that it runs on (see host add); --dir is there, or it gets a directory of its own; with --tree it is here, and the tree is there").from("host")
	chosen := flag(&a.On, "on", "run it on the least full host with these `LABELS`: LABEL=VALUE, with commas")
	role := flag(&a.Role, "role", "what it is for in the project: `ROLE`; --profile says what it may").from("role").bounds(1, 64)
	// project names the repository where the line names no project.
	project := func(c *Call) error {
		if a.Project == "" && a.Host == "" && a.On == "" {
			a.Project = fleet.Label(c.Trees.Repository(c.path(a.Dir)))
		}
		if a.Project == "" {
			return usage("project", "agent create: --project is missing, and there is no git repository with a commit whose name it could be")
		}
		return nil
	}
	return define(Op{
		Name: "agent create", Short: "Make an agent, or several that try the same", Undo: "agent delete", Done: "created",
		Long: "Make an agent. In a git repository it gets a work tree and a branch of its own, swarmdeck/NAME (see agent diff, merge); --dir shares a directory.\n" +
			"The exec runtime keeps a local command as an agent: give it as --command 'prog arg…', as\n" +
			"--shell 'LINE' or after --. It gets one JSON line per task on stdin and answers in JSON lines; one that just exits\n" +
			"is fine too. The option wire has Claude Code, Codex or Gemini CLI read as they run for one prompt. With --like, and no command, runtime, environment or options, it is made like another agent.\n" +
			"The acp runtime keeps any agent of the Agent Client Protocol the same way; --options says in which of its modes it asks.\n" +
			"The terminal runtime keeps an interactive program, a shell or a coding agent's own screen: agent attach shows it.\n" +
			"The coder runtime makes a Coder workspace of it: the project is a template, the role a preset, and --options names the deployment.\n" +
			"--from makes it as a role of the project says (see role set). --times 4 makes NAME-1 to NAME-4, each with a tree, and gives each the task.",
		Example: "agent create lister --project tools --profile reader -- ls -la\nagent create fix --project web --from coder --times 4 --task 'make the tests pass'",
		Tool: Tool{
			Name: "create_agent", Need: []string{"task", "project"},
			About: "Create an agent and give it its first task. Without a command it is made like the newest agent of the same project and role.",
			Names: map[string]string{
				"like": "like", "shell": "command", "command": "-", "argv": "-", "env": "-", "options": "-", "session": "-", "profile": "-", "yes": "-", "tree": "-", "base": "-", "host": "-", "on": "-",
			},
		},
		Params: []*Param{
			name,
			rest, command,
			flag(&a.Project, "project", "`PROJECT` it belongs to (default the name of the git repository that it works in)").from("project").bounds(1, 64).client("PROJECT it belongs to"),
			flag(&a.Task, "task", "first task: `TEXT`").bounds(1, 100_000).client("its first task, with objectives and constraints"),
			role,
			flag(&from, "from", "`ROLE` of the project to take runtime, command, options, prompt, profile, tools and budget from").from("role").bounds(1, 64),
			within(&times, "times", "make `N` agents, NAME-1 and on, that try the same, each with a tree of its own", 1, fleet.MaxTimes, fmt.Sprintf("1-%d", fleet.MaxTimes)),
			flag(&a.Runtime, "runtime", "what runs it: exec (the default), acp, terminal, coder").enum("exec", "acp", "terminal", "coder"),
			flag(&shell, "shell", "shell `LINE` that is its command, run by sh -c").names(reach.Command).bounds(1, 10_000).client("shell command that is the agent; none takes that of an agent like it"),
			alike,
			wantsTree,
			flag(&base, "base", "branch that the tree is made from (default the one that is checked out)"),
			dir, onHost, chosen,
			{Name: "env", About: "`K=V` for its environment, or K=@SECRET; may be repeated", Into: &env, Whole: true, Names: reach.Env},
			flag(&a.Options, "options", "`JSON` object for its runtime; exec and acp: read, write, hide, inspect; exec: interrupt, wire, fresh; terminal: cols, rows, prompt, quiet_ms, interrupt; acp: mode, model, fs, terminal, auth, home, skeleton, login, shared, fresh, user; coder: url, token_env or token_file, template, app_slug, interrupt, via, greeting, parameters, adopt, leave_alone"),
			flag(&a.Session, "session", "session `ID` it works in").from("session"),
			flag(&a.Profile, "profile", "what its processes reach: reader, worker (the default), open").enum("reader", "worker", "open"),
			flag(&yes, "yes", "make an open agent without a question: it reaches all that the engine's user reaches"),
		},
		Check: func(c *Call) (err error) {
			named := rest.Given || len(line) > 0
			if from != "" && (role.Given || like != "") {
				return usage("from", "agent create: --from says the role and what the agent is like; give it without --role and --like")
			}
			if times > 0 && dir.Given && !treed {
				return usage("times", "agent create: agents that try the same need trees: say --tree beside --dir")
			}
			own = named || shell != "" || a.Runtime != "" || a.Options != nil || len(env) > 0
			switch {
			case rest.Given && len(line) > 0, named && shell != "":
				return usage("command", "agent create: give the command by --command, by --shell or after --, not both")
			case own && like != "":
				return core.Invalid("like", like, "none beside a command, a runtime, an environment or options")
			}
			if a.Profile == "open" && !yes {
				return core.Errorf(core.Denied, "agent create: an open agent reaches all that the engine's user reaches, its secrets and the network among it: say --yes, or take a worker").With("field", "profile")
			}
			if a.Command = append(line, after...); shell != "" {
				a.Command = []string{"sh", "-c", shell}
			}
			if chosen.Given {
				if a.Host != "" {
					return usage("on", "agent create: --host names a host and --on has one chosen: give one of them")
				}
				want, err := host.ParseSelector("on", a.On)
				if err != nil {
					return err
				}
				a.On = want.String()
			}
			hosted := a.Host != "" || a.On != ""
			switch {
			case hosted && !treed && base == "" && times == 0: // the directory is there
			case own || a.Dir != "" || from != "":
				a.Dir = c.path(a.Dir)
			}
			if a.Env, err = Pairs("env", env); err != nil || c.Engine == nil {
				return err
			}
			if err := project(c); err != nil {
				return err
			}
			c.Brings(&a, "")
			if bad := c.Fleet.Check(a); own && from == "" && len(bad) > 0 { // before anybody is asked
				return bad[0]
			}
			return whom(c) // who is asked sees it
		},
	}, func(ctx context.Context, c *Call) (made MadeAgents, err error) {
		if err := cmp.Or(project(c), whom(c)); err != nil {
			return made, err
		}
		if p := cmp.Or(a.Profile, "worker"); c.Note != nil && a.Role != p && slices.Contains([]string{"reader", "worker", "open"}, a.Role) {
			c.Note(fmt.Sprintf("the role %s restricts nothing, the profile does: %s; --profile %[1]s is that one", a.Role, p))
		}
		if from != "" {
			r, err := c.Fleet.RoleOf(ctx, c.By.Tenant, a.Project, from)
			if err != nil {
				return made, err
			}
			a.Role = r.Name
			r.Fill(&a)
		}
		if like != "" {
			other, err := c.Fleet.Agent(ctx, c.By.Tenant, like)
			if err != nil {
				return made, fmt.Errorf("like: %w", err)
			}
			a.Runtime, a.Command, a.Env, a.Options, a.Prompt, a.Tools = other.Runtime, other.Command, other.Env, other.Options, other.Prompt, other.Tools
			if t, has := c.Trees.Has(c.By.Tenant, other.Name); has {
				other.Dir = filepath.Join(t.Source, t.Sub)
				treed = treed || t.Host != "" && !wantsTree.Given && !dir.Given
				a.Env = maps.Clone(a.Env)
				of := c.Trees.EnvOf(c.By.Tenant, other.Project, t)
				maps.DeleteFunc(a.Env, func(name, value string) bool { its, is := of[name]; return is && its == value })
			}
			if a.On == "" {
				a.Host = cmp.Or(a.Host, other.Host)
			}
			if treed || base != "" || times > 0 || a.On == "" && a.Host == other.Host {
				a.Dir = cmp.Or(a.Dir, other.Dir)
			}
		}
		a.Runtime, a.Session = cmp.Or(a.Runtime, "exec"), cmp.Or(a.Session, c.Session)
		if err := c.Reach(a.Runtime, a.Options); err != nil {
			return made, err
		}
		if err := c.MayOpen("agent", a.Profile); err != nil {
			return made, err
		}
		var tree *bool
		if treed = treed || base != "" || times > 0 && a.Runtime != "coder"; treed || wantsTree.Given || dir.Given {
			tree = &treed
		}
		if times == 0 {
			agent, err := c.MakeAgent(ctx, a, tree, base)
			if agent.Name == "" {
				return made, err
			}
			return one[fleet.Agent, []fleet.Agent](agent, err)
		}
		return c.attempts(ctx, a, times, tree, base)
	})
}

// MadeAgents are the agent that was made, or those that try the same.
type MadeAgents = Either[fleet.Agent, []fleet.Agent]

// attempts makes so many agents of one kind. Nothing is made where one of the names
// is taken or not allowed.
func (c *Call) attempts(ctx context.Context, a fleet.Create, times int, tree *bool, base string) (made MadeAgents, err error) {
	names := fleet.Attempts(a.Name, times)
	for _, name := range names {
		if err := fleet.CheckNewName(name); err != nil {
			return made, err
		}
		if c.Fleet.Known(c.By.Tenant, name) {
			return made, core.Errorf(core.Conflict, "name: agent %q exists already", name).With("error", "AgentAlreadyExistsError").With("field", "name").With("value", name)
		}
	}
	var all []fleet.Agent
	for _, a.Name = range names {
		var agent fleet.Agent
		if agent, err = c.MakeAgent(ctx, a, tree, base); agent.Name != "" {
			all = append(all, agent)
		}
		if err != nil {
			break
		}
	}
	switch {
	case len(all) == 0:
		return made, err
	case err != nil:
		err = &Failed{fmt.Errorf("%d of %d were made: %w", len(all), times, err)}
	}
	return other[fleet.Agent](all, err)
}

// newest is the agent of a project and role that was made last; "" for none.
func (c *Call) newest(project, role string) (name string) {
	var at time.Time
	for _, a := range c.Fleet.Live(c.By.Tenant) {
		if a.Project == project && a.Role == role && a.CreatedAt.After(at) {
			name, at = a.Name, a.CreatedAt
		}
	}
	return name
}
