package operator

import (
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

const bOperator store.Bucket = "operator" // name → Operator

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

	state  core.Condition     // of what follows
	grants map[string][]Grant // by fingerprint
}

// New reads who may enter.
func New(ctx context.Context, ledger *audit.Ledger, tenants func(context.Context) ([]string, error)) (*Operators, error) {
	o := &Operators{ledger: ledger, tenants: tenants, grants: map[string][]Grant{}}
	all, err := tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	for _, t := range all {
		found, err := o.List(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("operators of %s: %w", t, err)
		}
		for i := range found {
			o.index(&found[i])
		}
	}
	return o, nil
}

// index notes what an operator's keys open; within a change.
func (o *Operators) index(who *Operator) {
	o.forget(who.TenantID, who.Name)
	for _, k := range who.Keys {
		o.grants[k.Fingerprint] = append(o.grants[k.Fingerprint], Grant{who.TenantID, who.Name, who.Role, k.Fingerprint})
	}
}

func (o *Operators) forget(tenant, name string) {
	for print, all := range o.grants {
		all = slices.DeleteFunc(all, func(g Grant) bool { return g.Tenant == tenant && g.Name == name })
		if o.grants[print] = all; len(all) == 0 {
			delete(o.grants, print)
		}
	}
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
		old, err := load(tx.Tx, who.Name)
		if err != nil {
			return err
		}
		if err := each(tx.Tx, func(other *Operator) error { return who.shares(other) }); err != nil {
			return err
		}
		who.TenantID, who.CreatedAt, who.UpdatedAt, action = tx.Tenant(), tx.Now(), tx.Now(), "created"
		var prev uint64
		if old != nil {
			if old.same(&who) {
				who, action = *old, "unchanged"
				return nil
			}
			who.CreatedAt, prev, action = old.CreatedAt, old.AuditSeq, "changed"
		}
		if who.AuditSeq, err = tx.Record(audit.Entry{Type: "operator." + action, Subject: "operator", ID: who.Name, State: who.state(), Prev: prev}); err != nil {
			return err
		}
		data, err := core.Encode(who)
		if err != nil {
			return fmt.Errorf("encode operator %s: %w", who.Name, err)
		}
		return tx.Put(bOperator, []byte(who.Name), data)
	})
	if err == nil && action != "unchanged" {
		o.state.Change(func() { o.index(&who) })
	}
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
func (o *Operators) Remove(ctx context.Context, by core.Caller, name string) (who Operator, err error) {
	err = o.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := load(tx.Tx, name)
		if err == nil && old == nil {
			err = core.Missing("operator", name)
		}
		if err != nil {
			return err
		}
		who = *old
		if _, err := tx.Record(audit.Entry{Type: "operator.removed", Subject: "operator", ID: name, State: audit.Gone, Prev: old.AuditSeq}); err != nil {
			return err
		}
		return tx.Delete(bOperator, []byte(name))
	})
	if err == nil {
		o.state.Change(func() { o.forget(who.TenantID, name) })
	}
	return who, err
}

// Operator is one of a tenant's.
func (o *Operators) Operator(ctx context.Context, tenant, name string) (who Operator, err error) {
	err = o.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		found, err := load(tx.Tx, name)
		if err == nil && found == nil {
			err = core.Missing("operator", name)
		}
		if err == nil {
			who = *found
		}
		return err
	})
	return who, err
}

// List lists a tenant's operators by name.
func (o *Operators) List(ctx context.Context, tenant string) (all []Operator, err error) {
	err = o.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return each(tx.Tx, func(who *Operator) error {
			all = append(all, *who)
			return nil
		})
	})
	return all, err
}

func load(tx store.Tx, name string) (*Operator, error) {
	data, err := tx.Get(bOperator, []byte(name))
	if err != nil || data == nil {
		return nil, err
	}
	return decode(data)
}

func decode(data []byte) (*Operator, error) {
	who := &Operator{}
	if err := core.DecodeStored(data, who); err != nil {
		return nil, fmt.Errorf("decode an operator: %w", err)
	}
	return who, nil
}

func each(tx store.Tx, visit func(*Operator) error) error {
	var bad error
	err := tx.Scan(bOperator, nil, nil, false, func(_, value []byte) bool {
		var who *Operator
		if who, bad = decode(value); bad == nil {
			bad = visit(who)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

// Auditables are what reconcile compares with the log.
func (o *Operators) Auditables() []audit.Auditable { return []audit.Auditable{audited{}} }

type audited struct{}

func (audited) Subject() string { return "operator" }

func (audited) States(tx store.Tx, visit func(string, any) error) error {
	return each(tx, func(who *Operator) error { return visit(who.Name, who.state()) })
}
