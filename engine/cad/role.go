package cad

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
)

// RoleTemplate is what agents of a role may do (model 5, RoleTemplate). The
// allow-list rules: an operation on neither list is refused too.
type RoleTemplate struct {
	Name                string   `json:"name" file:"word needed"`
	Description         string   `json:"description" file:"needed"`
	AllowedOperations   []string `json:"allowed_operations" file:"word needed"`
	ForbiddenOperations []string `json:"forbidden_operations" file:"word"`
	ExampleTasks        []string `json:"example_tasks" file:"word needed"`

	Builtin  bool   `json:"builtin"`
	AuditSeq uint64 `json:"audit_seq,omitzero"`
}

// Bounds of a role.
const (
	maxDescription = 1000 // characters
	maxExamples    = 20
	maxExample     = 300 // characters
)

// Check reports the first bad field (model 5, Validation Rules) and returns the
// role with its operations spelt the one way they are kept in.
func (r RoleTemplate) Check() (RoleTemplate, error) {
	if !namePattern().MatchString(r.Name) {
		return r, core.Invalid("name", r.Name, planName)
	}
	if err := checkText("description", r.Description, maxDescription); err != nil {
		return r, err
	}
	if len(r.ExampleTasks) == 0 || len(r.ExampleTasks) > maxExamples {
		return r, core.Invalid("example_tasks", len(r.ExampleTasks), fmt.Sprintf("1-%d tasks", maxExamples))
	}
	for i, task := range r.ExampleTasks {
		if err := checkText(fmt.Sprintf("example_tasks[%d]", i), task, maxExample); err != nil {
			return r, err
		}
	}
	if len(r.AllowedOperations) == 0 {
		return r, core.Invalid("allowed_operations", "", "at least one operation")
	}
	var err error
	if r.AllowedOperations, err = checkOperations("allowed_operations", r.AllowedOperations); err != nil {
		return r, err
	}
	if r.ForbiddenOperations, err = checkOperations("forbidden_operations", r.ForbiddenOperations); err != nil {
		return r, err
	}
	for i, op := range r.ForbiddenOperations {
		if slices.Contains(r.AllowedOperations, op) {
			return r, core.Invalid(fmt.Sprintf("forbidden_operations[%d]", i), op, "an operation that is not in allowed_operations too")
		}
	}
	return r, nil
}

func checkOperations(field string, ops []string) ([]string, error) {
	out := make([]string, 0, len(ops))
	for i, op := range ops {
		m, ok := FindMethod(op)
		switch at := fmt.Sprintf("%s[%d]", field, i); {
		case !ok:
			return nil, core.Invalid(at, op, "a method: "+strings.Join(MethodNames(), ", "))
		case slices.Contains(out, m.Name):
			return nil, core.Invalid(at, op, "each operation once")
		}
		out = append(out, m.Name)
	}
	return out, nil
}

// Allows reports whether a role may carry out a method, spelt in any way.
// Allowing a method allows its variants (solid.boolean.union), unless these are
// forbidden.
func (r *RoleTemplate) Allows(method string) bool {
	m, ok := FindMethod(method)
	switch {
	case !ok || slices.Contains(r.ForbiddenOperations, m.Name):
		return false
	case slices.Contains(r.AllowedOperations, m.Name):
		return true
	}
	return m.Of != "" && slices.Contains(r.AllowedOperations, m.Of) && !slices.Contains(r.ForbiddenOperations, m.Of)
}

//go:embed roles.yaml
var roleFile []byte

// builtinRoles are the six that every tenant has, in the order of the file.
var builtinRoles = sync.OnceValues(func() ([]RoleTemplate, error) {
	r := document.NewReader("roles.yaml")
	root, ok := r.Parse(roleFile, len(roleFile))
	if !ok {
		return nil, r.Err()
	}
	roles := document.Each(r, root, func(v document.Value) RoleTemplate { return ReadRole(r, v) })
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("read the built-in roles: %w", err)
	}
	for i := range roles {
		role, err := roles[i].Check()
		if err != nil {
			return nil, fmt.Errorf("built-in role %s: %w", role.Name, err)
		}
		role.Builtin = true
		roles[i] = role
	}
	return roles, nil
})

// ReadRole reads a role of a file, as it is written; Check tells whether it can
// be one.
func ReadRole(r *document.Reader, v document.Value) (t RoleTemplate) {
	r.Fill(v, &t)
	return t
}

// checkText reports a text that is empty, too long in characters, or could not
// be shown.
func checkText(field, s string, most int) error {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }
	n := utf8.RuneCountInString(s)
	if strings.TrimSpace(s) == "" || n > most || !utf8.ValidString(s) || strings.ContainsFunc(s, hidden) {
		return core.Invalid(field, s, fmt.Sprintf("1-%d printable characters", most))
	}
	return nil
}

// Roles are the roles of a tenant: the built-in ones, then its own by name.
func (c *roster) Roles(tenant string) []RoleTemplate {
	var own []*RoleTemplate
	c.look(tenant, func(t *tenantState) { own = core.Sorted(t.custom) })
	return slices.Concat(c.roles, core.Map(own, func(r *RoleTemplate) RoleTemplate { return *r }))
}

// Role is one role of a tenant.
func (c *roster) Role(tenant, name string) (RoleTemplate, error) {
	all := c.Roles(tenant)
	if r := finderOf(all)(name); r != nil {
		return *r, nil
	}
	return RoleTemplate{}, core.Invalid("role_name", name, strings.Join(namesOf(all, func(r RoleTemplate) string { return r.Name }), ", "))
}

// roleFinder gives a role by its name, nil when there is none.
type roleFinder func(name string) *RoleTemplate

func finderOf(roles []RoleTemplate) roleFinder {
	return func(name string) *RoleTemplate {
		return first(roles, func(r *RoleTemplate) bool { return r.Name == name })
	}
}

func (c *roster) roleKind() record.Table[RoleTemplate] {
	return &record.Kind[*RoleTemplate]{
		Noun: "cad.role", Bucket: "cad.role", Ledger: c.ledger,
		ID:    func(r *RoleTemplate) string { return r.Name },
		Whole: true,
		Follow: func(tenant, name string, r *RoleTemplate) {
			c.change(tenant, func(t *tenantState) { t.custom[name] = r })
		},
	}
}

// CheckRole reports a role that can't be kept because the program has one of its
// name.
func (c *roster) CheckRole(r RoleTemplate) error {
	if finderOf(c.roles)(r.Name) == nil {
		return nil
	}
	return core.Errorf(core.Conflict, "role %s: the program has one of this name, which stays as it is", r.Name).With("field", "name").With("value", r.Name)
}

// PutRole makes a role of the tenant's own as it is given and says what that
// did: created, changed or unchanged. Agents that have it are bound by it from
// their next operation on. The built-in ones stay as they are.
func (c *roster) PutRole(ctx context.Context, by core.Caller, r RoleTemplate) (_ RoleTemplate, action string, err error) {
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
	return r, action, audit.Explain("keep role "+r.Name, err)
}
