package ssh

import (
	"context"
	"errors"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/command"
	"swarmdeck/ui/serve"
)

// Others are the engines that share a database with this one. The zero value is
// none.
type Others struct {
	// Owner tells who has a tenant: this engine, or which other. Nil is this one. It
	// is asked for each session, and bounds its own time.
	Owner func(ctx context.Context, tenant string) (owner serve.Peer, here bool, err error)
	// Grants tells what a key opens, in the tenants of others too; nil is what it
	// opens here.
	Grants func(fingerprint string) []operator.Grant
	// Peer names the engine that has a key, and so may bring sessions here; nil is
	// none.
	Peer func(fingerprint string) (name string, ok bool)
}

func (o Others) filled(engines command.Engines) Others {
	if o.Owner == nil {
		o.Owner = func(context.Context, string) (serve.Peer, bool, error) { return serve.Peer{}, true, nil }
	}
	if o.Grants == nil {
		o.Grants = func(print string) (all []operator.Grant) {
			for _, eng := range engines.All() {
				all = append(all, eng.Operators.Grants(print)...)
			}
			return all
		}
	}
	return o
}

// vouched tells who someone is whom another engine vouches for. A user of its machine
// may what one of this machine may: both can open the data.
func (r *reception) vouched(who serve.Who) (serve.Who, error) {
	if who.User != "" {
		who.Role = string(operator.Admin)
		return who, nil
	}
	for _, g := range r.others.Grants(who.Key) {
		if g.Tenant == who.Tenant {
			who.Name, who.Role = g.Name, string(g.Role)
			return who, nil
		}
	}
	return who, errChanged
}

// seat is where someone sits, as far as this machine knows.
func seat(who serve.Who) string {
	if who.Peer == "" {
		return who.From
	}
	return strings.TrimSpace(who.From + " at " + who.Peer)
}

// relay has the engine that has the tenant carry a session out; false is that it is
// this one. One that another brought is not passed on again: that one asks anew who
// has the tenant.
func (r *reception) relay(ctx context.Context, t *serve.Session, env *command.Env) (code int, elsewhere bool) {
	for end := time.Now().Add(command.OtherPatience); ; {
		owner, here, err := r.others.Owner(ctx, t.Who.Tenant)
		switch {
		case err != nil:
			return command.Report(env, t.Args, core.Errorf(core.Unavailable, "find the engine that has %s: %v", t.Who.Tenant, err)), true
		case here:
			return 0, false
		case t.Who.Peer != "":
			return serve.Moved, true
		}
		code, err = serve.Relay(ctx, t, serve.Login{To: owner, As: r.key, Vouch: serve.Vouch{
			Tenant: t.Who.Tenant, Name: t.Who.Name, Key: t.Who.Key, Seat: t.Who.From,
		}}, serve.Screen(env.Getenv))
		switch {
		case err == nil || ctx.Err() != nil || code == serve.Gone:
			return code, true
		case !errors.Is(err, serve.ErrUnbegun):
			command.Report(env, t.Args, core.Errorf(core.Unavailable, "%v", err))
			return code, true
		case time.Now().After(end):
			command.Report(env, t.Args, core.Errorf(core.Unavailable, "%s is with another engine: %v", t.Who.Tenant, err))
			return code, true
		}
		time.Sleep(otherPoll) // until it is taken over
	}
}

const otherPoll = 100 * time.Millisecond
