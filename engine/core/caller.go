package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ActorKind says what sort of party acts. Only an operator may answer an
// approval (requirement 2.7).
type ActorKind string

// The kinds of actor.
const (
	Operator ActorKind = "operator"
	Agent    ActorKind = "agent"
	Engine   ActorKind = "engine"
)

// Door is the way by which a request came in (requirement 2.8).
type Door string

// The doors.
const (
	DoorCockpit Door = "cockpit"
	DoorScript  Door = "script"
	DoorCLI     Door = "cli"
	DoorSSH     Door = "ssh"
	DoorMCP     Door = "mcp"
	DoorEngine  Door = "engine"
)

// Caller is who asks for an operation, inside which tenant and by which door.
// Every operation of the engine takes one; it is recorded with the change.
type Caller struct {
	Tenant string
	Name   string // operator, agent or component name
	Kind   ActorKind
	Door   Door
	// Proof is what showed the door who an operator is, whatever the name: a user
	// of the system, such as uid:1000, or the fingerprint of a key. "" is not known.
	Proof string
	// Person are all proofs of the operator whose Proof is, it among them, with a
	// space between: one hand, by whichever of them it comes.
	Person string
	// Seat is where they sit: a terminal of this machine, or another machine.
	Seat string
	// Far says that they sit at another machine: what they may name here is less.
	Far bool
	// Peer is the machine whose engine brought them here and says who they are; "" is
	// none.
	Peer string
	// Known is since when the proof is that operator's; zero is always.
	Known time.Time
}

// Is says whether the caller is the one of that name, or shares a proof with
// that person. A name that a line can choose adds no second person.
func (c Caller) Is(name, person string) bool {
	if c.Name == name {
		return true
	}
	theirs := strings.Fields(person)
	return slices.ContainsFunc(strings.Fields(c.Person), func(proof string) bool { return slices.Contains(theirs, proof) })
}

type callerKey struct{}

// WithCaller says for whom work is done whose functions take no caller.
func WithCaller(ctx context.Context, by Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, by)
}

// Asking is who an engine's own action is done for: the caller of the context,
// where it is one of the same tenant; else by.
func Asking(ctx context.Context, by Caller) Caller {
	if asks, ok := ctx.Value(callerKey{}).(Caller); ok && by.Kind == Engine && asks.Tenant == by.Tenant {
		return asks
	}
	return by
}

// Self is the engine acting on its own account inside a tenant.
func Self(tenant, component string) Caller {
	return Caller{Tenant: tenant, Name: component, Kind: Engine, Door: DoorEngine}
}

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
