package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

func projects() []*Op {
	return []*Op{
		list(Op{Name: "project list", Short: "List the projects", ForAgents: true},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[fleet.Project], error) {
				all, err := c.Fleet.Projects(ctx, c.By.Tenant)
				return core.Pick(all, err, f, func(p fleet.Project) core.Traits {
					return core.Traits{Text: p.ID + " " + p.Name + " " + p.Description}
				})
			}),
	}
}

func roles() []*Op {
	var project string
	return []*Op{
		list(Op{
			Name: "role list", Short: "List the roles of a project", ForAgents: true,
			Params: []*Param{flag(&project, "project", "`PROJECT` to list (default all)").from("project")},
		}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[fleet.Role], error) {
			all, err := c.rolesOf(ctx, project)
			return core.Pick(all, err, f, func(r fleet.Role) core.Traits {
				return core.Traits{Text: r.ID + " " + r.Name + " " + r.ProjectName}
			})
		}),
	}
}

// rolesOf gives the roles of a project; of every project for "".
func (c *Call) rolesOf(ctx context.Context, project string) ([]fleet.Role, error) {
	if project != "" {
		return c.Fleet.Roles(ctx, c.By.Tenant, project)
	}
	projects, err := c.Fleet.Projects(ctx, c.By.Tenant)
	var all []fleet.Role
	for i := 0; i < len(projects) && err == nil; i++ {
		var roles []fleet.Role
		roles, err = c.Fleet.Roles(ctx, c.By.Tenant, projects[i].Name)
		all = append(all, roles...)
	}
	return all, err
}
