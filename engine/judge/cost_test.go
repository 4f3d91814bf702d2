package judge_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/judge"
)

// TestALargeAskIsCounted: what a rule that only compares costs is counted for
// an ask that makes it dear, and for no other.
func TestALargeAskIsCounted(t *testing.T) {
	when := strings.Repeat(`action.args.list == action.args.same || `, 19) + "false"
	f := setup(t, func(o *judge.Options) {
		o.Policy = []byte(policy(ruleLine("x", when, "approve")))
		o.Evaluation = time.Hour // the cost ends it, never the time
	})
	for n, want := range map[int]string{10: "no_rule", 100_000: "policy.error"} {
		list := strings.Repeat("1,", n)
		ask := execBy(alice, `{"list":[`+list+`1],"same":[`+list+`2]}`)
		if v := f.Evaluate(context.Background(), acme, ask); v.ReasonCode != want {
			t.Errorf("lists of %d: %s (%s), want %s", n, v.ReasonCode, v.Rationale, want)
		}
	}
}
