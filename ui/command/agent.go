package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

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
				return usage("args", "agent create: unexpected argument %q; a command goes after --", core.Clip(args[1]))
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
