package command

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/tools"
)

// The commands about the servers whose tools are used.

func (t *tree) mcpServers() *cobra.Command {
	return lists(t, spec{use: "servers", short: "List the servers whose tools are used", effect: Reads}, nil, serverColumns,
		func(c *call, f core.Filter) (core.Page[tools.Server], error) {
			all, err := c.eng.Tools.Servers(c.ctx, c.by.Tenant)
			return core.Pick(all, err, f, func(s tools.Server) core.Traits {
				return core.Traits{At: s.CreatedAt, Text: s.Name + " " + Join(s.Command) + " " + s.URL}
			})
		})
}

func (t *tree) mcpTools() *cobra.Command {
	var l filter
	var f core.Filter
	return t.command(spec{
		use: "tools [SERVER]", short: "List the tools of servers; that begins them", effect: Writes,
		flags: func(set *pflag.FlagSet) { l.bind(set) },
		check: func(c *call, _ []string) (err error) {
			if f, err = l.read(c); err != nil {
				return err
			}
			return c.activate()
		},
		run: func(c *call, args []string) error {
			all, err := c.eng.Tools.List(c.ctx, c.by.Tenant, strings.Join(args, ""))
			page, err := core.Pick(all, err, f, func(t tools.Tool) core.Traits {
				return core.Traits{Text: t.Server + " " + t.Name + " " + t.Description}
			})
			if err != nil {
				return err
			}
			return list(c, page, toolColumns(c))
		},
	})
}

func (t *tree) mcpAdd() *cobra.Command {
	var s tools.Server
	var env, headers []string
	var yes bool
	return t.command(spec{
		use: "add NAME [-- COMMAND…]", short: "Use the tools of a server", effect: Writes, role: Admin, anyArg: true,
		long: "Use the tools of a server: one that a command after -- begins, or one at --url. Another one of the same name is\n" +
			"replaced. Tasks of kind mcp.call and skills with the runner mcp call its tools, each call judged. A command is a worker:\n" +
			"it reads the system, writes its directory, a home of its own and the directories that its command names by absolute\n" +
			"paths, and connects where egress rules and you allow it.",
		example: "mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/app\nmcp add notes --read ~/notes -- notes-mcp",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&s.URL, "url", "", "where it is: `URL`")
			f.StringArrayVar(&headers, "header", nil, "`NAME=VAR`: header with the value of an environment variable; may be repeated")
			f.StringVar(&s.Dir, "dir", "", "working `DIR` of the command (default one of its own)")
			f.StringArrayVar(&env, "env", nil, "`K=V` for its environment, or K=@SECRET; may be repeated")
			enumVar(f, &s.Profile, "profile", "", "", "what the command reaches: reader, worker (the default), open", "reader", "worker", "open")
			f.StringArrayVar(&s.Read, "read", nil, "`PATH` that it may read too; may be repeated")
			f.StringArrayVar(&s.Write, "write", nil, "`PATH` that it may read and write too; may be repeated")
			f.StringArrayVar(&s.Hide, "hide", nil, "`PATH` that is not there for it; may be repeated")
			f.BoolVar(&yes, "yes", false, "use an open server without a question: it reaches all that the engine's user reaches")
			source(f, "dir", "dir")
		},
		check: func(c *call, args []string) (err error) {
			if dash := c.flags.ArgsLenAtDash(); dash >= 0 {
				args, s.Command = args[:dash], args[dash:]
			}
			if len(args) != 1 {
				return usage("name", "mcp add: want one NAME, and a command after --")
			}
			s.Name = args[0]
			if s.Dir != "" {
				s.Dir = c.env.path(s.Dir)
			}
			if s.Env, err = op.Pairs("env", env); err != nil {
				return err
			}
			if s.Headers, err = op.Pairs("header", headers); err != nil {
				return err
			}
			for _, list := range [][]string{s.Read, s.Write, s.Hide} {
				for i, path := range list {
					if !strings.HasPrefix(path, "~") {
						list[i] = c.env.path(path)
					}
				}
			}
			if s.Profile == "open" && !yes {
				return core.Errorf(core.Denied, "mcp add: an open server reaches all that the engine's user reaches, its secrets and the network among it: say --yes, or take a worker").With("field", "profile")
			}
			return s.Check()
		},
		run: func(c *call, _ []string) error {
			if err := c.mayServe(s); err != nil {
				return err
			}
			made, _, err := c.eng.Tools.Put(c.ctx, c.by, s)
			if err != nil {
				return err
			}
			c.concealed(s.Env, made.Env)
			return record(c, made, serverColumns(c))
		},
	})
}

func (t *tree) mcpRemove() *cobra.Command {
	return t.command(spec{
		use: "remove NAME", short: "Use a server's tools no longer", effect: Destroys, confirm: ConfirmAsk,
		run: changes(serverColumns, func(c *call, name string) (tools.Server, error) { return c.eng.Tools.Remove(c.ctx, c.by, name) }),
	})
}

func serverColumns(c *call) []column[tools.Server] {
	type S = tools.Server
	return []column[S]{
		{title: "SERVER", text: func(s S) string { return s.Name }},
		{title: "AGE", right: true, text: func(s S) string { return c.age(s.CreatedAt) }},
		{title: "PROFILE", text: func(s S) string {
			switch {
			case s.URL != "":
				return ""
			case s.Profile == "open":
				return "OPEN"
			}
			return cmp.Or(s.Profile, "worker")
		}},
		{title: "DIR", wide: true, text: func(s S) string { return s.Dir }},
		{title: "WHAT", most: 60, text: func(s S) string { return Join(s.Command) + s.URL }},
	}
}

func toolColumns(*call) []column[tools.Tool] {
	type T = tools.Tool
	return []column[T]{
		{title: "SERVER", text: func(t T) string { return t.Server }},
		{title: "TOOL", text: func(t T) string { return t.Name }},
		{title: "DESCRIPTION", most: 60, text: func(t T) string { return t.Description }},
	}
}
