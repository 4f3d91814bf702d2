package core

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

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
