// Package cad runs teams of CAD agents (model 5): their roles and what these
// allow, the workspaces they build in, the operations they carry out on real
// geometry, and the messages between them.
//
// The engine owns the truth. A workspace is a journal of operations in the
// store; the process that computes geometry is a disposable copy of it. What
// an operation changed, what it counts for its agent and what the audit log
// says of it are one transaction: after a crash of either side an operation has
// happened in full or not at all.
package cad

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/record"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// Options of New.
type Options struct {
	Ledger *audit.Ledger
	Judge  *judge.Judge
	Swarm  *swarm.Swarm
	Tasks  *task.Table
	Bus    Bus
	// Pool computes geometry. Without one every operation that needs it is
	// refused as UNAVAILABLE; all else works.
	Pool Pool
	// Parameters knows what the methods take; nil checks no plan before it runs.
	Parameters Parameters
	// Dir is below what the files of workspaces lie that were given no directory of
	// their own: Dir/TENANT/WORKSPACE. Without it such workspaces have no files.
	Dir string
	// Taken reports whether a name belongs to somebody else who gets messages,
	// so that no CAD agent is given it; nil knows nobody.
	Taken    func(tenant, id string) bool
	ReadOnly bool // the store is: repair nothing, audit nothing
	Health   *health.Troubles
	Record   Recorder // nil: nobody listens
}

// Parameters knows what methods take.
type Parameters interface {
	// Check lists what is wrong with the parameters of an operation that is to be
	// carried out later; ${references} may stand for values.
	Check(method string, params core.Raw) []error
	// Takes says in a line what a method takes, "" when it is none.
	Takes(method string) string
}

// Bus carries the messages between agents; *bus.Bus is one.
type Bus interface {
	AcceptIn(tx *audit.Tx, m bus.Send) (bus.Message, error)
	TakeIn(tx *audit.Tx, id, recipient string) error
	TakenIn(tx store.Tx, id, recipient string) (bool, error)
}

// Controller keeps every tenant's CAD agents and carries out what they do. Its
// methods may be called from any goroutine.
//
// Lock order: an agent's turn, a slot of its tenant, workspaces by name, a
// worker. mu is held for none of these, nor while anything else is called.
//
// It is workflows over modelling over the roster, each of which knows those below it
// alone.
type Controller struct {
	*modelling
	work *workflows
}

// roster is who there is, in which role, and what they say to one another.
type roster struct {
	opt    Options
	ledger *audit.Ledger
	roles  []RoleTemplate // the built-in ones, in order
	kinds  kinds

	mu      sync.RWMutex
	tenants map[string]*tenantState
}

// modelling is their workspaces, and what is done in them.
type modelling struct {
	*roster
	facets *facets
}

var _ judge.Settler = (*Controller)(nil)

// New reads what the store has. It starts nothing. The caller makes it known
// to the judge (Await GateCAD) and to the bus (Parties).
func New(ctx context.Context, opt Options) (*Controller, error) {
	roles, err := builtinRoles()
	if err != nil {
		return nil, err
	}
	r := &roster{opt: opt, ledger: opt.Ledger, roles: roles, tenants: map[string]*tenantState{}}
	c := &Controller{modelling: &modelling{r, newFacets(mostFacets)}}
	c.work = newWorkflows(c)
	c.declare()
	if err := c.eachTenant(ctx, func(tenant string) error { return c.recall(ctx, tenant) }); err != nil {
		return nil, fmt.Errorf("read the CAD agents: %w", err)
	}
	return c, nil
}

// component is what troubles of this package are told under.
const component = "cad"

// eachTenant does something for every tenant; what fails is a trouble of its own.
func (c *roster) eachTenant(ctx context.Context, do func(tenant string) error) error {
	ids, err := c.opt.Swarm.Here(ctx)
	if err != nil {
		return err
	}
	return c.opt.Health.Tenants(ctx, component, ids, do)
}

