package cad

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// RoleTemplate is what agents of a role may do (seed 5, RoleTemplate). The
// allow-list rules: an operation on neither list is refused too.
type RoleTemplate struct {
	Name                string   `json:"name"`
	Description         string   `json:"description"`
	AllowedOperations   []string `json:"allowed_operations"`
	ForbiddenOperations []string `json:"forbidden_operations"`
	ExampleTasks        []string `json:"example_tasks"`

	Builtin  bool   `json:"builtin"`
	AuditSeq uint64 `json:"audit_seq,omitzero"`
}

// Bounds of a role.
const (
	maxDescription = 1000 // characters
	maxExamples    = 20
	maxExample     = 300 // characters
)

var rolePattern = core.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// Check reports the first bad field (seed 5, Validation Rules) and returns the
// role with its operations spelt the one way they are kept in.
func (r RoleTemplate) Check() (RoleTemplate, error) {
	if !rolePattern().MatchString(r.Name) {
		return r, core.Invalid("name", r.Name, "1-64 of A-Z a-z 0-9 _ . -, a letter or _ first")
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
		at := fmt.Sprintf("%s[%d]", field, i)
		m, ok := FindMethod(op)
		if !ok {
			return nil, core.Invalid(at, op, "a method: "+strings.Join(MethodNames(), ", "))
		}
		if slices.Contains(out, m.Name) {
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

// auditedRole is what the audit log says about a role.
type auditedRole struct {
	Allowed   []string `json:"allowed_operations"`
	Forbidden []string `json:"forbidden_operations"`
}

func (r *RoleTemplate) audited() auditedRole {
	return auditedRole{r.AllowedOperations, r.ForbiddenOperations}
}
