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
			"`approval approve --always`: it covers exact (the same arguments), tool (the same action), agent or session, and\n" +
			"only the --agent and the --session that are named. Nothing is granted below a deny rule or a floor, nor at\n" +
			"critical risk; at high risk only the scope exact.",
		Example: "grant request --server exec --tool fs.write --agent worker --scope agent --expires 2h --max-uses 10 --reason 'nightly report'",
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
			flag(&g.Args, "args", "its arguments: `JSON`, @file, -; with the scope exact those that pass, else an example").from("json").
				client("its arguments; with the scope exact those that pass, else an example"),
			flag(&g.Effects, "effect", "`EFFECT` that a skill may declare; may be repeated").
				client("effects that a skill may declare, parted by commas"),
			flag(&g.Agent, "agent", "for the agent `NAME` alone").from("agent").client("name of the agent that it is for: an agent's own"),
			flag(&g.Session, "session", "in the session `ID` alone").from("session").client("id of the session that it is for alone: of an agent the one it works in"),
			need(&g.Scope, "scope", "what it covers: `exact|tool|agent|session`").enum("exact", "tool", "agent", "session").
				client("exact: the same arguments; agent: the same action by you; session: by you in your session; tool: by anyone, which no agent may ask for"),
			need(&expires, "expires", "it ends this `DURATION` after it was approved, at most 30d").bounds(1, 30*24*3600).
				client("seconds from the approval on, after which it ends"),
			need(&g.MaxUses, "max-uses", "it may be used `N` times, 1-1000").bounds(1, 1000).client("how often it may be used"),
			need(&g.Reason, "reason", "why, for who approves it").bounds(1, 1000),
		},
	}, func(ctx context.Context, c *Call) (judge.Approval, error) {
		g.ExpiresS = core.Seconds(expires)
		if c.By.Kind == core.Agent {
			if g.Agent = cmp.Or(g.Agent, c.By.Name); g.Scope == "session" {
				g.Session = cmp.Or(g.Session, c.Session)
			}
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

// ruleList makes a list of the rules that stand in for a person.
func ruleList(o Op) *Op {
	o.Statuses = []string{"active", "revoked", "expired", "used"}
	return list(o, func(ctx context.Context, c *Call, f core.Filter) (core.Page[judge.Rule], error) {
		all, err := c.Judge.Rules(ctx, c.By.Tenant)
		return core.Pick(all, err, f, c.ruleTraits)
	})
}

// ruleRevoke makes an operation that ends such a rule.
func ruleRevoke(o Op) *Op {
	o.Role, o.Confirm, o.Done = Approver, ConfirmAsk, "revoked"
	return change(o, arg("ID", "rule"), func(ctx context.Context, c *Call, id string) (judge.Rule, error) {
		return c.Judge.RevokeRule(ctx, c.By, id)
	})
}

func (c *Call) ruleTraits(r judge.Rule) core.Traits {
	tool := cmp.Or(r.Action.Tool, r.Action.Kind)
	return core.Traits{
		Status: r.State(c.Now), Agent: r.Agent, Kind: tool, Session: r.Session, At: r.CreatedAt,
		Text: r.RuleID + " " + r.Scope + " " + tool + " " + r.Agent + " " + r.Owner,
	}
}
