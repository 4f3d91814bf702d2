package pane

import (
	"context"
	"time"

	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
)

// FleetWorld is what the cockpit reads of agents beside their records.
type FleetWorld interface {
	// Activity is what an agent does, or did in its newest run; nil when that is
	// what is known, by its At.
	Activity(ctx context.Context, tenant, name string, known time.Time) (*fleet.Activity, error)
	// Places are what file rules say of an agent of a role.
	Places(tenant, role, agent string) files.Places
	// Choices are what a new agent may be made of, as far as that is known.
	Choices(ctx context.Context, tenant string) (Choices, error)
}

// Choices are what a new agent may be made of. An exec project may be any
// other as well; one that a server keeps may not.
type Choices struct {
	Runtimes []string
	Projects []fleet.Project
	Roles    []fleet.Role
}

func (w world) Activity(ctx context.Context, tenant, name string, known time.Time) (*fleet.Activity, error) {
	return w.Fleet.Activity(ctx, tenant, name, known)
}

func (w world) Places(tenant, role, agent string) files.Places {
	return w.Files.Places(tenant, role, agent)
}

func (w world) Choices(ctx context.Context, tenant string) (c Choices, err error) {
	c.Runtimes = w.Fleet.Runtimes()
	if c.Projects, err = w.Fleet.Projects(ctx, tenant); err != nil {
		return c, err
	}
	c.Roles, err = w.Fleet.Roles(ctx, tenant, "")
	return c, err
}
