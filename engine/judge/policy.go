package judge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of policies. Keys are 8-byte big-endian sequence numbers unless said.
const (
	policyBucket  store.Bucket = "policy"        // every Policy
	policySources store.Bucket = "policy.source" // its source
	policyCases   store.Bucket = "policy.cases"  // its cases, JSON lines
	policyState   store.Bucket = "policy.state"  // "active" → number, "terms" → PolicyTerms
)

const countProposals = "policy"

var activeKey, termsKey = []byte("active"), []byte("terms")

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

func recordOf(p *Policy, source, cases string) (policyRecord, error) {
	run, err := core.Digest(map[string]any{"kind": p.Kind, "interpreter": p.Interpreter, "serve": p.Serve, "gates": p.Gates, "by": p.ProposedBy})
	return policyRecord{p.Status, source, cases, run, p.TestsSummary, p.FirstBy}, err
}

func digestOf(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// savePolicy writes a policy with its audit event.
func savePolicy(tx *audit.Tx, p *Policy, event string, detail any) error {
	state, err := recordOf(p, p.SourceDigest, p.CasesDigest)
	if err != nil {
		return fmt.Errorf("digest policy %s: %w", p.PolicyID, err)
	}
	seq, err := tx.Record(audit.Entry{Type: event, Subject: "policy", ID: p.PolicyID, State: state, Detail: detail, Prev: p.AuditSeq})
	if err != nil {
		return fmt.Errorf("audit %s of %s: %w", event, p.PolicyID, err)
	}
	p.AuditSeq = seq
	value, err := core.Encode(p)
	if err != nil {
		return fmt.Errorf("encode policy %s: %w", p.PolicyID, err)
	}
	_, _, n, _ := core.ParseID(p.PolicyID)
	if err := tx.Put(policyBucket, key(n), value); err != nil {
		return fmt.Errorf("write policy %s: %w", p.PolicyID, err)
	}
	made := *p
	tx.Changed("policy", p.PolicyID, &made)
	return nil
}

func loadPolicy(tx store.Tx, id string) (*Policy, error) {
	seq, err := core.LocalSeq(core.PolicyPrefix, tx.Tenant(), id)
	if err != nil {
		return nil, err
	}
	return readPolicy(tx, key(seq))
}

func readPolicy(tx store.Tx, at []byte) (*Policy, error) {
	value, err := tx.Get(policyBucket, at)
	if err != nil {
		return nil, fmt.Errorf("read a policy: %w", err)
	}
	if value == nil {
		return nil, core.Missing("policy", core.NewID(core.PolicyPrefix, tx.Tenant(), binary.BigEndian.Uint64(at)))
	}
	p := &Policy{}
	if err := core.DecodeStored(value, p); err != nil {
		return nil, fmt.Errorf("decode a policy: %w", err)
	}
	return p, nil
}

// readSource reads a policy's source and refuses one that was changed.
func readSource(tx store.Tx, p *Policy) ([]byte, error) {
	_, _, n, _ := core.ParseID(p.PolicyID)
	source, err := tx.Get(policySources, key(n))
	if err != nil {
		return nil, fmt.Errorf("read the source of %s: %w", p.PolicyID, err)
	}
	if digestOf(source) != p.SourceDigest {
		return nil, core.Errorf(core.Internal, "the source of policy %s is not what was proposed", p.PolicyID)
	}
	return append([]byte(nil), source...), nil
}

func readCases(tx store.Tx, p *Policy) ([]byte, error) {
	_, _, n, _ := core.ParseID(p.PolicyID)
	cases, err := tx.Get(policyCases, key(n))
	if err != nil {
		return nil, fmt.Errorf("read the cases of %s: %w", p.PolicyID, err)
	}
	if digestOf(cases) != p.CasesDigest {
		return nil, core.Errorf(core.Internal, "the cases of policy %s are not what was proposed", p.PolicyID)
	}
	return append([]byte(nil), cases...), nil
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
		p, err := loadPolicy(tx, id)
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
	var all []Policy
	err := j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return eachPolicy(tx, true, func(p *Policy) error { all = append(all, *p); return nil })
	})
	if err != nil {
		return nil, fmt.Errorf("list the policies: %w", err)
	}
	return all, nil
}

func eachPolicy(tx store.Tx, reverse bool, fn func(*Policy) error) error {
	var bad error
	err := tx.Scan(policyBucket, nil, nil, reverse, func(_, value []byte) bool {
		p := &Policy{}
		if bad = core.DecodeStored(value, p); bad == nil {
			bad = fn(p)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

type policyRecords struct{}

func (policyRecords) Subject() string { return "policy" }

// States compares the sources and cases themselves, not what is said of them.
func (policyRecords) States(tx store.Tx, each func(string, any) error) error {
	return eachPolicy(tx, false, func(p *Policy) error {
		_, _, n, _ := core.ParseID(p.PolicyID)
		source, err := tx.Get(policySources, key(n))
		if err != nil {
			return err
		}
		cases, err := tx.Get(policyCases, key(n))
		if err != nil {
			return err
		}
		state, err := recordOf(p, digestOf(source), digestOf(cases))
		if err != nil {
			return err
		}
		return each(p.PolicyID, state)
	})
}
