package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// PolicyKind says what a policy is.
type PolicyKind string

// The kinds.
const (
	KindRules   PolicyKind = "rules"   // a table in YAML, as the embedded one
	KindProgram PolicyKind = "program" // see Program
)

// PolicyStatus says where a policy stands.
type PolicyStatus string

// The statuses.
const (
	PolicyProposed  PolicyStatus = "proposal"
	PolicyActive    PolicyStatus = "active"
	PolicyRetired   PolicyStatus = "retired" // ruled once; can be restored
	PolicyWithdrawn PolicyStatus = "withdrawn"
)

// Policy is one version of a tenant's policy (seed 4, Policy). What it is
// never changes, only where it stands.
type Policy struct {
	TenantID     string       `json:"tenant_id"`
	PolicyID     string       `json:"policy_id"`
	Kind         PolicyKind   `json:"kind"`
	Status       PolicyStatus `json:"status"`
	Name         string       `json:"name"`
	URI          string       `json:"uri"`           // resource://approval-policy/proposals/DIGEST
	SourceDigest string       `json:"source_digest"` // sha256 of the source, hex
	CasesDigest  string       `json:"cases_digest,omitempty"`
	Version      string       `json:"policy_version"` // what its decisions carry; covers the base too
	Interpreter  []string     `json:"interpreter,omitempty"`
	Serve        bool         `json:"serve,omitzero"`
	Gates        []Gate       `json:"gates,omitempty"` // that a program decides; none means all
	Cases        int          `json:"cases"`

	TestsSummary  *TestsSummary `json:"tests_summary,omitzero"`
	TestedAt      time.Time     `json:"tested_at,omitzero"`
	TestedVersion string        `json:"tested_version,omitempty"`
	Unsandboxed   bool          `json:"unsandboxed,omitzero"` // a program that can't be jailed here

	ProposedBy   string         `json:"proposed_by"`
	ProposedKind core.ActorKind `json:"proposed_kind"`
	CreatedAt    time.Time      `json:"created_at"`
	FirstBy      string         `json:"first_activated_by,omitempty"` // two-person rule: the first of two
	FirstPerson  string         `json:"first_person,omitempty"`       // who that is to the door, under whatever name
	ActivatedBy  string         `json:"activated_by,omitempty"`
	ActivatedAt  time.Time      `json:"activated_at,omitzero"`
	RetiredAt    time.Time      `json:"retired_at,omitzero"`
	WithdrawnBy  string         `json:"withdrawn_by,omitempty"`
	AuditSeq     uint64         `json:"audit_seq,omitzero"`
}

// TestsSummary is how a policy's cases went (seed 4).
type TestsSummary struct {
	Total  int `json:"total"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// policyRecord is what the audit log says of a policy.
type policyRecord struct {
	Status PolicyStatus  `json:"status"`
	Source string        `json:"source"`
	Cases  string        `json:"cases"`
	Run    string        `json:"run"` // digest of how it is run
	Tests  *TestsSummary `json:"tests,omitzero"`
	First  string        `json:"first,omitempty"`
}

func (p *Policy) state() policyRecord {
	run := digestOf(core.MustEncode(map[string]any{"kind": p.Kind, "interpreter": p.Interpreter, "serve": p.Serve, "gates": p.Gates, "by": p.ProposedBy}))
	return policyRecord{p.Status, p.SourceDigest, p.CasesDigest, run, p.TestsSummary, p.FirstBy}
}

func digestOf(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// savePolicy writes a policy with its audit event.
func (j *Judge) savePolicy(tx *audit.Tx, p *Policy, event string, detail any) error {
	old, err := j.policies.Load(tx, p.PolicyID)
	if err != nil {
		return err
	}
	return j.policies.Save(tx, record.Event{Type: event, Detail: detail}, old, p)
}

// readSource reads a policy's source and refuses one that was changed.
func readSource(tx store.Tx, p *Policy) ([]byte, error) {
	source, _, err := policySources.Get(tx, keyOf(p.PolicyID))
	if err == nil && digestOf(source) != p.SourceDigest {
		err = core.Errorf(core.Internal, "the source of policy %s is not what was proposed", p.PolicyID)
	}
	return source, err
}

func readCases(tx store.Tx, p *Policy) ([]byte, error) {
	cases, _, err := policyCases.Get(tx, keyOf(p.PolicyID))
	if err == nil && digestOf(cases) != p.CasesDigest {
		err = core.Errorf(core.Internal, "the cases of policy %s are not what was proposed", p.PolicyID)
	}
	return cases, err
}

// PolicyDetail is a policy with what it is made of.
type PolicyDetail struct {
	Policy
	Source  string `json:"source"`
	CaseSet string `json:"case_set,omitempty"` // JSON lines
}

// GetPolicy returns one policy of the tenant with its source and cases.
func (j *Judge) GetPolicy(ctx context.Context, tenant, id string) (PolicyDetail, error) {
	var out PolicyDetail
	if err := j.local(ctx, core.Self(tenant, "judge"), core.PolicyPrefix, "policy", id); err != nil {
		return out, err
	}
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		p, err := j.policies.Need(tx, id)
		if err != nil {
			return err
		}
		source, err := readSource(tx, p)
		if err != nil {
			return err
		}
		cases, err := readCases(tx, p)
		out = PolicyDetail{*p, string(source), string(cases)}
		return err
	})
	return out, err
}

// Policies lists a tenant's policies, newest first.
func (j *Judge) Policies(ctx context.Context, tenant string) ([]Policy, error) {
	all, err := j.policies.List(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the policies: %w", err)
	}
	slices.Reverse(all)
	return all, nil
}
