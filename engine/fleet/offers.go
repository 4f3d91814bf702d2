package fleet

import (
	"cmp"
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// maxOffers bounds the projects and roles that are learned at once.
const maxOffers = 1000

// Reach names the options that reach for the engine's own machine, as Homely
// has it. Options that make no sense reach for nothing.
func (f *Fleet) Reach(runtime string, options core.Raw) (places, secrets []string) {
	h, ok := f.opt.Runtimes[cmp.Or(runtime, "exec")].(Homely)
	if options, err := checkOptions(options); ok && err == nil && options != nil {
		return h.Reach(options)
	}
	return nil, nil
}

// Offers asks a runtime's server for its projects and roles, for options as an
// agent would be given them, and records them. A runtime that has no such
// server offers nothing.
func (f *Fleet) Offers(ctx context.Context, by core.Caller, runtime string, options core.Raw) ([]Offer, error) {
	rt, ok := f.opt.Runtimes[runtime]
	if !ok {
		return nil, core.Invalid("runtime", runtime, f.runtimes())
	}
	catalog, ok := rt.(Catalog)
	if !ok {
		return nil, nil
	}
	if options, err := checkOptions(options); err != nil {
		return nil, err
	} else if options == nil {
		return nil, core.Invalid("options", "{}", "what the runtime needs to find its server")
	}
	offers, err := catalog.Catalog(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("ask runtime %s for its projects: %w", runtime, err)
	}
	offers = fit(offers)
	return offers, f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		for _, o := range offers {
			if err := keep(tx, &f.projects, o.Project); err != nil {
				return err
			}
			for _, r := range o.Roles {
				if err := keep(tx, &f.roles, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// learn records what the server of an agent offers. It is for lists alone, so
// a failure leaves them as they are.
func (f *Fleet) learn(ctx context.Context, m *member) {
	a := m.rec.Load()
	if _, ok := f.opt.Runtimes[a.Runtime].(Catalog); ok {
		_, _ = f.Offers(ctx, m.self(), a.Runtime, a.Options)
	}
}

// fit leaves out what a list could not show.
func fit(offers []Offer) (out []Offer) {
	n := 0
	for _, o := range offers {
		if checkLabel("project", o.Project.Name) != nil || n >= maxOffers {
			continue
		}
		n++
		o.Project.ID, o.Project.Description = cut(o.Project.ID, maxCall), oneLine(o.Project.Description, maxReason)
		var roles []Role
		for _, r := range o.Roles {
			if checkLabel("role", r.Name) != nil || n >= maxOffers {
				continue
			}
			n++
			r.ID, r.ProjectID, r.ProjectName = cut(r.ID, maxCall), o.Project.ID, o.Project.Name
			roles = append(roles, r)
		}
		o.Roles = roles
		out = append(out, o)
	}
	return out
}
