package op

import "strings"

// Noun is a kind of record, and what can be done with it.
type Noun struct {
	Name  string // "task"
	About string // "Units of work"
	// Ops makes its operations for one call.
	Ops func() []*Op
}

// Nouns are all nouns with operations.
func Nouns() []Noun {
	return []Noun{
		{"session", "Time-bounded operating contexts", sessions},
		{"task", "Units of work", tasks},
		{"result", "What came of tasks", results},
		{"agent", "The fleet", agents},
		{"project", "Sets of agents' roles", projects},
		{"role", "What agents of a project are for", roles},
		{"approval", "Questions that wait for a person", approvals},
		{"decision", "What the judge and people decided", decisions},
		{"egress", "Where agents may connect to", egressRules},
		{"files", "What agents may read and write beside their directory, and what is hidden", fileRules},
		{"budget", "Limits on tokens, cost, tasks and time", budgets},
		{"estop", "Emergency stop of a tenant", estops},
		{"secret", "Credentials that agents and tasks get unseen", secrets},
	}
}

// Find makes the operation of a name; nil when there is none.
func Find(name string) *Op {
	noun, _, _ := strings.Cut(name, " ")
	if n := Of(noun); n.Ops != nil {
		for _, o := range n.Ops() {
			if o.Name == name {
				return o
			}
		}
	}
	return nil
}

// Of is the noun of a name; the zero Noun when it has no operations here.
func Of(name string) Noun {
	for _, n := range Nouns() {
		if n.Name == name {
			return n
		}
	}
	return Noun{}
}
