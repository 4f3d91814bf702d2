package operator

import (
	"context"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
)

// Grant is what a proof opens: whose it is in a tenant.
type Grant struct {
	Tenant string
	Name   string
	Role   Role
	Proof  string // of core.Caller
	Person string // likewise
	Since  time.Time
	Groups []string

	delegate string // who stands in for them, until away
	away     time.Time
}

// By is the caller that the grant makes of one who came with its proof.
func (g Grant) By(came core.Caller) core.Caller {
	return core.Caller{Tenant: g.Tenant, Name: g.Name, Kind: core.Operator, Door: came.Door, Seat: came.Seat, Far: came.Far, Proof: g.Proof, Person: g.Person, Known: g.Since}
}

// Operators keeps the operators of every tenant. It is safe for concurrent
// use.
type Operators struct {
	ledger  *audit.Ledger
	tenants func(context.Context) ([]string, error)
	kind    record.Table[Operator]

	state  core.Condition     // of what follows
	grants map[string][]Grant // by proof
}

// New reads who may enter. A record that can't be read lets nobody in.
func New(ctx context.Context, book *health.Troubles, ledger *audit.Ledger, tenants func(context.Context) ([]string, error)) (*Operators, error) {
	o := &Operators{ledger: ledger, tenants: tenants, grants: map[string][]Grant{}}
	o.kind = &record.Kind[*Operator]{
		Noun: "operator", Bucket: "operator", Ledger: ledger, Follow: o.follow,
		ID:    func(who *Operator) string { return who.Name },
		State: (*Operator).state,
	}
	ledger.Register(o.kind.Auditable())
	if err := o.kind.ReadAll(ctx, book, tenants); err != nil {
		return nil, err
	}
	return o, nil
}

// follow notes what an operator's proofs open; nil has gone.
func (o *Operators) follow(tenant, name string, who *Operator) {
	o.state.Change(func() {
		for proof, all := range o.grants {
			all = slices.DeleteFunc(all, func(g Grant) bool { return g.Tenant == tenant && g.Name == name })
			if o.grants[proof] = all; len(all) == 0 {
				delete(o.grants, proof)
			}
		}
		if who == nil {
			return
		}
		for _, g := range who.Grants() {
			o.grants[g.Proof] = append(o.grants[g.Proof], g)
		}
	})
}

// Grants are what an operator's proofs open.
func (o *Operator) Grants() (all []Grant) {
	for proof, since := range o.since() {
		all = append(all, Grant{o.TenantID, o.Name, o.Role, proof, o.Person(), since, o.Groups, o.Delegate, o.AwayUntil})
	}
	return all
}

// Grants tells what a proof opens. A user of no machine in particular is that of each.
func (o *Operators) Grants(proof string) (all []Grant) {
	o.state.Look(func() {
		all = slices.Clone(o.grants[proof])
		if user, _, at := strings.Cut(proof, "@"); at && IsUserAt(proof) {
			all = append(all, o.grants[user]...)
		}
	})
	return all
}

// Whose tells whose a proof is in a tenant.
func (o *Operators) Whose(tenant, proof string) (Grant, bool) {
	for _, g := range o.Grants(proof) {
		if g.Tenant == tenant {
			return g, true
		}
	}
	return Grant{}, false
}

// Known says whether there is an operator or a group of that name.
func (o *Operators) Known(tenant, name string) bool {
	return o.any(tenant, func(g Grant) bool { return g.Name == name || slices.Contains(g.Groups, name) })
}

// Belongs says whether an operator is the one of that name, or in the group.
func (o *Operators) Belongs(tenant, operator, to string) bool {
	return o.any(tenant, func(g Grant) bool { return g.Name == operator && (operator == to || slices.Contains(g.Groups, to)) })
}

// StandsIn names for whom an operator answers at a time what is for another, who is away
// then: the one of that name, or one of the group; "" for nobody.
func (o *Operators) StandsIn(tenant, operator, to string, at time.Time) (who string) {
	o.any(tenant, func(g Grant) bool {
		if g.delegate == operator && at.Before(g.away) && (g.Name == to || slices.Contains(g.Groups, to)) {
			who = g.Name
		}
		return who != ""
	})
	return who
}

