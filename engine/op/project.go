package op

import (
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/guarded"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/tree"
)

func projects() []*Op {
	return []*Op{
		projectLearn(),
		projectChecks(),
		projectTree(),
		projectRemote(),
		projectGuard(),
		picked(Op{Name: "project list", Short: "List the projects", ForAgents: true, Tool: Tool{Name: "list_agent_projects", By: []string{"match"}, Size: core.MaxPageSize}},
			func(c *Call) tenantList[fleet.Project] { return c.Fleet.Projects },
			func(_ *Call, p fleet.Project) core.Traits {
				return core.Traits{Text: p.ID + " " + p.Name + " " + p.Description}
			}),
	}
}

// Offer is a project that a runtime's server has, with the names of its roles.
type Offer struct {
	fleet.Project
	Roles []string `json:"roles"`
}

func projectLearn() *Op {
	var options core.Raw
	return change(Op{
		Name: "project learn", Short: "Ask a runtime's server what it offers", Done: "learned",
		Long: "Ask the server of a runtime for its projects and their roles, and keep them for lists and forms. It needs the\n" +
			"options that an agent would be given, so that the server is found. A runtime without a server offers nothing.",
		Example: `project learn coder --options '{"url":"https://coder.example.com","token_env":"CODER_TOKEN"}'`,
		Params:  []*Param{flag(&options, "options", "`JSON` object for the runtime, as for agent create")},
	}, arg("RUNTIME", "runtime"), func(ctx context.Context, c *Call, runtime string) (all []Offer, err error) {
		if err := c.Reach(runtime, options); err != nil {
			return nil, err
		}
		offers, err := c.Fleet.Offers(ctx, c.By, runtime, options)
		for _, o := range offers {
			made := Offer{Project: o.Project, Roles: []string{}}
			for _, r := range o.Roles {
				made.Roles = append(made.Roles, r.Name)
			}
			all = append(all, made)
		}
		return all, err
	})
}

func roles() []*Op {
	var project string
	return []*Op{
		roleSet(),
		list(Op{
			Name: "role list", Short: "List the roles of a project", ForAgents: true,
			Params: []*Param{flag(&project, "project", "`PROJECT` to list (default all)").from("project")},
			Tool:   Tool{Name: "list_agent_roles", By: []string{"match"}, Size: core.MaxPageSize},
		}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[fleet.Role], error) {
			all, err := c.rolesOf(ctx, project)
			return core.Pick(all, err, f, func(r fleet.Role) core.Traits {
				return core.Traits{Text: r.ID + " " + r.Name + " " + r.ProjectName}
			})
		}),
	}
}

// rolesOf gives the roles of a project; of every project for "".
func (c *Call) rolesOf(ctx context.Context, project string) ([]fleet.Role, error) {
	if project != "" {
		return c.Fleet.Roles(ctx, c.By.Tenant, project)
	}
	projects, err := c.Fleet.Projects(ctx, c.By.Tenant)
	var all []fleet.Role
	for i := 0; i < len(projects) && err == nil; i++ {
		var roles []fleet.Role
		roles, err = c.Fleet.Roles(ctx, c.By.Tenant, projects[i].Name)
		all = append(all, roles...)
	}
	return all, err
}

// projectSetting makes an operation that shows what is kept of a project, and sets it where
// its other parameters say something: sets tells whether they do, and what is wrong with
// them.
func projectSetting(o Op, sets func() (bool, error), set func(ctx context.Context, c *Call, project string) (tree.Checks, error)) *Op {
	var made *Op
	o.Effect = Reads
	o.Check = func(*Call) error {
		is, err := sets()
		if is {
			made.Effect, made.Role = Writes, Admin
		}
		return err
	}
	made = change(o, arg("PROJECT", "project"), func(ctx context.Context, c *Call, project string) (tree.Checks, error) {
		if made.Effect == Reads {
			return c.Trees.ChecksOf(c.By.Tenant, project), nil
		}
		return set(ctx, c, project)
	})
	return made
}