// foreign audits err when it says that something belongs to another tenant.
func (c *roster) foreign(ctx context.Context, by core.Caller, named string, err error) error {
	if c.opt.ReadOnly {
		return err
	}
	return c.ledger.Foreign(ctx, by, "cad", named, err)
}

// reader is who reads; a foreign name is refused in its name.
func reader(tenant string) core.Caller { return core.Self(tenant, "reader") }

// Bounds of max_concurrent_agents (model 5, Controller).
const (
	leastConcurrent   = 1
	mostConcurrent    = 50
	defaultConcurrent = 10
)

// settings is what a tenant has set of its controller.
type settings struct {
	MaxConcurrent int    `json:"max_concurrent_agents"`
	AuditSeq      uint64 `json:"audit_seq,omitzero"`
}

// Info is the controller of a tenant (model 5, Controller).
type Info struct {
	ControllerID  string   `json:"controller_id"`
	MaxConcurrent int      `json:"max_concurrent_agents"`
	Agents        int      `json:"agent_count"` // not terminated
	Working       int      `json:"working_agents"`
	Workspaces    int      `json:"workspace_count"`
	Roles         []string `json:"role_templates"`
	Kernels       []Kernel `json:"kernels"`
}

// Info is the controller of a tenant. There is one of each, named for it.
func (c *roster) Info(tenant string) Info {
	info := Info{ControllerID: "cad_" + core.TenantTag(tenant), MaxConcurrent: defaultConcurrent}
	for _, a := range c.Live(tenant) {
		info.Agents++
		if a.Status == Working {
			info.Working++
		}
	}
	info.Roles = namesOf(c.Roles(tenant), func(r RoleTemplate) string { return r.Name })
	if c.opt.Pool != nil {
		info.Kernels = c.opt.Pool.Kernels()
	}
	c.look(tenant, func(t *tenantState) { info.MaxConcurrent, info.Workspaces = t.set.MaxConcurrent, len(t.spaces) })
	return info
}

// SetMaxConcurrent sets how many agents of the tenant carry something out at
// once, 1-50. Operations that are under way go on.
func (c *roster) SetMaxConcurrent(ctx context.Context, by core.Caller, n int) (Info, error) {
	if n < leastConcurrent || n > mostConcurrent {
		return Info{}, core.Invalid("max_concurrent_agents", n, fmt.Sprintf("%d-%d", leastConcurrent, mostConcurrent))
	}
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		set, err := c.kinds.settings.Load(tx, settingsID)
		if err != nil {
			return err
		}
		now, before := settings{MaxConcurrent: n}, 0
		if set != nil {
			before = set.MaxConcurrent
		}
		return c.kinds.settings.Save(tx, record.Event{
			Type: "cad.controller.changed", Detail: map[string]int{"max_concurrent_agents": n, "before": before},
		}, set, &now)
	})
	if err != nil {
		return Info{}, audit.Explain("set the number of CAD agents that work at once", err)
	}
	return c.Info(by.Tenant), nil
}

// What is kept beside the agents, workspaces and workflows.
const (
	figuresOf record.Rows[figures]          = "cad.figures" // agent
	marks     record.Rows[marked]           = "cad.mark"    // mark
	files     record.Rows[written]          = "cad.mark"    // writtenKey
	entries   record.Rows[kept]             = "cad.entry"   // workspace, seq
	entities  record.Rows[model.Entity]     = "cad.entity"  // workspace, id
	conflicts record.Rows[[]model.Conflict] = "cad.open"    // workspace: those that are open
	openings  record.Rows[opened]           = "cad.opened"  // workspace, seq: open conflicts before and after the entry
	shapes    record.Rows[model.Shape]      = "cad.shape"   // hash
	blobs     record.Rows[[]byte]           = "cad.blob"    // hash → content of a file
	messages  record.Rows[AgentMessage]     = "cad.message" // seq of the bus
	inbox     record.Rows[string]           = "cad.inbox"   // agent, seq of the bus → when it was read, "" before
	unread    record.Rows[struct{}]         = "cad.unread"  // agent, seq of the bus, of those not read
)

