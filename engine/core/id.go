package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Prefixes of ids. An id reads PREFIX_TAG_SEQ, for example
// "tk_7f3ac_0000000042": TAG marks the tenant, SEQ counts within it. The tag
// lets the engine refuse (and audit) an id of another tenant without ever
// looking into that tenant's records.
const (
	TaskPrefix     = "tk"
	SessionPrefix  = "se"
	DecisionPrefix = "gd"
	ApprovalPrefix = "ap"
	EventPrefix    = "ev"
	RulePrefix     = "ru"
	WorkflowPrefix = "wf"
	PolicyPrefix   = "pl"
	IntentPrefix   = "in"
)

const tagLen = 5

var tenantPattern = Pattern(`^t_[a-z0-9][a-z0-9_-]{1,62}$`)

// CheckTenant reports a malformed tenant id (requirement 1.1).
func CheckTenant(id string) error {
	if !tenantPattern().MatchString(id) {
		return Invalid("tenant_id", id, "t_ then a lower-case letter or digit, then 1-62 of a-z 0-9 _ -")
	}
	return nil
}

var agentPattern = Pattern(`^[a-zA-Z0-9_.-]{1,64}$`)

// IsAgent reports whether a name can be an agent's: one of the fleet, a CAD
// agent, or the id of a subagent.
func IsAgent(name string) bool { return agentPattern().MatchString(name) }

// TenantTag is the short mark of a tenant inside its ids.
func TenantTag(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:tagLen/2+1])[:tagLen]
}

// NewID makes the id of record seq of a tenant.
func NewID(prefix, tenant string, seq uint64) string {
	b := make([]byte, 0, 24)
	b = append(b, prefix...)
	b = append(b, '_')
	b = append(b, TenantTag(tenant)...)
	b = append(b, '_')
	for limit := uint64(1_000_000_000); seq < limit && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendUint(b, seq, 10))
}

// ParseID splits an id made by NewID.
func ParseID(id string) (prefix, tag string, seq uint64, ok bool) {
	prefix, rest, _ := strings.Cut(id, "_")
	tag, number, _ := strings.Cut(rest, "_")
	if len(tag) != tagLen || len(number) < 10 {
		return "", "", 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "", "", 0, false
	}
	return prefix, tag, seq, true
}

// ErrForeign is wrapped by LocalSeq when an id belongs to another tenant; the
// caller audits it as tenant.violation.
var ErrForeign = &Error{Code: Denied, Message: "belongs to another tenant"}

// LocalSeq returns the sequence number of an id of this tenant and prefix.
// It fails with INVALID_INPUT for a malformed id and with ErrForeign for an
// id of another tenant.
func LocalSeq(prefix, tenant, id string) (uint64, error) {
	p, tag, seq, ok := ParseID(id)
	if !ok || p != prefix {
		return 0, Invalid(kindOf[prefix]+"_id", id, prefix+"_TAG_NUMBER, as printed by the list commands")
	}
	if tag != TenantTag(tenant) {
		return 0, fmt.Errorf("%s %s: %w", kindOf[prefix], id, ErrForeign)
	}
	return seq, nil
}

var kindOf = map[string]string{
	TaskPrefix: "task", SessionPrefix: "session", DecisionPrefix: "decision",
	ApprovalPrefix: "approval", EventPrefix: "event", RulePrefix: "rule", WorkflowPrefix: "workflow", PolicyPrefix: "policy",
	IntentPrefix: "intent",
}

// IDNoun says what ids with a prefix name: "task".
func IDNoun(prefix string) string { return kindOf[prefix] }

// NewTrace makes a W3C trace-id: 32 lower-case hex digits, never all zero.
func NewTrace(r io.Reader) string {
	if r == nil {
		r = rand.Reader
	}
	var b [16]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		panic(fmt.Sprintf("core: random source failed: %v", err)) // crypto/rand never fails on supported systems
	}
	b[15] |= 1
	return hex.EncodeToString(b[:])
}

// CheckTrace reports a malformed W3C trace-id.
func CheckTrace(id string) error {
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return Invalid("trace_id", id, "32 lower-case hex digits, not all zero")
	}
	return nil
}
