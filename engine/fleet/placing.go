package fleet

import (
	"cmp"
	"context"

	"swarmdeck/engine/core"
)

// choose chooses the host of an agent that says by labels on which it is to run.
func (f *Fleet) choose(ctx context.Context, tenant string, c *Create) (err error) {
	if c.On == "" || c.Host != "" {
		return nil
	}
	if f.opt.Choose == nil {
		return core.Missing("on", c.On)
	}
	c.Host, err = f.opt.Choose(ctx, tenant, c.On)
	return err
}

// stays reports an agent that would move, and says where one stays that was placed by
// the same labels.
func (c *Create) stays(was *Agent) error {
	if c.Host == "" && c.On != "" && c.On == was.On {
		c.Host = was.Host
	}
	if c.Host != was.Host || c.On != "" && was.Host == "" {
		return core.Errorf(core.Conflict, "host: agent %s has its place on %s: it can't move; delete it and make it again", was.Name, cmp.Or(was.Host, "the engine's machine")).With("field", "host")
	}
	return nil
}

// Place chooses the host of an agent that is to be made and reports why that can't take
// it, before anything is made for it there.
func (f *Fleet) Place(ctx context.Context, by core.Caller, c *Create) error {
	if err := f.choose(ctx, by.Tenant, c); err != nil {
		return err
	}
	return f.checkHost(ctx, by, c)
}

// checkHost reports why an agent can't have its place on a host.
func (f *Fleet) checkHost(ctx context.Context, by core.Caller, c *Create) error {
	if c.Host == "" {
		return nil
	}
	if f.opt.Host == nil {
		return core.Missing("host", c.Host)
	}
	return f.opt.Host(ctx, by.Tenant, c.Host, c.Name)
}
