package dag

import (
	"fmt"
	"slices"

	"swarmdeck/engine/core"
)

// Resource is something that agents work on (model 4).
type Resource struct {
	ID           string         `json:"id" is:"name"`
	Kind         ResourceKind   `json:"kind" is:"word"`
	Name         string         `json:"name" is:"name"`
	Capabilities []Capability   `json:"capabilities" is:"list" each:"word"`
	Imperative   bool           `json:"imperative,omitzero"` // can't be restored
	Scope        *Scope         `json:"scope,omitzero"`
	Liveness     *LivenessState `json:"liveness,omitzero"`
	Metadata     core.Raw       `json:"metadata,omitzero" is:"dict"` // an object
}

// Scope says whose a resource is.
type Scope struct {
	AgentID   string `json:"agent_id,omitempty" is:"id"`
	RunID     string `json:"run_id,omitempty" is:"id"`
	SessionID string `json:"session_id,omitempty" is:"id"`
}

// LivenessState is what the last probe found.
type LivenessState struct {
	Status    Liveness `json:"status" is:"word"`
	LastProbe Time     `json:"last_probe_ts,omitzero"`
}

// Can reports a capability.
func (r *Resource) Can(c Capability) bool { return slices.Contains(r.Capabilities, c) }

// Restorable reports whether the resource can be brought back: it is not
// imperative, and has the capability.
func (r *Resource) Restorable() bool { return !r.Imperative && r.Can(CanRestore) }

func (r *Resource) check(f *problems) {
	for i, c := range r.Capabilities {
		if slices.Contains(r.Capabilities[:i], c) {
			f.add(fmt.Sprintf("capabilities[%d]", i), "%s is given twice", c)
		}
	}
	if r.Imperative && r.Can(CanRestore) {
		f.add("imperative", "a resource with the capability restore is not imperative")
	}
}

// Snapshot is a resource's state at a time, kept outside the record.
type Snapshot struct {
	ID          string `json:"id" is:"name"`
	ResourceRef string `json:"resource_ref" is:"name"`
	Method      string `json:"method" is:"name"` // docker_volume_tar, oci_commit, fs_copy, app_checkpoint, …
	ExternalRef ExtRef `json:"external_ref"`
	Consistency string `json:"consistency,omitempty" is:"word? crash_consistent, app_consistent"` // crash_consistent, app_consistent
	SizeBytes   *int64 `json:"size_bytes,omitzero" is:"count"`
	CreatedAt   Time   `json:"created_at" is:"time"`
	Restorable  *bool  `json:"restorable,omitzero"`
}

// Handle is a hold on something that can't be restored, such as a process.
type Handle struct {
	ID           string   `json:"id" is:"name"`
	ResourceRef  string   `json:"resource_ref" is:"name"`
	Provider     string   `json:"provider" is:"name"`
	ProviderID   string   `json:"provider_id" is:"name"`
	Restorable   bool     `json:"restorable"`                         // false
	Capabilities []string `json:"capabilities,omitempty" each:"name"` // attach, exec, kill, logs, …
}

func (h *Handle) check(f *problems) {
	if h.Restorable {
		f.add("restorable", "true is not allowed; allowed: false")
	}
}

// SnapshotCreated tells that a snapshot was tried.
type SnapshotCreated struct {
	ResourceRef string  `json:"resource_ref" is:"name"`
	SnapshotRef string  `json:"snapshot_ref" is:"name"`
	Outcome     Outcome `json:"outcome" is:"word ok, error"` // ok, error
	Error       *Fault  `json:"error,omitzero"`
}

func (*SnapshotCreated) Kind() Kind { return KindSnapshotCreated }

func (b *SnapshotCreated) check(f *problems) { b.Error.fits(f, b.Outcome != OutcomeError) }

// ResourceAttached tells that a run, or an agent outside any, has a resource.
type ResourceAttached struct {
	ResourceRef string `json:"resource_ref" is:"name"`
	Mode        Mode   `json:"mode" is:"word"`
	Mount       string `json:"mount,omitempty" is:"uri?"` // where, for MOUNTS_RESOURCE
}

func (*ResourceAttached) Kind() Kind { return KindResourceAttached }

// ResourceDetached ends what ResourceAttached of the same holder began.
type ResourceDetached struct {
	ResourceRef string `json:"resource_ref" is:"name"`
}

func (*ResourceDetached) Kind() Kind { return KindResourceDetached }

// LivenessProbe tells what a probe found.
type LivenessProbe struct {
	ResourceRef string   `json:"resource_ref" is:"name"`
	Status      Liveness `json:"status" is:"word"`
}

func (*LivenessProbe) Kind() Kind { return KindLivenessProbe }

// RestoreAttempted tells that a snapshot was to be restored. What is
// imperative ends as unsupported.
type RestoreAttempted struct {
	SnapshotRef    string  `json:"snapshot_ref" is:"name"`
	Outcome        Outcome `json:"outcome" is:"word"`
	NewResourceRef string  `json:"new_resource_ref,omitempty" is:"id"`
	Error          *Fault  `json:"error,omitzero"`
}

func (*RestoreAttempted) Kind() Kind { return KindRestoreAttempted }

func (b *RestoreAttempted) check(f *problems) {
	if b.NewResourceRef != "" && b.Outcome != OutcomeOK {
		f.add("new_resource_ref", "a restore with outcome %s makes no resource", b.Outcome)
	}
	b.Error.fits(f, b.Outcome == OutcomeOK)
}

// Fault is what went wrong.
type Fault struct {
	Code    string   `json:"code"`
	Message string   `json:"message" erase:"true"`
	Details core.Raw `json:"details,omitzero" erase:"true"`
}

// fits looks at a fault; none says that there must be none.
func (e *Fault) fits(f *problems, none bool) {
	switch {
	case e == nil:
	case none:
		f.add("error", "is given, but nothing failed")
	default:
		f.name("error.code", e.Code)
	}
}
