package cad

import (
	"errors"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

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
	settings   record.Kind[settings]
	agent      record.Kind[Agent]
	workspace  record.Kind[Workspace]
	workflow   record.Kind[Workflow]
	assignment record.Kind[TaskAssignment]
	role       record.Kind[RoleTemplate]
	scenario   record.Kind[Scenario]
}

func (c *Controller) declare() {
	k := &c.kinds
	k.settings, k.agent, k.workspace = c.settingsKind(), c.agentKind(), c.workspaceKind()
	k.workflow, k.assignment = c.workflowKind(), c.assignmentKind()
	k.role, k.scenario = c.roleKind(), c.scenarioKind()
	c.ledger.Register(
		k.settings.Auditable(), k.agent.Auditable(), k.workspace.Auditable(), k.workflow.Auditable(), k.assignment.Auditable(),
		k.role.Auditable(), k.scenario.Auditable(),
	)
}

// settingsID is that of the one record of settings.
const settingsID = "controller"

func (c *Controller) settingsKind() record.Kind[settings] {
	return record.Kind[settings]{
		Noun: "cad.controller", Bucket: "cad.controller", Ledger: c.ledger,
		ID:    func(*settings) string { return settingsID },
		Head:  func(s *settings) record.Head { return record.Head{Seq: &s.AuditSeq} },
		State: func(s *settings) any { return auditedSettings{s.MaxConcurrent} },
		Follow: func(tenant, _ string, s *settings) {
			t := c.of(tenant)
			c.mu.Lock()
			t.set = *s
			c.mu.Unlock()
			t.slots.resize(s.MaxConcurrent)
		},
	}
}

func (c *Controller) agentKind() record.Kind[Agent] {
	return record.Kind[Agent]{
		Noun: "CAD agent", Subject: "cad.agent", Bucket: "cad.agent", Ledger: c.ledger,
		ID:    func(a *Agent) string { return a.AgentID },
		Head:  func(a *Agent) record.Head { return record.Head{Tenant: &a.TenantID, Seq: &a.AuditSeq} },
		State: func(a *Agent) any { return a.audited() },
		Follow: func(tenant, id string, a *Agent) {
			t := c.of(tenant)
			c.mu.Lock()
			defer c.mu.Unlock()
			if m := t.members[id]; m != nil {
				m.rec.Store(a)
			} else {
				t.members[id] = newMember(a)
			}
		},
	}
}

func (c *Controller) workspaceKind() record.Kind[Workspace] {
	return record.Kind[Workspace]{
		Noun: "CAD workspace", Subject: "cad.workspace", Bucket: "cad.workspace", Ledger: c.ledger,
		ID:    func(w *Workspace) string { return w.WorkspaceID },
		Head:  func(w *Workspace) record.Head { return record.Head{Tenant: &w.TenantID, Seq: &w.AuditSeq} },
		State: func(w *Workspace) any { return w.audited() },
		Follow: func(tenant, id string, w *Workspace) {
			t := c.of(tenant)
			c.mu.Lock()
			defer c.mu.Unlock()
			t.spaces[id] = w
		},
	}
}

// loadAgent reads an agent that must be there.
func (c *Controller) loadAgent(tx store.Tx, id string) (*Agent, error) {
	return c.kinds.agent.Need(tx, id)
}

// errSame makes a change end without a write.
var errSame = errors.New("nothing changed")

// saveAgent writes an agent with its audit event. It is the only way an agent
// changes.
func (c *Controller) saveAgent(tx *audit.Tx, a *Agent, e record.Event) error {
	return c.kinds.agent.Keep(tx, e, a)
}

// loadWorkspace reads a workspace that must be there.
func (c *Controller) loadWorkspace(tx store.Tx, id string) (*Workspace, error) {
	w, err := c.kinds.workspace.Load(tx, id)
	if err == nil && w == nil {
		err = core.Missing("workspace_id", id)
	}
	return w, err
}

// saveWorkspace writes a workspace with its audit event. It is the only way a
// workspace's record changes.
func (c *Controller) saveWorkspace(tx *audit.Tx, w *Workspace, e record.Event) error {
	w.UpdatedAt = seconds(tx.Now())
	return c.kinds.workspace.Keep(tx, e, w)
}
