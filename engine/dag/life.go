package dag

import (
	"fmt"

	"swarmdeck/engine/core"
)

// Policy is a version of the approval policy: the one that rules, or one that
// was proposed.
type Policy struct {
	ID           string        `json:"id"`
	Kind         PolicyKind    `json:"kind"`
	Place        Place         `json:"path_or_uri"`
	Docstring    string        `json:"docstring,omitempty"`
	TestsSummary *TestsSummary `json:"tests_summary,omitzero"`
	SourceDigest string        `json:"source_digest,omitempty"`
}

// TestsSummary counts a policy's own cases.
type TestsSummary struct {
	Total  int64 `json:"total"`
	Passed int64 `json:"passed"`
	Failed int64 `json:"failed"`
}

func (p *Policy) check(f *problems) {
	f.name("id", p.ID)
	oneOf(f, "kind", p.Kind, PolicyActive, PolicyProposal)
	p.Place.check(f, "path_or_uri")
	f.optional("source_digest", p.SourceDigest)
	if s := p.TestsSummary; s != nil && (s.Passed < 0 || s.Failed < 0 || s.Total != s.Passed+s.Failed) {
		f.add("tests_summary", "total %d is not passed %d and failed %d", s.Total, s.Passed, s.Failed)
	}
}

// PolicyActivated tells that a policy rules from now on.
type PolicyActivated struct {
	PolicyRef string `json:"policy_ref"`
	Notes     string `json:"notes,omitempty"`
}

func (*PolicyActivated) Kind() Kind { return KindPolicyActivated }

func (b *PolicyActivated) check(f *problems) { f.name("policy_ref", b.PolicyRef) }

// Subagent is an agent that another one made.
type Subagent struct {
	ID            string   `json:"id"`
	ParentAgentID string   `json:"parent_agent_id"`
	Constraints   core.Raw `json:"constraints,omitzero"` // an object
}

func (s *Subagent) check(f *problems) {
	f.name("id", s.ID)
	f.name("parent_agent_id", s.ParentAgentID)
	if s.ID == s.ParentAgentID && s.ID != "" {
		f.add("parent_agent_id", "an agent is not its own parent")
	}
	f.dict("constraints", s.Constraints)
}

// AgentForked tells that an agent goes on a second time from an event.
type AgentForked struct {
	FromBranch string       `json:"from_branch"`
	ToBranch   string       `json:"to_branch"`
	AtEvent    EventRef     `json:"at_event"`
	VolumePlan []VolumePlan `json:"volume_plan,omitempty"`
}

// VolumePlan is what a fork does with one resource.
type VolumePlan struct {
	Resource    string  `json:"resource"`
	Mode        Plan    `json:"mode"`
	KeptBy      string  `json:"kept_by,omitempty"` // with keep: the branch that keeps it
	SnapshotRef *ExtRef `json:"snapshot_ref,omitzero"`
}

func (*AgentForked) Kind() Kind { return KindAgentForked }

func (b *AgentForked) check(f *problems) {
	f.name("from_branch", b.FromBranch)
	f.name("to_branch", b.ToBranch)
	if b.FromBranch == b.ToBranch && b.ToBranch != "" {
		f.add("to_branch", "%q is the branch it forks from", core.Clip(b.ToBranch))
	}
	b.AtEvent.check(f, "at_event")
	if !f.count("volume_plan", len(b.VolumePlan), maxRefs) {
		return
	}
	planned := map[string]bool{}
	for i, p := range b.VolumePlan {
		f.within(fmt.Sprintf("volume_plan[%d]", i), func() {
			f.name("resource", p.Resource)
			if planned[p.Resource] {
				f.add("resource", "%q is planned twice", core.Clip(p.Resource))
			}
			planned[p.Resource] = true
			oneOf(f, "mode", p.Mode, PlanKeep, PlanSnapshot, PlanDiscard)
			if p.KeptBy != "" && (p.Mode != PlanKeep || p.KeptBy != b.FromBranch && p.KeptBy != b.ToBranch) {
				f.add("kept_by", "%q is not allowed; allowed: from_branch or to_branch, with mode keep", core.Clip(p.KeptBy))
			}
			if p.SnapshotRef != nil && p.Mode != PlanSnapshot {
				f.add("snapshot_ref", "is given, but the mode is %s", p.Mode)
			}
			p.SnapshotRef.check(f, "snapshot_ref")
		})
	}
}

