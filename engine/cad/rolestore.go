package cad

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Roles are the roles of a tenant: the built-in ones, then its own by name.
func (c *Controller) Roles(tenant string) []RoleTemplate {
	all := slices.Clone(c.roles)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if t := c.tenants[tenant]; t != nil {
		for _, name := range slices.Sorted(maps.Keys(t.custom)) {
			all = append(all, *t.custom[name])
		}
	}
	return all
}

// Role is one role of a tenant.
func (c *Controller) Role(tenant, name string) (RoleTemplate, error) {
	all := c.Roles(tenant)
	names := make([]string, len(all))
	for i, r := range all {
		if names[i] = r.Name; r.Name == name {
			return r, nil
		}
	}
	return RoleTemplate{}, core.Invalid("role_name", name, strings.Join(names, ", "))
}

func (c *Controller) roleKind() record.Kind[RoleTemplate] {
	return record.Kind[RoleTemplate]{
		Noun: "cad.role", Bucket: "cad.role", Ledger: c.ledger,
		ID:    func(r *RoleTemplate) string { return r.Name },
		Head:  func(r *RoleTemplate) record.Head { return record.Head{Seq: &r.AuditSeq} },
		State: func(r *RoleTemplate) any { return r.audited() },
		Follow: func(tenant, name string, r *RoleTemplate) {
			t := c.of(tenant)
			c.mu.Lock()
			defer c.mu.Unlock()
			t.custom[name] = r
		},
	}
}

// CheckRole reports a role that can't be kept because the program has one of its
// name.
func (c *Controller) CheckRole(r RoleTemplate) error {
	if !slices.ContainsFunc(c.roles, func(b RoleTemplate) bool { return b.Name == r.Name }) {
		return nil
	}
	return core.Errorf(core.Conflict, "role %s: the program has one of this name, which stays as it is", r.Name).With("field", "name").With("value", r.Name)
}

// PutRole makes a role of the tenant's own as it is given and says what that
// did: created, changed or unchanged. Agents that have it are bound by it from
// their next operation on. The built-in ones stay as they are.
func (c *Controller) PutRole(ctx context.Context, by core.Caller, r RoleTemplate) (_ RoleTemplate, action string, err error) {
	if r, err = r.Check(); err != nil {
		return r, "", err
	}
	if err := c.CheckRole(r); err != nil {
		return r, "", err
	}
	r.Builtin = false
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		action, err = c.kinds.role.Put(tx, record.Event{}, &r, nil)
		return err
	})
	return r, action, explain("keep role "+r.Name, err)
}

// explain wraps an error that does not say by itself what it is about.
func explain(what string, err error) error {
	var refused *core.Error
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
