package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
)

func (t *tree) egress() *cobra.Command {
	return t.group("egress", "Where agents may connect to",
		lists(t, spec{use: "list", short: "List the rules", effect: Reads},
			[]string{"allow", "deny", "expired"}, egressColumns,
			func(c *call, f core.Filter) (core.Page[egress.Rule], error) {
				all, err := c.eng.Egress.Rules(c.ctx, c.by.Tenant)
				return pick(all, err, f, c.egressTraits)
			}),
		t.egressPut(egress.Allow),
		t.egressPut(egress.Deny),
		t.egressRemove(),
		t.egressLog(),
	)
}

// whom are the flags that say for whom a rule is.
type whom struct{ role, agent string }

func (w *whom) bind(f *pflag.FlagSet) {
	f.StringVar(&w.role, "role", "", "only for agents of this `ROLE`")
	f.StringVar(&w.agent, "agent", "", "only for this `AGENT`")
	source(f, "role", "role")
	source(f, "agent", "agent")
}

// about are those, and the flags that say about which requests it is.
type about struct {
	whom
	methods []string
	path    string
	read    bool
}

func (a *about) bind(f *pflag.FlagSet) {
	a.whom.bind(f)
	f.StringSliceVar(&a.methods, "method", nil, "only requests with these `METHODS`, such as GET,HEAD; git's are "+egress.UploadPack+", "+egress.ReceivePack)
	f.StringVar(&a.path, "path", "", "only requests with this `PATH`; with * at its end all that begin so")
	f.BoolVar(&a.read, "read", false, "only requests that read: --method "+strings.Join(egress.ReadOnly(), ","))
}

func (a *about) rule(effect egress.Effect, where string) (egress.Rule, error) {
	r, err := egress.NewRule(effect, where)
	if err != nil {
		return r, err
	}
	r.Role, r.Agent = a.role, a.agent
	methods := a.methods
	if a.read {
		if len(methods) > 0 {
			return r, core.Errorf(core.InvalidInput, "method and read: name the methods, or take those that read").With("field", "method")
		}
		methods = egress.ReadOnly()
	}
	if err := r.Narrow(methods, a.path); err != nil {
		return r, err
	}
	return r, r.Check()
}

func (t *tree) egressPut(effect egress.Effect) *cobra.Command {
	var w about
	var span time.Duration
	var private, inspect bool
	var rule egress.Rule
	s := spec{
		use: "allow HOST[:PORT]", short: "Let connections to a host through", effect: Writes, role: Approver, args: []string{"egress"},
		long: "Let connections to a host through, for everybody, a role or an agent. *.example.com is every name below\n" +
			"example.com and not example.com itself; without a port it is every port; " + egress.Registries + " are the well-known package\n" +
			"registries and git hosts. A rule that denies wins over any that allows. Addresses that are loopback, link-local,\n" +
			"private or this machine's own are refused unless the rule names the address, or has --private.\n" +
			"An allowed host can be told whatever an agent knows. A rule about some requests holds for agents that are looked into\n" +
			"(option inspect); for others, who may say anything in a connection, it allows nothing.",
		example: "egress allow registries --role coder\negress allow api.example.com:443 --agent ada --for 8h\negress allow github.com --read --path '/acme/*'",
	}
	if effect == egress.Deny {
		s.use, s.short = "deny HOST[:PORT]", "Refuse connections to a host, and end those that are open"
		s.long = "Refuse connections to a host without asking anybody, whatever rule allows it. Open connections end.\n" +
			"A rule about some requests refuses those of agents that are looked into (option inspect), and all of the others'."
		s.example = "egress deny '*.example.com'\negress deny github.com --method " + egress.ReceivePack
	}
	s.flags = func(f *pflag.FlagSet) {
		w.bind(f)
		spanVar(f, &span, "for", "the rule ends after this `DURATION`")
		if effect == egress.Allow {
			f.BoolVar(&private, "private", false, "its addresses may be loopback, private or this machine's own")
			f.BoolVar(&inspect, "inspect", true, "=false leaves its connections unread, also of agents that are looked into: for programs that pin certificates")
		}
	}
	s.check = func(_ *call, args []string) (err error) {
		if rule, err = w.rule(effect, args[0]); err != nil {
			return err
		}
		rule.Private, rule.Opaque = rule.Private || private, effect == egress.Allow && !inspect
		return rule.Check()
	}
	s.run = func(c *call, _ []string) error {
		made, _, err := c.eng.Egress.Put(c.ctx, c.by, rule, span)
		if err != nil {
			return err
		}
		return record(c, made, egressColumns(c))
	}
	return t.command(s)
}

func (t *tree) egressRemove() *cobra.Command {
	var w about
	var rule egress.Rule
	return t.command(spec{
		use: "remove HOST[:PORT]", short: "End a rule: a person is asked about the host again", effect: Writes, role: Approver, confirm: ConfirmAsk, args: []string{"egress"},
		flags: w.bind,
		check: func(_ *call, args []string) (err error) {
			rule, err = w.rule(egress.Deny, args[0])
			return err
		},
		run: func(c *call, _ []string) error {
			gone, err := c.eng.Egress.Remove(c.ctx, c.by, rule.ID())
			if err != nil {
				return err
			}
			return record(c, gone, egressColumns(c))
		},
	})
}

