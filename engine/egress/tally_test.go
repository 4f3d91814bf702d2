package egress_test

import (
	"fmt"
	"testing"

	"swarmdeck/engine/egress"
	"swarmdeck/expect"
)

func TestATallyCountsWhatGoesMeanwhile(t *testing.T) {
	w := open(t, "", 0)
	w.put(egress.Deny, "bad.example")
	api := target(t, "api.example", 443)
	var sent, received int64 = 10, 100
	over := w.Egress.Opened(ada, api, func() (int64, int64) { return sent, received })
	overIdle := w.Egress.Opened(ada, target(t, "idle.example", 443), func() (int64, int64) { return 7, 7 })
	tally := w.Egress.Tally(acme, "ada", "")
	sent, received = 15, 300
	w.used(api, 1, 2)
	bob := ada
	bob.Agent = "bob"
	w.Egress.Opened(bob, api, func() (int64, int64) { return 1000, 1000 })()
	open := w.Egress.Opened(ada, target(t, "open.example", 443), func() (int64, int64) { return 3, 4 })
	w.Egress.Decide(t.Context(), ada, whole(target(t, "bad.example", 443)))
	over()
	got := tally.End()
	want := []egress.HostSum{
		{Target: api, Sum: egress.Sum{Connections: 2, Sent: 6, Received: 202}},
		{Target: target(t, "open.example", 443), Sum: egress.Sum{Connections: 1, Sent: 3, Received: 4}},
		{Target: target(t, "bad.example", 443), Sum: egress.Sum{Refused: 1}},
	}
	expect.Is(t, fmt.Sprint(got), fmt.Sprint(want), got, want)
	next := w.Egress.Tally(acme, "ada", "")
	open()
	overIdle()
	got = next.End()
	expect.True(t, len(got) == 0, "what was counted is counted again: %v", got)
	again := tally.End()
	expect.True(t, fmt.Sprint(again) == fmt.Sprint(want), "an ended tally changes: %v", again)
}

func TestATallyHasABound(t *testing.T) {
	w := open(t, "", 0)
	tally := w.Egress.Tally(acme, "ada", "")
	for i := range 1100 {
		w.used(target(t, fmt.Sprintf("h%d.example", i), 443), int64(i), 0)
	}
	all := tally.End()
	last := all[len(all)-1]
	expect.True(t, len(all) == 65 && last.Host == "others" && last.Connections == 1100-64, "%d, %v", len(all), last)
}
