package op

import (
	"cmp"
	"context"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func grants() []*Op {
	return []*Op{
		grantRequest(),
		ruleList(Op{
			Name: "grant list", Short: "List what was granted, newest first",
			Tool: Tool{Name: "list_grants", By: []string{"status", "agent_name", "match"}},
		}),
		ruleRevoke(Op{Name: "grant revoke", Short: "End a grant at once"}),
	}
}

func grantRequest() *Op {
	var g judge.Grant
	var expires time.Duration
	g.Kind = judge.KindTool
	return define(Op{
		Name: "grant request", Short: "Ask for a rule before it is needed", Done: "asked for it:",
		Long: "Ask a person to let actions pass without asking, before they are needed. What is approved is a rule as that of\n" +
			"`approval approve --always`, which the answer says in one line: with exactly these arguments, but for the places that\n" +
			"--any names, and for the --agent and in the --session alone that are named. Nothing is granted below a deny rule or\n" +
			"a floor, nor at critical risk; at high risk no argument may be any.",
		Example: "grant request --server exec --tool fs.write --any '*' --agent worker --expires 2h --max-uses 10 --reason 'nightly report'",
		Tool: Tool{
			Name: "request_grant", Names: map[string]string{"effect": "effects"},
			About: "Ask a person to let actions of yours pass without asking, before they are needed. It allows nothing until they approve.",
		},
		Params: []*Param{
			flag((*string)(&g.Gate), "gate", "`GATE` where the action is asked about (default that of its kind)").
				client("where the action is asked about; without one that of its kind").enum(core.Strings(judge.GateStart, judge.GateTool, judge.GateSkill, judge.GateNet)...),
			flag(&g.Kind, "kind", "`KIND` of action: tool, exec.run, mcp.call, skill.invoke, net.connect …").
				client("kind of action: tool, exec.run, mcp.call, skill.invoke, net.connect …"),
			flag(&g.Server, "server", "`SERVER` of the tool; of an agent's own tools its runtime").
				client("server of the tool; of the tools that you have by yourself your runtime"),
			flag(&g.Tool, "tool", "`TOOL` that is called; of a connection HOST:PORT").client("tool that is called; of a connection HOST:PORT"),
			flag(&g.Args, "args", "the arguments that pass: `JSON`, @file, -").from("json").client("the arguments that pass"),
			flag(&g.Any, "any", anyAbout).client("places of the arguments that may hold anything, parted by commas: path, input.path, argv.2, argv.2+ (and all after it), * (all)"),
			flag(&g.Effects, "effect", "`EFFECT` that a skill may declare; may be repeated").
				client("effects that a skill may declare, parted by commas"),
			flag(&g.Agent, "agent", "for the agent `NAME` alone").from("agent").client("name of the agent that it is for: an agent's own"),
			flag(&g.Session, "session", "in the session `ID` alone").from("session").client("id of the session that it is for alone: of an agent the one it works in"),
			need(&expires, "expires", "it ends this `DURATION` after it was approved, at most 30d").bounds(1, 30*24*3600).
				client("seconds from the approval on, after which it ends"),
			need(&g.MaxUses, "max-uses", "it may be used `N` times, 1-1000").bounds(1, 1000).client("how often it may be used"),
			need(&g.Reason, "reason", "why, for who approves it").bounds(1, 1000),
		},
	}, func(ctx context.Context, c *Call) (judge.Approval, error) {
		g.ExpiresS = core.Seconds(expires)
		if c.By.Kind == core.Agent {
			g.Agent = cmp.Or(g.Agent, c.By.Name)
		}
		if err := c.asRun(&g); err != nil {
			return judge.Approval{}, err
		}
		from := judge.Ask{By: c.By, Session: c.Session, TraceID: cmp.Or(c.traceID(), core.NewTrace(nil))}
		if g.Agent != "" {
			a, err := c.Fleet.Agent(ctx, c.By.Tenant, g.Agent)
			if err != nil {
				return judge.Approval{}, err
			}
			from.Agent = judge.AgentRef{Name: a.Name, Role: a.Role, Project: a.Project, Profile: a.Profile}
		}
		if g.Session != "" {
			if _, err := c.Swarm.Sessions.Get(ctx, c.By.Tenant, g.Session); err != nil {
				return judge.Approval{}, err
			}
		}
		return c.Judge.RequestGrant(ctx, from, g)
	})
}

// anyAbout says what --any takes.
const anyAbout = "`PLACE` of the arguments that may hold anything: path, input.path, argv.2, argv.2+ (and all after it), * (all), files; may be repeated"

// asRun brings the arguments of a task into the form in which it is judged: with its
// directory, the plan of its skill, the digest of its tool.
func (c *Call) asRun(g *judge.Grant) (err error) {
	switch in := g.Args; {
	case g.Gate != "" && g.Gate != judge.GateStart || len(in) == 0:
		return nil
	case g.Kind == judge.KindMCP:
		g.Args = core.MustEncode(map[string]any{"server": g.Server, "tool": g.Tool, "args": in})
	case g.Kind == judge.KindSkill:
		g.Args = core.MustEncode(map[string]any{"skill": g.Tool, "params": in})
	case g.Kind != judge.KindExec:
		return nil
	}
	g.Args, err = c.Swarm.Validate(judge.Approval{TenantID: c.By.Tenant, Gate: judge.GateStart, Action: judge.Action{Kind: g.Kind}, Agent: judge.AgentRef{Name: g.Agent}}, g.Args)
	return err
}

// ruleList makes a list of the rules that stand in for a person.
func ruleList(o Op) *Op {
	o.Statuses = []string{"active", "revoked", "expired", "used", "ended"}
	return list(o, func(ctx context.Context, c *Call, f core.Filter) (core.Page[judge.Rule], error) {
		all, err := c.Judge.Rules(ctx, c.By.Tenant)
		return core.Pick(all, err, f, c.ruleTraits)
	})
}

// ruleRevoke makes an operation that ends such a rule.
func ruleRevoke(o Op) *Op {
	o.Role, o.Confirm, o.Done = Approver, ConfirmAsk, "revoked"
	return change(o, arg("ID", "rule"), byCaller(func(c *Call) callerAct[string, judge.Rule] { return c.Judge.RevokeRule }))
}

func (c *Call) ruleTraits(r judge.Rule) core.Traits {
	tool := cmp.Or(r.Action.Tool, r.Action.Kind)
	return core.Traits{
		Status: r.State(c.Now), Agent: r.Agent, Kind: tool, Session: r.Session, At: r.CreatedAt,
		Text: r.RuleID + " " + r.Line + " " + r.Owner,
	}
}
