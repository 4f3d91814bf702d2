package command_test

import (
	"fmt"
	"testing"

	"swarmdeck/expect"
)

func TestACardTellsWhatWaitsAndWhatCameOfTheSameBefore(t *testing.T) {
	d := newDeck(t)
	before, first := d.destructive("", "rm", "-r", "x")
	d.line("approval deny " + first + " --reason 'not now'")
	d.until("task show "+before, "status", "blocked")
	task, id := d.destructive("", "rm", "-r", "x")
	next := str(d.object(`task dispatch --kind exec.run --input '{"argv":["true"]}' --after ` + task)["task_id"])
	around := d.object("approval show " + id)["around"].(map[string]any)
	behind := fmt.Sprint(around["behind"])
	for _, want := range []string{"task " + task + ": queued", "task " + next + ", which comes after it", "alice, who asked for it"} {
		expect.Has(t, behind, want, "no")
	}
	past := around["past"].([]any)[0].(map[string]any)
	for field, want := range map[string]any{"approval_id": first, "status": "denied", "by": "alice", "reason": "not now", "same": true, "came": "blocked"} {
		expect.Is(t, past[field], want, field, "is")
	}
}
