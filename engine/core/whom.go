package core

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxWhom = 128 // bytes of a role or an agent

// CheckWhom reports what is wrong with whom a rule is for: a role, an agent, or
// with neither everybody.
func CheckWhom(role, agent string) error {
	if role != "" && agent != "" {
		return Errorf(InvalidInput, "role and agent: a rule is for one of them, or for everybody").With("field", "agent")
	}
	hidden := func(c rune) bool { return !unicode.IsPrint(c) }
	for _, f := range []struct{ name, value string }{{"role", role}, {"agent", agent}} {
		if len(f.value) > maxWhom || !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, hidden) {
			return Invalid(f.name, f.value, fmt.Sprintf("at most %d printable bytes", maxWhom))
		}
	}
	return nil
}

// Whom says it: "", "role NAME" or "agent NAME".
func Whom(role, agent string) string {
	switch {
	case role != "":
		return "role " + role
	case agent != "":
		return "agent " + agent
	}
	return ""
}
