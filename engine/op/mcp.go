package op

import (
	"context"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/tools"
)

func servers() []*Op {
	return []*Op{
		picked(Op{Name: "mcp servers", Short: "List the servers whose tools are used"},
			func(c *Call) tenantList[tools.Server] { return c.Tools.Servers },
			func(_ *Call, s tools.Server) core.Traits {
				return core.Traits{At: s.CreatedAt, Text: s.Name + " " + strings.Join(s.Command, " ") + " " + s.URL}
			}),
		serverTools(),
		serverAdd(),
		change(Op{Name: "mcp remove", Short: "Use a server's tools no longer", Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Done: "removed"}, arg("NAME", ""),
			byCaller(func(c *Call) callerAct[string, tools.Server] { return c.Tools.Remove })),
	}
}

func serverTools() *Op {
	var server string
	return list(Op{
		Name: "mcp tools", Short: "List the tools of servers; that begins them", Effect: Writes, Done: "listed", Check: activate,
		Params: []*Param{maybe(&server, "SERVER", "")},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[tools.Tool], error) {
		all, err := c.Tools.List(ctx, c.By.Tenant, server)
		return core.Pick(all, err, f, func(t tools.Tool) core.Traits {
			return core.Traits{Text: t.Server + " " + t.Name + " " + t.Description}
		})
	})
}

func serverAdd() *Op {
	var s tools.Server
	var env, headers []string
	var yes bool
	var answer time.Duration
	many := func(into *[]string, name, about string, names reach.Use) *Param {
		return &Param{Name: name, About: about + "; may be repeated", Into: into, Whole: true, Names: names}
	}
	return define(Op{
		Request: &s,
		Name:    "mcp add", Short: "Use the tools of a server", Role: Admin, Undo: "mcp remove", Done: "added",
		Long: "Use the tools of a server: one that a command after -- begins, or one at --url. Another one of the same name is\n" +
			"replaced. Tasks of kind mcp.call and skills with the runner mcp call its tools, each call judged. A command is a worker:\n" +
			"it reads the system, writes its directory, a home of its own and the directories that its command names by absolute\n" +
			"paths, and connects where egress rules and you allow it.",
		Example: "mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv/app\nmcp add notes --read ~/notes -- notes-mcp",
		Params: []*Param{
			place(&s.Name, "NAME", ""),
			{Name: "command", About: "COMMAND", Rest: true, Into: &s.Command, Names: reach.Command},
			flag(&s.URL, "url", "where it is: `URL`").names(reach.Address),
			many(&headers, "header", "`NAME=VAR`: header with the value of an environment variable", reach.Variable),
			flag(&s.Dir, "dir", "working `DIR` of the command (default one of its own)").from("dir"),
			many(&env, "env", "`K=V` for its environment, or K=@SECRET", reach.Env),
			flag(&s.Profile, "profile", "what the command reaches: reader, worker (the default), open"),
			many(&s.Read, "read", "`PATH` that it may read too", reach.Path),
			many(&s.Write, "write", "`PATH` that it may read and write too", reach.Path),
			many(&s.Hide, "hide", "`PATH` that is not there for it", reach.Path),
			flag(&answer, "call-timeout", "a call without an answer for this `DURATION` (default 5m) fails, and a server that has hung by then is begun anew").fills(&s.CallTimeoutS),
			flag(&yes, "yes", "use an open server without a question: it reaches all that the engine's user reaches"),
		},
		Check: func(c *Call) (err error) {
			if s.Dir != "" {
				s.Dir = c.path(s.Dir)
			}
			s.CallTimeoutS = int((answer + time.Second - 1) / time.Second)
			if s.Env, err = Pairs("env", env); err != nil {
				return err
			}
			if s.Headers, err = Pairs("header", headers); err != nil {
				return err
			}
			for _, list := range [][]string{s.Read, s.Write, s.Hide} {
				for i, path := range list {
					if !strings.HasPrefix(path, "~") {
						list[i] = c.path(path)
					}
				}
			}
			if s.Profile == "open" && !yes {
				return core.Errorf(core.Denied, "mcp add: an open server reaches all that the engine's user reaches, its secrets and the network among it: say --yes, or take a worker").With("field", "profile")
			}
			return s.Check()
		},
	}, func(ctx context.Context, c *Call) (tools.Server, error) {
		if err := c.MayServe(s); err != nil {
			return tools.Server{}, err
		}
		made, _, err := c.Tools.Put(ctx, c.By, s)
		if err == nil {
			c.concealed(s.Env, made.Env)
		}
		return made, err
	})
}
