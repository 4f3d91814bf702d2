package op

import (
	"context"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/reach"
)

func egressRules() []*Op {
	return []*Op{
		picked(Op{Name: "egress list", Short: "List the rules", Statuses: []string{"allow", "deny", "expired"}},
			func(c *Call) tenantList[egress.Rule] { return c.Egress.Rules }, func(c *Call, r egress.Rule) core.Traits {
				return core.Traits{
					Status: r.State(c.Now), Agent: r.Agent, At: r.CreatedAt,
					Text: strings.Join(append([]string{r.ID(), r.Owner}, r.Hosts...), " "),
				}
			}),
		egressAllow(),
		egressDeny(),
		egressRemove(),
		egressLog(),
	}
}

// whom says for which agents a rule is.
type whom struct{ role, agent string }

func (w *whom) params() []*Param {
	return []*Param{
		flag(&w.role, "role", "only for agents of this `ROLE`").from("role"),
		flag(&w.agent, "agent", "only for this `AGENT`").from("agent"),
	}
}

// route is what a rule of egress is about: hosts, requests, and for whom.
type route struct {
	whom
	project string
	host    string
	methods []string
	path    string
	read    bool
	rule    egress.Rule // of what was given, once it is checked
}

func (r *route) params() []*Param {
	return append([]*Param{{Name: "host", About: "HOST[:PORT]", Arg: true, Need: true, Into: &r.host, From: "egress"}},
		append(r.whom.params(),
			flag(&r.project, "project", "only for agents of this `PROJECT`").from("project"),
			flag(&r.methods, "method", "only requests with these `METHODS`, such as GET,HEAD; git's are "+egress.UploadPack+", "+egress.ReceivePack),
			flag(&r.path, "path", "only requests with this `PATH`; with * at its end all that begin so").names(reach.Inside),
			flag(&r.read, "read", "only requests that read: --method "+strings.Join(egress.ReadOnly(), ",")))...)
}

func (r *route) check(effect egress.Effect) (err error) {
	if r.rule, err = egress.NewRule(effect, r.host); err != nil {
		return err
	}
	r.rule.Role, r.rule.Agent, r.rule.Project = r.role, r.agent, r.project
	methods := r.methods
	switch {
	case len(methods) == 0: // those of a preset
		methods = r.rule.Methods
	case r.read:
		return usage("method", "method and read: name the methods, or take those that read")
	}
	if r.read {
		methods = egress.ReadOnly()
	}
	if err := r.rule.Narrow(methods, r.path); err != nil {
		return err
	}
	return r.rule.Check()
}

// egressPut makes an operation that puts a rule in force.
func egressPut(o Op, r *route) *Op {
	var span time.Duration
	o.Role, o.Undo = Approver, "egress remove"
	o.Params = append(append(r.params(), flag(&span, "for", "the rule ends after this `DURATION`")), o.Params...)
	return define(o, func(ctx context.Context, c *Call) (egress.Rule, error) {
		made, _, err := c.Egress.Put(ctx, c.By, r.rule, span)
		return made, err
	})
}

func egressAllow() *Op {
	var r route
	private, inspect := false, true
	names, _ := egress.Presets()
	return egressPut(Op{
		Name: "egress allow", Short: "Let connections to a host through", Done: "allowed connections to",
		Long: "Let connections to a host through, for everybody, a role, an agent or a project. *.example.com is every name below\n" +
			"example.com and not example.com itself; without a port it is every port. A preset stands for several hosts:\n" +
			strings.Join(names, ", ") + ".\n" +
			"A rule that denies wins over any that allows. Addresses that are loopback, link-local, private or this machine's own\n" +
			"are refused unless the rule names the address, or has --private.\n" +
			"An allowed host can be told whatever an agent knows. A rule about some requests holds for agents that are looked into\n" +
			"(option inspect); for others, who may say anything in a connection, it allows nothing.",
		Example: "egress allow npm --project web\negress allow api.example.com:443 --agent ada --for 8h\negress allow github.com --read --path '/acme/*'",
		Params: []*Param{
			flag(&private, "private", "its addresses may be loopback, private or this machine's own"),
			flag(&inspect, "inspect", "=false leaves its connections unread, also of agents that are looked into: for programs that pin certificates"),
		},
		Check: func(*Call) error {
			if err := r.check(egress.Allow); err != nil {
				return err
			}
			r.rule.Private, r.rule.Opaque = r.rule.Private || private, !inspect
			return r.rule.Check()
		},
	}, &r)
}

func egressDeny() *Op {
	var r route
	return egressPut(Op{
		Name: "egress deny", Short: "Refuse connections to a host, and end those that are open", Done: "denied connections to",
		Long: "Refuse connections to a host without asking anybody, whatever rule allows it. Open connections end.\n" +
			"A rule about some requests refuses those of agents that are looked into (option inspect), and all of the others'.",
		Example: "egress deny '*.example.com'\negress deny github.com --method " + egress.ReceivePack,
		Check:   func(*Call) error { return r.check(egress.Deny) },
	}, &r)
}

func egressRemove() *Op {
	var r route
	return define(Op{
		Name: "egress remove", Short: "End a rule: a person is asked about the host again", Role: Approver, Confirm: ConfirmAsk, Done: "removed the rule about",
		Params: r.params(),
		Check:  func(*Call) error { return r.check(egress.Deny) },
	}, func(ctx context.Context, c *Call) (egress.Rule, error) {
		return c.Egress.Remove(ctx, c.By, r.rule.ID())
	})
}

// Connection is an event of the audit log about connections.
type Connection struct{ audit.Event }

func egressLog() *Op {
	return list(Op{
		Name: "egress log", Short: "List who connected where, what was refused and how much was sent, newest first",
		Long: "List what the audit log has of connections and rules, newest first: a connection that a person or the policy let\n" +
			"through, the first refusal of its kind in a run, and what went between a run and each host, once the run is over.",
		Example: "egress log --agent ada --since 1h\negress log --kind egress.refused",
	}, func(ctx context.Context, c *Call, f core.Filter) (all core.Page[Connection], err error) {
		switch {
		case f.Kind == "":
			f.Kind = "egress.*"
		case !strings.HasPrefix(f.Kind, "egress."):
			return all, core.Invalid("kind", f.Kind, "egress.allowed, egress.refused, egress.used, egress.allow, egress.deny, egress.removed")
		}
		page, err := c.Audit.List(ctx, c.By.Tenant, f)
		all.Info = page.Info
		for _, e := range page.Items {
			all.Items = append(all.Items, Connection{e})
		}
		return all, err
	})
}
