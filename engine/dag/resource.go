package dag

import (
	"fmt"
	"slices"

	"swarmdeck/engine/core"
)

// Resource is something that agents work on (model 4).
type Resource struct {
	ID           string         `json:"id"`
	Kind         ResourceKind   `json:"kind"`
	Name         string         `json:"name"`
	Capabilities []Capability   `json:"capabilities"`
	Imperative   bool           `json:"imperative,omitzero"` // can't be restored
	Scope        *Scope         `json:"scope,omitzero"`
	Liveness     *LivenessState `json:"liveness,omitzero"`
	Metadata     core.Raw       `json:"metadata,omitzero"` // an object
}

// Scope says whose a resource is.
type Scope struct {
	AgentID   string `json:"agent_id,omitempty"`
	RunID     string `json:"run_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
}

// LivenessState is what the last probe found.
type LivenessState struct {
	Status    Liveness `json:"status"`
	LastProbe Time     `json:"last_probe_ts,omitzero"`
}

// Can reports a capability.
func (r *Resource) Can(c Capability) bool { return slices.Contains(r.Capabilities, c) }

// Restorable reports whether the resource can be brought back: it is not
// imperative, and has the capability.
func (r *Resource) Restorable() bool { return !r.Imperative && r.Can(CanRestore) }

func (r *Resource) check(f *problems) {
	f.name("id", r.ID)
	oneOf(f, "kind", r.Kind, resourceKinds()...)
	f.name("name", r.Name)
	if r.Capabilities == nil {
		f.add("capabilities", "missing; a list, which may be empty")
	}
	for i, c := range r.Capabilities {
		oneOf(f, fmt.Sprintf("capabilities[%d]", i), c, capabilities()...)
		if slices.Contains(r.Capabilities[:i], c) {
			f.add(fmt.Sprintf("capabilities[%d]", i), "%s is given twice", c)
		}
	}
	if r.Imperative && r.Can(CanRestore) {
		f.add("imperative", "a resource with the capability restore is not imperative")
	}
	if s := r.Scope; s != nil {
		f.optional("scope.agent_id", s.AgentID)
		f.optional("scope.run_id", s.RunID)
		f.optional("scope.session_id", s.SessionID)
	}
	if r.Liveness != nil {
		oneOf(f, "liveness.status", r.Liveness.Status, livenesses()...)
	}
	f.dict("metadata", r.Metadata)
}

// Snapshot is a resource's state at a time, kept outside the record.
type Snapshot struct {
	ID          string `json:"id"`
	ResourceRef string `json:"resource_ref"`
	Method      string `json:"method"` // docker_volume_tar, oci_commit, fs_copy, app_checkpoint, …
	ExternalRef ExtRef `json:"external_ref"`
	Consistency string `json:"consistency,omitempty"` // crash_consistent, app_consistent
	SizeBytes   *int64 `json:"size_bytes,omitzero"`
	CreatedAt   Time   `json:"created_at"`
	Restorable  *bool  `json:"restorable,omitzero"`
}

func (s *Snapshot) check(f *problems) {
	f.name("id", s.ID)
	f.name("resource_ref", s.ResourceRef)
	f.name("method", s.Method)
	s.ExternalRef.check(f, "external_ref")
	maybe(f, "consistency", s.Consistency, "crash_consistent", "app_consistent")
	if s.SizeBytes != nil && *s.SizeBytes < 0 {
		f.add("size_bytes", "%d is not allowed; allowed: 0 or more", *s.SizeBytes)
	}
	if s.CreatedAt.IsZero() {
		f.add("created_at", "missing")
	}
}

// Handle is a hold on something that can't be restored, such as a process.
type Handle struct {
	ID           string   `json:"id"`
	ResourceRef  string   `json:"resource_ref"`
	Provider     string   `json:"provider"`
	ProviderID   string   `json:"provider_id"`
	Restorable   bool     `json:"restorable"`             // false
	Capabilities []string `json:"capabilities,omitempty"` // attach, exec, kill, logs, …
}

func (h *Handle) check(f *problems) {
	f.name("id", h.ID)
	f.name("resource_ref", h.ResourceRef)
	f.name("provider", h.Provider)
	f.name("provider_id", h.ProviderID)
	if h.Restorable {
		f.add("restorable", "true is not allowed; allowed: false")
	}
	for i, c := range h.Capabilities {
		f.name(fmt.Sprintf("capabilities[%d]", i), c)
	}
}

// SnapshotCreated tells that a snapshot was tried.
type SnapshotCreated struct {
	ResourceRef string  `json:"resource_ref"`
	SnapshotRef string  `json:"snapshot_ref"`
	Outcome     Outcome `json:"outcome"` // ok, error
	Error       *Fault  `json:"error,omitzero"`
}

func (*SnapshotCreated) Kind() Kind { return KindSnapshotCreated }

func (b *SnapshotCreated) check(f *problems) {
	f.name("resource_ref", b.ResourceRef)
	f.name("snapshot_ref", b.SnapshotRef)
	oneOf(f, "outcome", b.Outcome, OutcomeOK, OutcomeError)
	b.Error.check(f, b.Outcome != OutcomeError)
}

// ResourceAttached tells that a run, or an agent outside any, has a resource.
type ResourceAttached struct {
	ResourceRef string `json:"resource_ref"`
	Mode        Mode   `json:"mode"`
	Mount       string `json:"mount,omitempty"` // where, for MOUNTS_RESOURCE
}

func (*ResourceAttached) Kind() Kind { return KindResourceAttached }

func (b *ResourceAttached) check(f *problems) {
	f.name("resource_ref", b.ResourceRef)
	oneOf(f, "mode", b.Mode, ReadOnly, ReadWrite)
	f.text("mount", b.Mount, maxURI)
}

// ResourceDetached ends what ResourceAttached of the same holder began.
type ResourceDetached struct {
	ResourceRef string `json:"resource_ref"`
}

func (*ResourceDetached) Kind() Kind { return KindResourceDetached }

func (b *ResourceDetached) check(f *problems) { f.name("resource_ref", b.ResourceRef) }

// LivenessProbe tells what a probe found.
type LivenessProbe struct {
	ResourceRef string   `json:"resource_ref"`
	Status      Liveness `json:"status"`
}

func (*LivenessProbe) Kind() Kind { return KindLivenessProbe }

func (b *LivenessProbe) check(f *problems) {
	f.name("resource_ref", b.ResourceRef)
	oneOf(f, "status", b.Status, livenesses()...)
}

// RestoreAttempted tells that a snapshot was to be restored. What is
// imperative ends as unsupported.
type RestoreAttempted struct {
	SnapshotRef    string  `json:"snapshot_ref"`
	Outcome        Outcome `json:"outcome"`
	NewResourceRef string  `json:"new_resource_ref,omitempty"`
	Error          *Fault  `json:"error,omitzero"`
}

func (*RestoreAttempted) Kind() Kind { return KindRestoreAttempted }

func (b *RestoreAttempted) check(f *problems) {
	f.name("snapshot_ref", b.SnapshotRef)
	oneOf(f, "outcome", b.Outcome, OutcomeOK, OutcomeUnsupported, OutcomeError)
	f.optional("new_resource_ref", b.NewResourceRef)
	if b.NewResourceRef != "" && b.Outcome != OutcomeOK {
		f.add("new_resource_ref", "a restore with outcome %s makes no resource", b.Outcome)
	}
	b.Error.check(f, b.Outcome == OutcomeOK)
}

// Fault is what went wrong.
type Fault struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Details core.Raw `json:"details,omitzero"`
}

// check looks at a fault; none says that there must be none.
func (e *Fault) check(f *problems, none bool) {
	switch {
	case e == nil:
	case none:
		f.add("error", "is given, but nothing failed")
	default:
		f.name("error.code", e.Code)
	}
}
