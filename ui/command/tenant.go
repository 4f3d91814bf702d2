package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

func (t *tree) tenants() *cobra.Command {
	var l filter
	return t.group("tenant", "Isolated worlds within the data file",
		t.command(spec{
			use: "create ID", short: "Make a tenant", effect: Writes, role: Admin,
			run: func(c *call, args []string) error {
				if err := core.CheckTenant(args[0]); err != nil {
					return err
				}
				eng, err := c.engine()
				if err != nil {
					return err
				}
				by := c.operator()
				by.Tenant = args[0]
				made, err := eng.Swarm.CreateTenant(c.ctx, by, args[0])
				if err != nil {
					return err
				}
				return record(c, made, c.tenantColumns())
			},
		}),
		t.command(spec{
			use: "list", short: "List the tenants", effect: Reads,
			flags: func(f *pflag.FlagSet) { l.bind(f) },
			run: func(c *call, _ []string) error {
				f, err := l.read(c)
				if err != nil {
					return err
				}
				eng, err := c.engine()
				if err != nil {
					return err
				}
				all, err := eng.Swarm.Tenants(c.ctx)
				if err != nil {
					return err
				}
				page, err := pick(all, f, func(t swarm.Tenant) traits { return traits{at: t.CreatedAt, text: t.TenantID} })
				if err != nil {
					return err
				}
				return list(c, page, c.tenantColumns())
			},
		}),
		t.command(spec{
			use: "show [ID]", short: "Show a tenant", effect: Reads, args: []string{"tenant"},
			run: func(c *call, args []string) error {
				if len(args) == 1 {
					c.g.Tenant = args[0]
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				found, err := eng.Swarm.Tenant(c.ctx, by.Tenant)
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
	)
}

func (c *call) tenantColumns() []column[swarm.Tenant] {
	return []column[swarm.Tenant]{
		{title: "TENANT", text: func(t swarm.Tenant) string { return t.TenantID }},
		{title: "AGE", right: true, text: func(t swarm.Tenant) string { return c.age(t.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(t swarm.Tenant) string { return stamp(t.CreatedAt) }},
	}
}