// kinds are the nouns of a tenant.
type kinds struct {
	settings   record.Table[settings]
	agent      record.Table[Agent]
	workspace  record.Table[Workspace]
	workflow   record.Table[Workflow]
	assignment record.Table[TaskAssignment]
	role       record.Table[RoleTemplate]
	scenario   record.Table[Scenario]
}

func (c *Controller) declare() {
	k := &c.kinds
	k.settings, k.agent, k.workspace = c.settingsKind(), c.agentKind(), c.workspaceKind()
	k.workflow, k.assignment = c.workflowKind(), c.assignmentKind()
	k.role, k.scenario = c.roleKind(), &record.Kind[*Scenario]{Noun: "cad.scenario", Bucket: "cad.scenario", Ledger: c.ledger, ID: func(s *Scenario) string { return s.Name }}
	c.ledger.Register(
		k.settings.Auditable(), k.agent.Auditable(), k.workspace.Auditable(), k.workflow.Auditable(), k.assignment.Auditable(),
		k.role.Auditable(), k.scenario.Auditable(),
	)
}

// settingsID is that of the one record of settings.
const settingsID = "controller"

func (c *roster) settingsKind() record.Table[settings] {
	return &record.Kind[*settings]{
		Noun: "cad.controller", Bucket: "cad.controller", Ledger: c.ledger,
		ID:    func(*settings) string { return settingsID },
		Whole: true,
		Follow: func(tenant, _ string, s *settings) {
			c.change(tenant, func(t *tenantState) { t.set = *s }).slots.resize(s.MaxConcurrent)
		},
	}
}

func (c *roster) agentKind() record.Table[Agent] {
	return &record.Kind[*Agent]{
		Noun: "CAD agent", Subject: "cad.agent", Bucket: "cad.agent", Ledger: c.ledger,
		ID:   func(a *Agent) string { return a.AgentID },
		Says: "role workspace_id status operation_count success_count error_count role_violations approval_id fleet_agent",
		Follow: func(tenant, id string, a *Agent) {
			c.change(tenant, func(t *tenantState) {
				if m := t.members[id]; m != nil {
					m.rec.Store(a)
				} else {
					t.members[id] = newMember(a)
				}
			})
		},
	}
}

func (c *modelling) workspaceKind() record.Table[Workspace] {
	return &record.Kind[*Workspace]{
		Noun: "CAD workspace", Subject: "cad.workspace", Bucket: "cad.workspace", Ledger: c.ledger,
		ID:   func(w *Workspace) string { return w.WorkspaceID },
		Says: "seq entity_count solid_count conflict_count kernel directory",
		Follow: func(tenant, id string, w *Workspace) {
			c.change(tenant, func(t *tenantState) { t.spaces[id] = w })
		},
	}
}

// errSame makes an update end without a write.
var errSame = errors.New("nothing changed")

// update is one commit; fn ends it with errSame when there is nothing to write.
func (c *roster) update(ctx context.Context, by core.Caller, fn func(*audit.Tx) error) error {
	err := c.ledger.Update(ctx, by, fn)
	if errors.Is(err, errSame) {
		err = nil
	}
	return err
}

// loadWorkspace reads a workspace that must be there.
func (c *modelling) loadWorkspace(tx store.Tx, id string) (*Workspace, error) {
	w, err := c.kinds.workspace.Load(tx, id)
	if err == nil && w == nil {
		err = core.Missing("workspace_id", id)
	}
	return w, err
}

// saveWorkspace writes a workspace with its audit event. It is the only way a
// workspace's record changes.
func (c *modelling) saveWorkspace(tx *audit.Tx, w *Workspace, e record.Event) error {
	w.UpdatedAt = seconds(tx.Now())
	return c.kinds.workspace.Keep(tx, e, w)
}
