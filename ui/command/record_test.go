package command_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func TestWhoOnlyLooksReadsTheTermsOfPolicies(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_acme")
	d.env.Role, d.env.ReadOnly = command.Viewer, true
	expect.Row(t, d.object("policy terms"), "two_persons", false)
	code, _, _ := d.fails(1, "policy terms --jailed on")
	expect.True(t, code == "DENIED", "a viewer changed the terms: %s", code)
}

func TestAServerIsAddedAndRemovedByAnAdmin(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_acme")
	d.line("mcp add far --url http://127.0.0.1:1/mcp")
	d.env.Role = command.Approver
	for _, line := range []string{"mcp add near -- true", "mcp remove far"} {
		code, _, _ := d.fails(1, line)
		expect.True(t, code == "DENIED", "%s: %s", line, code)
	}
}

func TestAViolationNamesWhoTried(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_other")
	d.env.Caller.Tenant = "t_other"
	task := d.object(`task dispatch --kind exec.run --input '{"argv":["true"]}'`)["task_id"].(string)
	event := d.objects("audit list")[0]["event_id"].(string)
	d.line("tenant create t_acme")
	d.env.Caller.Tenant = "t_acme"
	for _, line := range []string{"task show " + task, "audit show " + event, "audit prove " + event} {
		d.fails(1, line)
		got := d.objects("audit list --kind tenant.violation")[0]
		expect.Row(t, got, "actor", "alice", "door", "script")
	}
}

func TestTheEmbeddedPolicyIsShown(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_acme")
	got := d.object("policy show default")
	expect.True(t, got["policy_id"] == "default" && got["status"] == "active" && strings.Contains(got["source"].(string), "rules:"), "policy default: %v", got)
}

func TestAStateAndAPlanAreReadByPeople(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_acme")
	d.line("agent create ada --project p --role r -- cat")
	d.line("dag resource attach ada " + d.dir)
	event := d.objects("dag events --agent ada")[0]["event_id"].(string)
	for line, want := range map[string][]string{
		"dag at " + event: {"event   " + event, "Mounts: ", "Messages: none", "STATUS"},
		"dag fork ada --at " + event + " --dry-run": {"from_branch  main", "Resources: 1", "PLAN", "snapshot"},
	} {
		text := d.line(line)
		for _, part := range want {
			expect.Has(t, text, part, line, "lacks")
		}
		expect.True(t, !strings.Contains(text, `{"`), "%s prints JSON:\n%s", line, text)
	}
}

func TestEventsAreNarrowedToATask(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_acme")
	for _, task := range []string{"tk-1", "tk-2"} {
		d.line(`dag emit '{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r-` + task + `","agent_id":"ada","task_id":"` + task + `"}'`)
	}
	got := d.objects("dag events --task tk-1")
	expect.True(t, len(got) == 1 && got[0]["task_id"] == "tk-1", "events of tk-1: %v", got)
	got = d.objects("dag events --task tk-3")
	expect.True(t, len(got) == 0, "events of tk-3: %v", got)
}

func TestAMistakenFileFailsAMistakenLineIsUsage(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_acme")
	d.write("bad", `{"x":1}`)
	for line, code := range map[string]int{
		"audit check-proof bad":         1,
		"audit verify --checkpoint bad": 1,
		"audit verify --witness bad":    1,
		"audit check-segment bad":       1,
		"dag import jsonl bad":          1,
		"dag export nosuch x":           2,
		"dag graph x --size 1x1":        2,
		"dag resources --at nosuch":     2,
		"audit witness add git":         2,
		"operator handover --to ' a'":   2,
	} {
		kind, message, _ := d.fails(code, line)
		expect.True(t, kind == "INVALID_INPUT", "%s: %s %s", line, kind, message)
	}
}
