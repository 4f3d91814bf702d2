package dag

import (
	"fmt"

	"swarmdeck/engine/core"
)

// Policy is a version of the approval policy: the one that rules, or one that
// was proposed.
type Policy struct {
	ID           string        `json:"id" is:"name"`
	Kind         PolicyKind    `json:"kind" is:"word"`
	Place        Place         `json:"path_or_uri"`
	Docstring    string        `json:"docstring,omitempty"`
	TestsSummary *TestsSummary `json:"tests_summary,omitzero"`
	SourceDigest string        `json:"source_digest,omitempty" is:"id"`
}

// TestsSummary counts a policy's own cases.
type TestsSummary struct {
	Total  int64 `json:"total"`
	Passed int64 `json:"passed"`
	Failed int64 `json:"failed"`
}

func (p *Policy) check(f *problems) {
	if s := p.TestsSummary; s != nil && (s.Passed < 0 || s.Failed < 0 || s.Total != s.Passed+s.Failed) {
		f.add("tests_summary", "total %d is not passed %d and failed %d", s.Total, s.Passed, s.Failed)
	}
}

// PolicyActivated tells that a policy rules from now on.
type PolicyActivated struct {
	PolicyRef string `json:"policy_ref" is:"name"`
	Notes     string `json:"notes,omitempty" erase:"true"`
}

func (*PolicyActivated) Kind() Kind { return KindPolicyActivated }

// Subagent is an agent that another one made.
type Subagent struct {
	ID            string   `json:"id" is:"name"`
	ParentAgentID string   `json:"parent_agent_id" is:"name"`
	Constraints   core.Raw `json:"constraints,omitzero" is:"dict" erase:"true"` // an object
}

func (s *Subagent) check(f *problems) {
	if s.ID == s.ParentAgentID && s.ID != "" {
		f.add("parent_agent_id", "an agent is not its own parent")
	}
}

// AgentForked tells that an agent goes on a second time from an event.
type AgentForked struct {
	FromBranch string       `json:"from_branch" is:"name"`
	ToBranch   string       `json:"to_branch" is:"name"`
	AtEvent    EventRef     `json:"at_event"`
	VolumePlan []VolumePlan `json:"volume_plan,omitempty"`
}

// VolumePlan is what a fork does with one resource.
type VolumePlan struct {
	Resource    string  `json:"resource" is:"name"`
	Mode        Plan    `json:"mode" is:"word"`
	KeptBy      string  `json:"kept_by,omitempty"` // with keep: the branch that keeps it
	SnapshotRef *ExtRef `json:"snapshot_ref,omitzero"`
}

func (*AgentForked) Kind() Kind { return KindAgentForked }

func (b *AgentForked) check(f *problems) {
	if b.FromBranch == b.ToBranch && b.ToBranch != "" {
		f.add("to_branch", "%q is the branch it forks from", core.Clip(b.ToBranch))
	}
	planned := map[string]bool{}
	for i, p := range b.VolumePlan {
		f.within(fmt.Sprintf("volume_plan[%d]", i), func() {
			if planned[p.Resource] {
				f.add("resource", "%q is planned twice", core.Clip(p.Resource))
			}
			planned[p.Resource] = true
			if p.KeptBy != "" && (p.Mode != PlanKeep || p.KeptBy != b.FromBranch && p.KeptBy != b.ToBranch) {
				f.add("kept_by", "%q is not allowed; allowed: from_branch or to_branch, with mode keep", core.Clip(p.KeptBy))
			}
			if p.SnapshotRef != nil && p.Mode != PlanSnapshot {
				f.add("snapshot_ref", "is given, but the mode is %s", p.Mode)
			}
		})
	}
}

// Interruption tells that work was cut off.
type Interruption struct {
	Reason  Reason     `json:"reason" is:"word"`
	Affects []EventRef `json:"affects" is:"list"`
}

func (*Interruption) Kind() Kind { return KindInterruption }

// Substitution tells that one event stands in for another.
type Substitution struct {
	OriginalEvent    EventRef `json:"original_event"`
	ReplacementEvent EventRef `json:"replacement_event"`
	Reason           string   `json:"reason,omitempty" erase:"true"`
}

func (*Substitution) Kind() Kind { return KindSubstitution }

func (b *Substitution) check(f *problems) {
	if b.OriginalEvent == b.ReplacementEvent && b.OriginalEvent.EventID != "" {
		f.add("replacement_event", "an event does not replace itself")
	}
}

// RunStarted begins a run.
type RunStarted struct {
	Reason    string `json:"reason,omitempty" is:"word? user, schedule, subagent"` // user, schedule, subagent
	AskedBy   string `json:"asked_by,omitempty" is:"id"`                           // who asked for the task
	AskedKind string `json:"asked_kind,omitempty" is:"id"`                         // what that is: operator, agent …
	Attempt   int64  `json:"attempt,omitzero" is:"count"`                          // of the task, from 0
}

func (*RunStarted) Kind() Kind { return KindRunStarted }

// RunFinished ends a run.
type RunFinished struct {
	Exit       string  `json:"exit,omitempty" is:"word? success, error"` // success, error
	SummaryRef *ExtRef `json:"summary_ref,omitzero"`
	// Network is what went between the run's processes and each host, the most
	// first; it is absent where nothing did or nobody counts.
	Network []HostUse `json:"network,omitempty"`
}

// HostUse is what went between a run's processes and a host.
type HostUse struct {
	Host        string `json:"host" is:"name"` // a name or an address; "others" are those past the first 64, together
	Port        uint16 `json:"port,omitzero"`
	Connections int64  `json:"connections" is:"count"`
	Refused     int64  `json:"refused,omitzero" is:"count"` // that were not let through
	Sent        int64  `json:"sent_bytes" is:"count"`       // to the host
	Received    int64  `json:"received_bytes" is:"count"`   // from it
}

const maxHosts = 65

func (*RunFinished) Kind() Kind { return KindRunFinished }

func (b *RunFinished) check(f *problems) { f.count("network", len(b.Network), maxHosts) }

// RunSnapshot is the model's second Snapshot: a summary of a run, kept for
// display only.
type RunSnapshot struct {
	ID         string `json:"id" is:"name"`
	RunID      string `json:"run_id,omitempty" is:"id"`
	ContentRef ExtRef `json:"content_ref"`
}

// SnapshotMaterialized tells that a run's summary was made.
type SnapshotMaterialized struct {
	SnapshotRef string  `json:"snapshot_ref" is:"name"` // of a RunSnapshot
	ContentRef  *ExtRef `json:"content_ref,omitzero"`
}

func (*SnapshotMaterialized) Kind() Kind { return KindSnapshotMaterialized }
