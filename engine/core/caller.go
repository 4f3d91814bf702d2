package core

// ActorKind says what sort of party acts. Only an operator may answer an
// approval (contract 2.7).
type ActorKind string

// The kinds of actor.
const (
	Operator ActorKind = "operator"
	Agent    ActorKind = "agent"
	Engine   ActorKind = "engine"
)

// Door is the way by which a request came in (contract 2.8).
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
}

// Self is the engine acting on its own account inside a tenant.
func Self(tenant, component string) Caller {
	return Caller{Tenant: tenant, Name: component, Kind: Engine, Door: DoorEngine}
}
