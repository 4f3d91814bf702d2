package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
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

// NewUUID makes the version 4 UUID (RFC 9562) of record seq of a tenant, for
// records whose model asks for one (model 3). Bytes 0-2 mark the tenant as the
// tag of NewID does and bytes 10-15 are seq, so that such a record is found
// without an index and a foreign id is known without a look into that tenant;
// the rest is random. A nil r means crypto/rand; seq is below 2^48.
func NewUUID(tenant string, seq uint64, r io.Reader) string {
	if r == nil {
		r = rand.Reader
	}
	var b [16]byte
	if _, err := io.ReadFull(r, b[3:10]); err != nil {
		panic(fmt.Sprintf("core: random source failed: %v", err)) // crypto/rand never fails on supported systems
	}
	copy(b[:3], uuidTag(tenant))
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], seq)
	copy(b[10:], s[2:])
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func uuidTag(tenant string) []byte {
	sum := sha256.Sum256([]byte(tenant))
	return sum[:3]
}

// IsUUID reports whether id reads as a version 4 UUID in lower case.
func IsUUID(id string) bool {
	_, ok := parseUUID(id)
	return ok
}

func parseUUID(id string) (b [16]byte, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' || strings.ToLower(id) != id {
		return b, false
	}
	n, err := hex.Decode(b[:], []byte(strings.ReplaceAll(id, "-", "")))
	return b, err == nil && n == 16 && b[6]>>4 == 4 && b[8]>>6 == 2
}

// LocalUUID returns the sequence number of a UUID made by NewUUID for this
// tenant; field names it in errors. It fails with INVALID_INPUT for what is no
// version 4 UUID and with ErrForeign for one of another tenant. The caller
// compares the whole id with the record's own: the random part is part of it.
func LocalUUID(field, tenant, id string) (uint64, error) {
	b, ok := parseUUID(id)
	if !ok {
		return 0, Invalid(field, id, "a version 4 UUID, as printed by the list commands")
	}
	if string(b[:3]) != string(uuidTag(tenant)) {
		return 0, fmt.Errorf("%s %s: %w", field, id, ErrForeign)
	}
	var s [8]byte
	copy(s[2:], b[10:])
	return binary.BigEndian.Uint64(s[:]), nil
}

// SpanID names the span of a piece of work: its kind and id, and which of
// several tries. It follows from these, so that a link to a span can be made
// where the work is given out, long before the span is known to whom it
// belongs. W3C Trace Context: 16 lower-case hex digits, never all zero.
func SpanID(tenant, kind, id string, n int) string {
	b := make([]byte, 0, 96)
	for _, part := range []string{"span", tenant, kind, id} {
		b = append(append(b, part...), 0)
	}
	sum := sha256.Sum256(strconv.AppendInt(b, int64(n), 10))
	sum[7] |= 1
	return hex.EncodeToString(sum[:8])
}

// Traceparent is the W3C header of that name for a span of a trace.
func Traceparent(trace, span string) string { return "00-" + trace + "-" + span + "-01" }

var traceparentPattern = Pattern(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// ParseTraceparent reads a W3C traceparent header, of this version or a later
// one; ok is false for anything else, which is then as good as none.
func ParseTraceparent(header string) (trace, span string, ok bool) {
	if len(header) > 512 {
		return "", "", false
	}
	m := traceparentPattern().FindStringSubmatch(header)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[4] != "" || strings.Trim(m[2], "0") == "" || strings.Trim(m[3], "0") == "" {
		return "", "", false
	}
	return m[2], m[3], true
}
