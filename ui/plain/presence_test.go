package plain

import (
	"testing"

	"swarmdeck/engine/fleet"
)

func TestAgentsThatNeedAPersonAreTold(t *testing.T) {
	stuck := &fleet.Stuck{Kind: fleet.NoProgress, Text: "nothing heard for 10m0s"}
	for _, c := range []struct {
		agent fleet.Agent
		state string
		loud  bool
		why   string
	}{
		{fleet.Agent{Status: fleet.Busy}, "working", false, ""},
		{fleet.Agent{Status: fleet.Busy, Stuck: stuck}, "stuck", true, "; nothing heard for 10m0s"},
		{fleet.Agent{Status: fleet.Busy, Attention: "which one?"}, "asks for you", true, "; which one?"},
		{fleet.Agent{Status: fleet.Busy, Waiting: "ap_1"}, "waiting for you", false, ""}, // the approval is told
		{fleet.Agent{Status: fleet.Busy, Stuck: stuck, Waiting: "ap_1"}, "waiting for you", false, "; nothing heard for 10m0s"},
		{fleet.Agent{Status: fleet.Failed, Reason: "gone"}, "failed", true, "; gone"},
	} {
		if got := told(&c.agent); got != c.state || loud(got) != c.loud || why(&c.agent) != c.why {
			t.Errorf("%+v: %s %v %s", c.agent, got, loud(got), why(&c.agent))
		}
	}
}
