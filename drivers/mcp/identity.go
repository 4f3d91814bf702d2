package mcp

import (
	"fmt"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// Identity is in whose name a client calls.
type Identity struct {
	Tenant string
	Name   string         // of an operator, or of an agent of the tenant
	Kind   core.ActorKind // core.Operator or core.Agent
	Role   op.Role        // of an operator: op.Viewer only looks, op.Operator does all that the judge lets it
	Proof  string         // how an operator is known, and
	Person string         // as whom, as in core.Caller; "" of one with a token, whose holder is not known
	Far    bool           // an operator who sits at another machine, or may
}

// Check reports the first bad field.
func (i Identity) Check() error {
	if err := core.CheckTenant(i.Tenant); err != nil {
		return err
	}
	if i.Kind != core.Operator && i.Kind != core.Agent {
		return core.Invalid("kind", string(i.Kind), "operator, agent")
	}
	if i.Kind == core.Operator && i.Role != op.Viewer && i.Role != op.Operator {
		return core.Invalid("role", string(i.Role), "viewer, operator")
	}
	if n := utf8.RuneCountInString(i.Name); n < 1 || n > 64 || !core.Printable(i.Name) || !utf8.ValidString(i.Name) {
		return core.Invalid("name", i.Name, "1-64 printable characters")
	}
	return nil
}

func (i Identity) caller() core.Caller {
	return core.Caller{Tenant: i.Tenant, Name: i.Name, Kind: i.Kind, Door: core.DoorMCP, Proof: i.Proof, Person: i.Person, Far: i.Far}
}

// String names it, the same for the same identity only.
func (i Identity) String() string { return fmt.Sprintf("%s:%s:%s", i.Tenant, i.Kind, i.Name) }