// Interruption tells that work was cut off.
type Interruption struct {
	Reason  Reason     `json:"reason"`
	Affects []EventRef `json:"affects"`
}

func (*Interruption) Kind() Kind { return KindInterruption }

func (b *Interruption) check(f *problems) {
	oneOf(f, "reason", b.Reason, Reasons()...)
	if b.Affects == nil {
		f.add("affects", "missing; a list, which may be empty")
	}
	if f.count("affects", len(b.Affects), maxRefs) {
		for i, r := range b.Affects {
			r.check(f, fmt.Sprintf("affects[%d]", i))
		}
	}
}

// Substitution tells that one event stands in for another.
type Substitution struct {
	OriginalEvent    EventRef `json:"original_event"`
	ReplacementEvent EventRef `json:"replacement_event"`
	Reason           string   `json:"reason,omitempty"`
}

func (*Substitution) Kind() Kind { return KindSubstitution }

func (b *Substitution) check(f *problems) {
	b.OriginalEvent.check(f, "original_event")
	b.ReplacementEvent.check(f, "replacement_event")
	if b.OriginalEvent == b.ReplacementEvent && b.OriginalEvent.EventID != "" {
		f.add("replacement_event", "an event does not replace itself")
	}
}

// RunStarted begins a run.
type RunStarted struct {
	Reason    string `json:"reason,omitempty"`     // user, schedule, subagent
	AskedBy   string `json:"asked_by,omitempty"`   // who asked for the task
	AskedKind string `json:"asked_kind,omitempty"` // what that is: operator, agent …
	Attempt   int64  `json:"attempt,omitzero"`     // of the task, from 0
}

func (*RunStarted) Kind() Kind { return KindRunStarted }

func (b *RunStarted) check(f *problems) {
	maybe(f, "reason", b.Reason, "user", "schedule", "subagent")
	f.optional("asked_by", b.AskedBy)
	f.optional("asked_kind", b.AskedKind)
	f.atLeast0("attempt", b.Attempt)
}

// RunFinished ends a run.
type RunFinished struct {
	Exit       string  `json:"exit,omitempty"` // success, error
	SummaryRef *ExtRef `json:"summary_ref,omitzero"`
	// Network is what went between the run's processes and each host, the most
	// first; it is absent where nothing did or nobody counts.
	Network []HostUse `json:"network,omitempty"`
}

// HostUse is what went between a run's processes and a host.
type HostUse struct {
	Host        string `json:"host"` // a name or an address; "others" are those past the first 64, together
	Port        uint16 `json:"port,omitzero"`
	Connections int64  `json:"connections"`
	Refused     int64  `json:"refused,omitzero"` // that were not let through
	Sent        int64  `json:"sent_bytes"`       // to the host
	Received    int64  `json:"received_bytes"`   // from it
}

const maxHosts = 65

func (*RunFinished) Kind() Kind { return KindRunFinished }

func (b *RunFinished) check(f *problems) {
	maybe(f, "exit", b.Exit, "success", "error")
	b.SummaryRef.check(f, "summary_ref")
	if !f.count("network", len(b.Network), maxHosts) {
		return
	}
	for i, h := range b.Network {
		f.within(fmt.Sprintf("network[%d]", i), func() {
			f.name("host", h.Host)
			f.atLeast0("connections", h.Connections)
			f.atLeast0("refused", h.Refused)
			f.atLeast0("sent_bytes", h.Sent)
			f.atLeast0("received_bytes", h.Received)
		})
	}
}

// RunSnapshot is the model's second Snapshot: a summary of a run, kept for
// display only.
type RunSnapshot struct {
	ID         string `json:"id"`
	RunID      string `json:"run_id,omitempty"`
	ContentRef ExtRef `json:"content_ref"`
}

func (s *RunSnapshot) check(f *problems) {
	f.name("id", s.ID)
	f.optional("run_id", s.RunID)
	s.ContentRef.check(f, "content_ref")
}

// SnapshotMaterialized tells that a run's summary was made.
type SnapshotMaterialized struct {
	SnapshotRef string  `json:"snapshot_ref"` // of a RunSnapshot
	ContentRef  *ExtRef `json:"content_ref,omitzero"`
}

func (*SnapshotMaterialized) Kind() Kind { return KindSnapshotMaterialized }

func (b *SnapshotMaterialized) check(f *problems) {
	f.name("snapshot_ref", b.SnapshotRef)
	b.ContentRef.check(f, "content_ref")
}
