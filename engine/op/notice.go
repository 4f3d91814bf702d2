package op

import (
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
	"swarmdeck/engine/reach"
)

func notices() []*Op {
	name := arg("NAME", "notice")
	return []*Op{
		noticeAdd(),
		picked(Op{Name: "notice list", Short: "List the notices, how far they are and what went wrong"},
			func(c *Call) tenantList[notice.Status] { return c.Notices.List }, func(_ *Call, n notice.Status) core.Traits {
				words := append(append([]string{n.Name, n.URL, n.LastError}, n.Events...), n.Command...)
				return core.Traits{At: n.CreatedAt, Text: strings.Join(words, " ")}
			}),
		show(Op{Name: "notice show", Short: "Show a notice in full"}, name,
			byTenant(func(c *Call) tenantRead[string, notice.Status] { return c.Notices.Status })),
		change(Op{Name: "notice test", Short: "Send a message that says it is a test", Done: "delivered"}, name,
			func(ctx context.Context, c *Call, name string) (Told[Done], error) {
				n, err := c.Notices.Test(ctx, c.By, name)
				return told(Done{n.Name, "delivered"}, n.Name+" took the test"), err
			}),
		change(Op{
			Name: "notice remove", Short: "End a notice, with what it has not told yet", Done: "removed",
			Effect: Destroys, Role: Admin, Confirm: ConfirmAsk,
		}, name, func(ctx context.Context, c *Call, name string) (Told[Done], error) {
			n, err := c.Notices.Remove(ctx, c.By, name)
			return told(Done{n.Name, "removed"}, n.Name+" tells nothing any more"), err
		}),
	}
}

func noticeAdd() *Op {
	n := notice.Notice{Events: []string{"approval", "budget", "stuck", "estop"}, Rate: notice.DefaultRate}
	risk := "low"
	return define(Op{
		Request: &n,
		Name:    "notice add", Short: "Tell a URL or a command what needs a person", Role: Admin, Undo: "notice remove", Done: "added",
		Long: "Tell a URL, or a command after --, what happens from now on. --on takes words: approval (opened, at half of its time,\n" +
			"expired), failure, budget, stuck (agents that are stuck, failed or offline), estop; or patterns over the engine's\n" +
			"events, such as sys.task.cancelled. A URL gets a POST with JSON, signed by the Standard Webhooks scheme when\n" +
			"--secret-env names a variable of the engine's environment that holds a secret (whsec_ and base64). A command gets the\n" +
			"same JSON on stdin. Each message is sent until it was taken, at least once, always under the same id; what is more than\n" +
			"the rate, or older than an hour, comes as one summary. Another notice of the same name is replaced.",
		Example: "notice add pager --on approval,stuck,estop --min-risk high --url https://hooks.example/swarm --secret-env PAGER_SECRET\n" +
			"notice add mail --on failure -- sh -c 'mail -s swarm ops'",
		Params: []*Param{
			place(&n.Name, "NAME", ""),
			{Name: "command", About: "COMMAND", Rest: true, Into: &n.Command, Names: reach.Command},
			flag(&n.Events, "on", "`EVENTS`, with commas"),
			flag(&risk, "min-risk", "leave out approvals below: low|medium|high|critical").fills(&n.MinRisk),
			flag(&n.URL, "url", "POST to this `URL`").names(reach.Address),
			flag(&n.SecretEnv, "secret-env", "`VAR` of the engine's environment that holds the signing secret").names(reach.Variable),
			flag(&n.Rate, "rate", "`N`"),
		},
		Check: func(*Call) error {
			if n.MinRisk = judge.Risk(risk); risk == "low" {
				n.MinRisk = "" // nothing is below low
			}
			return n.Check()
		},
	}, func(ctx context.Context, c *Call) (notice.Status, error) {
		made, _, err := c.Notices.Put(ctx, c.By, n)
		return notice.Status{Notice: made}, err
	})
}
