package cad

import (
	"swarmdeck/engine/cad/model"
)

// Main is the workspace that every tenant has.
const Main = model.Main

// Workspace is one workspace as lists show it. Its content is its journal.
type Workspace struct {
	TenantID    string  `json:"tenant_id"`
	WorkspaceID string  `json:"workspace_id"`
	Name        string  `json:"workspace_name"`
	Base        string  `json:"base_workspace_id,omitempty"`
	AgentID     string  `json:"agent_id,omitempty"`  // that made it
	Kernel      string  `json:"kernel,omitempty"`    // "" is the pool's default
	Directory   string  `json:"directory,omitempty"` // where its files lie; "" is the default place
	Seq         int     `json:"seq"`                 // of the newest entry
	EntityCount int     `json:"entity_count"`
	SolidCount  int     `json:"solid_count"`
	Conflicts   int     `json:"conflict_count"` // of merges, open
	CreatedAt   Seconds `json:"created_at"`
	UpdatedAt   Seconds `json:"updated_at"`
	AuditSeq    uint64  `json:"audit_seq,omitzero"`
}

// CreateWorkspace asks for a workspace. A base that has content is branched
// from, which takes a worker.
type CreateWorkspace struct {
	WorkspaceID string `json:"workspace_id"`
	Name        string `json:"workspace_name,omitempty"`    // "" is the id
	Base        string `json:"base_workspace_id,omitempty"` // "" begins empty
	AgentID     string `json:"agent_id,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Directory   string `json:"directory,omitempty"` // absolute
}

// auditedWorkspace is what the audit log says about a workspace.
type auditedWorkspace struct {
	Seq       int    `json:"seq"`
	Entities  int    `json:"entity_count"`
	Solids    int    `json:"solid_count"`
	Conflicts int    `json:"conflict_count"`
	Kernel    string `json:"kernel,omitempty"`
	Directory string `json:"directory,omitempty"`
}

func (w *Workspace) audited() auditedWorkspace {
	return auditedWorkspace{w.Seq, w.EntityCount, w.SolidCount, w.Conflicts, w.Kernel, w.Directory}
}
