package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

func agentCreate() *Op {
	var a fleet.Create
	var line, after Words
	var env []string
	var yes bool
	command := flag(&line, "command", "`COMMAND` with arguments as one string, split like a shell does").from("json")
	rest := &Param{Name: "argv", About: "COMMAND", Rest: true, Into: (*[]string)(&after)}
	a.Runtime = "exec"
	return define(Op{
		Name: "agent create", Short: "Make an agent", Undo: "agent delete", Done: "created",
		Long: "Make an agent. The exec runtime keeps a local command as an agent: give it as --command 'prog arg…'\n" +
			"or after --. It gets one JSON line per task on stdin and answers in JSON lines; one that just exits is fine too.\n" +
			"The acp runtime keeps any agent of the Agent Client Protocol the same way; --options says in which of its modes it asks.\n" +
			"The coder runtime makes a Coder workspace of it: the project is a template, the role a preset, and --options names the deployment.",
		Example: "agent create lister --project tools --role reader -- ls -la",
		Params: []*Param{
			place(&a.Name, "NAME", ""),
			rest, command,
			need(&a.Project, "project", "`PROJECT` it belongs to").from("project"),
			flag(&a.Role, "role", "`ROLE` within the project").from("role"),
			flag(&a.Task, "task", "first task: `TEXT`"),
			flag(&a.Runtime, "runtime", "what runs it: exec, acp, coder").enum("exec", "acp", "coder"),
			flag(&a.Dir, "dir", "working `DIR` (default the current one)").from("dir"),
			{Name: "env", About: "`K=V` for its environment, or K=@SECRET; may be repeated", Into: &env, Whole: true},
			flag(&a.Options, "options", "`JSON` object for its runtime; exec and acp: read, write, hide, inspect; exec: interrupt; acp: mode, fs, terminal, auth, home, skeleton, login, shared, fresh, user; coder: url, token_env or token_file, template, app_slug, interrupt, via, greeting, parameters, adopt"),
			flag(&a.Session, "session", "session `ID` it works in").from("session"),
			flag(&a.Profile, "profile", "what its processes reach: reader, worker (the default), open").enum("reader", "worker", "open"),
			flag(&yes, "yes", "make an open agent without a question: it reaches all that the engine's user reaches"),
		},
		Check: func(c *Call) (err error) {
			if rest.Given && len(line) > 0 {
				return usage("command", "agent create: give the command by --command or after --, not both")
			}
			if a.Profile == "open" && !yes {
				return core.Errorf(core.Denied, "agent create: an open agent reaches all that the engine's user reaches, its secrets and the network among it: say --yes, or take a worker").With("field", "profile")
			}
			a.Command, a.Dir = append(line, after...), c.path(a.Dir)
			a.Env, err = Pairs("env", env)
			return err
		},
	}, func(ctx context.Context, c *Call) (made fleet.Agent, err error) {
		if err := c.Reach(a.Runtime, a.Options); err != nil {
			return made, err
		}
		if err := c.MayOpen("agent", a.Profile); err != nil {
			return made, err
		}
		made, err = c.Fleet.Create(ctx, c.By, a)
		c.concealed(a.Env, made.Env)
		if made.Name != "" && err != nil { // only its first task was refused
			err = &Failed{err}
		}
		return made, err
	})
}