func projectChecks() *Op {
	var lines []string
	var clear bool
	return projectSetting(Op{
		Name: "project checks", Short: "Show or set what tests the work of a project's agents",
		Long: "Show the checks of a project, or set them: shell lines that test a result before it is merged, each in a cell, in a\n" +
			"copy of what the base would be. --check sets them, in their order; --none removes them.",
		Example: "project checks web --check 'go vet ./...' --check 'go test ./...'",
		Params: []*Param{
			{Name: "check", About: "shell `LINE` that must end with 0; may be repeated", Into: &lines, Whole: true, Names: reach.Command},
			flag(&clear, "none", "the project has no checks any more"),
		},
	}, func() (bool, error) {
		if len(lines) > 0 && clear {
			return false, usage("none", "project checks: --check or --none, not both")
		}
		return len(lines) > 0 || clear, nil
	}, func(ctx context.Context, c *Call, project string) (tree.Checks, error) {
		return c.Trees.SetChecks(ctx, c.By, project, lines)
	})
}

func projectTree() *Op {
	var env, setup []string
	var clear bool
	var set map[string]string
	return projectSetting(Op{
		Name: "project tree", Short: "Show or set what trees of a project begin with",
		Long: "Show the environment of a project's trees, or set it, for the agents that are made from then on and for checks: a\n" +
			"database, a cache, a port of its own for each. {agent}, {n}, {project} and {branch} stand for those of the tree; {n} is\n" +
			"the number that the agent's name ends with, else 1. --env sets all of it. --setup sets what runs once in a new tree, in\n" +
			"a cell, before the first task of its agent. --none removes both.",
		Example: "project tree web --env DATABASE=web_{n} --env 'CACHE=.cache/{agent}'\nproject tree web --setup 'cp .env.example .env'",
		Params: []*Param{
			{Name: "env", About: "`K=V` of the environment; may be repeated", Into: &env, Whole: true, Names: reach.Env},
			{Name: "setup", About: "shell `LINE` that runs once in a new tree; may be repeated", Into: &setup, Whole: true, Names: reach.Command},
			flag(&clear, "none", "the trees have nothing of their own any more"),
		},
	}, func() (sets bool, err error) {
		given := len(env)+len(setup) > 0
		if given && clear {
			return false, usage("none", "project tree: --env and --setup, or --none, not both")
		}
		if set, err = Pairs("env", env); err == nil {
			err = tree.CheckEnv(set)
		}
		if err == nil {
			err = tree.CheckSetup(setup)
		}
		return given || clear, err
	}, func(ctx context.Context, c *Call, project string) (tree.Checks, error) {
		switch {
		case clear:
			set, setup = map[string]string{}, []string{}
		case len(setup) == 0:
			setup = nil
		}
		out, _, err := c.Trees.PutTree(ctx, c.By, project, set, setup)
		return out, err
	})
}

func projectRemote() *Op {
	var name, url string
	var gone bool
	return projectSetting(Op{
		Name: "project remote", Short: "Show or register where the work of a project may be pushed",
		Long: "Show the remotes of a project, or register one: its name, and the URL that push sends to, by https or ssh, or a bare\n" +
			"repository of this machine, which who sits at it names by its path. A push goes to no other. What stands in a\n" +
			"repository's .git/config is not read for it, since an agent may have written that.\n" +
			"--none takes the remote away.",
		Example: "project remote web origin https://github.com/acme/web.git\nproject remote web mirror git@git.example.org:web.git\nproject remote web mirror --none",
		Params: []*Param{
			maybe(&name, "NAME", ""), maybe(&url, "URL", "").names(reach.Address),
			flag(&gone, "none", "the project has this remote no more"),
		},
	}, func() (bool, error) {
		switch {
		case name == "" && !gone:
			return false, nil
		case name == "" || (url == "") != gone:
			return false, usage("url", "project remote: a NAME with its URL, or with --none")
		case gone:
			return true, nil
		}
		_, err := tree.ReadRemote(url)
		return true, err
	}, func(ctx context.Context, c *Call, project string) (tree.Checks, error) {
		return c.Trees.PutRemote(ctx, c.By, project, name, url)
	})
}

