package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

func (t *tree) agentLog() *cobra.Command {
	var l filter
	var f core.Filter
	var follow bool
	levels := []string{"DEBUG", "INFO", "WARN", "ERROR"}
	return t.command(spec{
		use: "log NAME", short: "Show an agent's conversation log, newest first", effect: Reads, args: []string{"agent"},
		long: "Show an agent's conversation log, newest line first and one line to a page unless --page-size says more.\n" +
			"--follow prints from the oldest line on and goes on until interrupted.",
		example: "agent log lister --page-size 20",
		flags: func(f *pflag.FlagSet) {
			l.bind(f, levels...)
			f.BoolVar(&follow, "follow", false, "print the log and go on with what comes")
		},
		check: func(c *call, _ []string) (err error) {
			if f, err = l.read(c, levels...); err != nil || !follow {
				return err
			}
			return c.activate()
		},
		run: func(c *call, args []string) error {
			if follow {
				agent, err := c.eng.Fleet.Agent(c.ctx, c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				exists := func() (bool, error) {
					_, err := c.eng.Fleet.Agent(c.ctx, c.by.Tenant, agent.Name)
					return false, err
				}
				return c.printLog("agent:"+agent.Name, 0, true, exists)
			}
			page, err := c.eng.Fleet.Log(c.ctx, c.by.Tenant, args[0], f)
			if err != nil {
				return err
			}
			return list(c, page, logColumns(c))
		},
	})
}

func logColumns(*call) []column[task.LogLine] {
	type L = task.LogLine
	return []column[L]{
		{title: "TIME", text: func(l L) string { return stamp(l.Timestamp) }},
		{title: "LEVEL", text: func(l L) string { return l.Level }},
		{title: "SOURCE", wide: true, text: func(l L) string { return l.Source }},
		{title: "TASK", wide: true, text: func(l L) string { return l.TaskID }},
		{title: "MESSAGE", text: func(l L) string { return l.Message }},
	}
}

func historyColumns(c *call) []column[fleet.HistoryItem] {
	type H = fleet.HistoryItem
	return []column[H]{
		{title: "TASK", text: func(h H) string { return h.TaskID }},
		{title: "STATUS", text: func(h H) string { return string(h.Status) }},
		{title: "NEEDS YOU", text: func(h H) string {
			if h.NeedsUserAttention {
				return "yes"
			}
			return ""
		}},
		{title: "AGE", right: true, text: func(h H) string { return c.age(h.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(h H) string { return stamp(h.CreatedAt) }},
		{title: "URI", wide: true, text: func(h H) string { return h.URI }},
		{title: "MESSAGE", most: 60, text: func(h H) string { return h.Message }},
	}
}