func (t *tree) egressLog() *cobra.Command {
	return lists(t, spec{
		use: "log", short: "List who connected where, what was refused and how much was sent, newest first", effect: Reads,
		long: "List what the audit log has of connections and rules, newest first: a connection that a person or the policy let\n" +
			"through, the first refusal of its kind in a run, and what went between a run and each host, once the run is over.",
		example: "egress log --agent ada --since 1h\negress log --kind egress.refused",
	}, nil, egressLogColumns,
		func(c *call, f core.Filter) (core.Page[audit.Event], error) {
			switch {
			case f.Kind == "":
				f.Kind = "egress.*"
			case !strings.HasPrefix(f.Kind, "egress."):
				return core.Page[audit.Event]{}, core.Invalid("kind", f.Kind, "egress.allowed, egress.refused, egress.used, egress.allow, egress.deny, egress.removed")
			}
			return c.eng.Audit.List(c.ctx, c.by.Tenant, f)
		})
}

func (c *call) egressTraits(r egress.Rule) traits {
	return traits{
		status: c.egressState(r), agent: r.Agent, at: r.CreatedAt,
		text: strings.Join(append([]string{r.ID(), r.Owner}, r.Hosts...), " "),
	}
}

func (c *call) egressState(r egress.Rule) string {
	if !r.Alive(c.now()) {
		return "expired"
	}
	return string(r.Effect)
}

func egressColumns(c *call) []column[egress.Rule] {
	type R = egress.Rule
	return []column[R]{
		{title: "HOST", most: 60, text: func(r R) string { return r.Where() }},
		{title: "RULE", text: c.egressState},
		{title: "REQUESTS", most: 50, text: func(r R) string {
			if r.Opaque {
				return "unread"
			}
			return r.What()
		}},
		{title: "FOR", text: func(r R) string {
			if whom := r.Whom(); whom != "" {
				return whom
			}
			return "everybody"
		}},
		{title: "LEFT", right: true, text: func(r R) string {
			if r.ExpiresAt.IsZero() {
				return ""
			}
			return short(max(0, r.ExpiresAt.Sub(c.now())))
		}},
		{title: "PRIVATE", text: func(r R) string {
			if r.Private {
				return "yes"
			}
			return ""
		}},
		{title: "OWNER", text: func(r R) string { return r.Owner }},
		{title: "HOSTS", wide: true, text: func(r R) string { return strings.Join(r.Hosts, " ") }},
	}
}

// egressDetail is what the events of connections say.
type egressDetail struct {
	Run      string `json:"run"`
	Process  string `json:"process"`
	Method   string `json:"method"`
	Path     string `json:"path"`
	Reason   string `json:"reason"`
	Count    int    `json:"connections"`
	Refused  int    `json:"refused"`
	Sent     int64  `json:"sent_bytes"`
	Received int64  `json:"received_bytes"`
}

func egressLogColumns(c *call) []column[audit.Event] {
	type E = audit.Event
	detail := func(e E) (p struct {
		ID     string       `json:"id"`
		Detail egressDetail `json:"detail"`
	},
	) {
		_ = core.DecodeStored(e.Payload, &p) // an event of another shape has empty cells
		return p
	}
	number := func(of func(egressDetail) int64) func(E) string {
		return func(e E) string {
			if e.EventType != "egress.used" {
				return ""
			}
			return strconv.FormatInt(of(detail(e).Detail), 10)
		}
	}
	return []column[E]{
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.CreatedAt) }},
		{title: "WHAT", text: func(e E) string { return strings.TrimPrefix(e.EventType, "egress.") }},
		{title: "HOST", most: 50, text: func(e E) string { return detail(e).ID }},
		{title: "REQUEST", most: 50, text: func(e E) string { return strings.TrimSpace(detail(e).Detail.Method + " " + detail(e).Detail.Path) }},
		{title: "BY", most: 24, text: func(e E) string { return e.Actor }},
		{title: "PROCESS", text: func(e E) string { return detail(e).Detail.Process }},
		{title: "CONNECTIONS", right: true, text: number(func(d egressDetail) int64 { return int64(d.Count) })},
		{title: "SENT", right: true, text: number(func(d egressDetail) int64 { return d.Sent })},
		{title: "RECEIVED", right: true, text: number(func(d egressDetail) int64 { return d.Received })},
		{title: "REFUSED", right: true, wide: true, text: number(func(d egressDetail) int64 { return int64(d.Refused) })},
		{title: "RUN", wide: true, text: func(e E) string { return detail(e).Detail.Run }},
		{title: "EVENT", wide: true, text: func(e E) string { return e.EventID }},
		{title: "WHY", most: 60, text: func(e E) string { return detail(e).Detail.Reason }},
	}
}

func liveEgress(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Egress.Rules(c.ctx, tenant)
	found := candidates(all, err, func(r egress.Rule) Candidate {
		return Candidate{r.Where(), strings.TrimSpace(string(r.Effect) + " " + r.Whom())}
	})
	for _, name := range egress.Presets() {
		found = append(found, Candidate{name, "package registries and git hosts"})
	}
	return found
}
