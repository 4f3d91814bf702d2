package command

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
)

func (t *tree) notices() *cobra.Command {
	return t.group("notice", "Tell those who look at no screen",
		t.noticeAdd(),
		lists(t, spec{use: "list", short: "List the notices, how far they are and what went wrong", effect: Reads}, nil, noticeColumns,
			func(c *call, f core.Filter) (core.Page[notice.Status], error) {
				all, err := c.eng.Notices.List(c.ctx, c.by.Tenant)
				return core.Pick(all, err, f, func(n notice.Status) core.Traits {
					return core.Traits{At: n.CreatedAt, Text: strings.Join(append([]string{n.Name, n.URL, n.LastError}, n.Events...), " ") + " " + Join(n.Command)}
				})
			}),
		t.command(spec{
			use: "show NAME", short: "Show a notice in full", effect: Reads, args: []string{"notice"},
			run: shows(func(c *call, name string) (notice.Status, error) {
				return c.eng.Notices.Status(c.ctx, c.by.Tenant, name)
			}),
		}),
		t.command(spec{
			use: "test NAME", short: "Send a message that says it is a test", effect: Writes, args: []string{"notice"},
			run: func(c *call, args []string) error {
				n, err := c.eng.Notices.Test(c.ctx, c.by, args[0])
				if err != nil {
					return err
				}
				return c.say(map[string]string{"name": n.Name, "status": "delivered"}, "%s took the test", n.Name)
			},
		}),
		t.command(spec{
			use: "remove NAME", short: "End a notice, with what it has not told yet", effect: Destroys, role: Admin, confirm: ConfirmAsk, args: []string{"notice"},
			run: func(c *call, args []string) error {
				n, err := c.eng.Notices.Remove(c.ctx, c.by, args[0])
				if err != nil {
					return err
				}
				return c.say(map[string]string{"name": n.Name, "status": "removed"}, "%s tells nothing any more", n.Name)
			},
		}),
	)
}

func (t *tree) noticeAdd() *cobra.Command {
	var n notice.Notice
	var risk string
	return t.command(spec{
		use: "add NAME [-- COMMAND…]", short: "Tell a URL or a command what needs a person", effect: Writes, role: Admin, anyArg: true,
		long: "Tell a URL, or a command after --, what happens from now on. --on takes words: approval (opened, at half of its time,\n" +
			"expired), failure, budget, stuck (agents that are stuck, failed or offline), estop; or patterns over the engine's\n" +
			"events, such as sys.task.cancelled. A URL gets a POST with JSON, signed by the Standard Webhooks scheme when\n" +
			"--secret-env names a variable of the engine's environment that holds a secret (whsec_ and base64). A command gets the\n" +
			"same JSON on stdin. Each message is sent until it was taken, at least once, always under the same id; what is more than\n" +
			"the rate, or older than an hour, comes as one summary. Another notice of the same name is replaced.",
		example: "notice add pager --on approval,stuck,estop --min-risk high --url https://hooks.example/swarm --secret-env PAGER_SECRET\n" +
			"notice add mail --on failure -- sh -c 'mail -s swarm ops'",
		flags: func(f *pflag.FlagSet) {
			f.StringSliceVar(&n.Events, "on", []string{"approval", "budget", "stuck", "estop"}, "`EVENTS`: words or patterns, with commas")
			enumVar(f, &risk, "min-risk", "", "low", "leave out approvals below: low|medium|high|critical", "low", "medium", "high", "critical")
			f.StringVar(&n.URL, "url", "", "POST to this `URL`")
			f.StringVar(&n.SecretEnv, "secret-env", "", "`VAR` of the engine's environment that holds the signing secret")
			f.IntVar(&n.Rate, "rate", notice.DefaultRate, "messages a minute, 1-600")
		},
		check: func(c *call, args []string) error {
			if dash := c.flags.ArgsLenAtDash(); dash >= 0 {
				args, n.Command = args[:dash], args[dash:]
			}
			if len(args) != 1 {
				return usage("name", "notice add: want one NAME, and a command after --")
			}
			n.Name = args[0]
			if risk != "low" { // nothing is below low
				n.MinRisk = judge.Risk(risk)
			}
			return n.Check()
		},
		run: func(c *call, _ []string) error {
			made, _, err := c.eng.Notices.Put(c.ctx, c.by, n)
			if err != nil {
				return err
			}
			return record(c, notice.Status{Notice: made}, noticeColumns(c))
		},
	})
}

func noticeColumns(c *call) []column[notice.Status] {
	type N = notice.Status
	return []column[N]{
		{title: "NOTICE", text: func(n N) string { return n.Name }},
		{title: "ON", most: 40, text: func(n N) string { return strings.Join(n.Events, ",") }},
		{title: "RISK", text: func(n N) string { return string(n.MinRisk) }},
		{title: "TO", most: 40, text: func(n N) string {
			if n.URL != "" {
				return n.URL
			}
			return Join(n.Command)
		}},
		{title: "TOLD", right: true, text: func(n N) string { return strconv.FormatInt(n.Delivered, 10) }},
		{title: "LAG", right: true, text: func(n N) string { return strconv.FormatUint(n.Lag, 10) }},
		{title: "STATE", most: 60, text: func(n N) string {
			switch {
			case n.Failing:
				return "failing: " + n.LastError
			case n.DeliveredAt.IsZero():
				return "nothing told yet"
			}
			return "told " + c.age(n.DeliveredAt) + " ago"
		}},
		{title: "LAST ERROR", wide: true, text: func(n N) string { return n.LastError }},
	}
}

func liveNotices(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Notices.List(c.ctx, tenant)
	return candidates(all, err, func(n notice.Status) Candidate { return Candidate{n.Name, strings.Join(n.Events, ",")} })
}
