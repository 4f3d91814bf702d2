package core

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxWhom = 128 // bytes of a role, an agent or a project

// CheckWhom reports what is wrong with whom a rule is for: a role, an agent, the agents
// of a project, or with none of them everybody.
func CheckWhom(role, agent, project string) error {
	if role != "" && agent != "" || project != "" && role+agent != "" {
		return Errorf(InvalidInput, "role, agent and project: a rule is for one of them, or for everybody").With("field", "agent")
	}
	hidden := func(c rune) bool { return !unicode.IsPrint(c) }
	for _, f := range []struct{ name, value string }{{"role", role}, {"agent", agent}, {"project", project}} {
		if len(f.value) > maxWhom || !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, hidden) {
			return Invalid(f.name, f.value, fmt.Sprintf("at most %d printable bytes", maxWhom))
		}
	}
	return nil
}

// Whom says it: "", "role NAME", "agent NAME" or "project NAME".
func Whom(role, agent, project string) string {
	switch {
	case role != "":
		return "role " + role
	case agent != "":
		return "agent " + agent
	case project != "":
		return "project " + project
	}
	return ""
}
