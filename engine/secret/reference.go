package secret

import (
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

const nameRule = "a letter, then up to 63 of A-Z a-z 0-9 _"

var namePattern = core.Pattern(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// CheckName reports a name that no secret can have.
func CheckName(name string) error {
	if !namePattern().MatchString(name) {
		return core.Invalid("name", name, nameRule)
	}
	return nil
}

// Reference is the name of the secret that a variable's text stands for, ""
// for a text that stands for itself.
func Reference(text string) string {
	if name, ok := strings.CutPrefix(text, "@"); ok && namePattern().MatchString(name) {
		return name
	}
	return ""
}

// literal is a text that stands for itself without the escape: @@x is @x.
func literal(text string) string {
	if strings.HasPrefix(text, "@@") {
		return text[1:]
	}
	return text
}

// CheckEnv reports a text that looks like a reference and is none. It may be
// a password, so the error does not repeat it.
func CheckEnv(env map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(env)) {
		text := env[key]
		if strings.HasPrefix(text, "@") && !strings.HasPrefix(text, "@@") && Reference(text) == "" {
			return wrong(key, "begins with @ and names no secret; allowed: @NAME with "+nameRule+", or @@ before a text that begins with @")
		}
	}
	return nil
}

// References are the names of the secrets in an environment, sorted, each once.
func References(env map[string]string) (names []string) {
	for _, text := range env {
		if name := Reference(text); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// wrong is an error about one variable.
func wrong(key, why string) *core.Error {
	field := "env." + key
	return core.Errorf(core.InvalidInput, "%s: %s", field, why).With("field", field)
}
