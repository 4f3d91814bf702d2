package judge

import (
	"cmp"
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

const (
	KindRules   PolicyKind = "rules"   // a table in YAML, as the embedded one
	KindProgram PolicyKind = "program" // see Program
)

// PolicyStatus says where a policy stands.
type PolicyStatus string

const (
	PolicyProposed  PolicyStatus = "proposal"
	PolicyActive    PolicyStatus = "active"
	PolicyRetired   PolicyStatus = "retired" // ruled once; can be restored
	PolicyWithdrawn PolicyStatus = "withdrawn"
)

// Policy is one version of a tenant's policy (model 4, Policy). What it is
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
	CreatedAt    time.Time      `json:"created_at,omitzero"`
	FirstBy      string         `json:"first_activated_by,omitempty"` // two-person rule: the first of two
	FirstPerson  string         `json:"first_person,omitempty"`       // who that is to the door, under whatever name
	ActivatedBy  string         `json:"activated_by,omitempty"`
	ActivatedAt  time.Time      `json:"activated_at,omitzero"`
	RetiredAt    time.Time      `json:"retired_at,omitzero"`
	WithdrawnBy  string         `json:"withdrawn_by,omitempty"`
	AuditSeq     uint64         `json:"audit_seq,omitzero"`
}

// TestsSummary is how a policy's cases went (model 4).
type TestsSummary struct {
	Total  int `json:"total"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// digestOf is the sha256 in hex, "" of nothing.
func digestOf(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// savePolicy writes a policy with its audit event.
func (j *policies) savePolicy(tx *audit.Tx, p *Policy, event string, detail any) error {
	return j.kind.Keep(tx, record.Event{Type: event, Detail: detail}, p)
}

// part reads a policy's source or its cases, and refuses what was changed.
func (p *Policy) part(tx store.Tx, from record.Rows[core.Raw], digest string) ([]byte, error) {
	data, _, err := from.Get(tx, keyOf(p.PolicyID))
	if err == nil && digestOf(data) != digest {
		err = core.Errorf(core.Internal, "%s of %s is not what was proposed", from, p.PolicyID)
	}
	return data, err
}

// PolicyDetail is a policy with what it is made of.
type PolicyDetail struct {
	Policy
	Source  string `json:"source"`
	CaseSet string `json:"case_set,omitempty"` // JSON lines
}

// basePolicy is the embedded policy: it rules where no other does.
func (j *policies) basePolicy(ctx context.Context, tenant string) (PolicyDetail, error) {
	of := j.base()
	base := Policy{TenantID: tenant, PolicyID: BasePolicy, Kind: KindRules, Status: PolicyActive, Name: of.name, Version: of.version, SourceDigest: digestOf(DefaultPolicy())}
	all, err := j.Policies(ctx, tenant)
	if slices.ContainsFunc(all, func(p Policy) bool { return p.Status == PolicyActive }) {
		base.Status = PolicyRetired
	}
	return PolicyDetail{Policy: base, Source: string(DefaultPolicy())}, err
}

// GetPolicy returns one policy of the tenant with its source and cases; of
// BasePolicy the embedded rules.
func (j *policies) GetPolicy(ctx context.Context, tenant, id string) (PolicyDetail, error) {
	var out PolicyDetail
	if id == BasePolicy {
		return j.basePolicy(ctx, tenant)
	}
	if err := j.ledger.local(ctx, core.Self(tenant, "judge"), core.PolicyPrefix, "policy", id); err != nil {
		return out, err
	}
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		p, err := j.kind.Need(tx, id)
		if err != nil {
			return err
		}
		source, err := p.part(tx, policySources, p.SourceDigest)
		cases, bad := p.part(tx, policyCases, p.CasesDigest)
		out = PolicyDetail{*p, string(source), string(cases)}
		return cmp.Or(err, bad)
	})
	return out, err
}

// Policies lists a tenant's policies, newest first.
func (j *policies) Policies(ctx context.Context, tenant string) ([]Policy, error) {
	all, err := record.Values(j.kind.List(ctx, tenant))
	if err != nil {
		return nil, fmt.Errorf("list the policies: %w", err)
	}
	slices.Reverse(all)
	return all, nil
}

// Book is the agents' record, where it tells of the lives of policies.
type Book interface {
	// PolicyStated tells a step of a policy's life, in the transaction that
	// makes it; p is the policy after it.
	PolicyStated(tx *audit.Tx, p Policy, step PolicyStep) error
}

// PolicyStep is one step of a policy's life.
type PolicyStep struct {
	Did    string // one of the steps below
	Args   map[string]any
	Result map[string]any
	Before *Policy // what ruled before; nil for the embedded policy, and where none is replaced
}

// The steps. Under two persons the first who activates or restores a policy
// leaves it as it was.
const (
	DidPropose  = "propose"
	DidTest     = "test"
	DidBacktest = "backtest"
	DidActivate = "activate"
	DidRestore  = "restore"
	DidWithdraw = "withdraw"
)

// maxTold bounds how many cases and groups of flips the record tells of.
const maxTold = 50

// Proposed is the step that made a proposal.
func (p *Policy) Proposed() PolicyStep {
	args := map[string]any{
		"name": p.Name, "kind": p.Kind, "source_digest": p.SourceDigest, "cases": p.Cases,
		"proposed_by": p.ProposedBy, "proposed_kind": p.ProposedKind,
	}
	if p.CasesDigest != "" {
		args["cases_digest"] = p.CasesDigest
	}
	if p.Kind == KindProgram {
		args["serve"], args["interpreter"], args["gates"] = p.Serve, append([]string{}, p.Interpreter...), append([]Gate{}, p.Gates...)
	}
	return PolicyStep{Did: DidPropose, Args: args, Result: map[string]any{"uri": p.URI, "policy_version": p.Version}}
}

// tested is the step of a test.
func tested(sum TestsSummary, results []CaseResult) PolicyStep {
	failed := []map[string]any{}
	for _, r := range results {
		if !r.Passed && len(failed) < maxTold {
			failed = append(failed, map[string]any{"name": r.Name, "want": r.Want, "decision": r.Decision, "reason_code": r.ReasonCode})
		}
	}
	return PolicyStep{Did: DidTest, Result: map[string]any{"tests_summary": sum, "failed": failed}}
}

// backtested is the step of a backtest.
func backtested(rep BacktestReport) PolicyStep {
	rep.Groups = rep.Groups[:min(len(rep.Groups), maxTold)]
	return PolicyStep{Did: DidBacktest, Args: map[string]any{"last": rep.Last}, Result: map[string]any{"report": rep}}
}

// PolicySteps grows with each step that a policy of the tenant takes.
func (j *policies) PolicySteps(tenant string) int {
	_, n := j.rulings.get(tenant)
	return n
}

// tell tells the record, and who watches, of a step.
func (j *policies) tell(tx *audit.Tx, p *Policy, step PolicyStep) error {
	tenant := tx.Tenant()
	tx.OnCommit(func() { j.rulings.change(tenant, func(same *ruling) *ruling { return same }) })
	if j.book == nil {
		return nil
	}
	if err := j.book.PolicyStated(tx, *p, step); err != nil {
		return fmt.Errorf("record the %s of policy %s: %w", step.Did, p.PolicyID, err)
	}
	return nil
}
