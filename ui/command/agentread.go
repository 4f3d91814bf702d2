package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
)

func (t *tree) agentHistory() *cobra.Command {
	var l filter
	return t.command(spec{
		use: "history NAME", short: "List what an agent was asked, newest first", effect: Reads, args: []string{"agent"},
		flags: func(f *pflag.FlagSet) { l.bind(f, taskStates()...) },
		run: func(c *call, args []string) error {
			f, err := l.read(c, taskStates()...)
			if err != nil {
				return err
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			page, err := eng.Fleet.History(c.ctx, by.Tenant, args[0], f)
			if err != nil {
				return err
			}
			return list(c, page, c.historyColumns())
		},
	})
}

func (t *tree) agentLog() *cobra.Command {
	var l filter
	var follow bool
	levels := []string{"DEBUG", "INFO", "WARN", "ERROR"}
	return t.command(spec{
		use: "log NAME", short: "Show an agent's conversation log, newest first", effect: Reads, args: []string{"agent"},
		long: "Show an agent's conversation log, newest line first and one line to a page unless --page-size says more.\n" +
			"--follow prints from the oldest line on and goes on until interrupted.",
		flags: func(f *pflag.FlagSet) {
			l.bind(f, levels...)
			f.BoolVar(&follow, "follow", false, "print the log and go on with what comes")
		},
		run: func(c *call, args []string) error {
			f, err := l.read(c, levels...)
			if err != nil {
				return err
			}
			if follow {
				if err := c.activate(); err != nil {
					return err
				}
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			if follow {
				agent, err := eng.Fleet.Agent(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				exists := func() (bool, error) {
					_, err := eng.Fleet.Agent(c.ctx, by.Tenant, agent.Name)
					return false, err
				}
				return c.printLog(eng, by.Tenant, "agent:"+agent.Name, 0, true, exists)
			}
			page, err := eng.Fleet.Log(c.ctx, by.Tenant, args[0], f)
			if err != nil {
				return err
			}
			return list(c, page, logColumns())
		},
	})
}

func logColumns() []column[swarm.LogLine] {
	type L = swarm.LogLine
	return []column[L]{
		{title: "TIME", text: func(l L) string { return stamp(l.Timestamp) }},
		{title: "LEVEL", text: func(l L) string { return l.Level }},
		{title: "SOURCE", wide: true, text: func(l L) string { return l.Source }},
		{title: "TASK", wide: true, text: func(l L) string { return l.TaskID }},
		{title: "MESSAGE", text: func(l L) string { return l.Message }},
	}
}

func (c *call) historyColumns() []column[fleet.HistoryItem] {
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

func (c *call) agentColumns() []column[fleet.Agent] {
	type A = fleet.Agent
	return []column[A]{
		{title: "NAME", text: func(a A) string { return a.Name }},
		{title: "STATE", text: A.State},
		{title: "PROJECT", most: 20, text: func(a A) string { return a.Project }},
		{title: "ROLE", most: 20, text: func(a A) string { return a.Role }},
		{title: "AGE", right: true, text: func(a A) string { return c.age(a.CreatedAt) }},
		{title: "STATUS", wide: true, text: func(a A) string { return string(a.Status) }},
		{title: "RUNTIME", wide: true, text: func(a A) string { return a.Runtime }},
		{title: "PID", wide: true, right: true, text: func(a A) string { return count(int64(a.PID)) }},
		{title: "RESTARTS", wide: true, right: true, text: func(a A) string { return count(int64(a.Restarts)) }},
		{title: "SESSION", wide: true, text: func(a A) string { return a.SessionID }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "TOKENS", wide: true, right: true, text: func(a A) string { return count(a.Usage.Tokens) }},
		{title: "COST", wide: true, right: true, text: func(a A) string { return fmt.Sprintf("$%.2f", a.Usage.CostUSD) }},
		{title: "COMMAND", wide: true, text: func(a A) string { return Join(a.Command) }},
		{title: "LAST", most: 48, text: func(a A) string {
			for _, s := range []string{a.Reason, a.Attention, a.LastTask} {
				if strings.TrimSpace(s) != "" {
					return s
				}
			}
			return ""
		}},
	}
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (t *tree) projects() *cobra.Command {
	var l filter
	return t.group("project", "Sets of agents' roles",
		t.command(spec{
			use: "list", short: "List the projects", effect: Reads,
			flags: func(f *pflag.FlagSet) { l.bind(f) },
			run: func(c *call, _ []string) error {
				f, err := l.read(c)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				all, err := eng.Fleet.Projects(c.ctx, by.Tenant)
				if err != nil {
					return err
				}
				page, err := pick(all, f, func(p fleet.Project) traits { return traits{text: p.ID + " " + p.Name + " " + p.Description} })
				if err != nil {
					return err
				}
				return list(c, page, []column[fleet.Project]{
					{title: "PROJECT", text: func(p fleet.Project) string { return p.Name }},
					{title: "ID", wide: true, text: func(p fleet.Project) string { return p.ID }},
					{title: "DESCRIPTION", most: 60, text: func(p fleet.Project) string { return p.Description }},
				})
			},
		}))
}

func (t *tree) roles() *cobra.Command {
	var l filter
	var project string
	return t.group("role", "What agents of a project are for",
		t.command(spec{
			use: "list", short: "List the roles of a project", effect: Reads,
			flags: func(f *pflag.FlagSet) {
				l.bind(f)
				f.StringVar(&project, "project", "", "`PROJECT` to list (default all)")
				source(f, "project", "project")
			},
			run: func(c *call, _ []string) error {
				f, err := l.read(c)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				names := []string{project}
				if project == "" {
					all, err := eng.Fleet.Projects(c.ctx, by.Tenant)
					if err != nil {
						return err
					}
					names = nil
					for _, p := range all {
						names = append(names, p.Name)
					}
				}
				var all []fleet.Role
				for _, name := range names {
					roles, err := eng.Fleet.Roles(c.ctx, by.Tenant, name)
					if err != nil {
						return err
					}
					all = append(all, roles...)
				}
				page, err := pick(all, f, func(r fleet.Role) traits { return traits{text: r.ID + " " + r.Name + " " + r.ProjectName} })
				if err != nil {
					return err
				}
				return list(c, page, []column[fleet.Role]{
					{title: "ROLE", text: func(r fleet.Role) string { return r.Name }},
					{title: "PROJECT", text: func(r fleet.Role) string { return r.ProjectName }},
					{title: "ID", wide: true, text: func(r fleet.Role) string { return r.ID }},
				})
			},
		}))
}
