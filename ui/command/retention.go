package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/retention"
)

func (t *tree) retentions() *cobra.Command {
	return t.group("retention", "How long finished things stay",
		t.retentionSet(),
		lists(t, spec{use: "list", short: "List what leaves, and when", effect: Reads}, nil, retentionColumns,
			func(c *call, f core.Filter) (core.Page[retention.Policy], error) {
				all, err := c.eng.Retention.List(c.ctx, c.by.Tenant)
				return core.Pick(all, err, f, func(p retention.Policy) core.Traits {
					return core.Traits{At: p.CreatedAt, Kind: p.Kind, Text: p.Kind + " " + p.Export}
				})
			}),
		t.command(spec{
			use: "apply", short: "Let what is too old leave now, not in some seconds", effect: Destroys, role: Admin, confirm: ConfirmAsk,
			run: func(c *call, _ []string) error {
				some, err := c.eng.Retention.Apply(c.ctx, c.by.Tenant)
				if err != nil {
					return err
				}
				return c.say(map[string]bool{"left": some}, "done")
			},
		}),
		t.command(spec{
			use: "delete KIND", short: "Keep everything of a kind from now on", effect: Writes, role: Admin, args: []string{"retention"},
			run: changes(retentionColumns, func(c *call, kind string) (retention.Policy, error) {
				return c.eng.Retention.Delete(c.ctx, c.by, kind)
			}),
		}),
	)
}

func (t *tree) retentionSet() *cobra.Command {
	var p retention.Policy
	var age time.Duration
	return t.command(spec{
		use: "set KIND", short: "Let old things of a kind leave, by age or number", effect: Destroys, role: Admin, confirm: ConfirmAsk, args: []string{"retention"},
		long: "Let things of a kind leave once they ended longer than --age ago, or once there are more than --count: " + strings.Join(retention.Kinds(), ", ") + ".\n" +
			"What runs, waits or is open stays, and so does what that needs. Each slice that leaves is an event of the audit log, so that\n" +
			"audit reconcile knows it from what somebody removed. Audit events leave as sealed pieces, after they were written to the\n" +
			"directory --export; the rest of the log, and every checkpoint that was given out, still verifies.",
		example: "tenant retention set tasks --age 30d --count 100000\ntenant retention set audit --age 365d --export /srv/audit",
		flags: func(f *pflag.FlagSet) {
			spanVar(f, &age, "age", "what ended longer than this `TIME` ago leaves")
			f.Int64Var(&p.Count, "count", 0, "at most `N` of the newest stay; for logs, lines of each")
			f.StringVar(&p.Export, "export", "", "`DIR` that audit events are written to before they leave")
		},
		check: func(c *call, args []string) error {
			p.Kind, p.AgeS = args[0], int64(age/time.Second)
			if c.flags.Changed("age") && p.AgeS == 0 {
				p.AgeS = -1 // 0 would be no age
			}
			if c.flags.Changed("count") && p.Count == 0 {
				p.Count = -1
			}
			if p.Export != "" {
				if err := c.namesPlace(&p.Export); err != nil {
					return err
				}
			}
			return p.Check()
		},
		run: func(c *call, _ []string) error {
			kept, _, err := c.eng.Retention.Set(c.ctx, c.by, p)
			if err != nil {
				return err
			}
			return record(c, kept, retentionColumns(c))
		},
	})
}

func retentionColumns(c *call) []column[retention.Policy] {
	type P = retention.Policy
	return []column[P]{
		{title: "KIND", text: func(p P) string { return p.Kind }},
		{title: "AGE", right: true, text: func(p P) string {
			if p.AgeS == 0 {
				return ""
			}
			return (time.Duration(p.AgeS) * time.Second).String()
		}},
		{title: "COUNT", right: true, text: func(p P) string {
			if p.Count == 0 {
				return ""
			}
			return strconv.FormatInt(p.Count, 10)
		}},
		{title: "EXPORT", most: 60, text: func(p P) string { return p.Export }},
		{title: "SET", wide: true, text: func(p P) string { return stamp(p.UpdatedAt) }},
	}
}

func (t *tree) auditCheckSegment() *cobra.Command {
	return t.command(spec{
		use: "check-segment FILE", short: "Check events that left the log against it", effect: Reads, args: []string{sourceText},
		long: "Check a file that audit events were written to before they left (tenant retention set audit --export): its events and\n" +
			"hashes lead to the signed checkpoint in it, and the log extends that.",
		run: func(c *call, args []string) error {
			in, err := c.large("file", args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			found, err := c.eng.Audit.VerifySegment(c.ctx, c.by.Tenant, in)
			if err != nil {
				return inFile(err)
			}
			return c.show(found)
		},
	})
}
