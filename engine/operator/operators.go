package operator

import (
	"context"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
)

// Grant is what a key opens.
type Grant struct {
	Tenant string
	Name   string
	Role   Role
	Print  string // the key's fingerprint
}

// Operators keeps the operators of every tenant. It is safe for concurrent
// use.
type Operators struct {
	ledger  *audit.Ledger
	tenants func(context.Context) ([]string, error)
	kind    record.Table[Operator]

	state  core.Condition     // of what follows
	grants map[string][]Grant // by fingerprint
}

// New reads who may enter. A record that can't be read lets nobody in.
func New(ctx context.Context, book *health.Troubles, ledger *audit.Ledger, tenants func(context.Context) ([]string, error)) (*Operators, error) {
	o := &Operators{ledger: ledger, tenants: tenants, grants: map[string][]Grant{}}
	o.kind = &record.Kind[*Operator]{
		Noun: "operator", Bucket: "operator", Ledger: ledger, Follow: o.follow,
		ID: func(who *Operator) string { return who.Name },
		Head: func(who *Operator) record.Head {
			return record.Head{Tenant: &who.TenantID, Created: &who.CreatedAt, Updated: &who.UpdatedAt, Seq: &who.AuditSeq}
		},
		State: (*Operator).state,
	}
	ledger.Register(o.kind.Auditable())
	if err := o.kind.ReadAll(ctx, book, tenants); err != nil {
		return nil, err
	}
	return o, nil
}

// follow notes what an operator's keys open; nil has gone.
func (o *Operators) follow(tenant, name string, who *Operator) {
	o.state.Change(func() {
		for print, all := range o.grants {
			all = slices.DeleteFunc(all, func(g Grant) bool { return g.Tenant == tenant && g.Name == name })
			if o.grants[print] = all; len(all) == 0 {
				delete(o.grants, print)
			}
		}
		if who == nil {
			return
		}
		for _, k := range who.Keys {
			o.grants[k.Fingerprint] = append(o.grants[k.Fingerprint], Grant{tenant, name, who.Role, k.Fingerprint})
		}
	})
}

// Grants tells what a key opens, by its fingerprint.
func (o *Operators) Grants(print string) (all []Grant) {
	o.state.Look(func() { all = slices.Clone(o.grants[print]) })
	return all
}

// Holds says whether a grant still stands as it was given, and returns a
// channel that is closed at the next change of any.
func (o *Operators) Holds(g Grant) (holds bool, changed <-chan struct{}) {
	changed = o.state.Look(func() { holds = slices.Contains(o.grants[g.Print], g) })
	return holds, changed
}

// Put makes an operator as it is given and says what that did: created,
// changed or unchanged. A key that another operator of the tenant has is
// refused: who it is must be one.
func (o *Operators) Put(ctx context.Context, by core.Caller, who Operator) (_ Operator, action string, err error) {
	if err := who.Check(); err != nil {
		return who, "", err
	}
	err = o.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := o.kind.Each(tx, who.shares); err != nil {
			return err
		}
		action, err = o.kind.Put(tx, record.Event{}, &who, nil)
		return err
	})
	return who, action, err
}

// shares refuses a key that another operator has.
func (o *Operator) shares(other *Operator) error {
	if other.Name == o.Name {
		return nil
	}
	for _, k := range o.Keys {
		if slices.ContainsFunc(other.Keys, func(have Key) bool { return have.Fingerprint == k.Fingerprint }) {
			return core.Errorf(core.Conflict, "key %s is that of operator %s", k.Fingerprint, other.Name).With("field", "keys")
		}
	}
	return nil
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