func projectGuard() *Op {
	var paths []string
	var clear bool
	return projectSetting(Op{
		Name: "project guard", Short: "Show or set what of a project's files runs on your machine, beside the common list",
		Long: "Show what a project adds to the list of files that your tools run because they lie there, or set it: paths in which\n" +
			"* ? and [] stand for parts of a name; a name covers what lies below it. Workers can't write them at the top of a\n" +
			"directory that they share with you, and a merge that changes one names it first. --path sets all of them, --none\n" +
			"removes them.",
		Example: "project guard web --path justfile --path 'scripts/*.sh'\nproject guard web --none",
		Params: []*Param{
			{Name: "path", About: "`PATTERN` of paths; may be repeated", Into: &paths, Whole: true},
			flag(&clear, "none", "the project adds nothing any more"),
		},
	}, func() (bool, error) {
		if len(paths) > 0 && clear {
			return false, usage("none", "project guard: --path or --none, not both")
		}
		return len(paths) > 0 || clear, guarded.Check(paths)
	}, func(ctx context.Context, c *Call, project string) (tree.Checks, error) {
		return c.Trees.PutGuard(ctx, c.By, project, paths)
	})
}

func roleSet() *Op {
	var t fleet.Template
	var l fleet.Limits
	var project, shell string
	var line, after Words
	var wall time.Duration
	command := flag(&line, "command", "`COMMAND` with arguments as one string, split like a shell does").names(reach.Command).from("json")
	rest := &Param{Name: "argv", About: "COMMAND", Rest: true, Into: (*[]string)(&after), Names: reach.Command}
	return change(Op{
		Name: "role set", Short: "Say what agents of a role are made with", Role: Admin, Done: "set",
		Long: "Say what agents of a role are made with: agent create --from ROLE takes it. It replaces all that was said before;\n" +
			"agents that there are stay as they are. The prompt stands before each of their tasks. Calls of tools that the role\n" +
			"does not have are denied; without --tool it has all. The budget is that of each agent.",
		Example: "role set coder --project web --runtime acp --prompt @coder.md --cost 5 -- claude-agent-acp",
		Params: []*Param{
			rest, command,
			need(&project, "project", "`PROJECT` it belongs to").from("project").bounds(1, 64),
			flag(&t.Runtime, "runtime", "what runs them: exec, acp, terminal, coder").enum("exec", "acp", "terminal", "coder"),
			flag(&shell, "shell", "shell `LINE` that is their command, run by sh -c").names(reach.Command),
			flag(&t.Options, "options", "`JSON` object for the runtime, as for agent create"),
			flag(&t.Prompt, "prompt", "`TEXT` that stands before each of their tasks, or @FILE"),
			flag(&t.Profile, "profile", "what their processes reach: reader, worker").enum("reader", "worker"),
			{Name: "tool", About: "`NAME` of a tool that they may ask for, a last * for any rest; may be repeated", Into: &t.Tools, Whole: true},
			flag(&l.Tokens, "tokens", "tokens of each at most `N`"),
			flag(&l.CostUSD, "cost", "cost of each at most `USD`"),
			flag(&l.Tasks, "tasks", "tasks of each at most `N`"),
			flag(&wall, "wall", "running time of each at most `DURATION`"),
		},
		Check: func(c *Call) error {
			if named := rest.Given || len(line) > 0; rest.Given && len(line) > 0 || named && shell != "" {
				return usage("command", "role set: give the command by --command, by --shell or after --, not both")
			}
			if t.Command = append(line, after...); shell != "" {
				t.Command = []string{"sh", "-c", shell}
			}
			text, err := c.Read("prompt", t.Prompt)
			t.Prompt = string(text)
			return err
		},
	}, arg("ROLE", "role"), func(ctx context.Context, c *Call, role string) (fleet.Role, error) {
		if err := c.Reach(t.Runtime, t.Options); t.Runtime != "" && err != nil {
			return fleet.Role{}, err
		}
		if l.WallS = core.Seconds(wall); l != (fleet.Limits{}) {
			t.Limits = &l
		}
		r, _, err := c.Fleet.PutRole(ctx, c.By, project, role, t)
		return r, err
	})
}
