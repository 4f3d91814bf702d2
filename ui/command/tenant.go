package command

import (
	"slices"

	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

func (t *tree) tenants() *cobra.Command {
	return t.group("tenant", "Isolated worlds within the data file",
		t.command(spec{
			use: "create ID", short: "Make a tenant", effect: Writes, role: Admin, ownScope: true,
			check: func(_ *call, args []string) error { return core.CheckTenant(args[0]) },
			run: changes(tenantColumns, func(c *call, id string) (swarm.Tenant, error) {
				eng, err := c.engine()
				if err != nil {
					return swarm.Tenant{}, err
				}
				by, err := c.operator()
				if err != nil {
					return swarm.Tenant{}, err
				}
				by.Tenant = id
				return eng.Swarm.CreateTenant(c.ctx, by, id)
			}),
		}),
		lists(t, spec{use: "list", short: "List the tenants", effect: Reads, ownScope: true}, nil, tenantColumns,
			func(c *call, f core.Filter) (core.Page[swarm.Tenant], error) {
				eng, err := c.engine()
				if err != nil {
					return core.Page[swarm.Tenant]{}, err
				}
				all, err := eng.Swarm.Tenants(c.ctx)
				if c.env.Abroad {
					all = slices.DeleteFunc(slices.Clone(all), func(t swarm.Tenant) bool { return t.TenantID != c.env.Caller.Tenant })
				}
				return pick(all, err, f, func(t swarm.Tenant) traits { return traits{at: t.CreatedAt, text: t.TenantID} })
			}),
		t.command(spec{
			use: "show [ID]", short: "Show a tenant", effect: Reads, args: []string{"tenant"},
			check: func(c *call, args []string) error {
				if len(args) == 1 {
					c.g.Tenant = args[0]
				}
				return nil
			},
			run: func(c *call, _ []string) error {
				found, err := c.eng.Swarm.Tenant(c.ctx, c.by.Tenant)
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
	)
}

func tenantColumns(c *call) []column[swarm.Tenant] {
	return []column[swarm.Tenant]{
		{title: "TENANT", text: func(t swarm.Tenant) string { return t.TenantID }},
		{title: "AGE", right: true, text: func(t swarm.Tenant) string { return c.age(t.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(t swarm.Tenant) string { return stamp(t.CreatedAt) }},
	}
}
