package attach

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// TestAHostileStatementHidesNothing has parts that would scroll the answer away, move the
// cursor, or read backwards.
func TestAHostileStatementHidesNothing(t *testing.T) {
	long := strings.Repeat("y\n\x1b[2J\u202e", 9000)
	lines := words("deck", judge.Statement{
		Log: long, TenantID: long, Approval: long, Digest: long, Answer: "approve", Reason: long, Content: long, Operator: long,
		Always: &judge.Always{For: long}, At: time.Unix(1<<33, 0),
	})
	for _, l := range lines {
		expect.True(t, !strings.ContainsAny(l, "\n\r\x1b\u202e") && utf8.RuneCountInString(l) <= 500, "%.80q", l)
	}
	expect.Has(t, strings.Join(lines[len(lines)-3:], "\n"), "answer    APPROVE\n")
}
