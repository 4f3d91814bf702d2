package command_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// The other rules of docs/requirements.md on approvals are tested beside the judge, as
// TestR1 to TestR9.

// What waits for a person holds no slot, and stops no other task.
func TestR8WaitingHoldsNoSlot(t *testing.T) {
	d := newDeck(t)
	d.line("tenant slots set --slots 1")
	for range 5 {
		d.destructive("", "rm", "-r", "x")
	}
	task := d.object("task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}' --wait")
	expect.Is(t, task["status"], "succeeded", task)
	expect.Is(t, len(d.objects("approval list --open")), 5, "wait")
}

// Who, by which proof, where, by which key and door, shown and decided when, about what.
func TestR10AnAnswerIsRecordedWhole(t *testing.T) {
	d := newDeck(t)
	bob := d.person("bob", operator.Approver)
	d.env.Caller.Seat = "/dev/pts/7"
	_, id := d.destructive("", "rm", "-r", "x")
	shown := d.object("approval show " + id + bob)
	d.line("approval approve " + id + ` --edit '{"argv":["rm","-r","y"]}' --reason 'that one is mine' --pressed e` + bob)
	a := d.object("approval show " + id)
	got := d.object("decision show " + str(a["decision_id"]))
	for field, want := range map[string]string{
		"decision": "approve", "reason_code": "operator.edited", "rationale": "that one is mine", "decided_by": "bob", "seat": "/dev/pts/7",
		"key": "e", "door": "script", "digest": str(a["digest"]), "prior_digest": str(shown["digest"]), "rule_id": "exec.destructive",
		"policy_version": str(a["policy_version"]), "approval_id": id,
	} {
		expect.Is[any](t, got[field], want, field, "is")
	}
	expect.True(t, strings.HasPrefix(str(got["proof"]), "SHA256:") && got["shown_at"] != nil && got["created_at"] != nil, "%v", got)
	expect.True(t, got["digest"] != got["prior_digest"], "the edit left the digest as it was")
}

// Every ask is reached by its id from a line, with the same checks.
func TestR11EveryAskIsReachedByALine(t *testing.T) {
	d := newDeck(t)
	_, id := d.destructive("", "rm", "-r", "x")
	bob := d.person("bob", operator.Approver)
	for _, line := range []string{"show " + id, "why " + id, "statement " + id + " --answer approve --reason x", "defer " + id + " --for 1m", "ask " + id + " 'why?'", "escalate " + id + " --to bob"} {
		d.line("approval " + line)
	}
	_, message, _ := d.fails(2, "approval approve "+id+bob)
	expect.True(t, strings.Contains(message, "needs one"), "%v", message)
	for line, want := range map[string]string{
		"approval deny " + id + " --reason x --digest 00":                           "no longer what you saw",
		"approval approve " + id + ` --edit '{"argv":["rm","-rf","/"]}' --reason x`: "refused by",
	} {
		_, message, _ := d.fails(1, line+bob)
		expect.True(t, strings.Contains(message, want), "%s: %s", line, message)
	}
	d.line("approval deny " + id + " --reason no" + bob)
}
