package record

import (
	"bytes"
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
)

// What Put did.
const (
	Created   = "created"
	Changed   = "changed"
	Unchanged = "unchanged"
)

// Put keeps a record as it is given, in place of one of the same id. An event
// without a type is SUBJECT.created or SUBJECT.changed. A record that is the
// same by same, which is Same where it is nil, is left as it
// was, and v becomes that.
func (k *Kind[P]) Put(tx *audit.Tx, e Event, v P, same func(a, b P) bool) (action string, err error) {
	if same == nil {
		same = k.Same
	}
	old, err := k.Load(tx, k.ID(v))
	switch {
	case err != nil:
		return "", err
	case isNil(old):
		action = Created
	case same(old, v):
		assign(v, old)
		return Unchanged, nil
	default:
		action = Changed
	}
	if e.Type == "" {
		e.Type = k.subject() + "." + action
	}
	return action, k.Save(tx, e, old, v)
}

// Same says whether two records hold the same, whatever their heads.
func (k *Kind[P]) Same(old, v P) bool {
	a, errA := k.encode(nil, k.headless(old))
	b, errB := k.encode(nil, k.headless(v))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// Get is one record of a tenant; core.NotFound when there is none.
func (k *Kind[P]) Get(ctx context.Context, tenant, id string) (v P, err error) {
	err = k.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		v, err = k.Need(tx, id)
		return err
	})
	return v, err
}

// List lists a tenant's records by key. Damaged ones are named in the error, and
// all others returned beside it.
func (k *Kind[P]) List(ctx context.Context, tenant string) (all []P, err error) {
	err = k.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return k.Each(tx, func(v P) error {
			all = append(all, v)
			return nil
		})
	})
	return all, err
}

// Map is List by id.
func (k *Kind[P]) Map(ctx context.Context, tenant string) (map[string]P, error) {
	all := map[string]P{}
	err := k.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return k.Each(tx, func(v P) error {
			all[k.ID(v)] = v
			return nil
		})
	})
	return all, err
}

// Delete removes the record of an id and returns it, with an event of that
// type; core.NotFound when there is none.
func (k *Kind[P]) Delete(ctx context.Context, by core.Caller, event, id string) (gone P, err error) {
	err = k.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if gone, err = k.Need(tx, id); err != nil {
			return err
		}
		return k.Remove(tx, Event{Type: event}, gone)
	})
	return gone, err
}

// ReadAll is Read for every tenant. What can't be read is a trouble of its
// tenant; the error is what no tenant is the cause of.
func (k *Kind[P]) ReadAll(ctx context.Context, book *health.Troubles, tenants func(context.Context) ([]string, error)) error {
	all, err := tenants(ctx)
	if err != nil {
		return fmt.Errorf("list tenants: %w", err)
	}
	return book.Tenants(ctx, k.subject(), all, func(tenant string) error { return k.Read(ctx, tenant) })
}

// ByOperator reports a change that somebody wants to make who is no person, and
// audits it as SUBJECT.refused.
func (k *Kind[P]) ByOperator(ctx context.Context, by core.Caller, id string) error {
	if by.Kind == core.Operator {
		return nil
	}
	return refuse(ctx, k.Ledger, by, k.Noun, k.subject(), id)
}

func refuse(ctx context.Context, ledger *audit.Ledger, by core.Caller, noun, subject, id string) error {
	cause := core.Errorf(core.Denied, "%s %s: only an operator may change it; %s %q may not", noun, id, by.Kind, by.Name)
	return ledger.Refuse(ctx, by, audit.Entry{Type: subject + ".refused", Subject: subject, ID: id}, cause)
}

// Read tells Follow of the records that a tenant has. Damaged ones are told to
// Unread and named in the error; the others are followed.
func (k *Kind[P]) Read(ctx context.Context, tenant string) error {
	err := k.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return k.each(tx, func(v P) error {
			k.Follow(tenant, k.ID(v), v)
			return nil
		}, func(err error) {
			for _, d := range core.DamagedIn(err) {
				if k.Unread != nil {
					k.Unread(tenant, d.Key)
				}
			}
		})
	})
	if err != nil {
		return fmt.Errorf("read every %s of %s: %w", k.Noun, tenant, err)
	}
	return nil
}