func (o *Operators) any(tenant string, is func(Grant) bool) (found bool) {
	o.state.Look(func() {
		for _, of := range o.grants {
			found = found || slices.ContainsFunc(of, func(g Grant) bool { return g.Tenant == tenant && is(g) })
		}
	})
	return found
}

// Holds says whether a proof is still that name's, in that role, and returns a
// channel that is closed at the next change of any.
func (o *Operators) Holds(g Grant) (holds bool, changed <-chan struct{}) {
	changed = o.state.Look(func() {
		holds = slices.ContainsFunc(o.grants[g.Proof], func(now Grant) bool { return now.Tenant == g.Tenant && now.Name == g.Name && now.Role == g.Role })
	})
	return holds, changed
}

// Put makes an operator as it is given and says what that did: created,
// changed or unchanged. A user or a key that another operator of the tenant has
// is refused: who it is must be one. What was theirs before stays so since then.
func (o *Operators) Put(ctx context.Context, by core.Caller, who Operator) (_ Operator, action string, err error) {
	if err := who.Check(); err != nil {
		return who, "", err
	}
	err = o.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		var before Operator
		if err := o.kind.Each(tx, func(other *Operator) error {
			if other.Name == who.Name {
				before = *other
				return nil
			}
			return who.shares(other)
		}); err != nil {
			return err
		}
		who.keep(before.since(), tx.Now())
		who.Delegate, who.AwayUntil = before.Delegate, before.AwayUntil
		action, err = o.kind.Put(tx, record.Event{}, &who, nil)
		return err
	})
	return who, action, err
}

// shares refuses a user or a key that another operator has.
func (o *Operator) shares(other *Operator) error {
	theirs := other.since()
	for _, u := range o.Users {
		if _, has := theirs[u.Proof()]; has {
			return core.Errorf(core.Conflict, "user %s is operator %s", strings.TrimPrefix(u.Proof(), "uid:"), other.Name).With("field", "uid")
		}
	}
	for _, k := range o.Keys {
		if _, has := theirs[k.Fingerprint]; has {
			return core.Errorf(core.Conflict, "key %s is that of operator %s", k.Fingerprint, other.Name).With("field", "keys")
		}
	}
	return nil
}

// keep dates the proofs: those that were theirs before, and those that are new.
func (o *Operator) keep(before map[string]time.Time, now time.Time) {
	since := func(proof string) time.Time {
		if t, had := before[proof]; had {
			return t
		}
		return now
	}
	for i := range o.Users {
		o.Users[i].Since = since(o.Users[i].Proof())
	}
	for i := range o.Keys {
		o.Keys[i].Since = since(o.Keys[i].Fingerprint)
	}
}

// maxAway bounds how long somebody may stand in for another.
const maxAway = 90 * 24 * time.Hour

// Away has another operator stand in for one until a time: answer what is for them. ""
// ends it. An operator says so for themselves; an admin for anyone.
func (o *Operators) Away(ctx context.Context, by core.Caller, name, delegate string, until time.Time) (Operator, error) {
	var out Operator
	err := o.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		was, err := o.kind.Need(tx, name)
		if err != nil {
			return err
		}
		out = *was
		if delegate == "" {
			out.Delegate, out.AwayUntil = "", time.Time{}
		} else {
			_, err := o.kind.Need(tx, delegate)
			switch {
			case err != nil:
				return err
			case delegate == name:
				return core.Invalid("delegate", delegate, "another operator")
			case !until.After(tx.Now()) || until.After(tx.Now().Add(maxAway)):
				return core.Invalid("until", until.UTC().Format(time.RFC3339), "a time within the next 90 days")
			}
			out.Delegate, out.AwayUntil = delegate, until.UTC()
		}
		_, err = o.kind.Put(tx, record.Event{}, &out, nil)
		return err
	})
	return out, err
}

// Remove takes an operator away; their sessions end.
func (o *Operators) Remove(ctx context.Context, by core.Caller, name string) (Operator, error) {
	return record.Value(o.kind.Delete(ctx, by, "operator.removed", name))
}

// Operator is one of a tenant's.
func (o *Operators) Operator(ctx context.Context, tenant, name string) (Operator, error) {
	return record.Value(o.kind.Get(ctx, tenant, name))
}

// List lists a tenant's operators by name.
func (o *Operators) List(ctx context.Context, tenant string) ([]Operator, error) {
	return record.Values(o.kind.List(ctx, tenant))
}
