package command

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/swarm"
)

func (t *tree) tenantCreate() *cobra.Command {
	return t.command(spec{
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
	})
}

func (t *tree) tenantList() *cobra.Command {
	return lists(t, spec{use: "list", short: "List the tenants", effect: Reads, ownScope: true}, nil, tenantColumns,
		func(c *call, f core.Filter) (core.Page[swarm.Tenant], error) {
			eng, err := c.engine()
			if err != nil {
				return core.Page[swarm.Tenant]{}, err
			}
			all, err := eng.Swarm.Tenants(c.ctx)
			if c.env.Abroad {
				all = slices.DeleteFunc(slices.Clone(all), func(t swarm.Tenant) bool { return t.TenantID != c.env.Caller.Tenant })
			}
			return core.Pick(all, err, f, func(t swarm.Tenant) core.Traits { return core.Traits{At: t.CreatedAt, Text: t.TenantID} })
		})
}

func (t *tree) tenantTroubles() *cobra.Command {
	return lists(t, spec{
		use: "troubles", short: "List what is wrong inside: records that can't be read, work that fails again and again", effect: Reads, ownScope: true,
		long: "List what is wrong with each tenant, and with the whole engine. A tenant with a trouble is degraded: what the\n" +
			"trouble names is left out, all else of it goes on, and so do the other tenants.",
	}, nil, troubleColumns, func(c *call, f core.Filter) (core.Page[health.Trouble], error) {
		eng, err := c.engine()
		if err == nil {
			err = eng.Inspect(c.ctx)
		}
		if err != nil {
			return core.Page[health.Trouble]{}, err
		}
		all := eng.Health.All()
		if c.env.Abroad {
			all = eng.Health.Of(c.env.Caller.Tenant)
		}
		return core.Pick(all, nil, f, func(one health.Trouble) core.Traits {
			return core.Traits{At: one.Since, Text: one.Tenant + " " + one.String()}
		})
	})
}

func (t *tree) tenantShow() *cobra.Command {
	return t.command(spec{
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
			return c.show(tenantShown{found, c.eng.Health.Of(found.TenantID)})
		},
	})
}

// tenantShown is a tenant with what is wrong with it.
type tenantShown struct {
	swarm.Tenant
	Troubles []health.Trouble `json:"troubles,omitempty"`
}

func troubleColumns(c *call) []column[health.Trouble] {
	return []column[health.Trouble]{
		{title: "TENANT", text: func(t health.Trouble) string { return cmp.Or(t.Tenant, "(all)") }},
		{title: "COMPONENT", text: func(t health.Trouble) string { return t.Component }},
		{title: "ABOUT", text: func(t health.Trouble) string { return t.About }},
		{title: "REASON", text: func(t health.Trouble) string { return t.Reason }},
		{title: "COUNT", right: true, text: func(t health.Trouble) string { return strconv.Itoa(t.Count) }},
		{title: "SINCE", right: true, text: func(t health.Trouble) string { return c.age(t.Since) }},
	}
}

func tenantColumns(c *call) []column[swarm.Tenant] {
	return []column[swarm.Tenant]{
		{title: "TENANT", text: func(t swarm.Tenant) string { return t.TenantID }},
		{title: "STATE", text: func(t swarm.Tenant) string {
			if c.eng != nil && len(c.eng.Health.Of(t.TenantID)) > 0 {
				return "degraded"
			}
			return "ok"
		}},
		{title: "AGE", right: true, text: func(t swarm.Tenant) string { return c.age(t.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(t swarm.Tenant) string { return stamp(t.CreatedAt) }},
	}
}
