package cad

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
)

//go:embed roles.yaml
var roleFile []byte

// builtinRoles are the six that every tenant has, in the order of the file.
func builtinRoles() ([]RoleTemplate, error) {
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
}

// ReadRole reads a role of a file, as it is written; Check tells whether it can
// be one.
func ReadRole(r *document.Reader, v document.Value) (t RoleTemplate) {
	texts := func(to *[]string) func(document.Value) {
		return func(v document.Value) { *to = document.Each(r, v, r.Word) }
	}
	r.Object(v, map[string]func(document.Value){
		"name":                 func(v document.Value) { t.Name = r.Word(v) },
		"description":          func(v document.Value) { t.Description = r.Text(v) },
		"allowed_operations":   texts(&t.AllowedOperations),
		"forbidden_operations": texts(&t.ForbiddenOperations),
		"example_tasks":        texts(&t.ExampleTasks),
	}, "name", "description", "allowed_operations", "example_tasks")
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
