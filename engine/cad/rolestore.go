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

// errSame makes a change end without a write.
var errSame = errors.New("nothing changed")

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
	r.Builtin, action = false, "created"
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		var was RoleTemplate
		there, err := fetch(tx, bRole, []byte(r.Name), &was)
		if err != nil {
			return err
		}
		r.AuditSeq = was.AuditSeq
		if there {
			action = "changed"
			if string(core.MustEncode(was)) == string(core.MustEncode(r)) {
				action = "unchanged"
				return errSame
			}
		}
		if r.AuditSeq, err = tx.Record(audit.Entry{
			Type: "cad.role." + action, Subject: "cad.role", ID: r.Name, State: r.audited(), Prev: was.AuditSeq,
		}); err != nil {
			return err
		}
		kept := r
		tx.OnCommit(func() {
			t := c.of(by.Tenant)
			c.mu.Lock()
			defer c.mu.Unlock()
			t.custom[kept.Name] = &kept
		})
		tx.Changed("cad.role", r.Name, &kept)
		return put(tx, bRole, []byte(r.Name), r)
	})
	if errors.Is(err, errSame) {
		err = nil
	}
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
