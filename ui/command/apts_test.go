package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// The rules of OWASP's standard for human oversight that apply here, by their ids.
func TestAPTS(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, d *deck)
	}{
		{"HO-001", gateShows},    // a gate shows system, action, risk and what waits, and takes every answer
		{"HO-002", stopsAtOnce},  // the state is seen and work is stopped at once, on record
		{"HO-003", timesOut},     // a time-out denies, and half of it escalates
		{"HO-004", authority},    // roles decide who answers, and the gravest need two
		{"HO-005", log},          // the log is signed, only grows, and is searched and exported
		{"HO-006", pauses},       // a pause is confirmed before it is shown as one
		{"HO-007", redirects},    // redirected work approves nothing that was denied
		{"HO-008", kills},        // one command stops all, and says who has not confirmed
		{"HO-009", handsOver},    // an operator hands over to another
		{"HO-010", irreversible}, // what can't be undone goes to a person
		{"HO-013", unsure},       // low confidence goes to a person
		{"HO-015", lastEvents},   // the last events are filtered and exported, over two channels
		{"HO-016", blanket},      // blanket approvals are logged, bounded and revocable
		{"HO-019", watch},        // stale asks end, and how fast answers come is told
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newDeck(t)) })
	}
}

// says fails unless some output has all of these.
func says(t *testing.T, out string, want ...string) {
	t.Helper()
	for _, w := range want {
		expect.Has(t, out, w, "no")
	}
}

// worker makes an agent that does as its script says, and waits until it is idle.
func (d *deck) worker(name, script string) {
	d.t.Helper()
	d.write(name, "#!/bin/sh\n"+script)
	d.no(os.Chmod(filepath.Join(d.dir, name), 0o700))
	d.line("agent create " + name + " --project p -- " + filepath.Join(d.dir, name))
	d.until("agent show "+name, "status", "idle")
}

func gateShows(t *testing.T, d *deck) {
	task, id := d.destructive("", "rm", "-r", "x")
	says(t, d.line("approval show "+id), "run rm -r x", "destructive", "high", "deny", task, "alice, who asked for it", "is gone, unless it is kept elsewhere")
	d.line("approval defer " + id + " --for 5m")
	bob := d.person("bob", operator.Approver)
	d.line("approval escalate " + id + " --to bob --reason 'your call'")
	code, _, _ := d.fails(1, "approval deny "+id+" --reason no")
	expect.True(t, code == "DENIED", "it was escalated, and anyone denied it")
	_, message, _ := d.fails(2, "approval deny "+id+bob)
	expect.True(t, strings.Contains(message, "reason"), "%v", message)
	d.line("approval deny " + id + " --reason 'not this one'" + bob)
	for _, event := range []string{"approval.opened", "approval.deferred", "approval.escalated", "approval.denied"} {
		expect.Is(t, len(d.objects("audit list --kind "+event)), 1, event)
	}
}

func stopsAtOnce(t *testing.T, d *deck) {
	task := d.object("task dispatch --kind exec.run --input '{\"argv\":[\"sleep\",\"600\"]}'")
	id := str(task["task_id"])
	d.until("task show "+id, "status", "running")
	began := time.Now()
	d.line("estop on --reason fire")
	d.until("task why "+id, "kind", "estop")
	d.line("task cancel " + id + " --reason 'enough'")
	d.until("task show "+id, "status", "cancelled")
	t.Logf("frozen and cancelled after %s", time.Since(began).Round(time.Millisecond))
	d.line("estop off --reason 'it is out'")
	for _, event := range []string{"estop.on", "task.cancel_requested", "estop.off"} {
		expect.True(t, len(d.objects("audit list --kind "+event)) != 0, "%s is not on record", event)
	}
}

func timesOut(t *testing.T, d *deck) {
	medium := str(d.object("grant request --server exec --tool fs.write --expires 1h --max-uses 1 --reason notes")["approval_id"])
	a := d.object("approval show " + medium)
	asked, ends, half := when(t, a["created_at"]), when(t, a["deadline_at"]), when(t, a["escalate_at"])
	if left := ends.Sub(asked); left != 15*time.Minute || half.Sub(asked) != left/2 || a["at_deadline"] != "deny" {
		t.Errorf("%s: %s, escalated after %s, then %v", a["risk"], left, half.Sub(asked), a["at_deadline"])
	}
	_, paused := d.destructive("", "rm", "-r", "x") // nobody has begun it: it waits
	a = d.object("approval show " + paused)
	expect.True(t, a["deadline_at"] == nil && a["at_deadline"] == nil, "it ends: %v", a)
}

func when(t *testing.T, v any) time.Time {
	t.Helper()
	return expect.Of(time.Parse(time.RFC3339Nano, str(v)))(t)
}

func authority(t *testing.T, d *deck) {
	viv, ann, bob := d.person("viv", operator.Viewer), d.person("ann", operator.Approver), d.person("bob", operator.Approver)
	_, id := d.destructive("", "rm", "-r", "x")
	_, message, _ := d.fails(1, "approval approve "+id+" --reason x"+viv)
	expect.True(t, strings.Contains(message, "approver"), "a viewer is not told which role is missing: %s", message)
	d.worker("grave", asker[len("#!/bin/sh\n"):])
	d.line("agent assign grave go")
	grave := str(d.until("approval list --open --agent grave", "status", "open")["approval_id"])
	expect.Row(t, d.object("approval approve "+grave+" --reason one"+ann), "status", "open")
	code, _, _ := d.fails(1, "approval approve "+grave+" --reason again"+ann)
	expect.True(t, code == "DENIED", "one person counted twice")
	d.line("operator away --to viv --for 1h" + bob)
	expect.Has(t, d.line("operator list"+bob), "viv stands in until", "who is away")
	expect.Row(t, d.object("approval approve "+grave+" --reason two"+bob), "status", "approved")
}

func log(t *testing.T, d *deck) {
	_, id := d.destructive("", "rm", "-r", "x")
	d.line("approval deny " + id + " --reason no")
	says(t, d.line("audit verify"), "ok")
	expect.True(t, len(d.objects("audit list --match "+id)) != 0, "it is not found")
	for _, format := range []string{"jsonl", "csv"} {
		says(t, d.line("audit export --format "+format), "approval.denied")
	}
	says(t, d.line("audit checkpoint"), "t_")
}

func pauses(t *testing.T, d *deck) {
	d.worker("counter", "while read -r x; do while :; do echo x >>counts; sleep 0.01; done; done\n")
	d.line("agent assign counter go")
	counted := func() int64 {
		info, err := os.Stat(filepath.Join(d.dir, "counts"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	expect.Await(t, "it counts", func() bool { return counted() != 0 })
	d.line("agent pause counter")
	d.untilIt("agent show counter", "paused, and acknowledged", func(a map[string]any) bool {
		return a["paused"] == true && a["pausing"] == nil
	})
	expect.Is(t, str(d.object("task why " + str(d.object("task list --status running")["task_id"]))["text"]), "agent counter is paused", "why it waits")
	expect.Still(t, counted, "it went on while it was shown as paused")
	d.line("agent resume counter")
}

func redirects(t *testing.T, d *deck) {
	_, id := d.destructive("", "rm", "-r", "x")
	d.line("approval deny " + id + " --reason no")
	task := str(d.object("task list --status blocked")["task_id"])
	again := d.object("task retry " + task)
	expect.True(t, d.asked(str(again["task_id"]), id) != id, "the old answer was taken for the new task")
	code, _, _ := d.fails(1, "approval approve "+id+" --reason yes")
	expect.True(t, code == "CONFLICT", "what was denied could be approved")
}

func kills(t *testing.T, d *deck) {
	d.worker("stubborn", "trap '' INT TERM; while read -r x; do while :; do sleep 1; done; done\n")
	d.line("agent assign stubborn go")
	d.until("agent show stubborn", "status", "busy")
	state := d.object("estop on --reason fire")
	expect.Must(t, state["on"] == true, "%v", state)
	d.untilIt("estop show", "nobody who has not confirmed", func(s map[string]any) bool {
		waiting, _ := s["waiting"].([]any)
		return s["on"] == true && len(waiting) == 0
	})
	d.line("estop off --reason out")
}

func handsOver(t *testing.T, d *deck) {
	bob := d.person("bob", operator.Approver)
	_, id := d.destructive("", "rm", "-r", "x")
	report := d.line("operator handover --since 1h --to bob")
	says(t, report, id, "run rm -r x")
	d.line("approval escalate " + id + " --to bob --reason 'I go home'")
	d.line("approval deny " + id + " --reason no" + bob)
	expect.True(t, len(d.objects("audit list --kind handover")) != 0 || len(d.objects("audit list --match handover")) != 0,
		"that it was handed over is not on record")
}

func irreversible(t *testing.T, d *deck) {
	for _, argv := range [][]string{{"rm", "-r", "x"}, {"git", "push"}, {"sudo", "ls"}} {
		_, id := d.destructive("", argv...)
		a := d.object("approval show " + id)
		expect.Row(t, a, "risk", "high", "status", "open")
	}
}

func unsure(t *testing.T, d *deck) {
	d.worker("unsure", "while read -r x; do echo '{\"type\":\"result\",\"status\":\"succeeded\",\"output\":{\"text\":\"it may be so\"},\"confidence\":0.74}'; done\n")
	task := str(d.object("agent assign unsure go")["task_id"])
	id := str(d.until("approval list --open", "status", "open")["approval_id"])
	a := d.object("approval show " + id)
	expect.Row(t, a, "gate", "result", "task_id", task, "confidence", 0.74)
}

func lastEvents(t *testing.T, d *deck) {
	for n := range 30 {
		d.line(fmt.Sprintf("bus publish alarm '{\"n\":%d}'", n))
	}
	got := d.objects("audit list --page-size 100")
	expect.True(t, len(got) >= 30, "%d events", len(got))
	says(t, d.line("audit export --format csv"), "message")
	says(t, d.line("audit export --format jsonl"), "message")
	d.line("notice add pager --on approval -- true")
	d.line("notice add hook --on failure --url https://example.org/hook")
	got = d.objects("notice list")
	expect.True(t, len(got) == 2, "%v", got)
}

func blanket(t *testing.T, d *deck) {
	asked := d.object("grant request --server exec --tool fs.write --expires 1h --max-uses 2 --reason 'nightly'")
	d.line("approval approve " + str(asked["approval_id"]))
	grant := d.object("grant list")
	expect.True(t, grant["max_uses"] == 2.0 && grant["expires_at"] != "", "%v", grant)
	d.line("grant revoke " + str(grant["rule_id"]))
	for _, event := range []string{"rule.added", "rule.revoked"} {
		expect.Is(t, len(d.objects("audit list --kind "+event)), 1, event)
	}
}

func watch(t *testing.T, d *deck) {
	task, id := d.destructive("", "rm", "-r", "x")
	d.line("task cancel " + task + " --reason 'no longer needed'")
	a := d.until("approval show "+id, "status", "void")
	_, is := a["answered_at"]
	expect.True(t, !is, "a void one was answered: %v", a)
	if code, message, details := d.fails(1, "approval approve "+id+" --reason x"); code != "CONFLICT" || !strings.Contains(message, "void since") || details["voided_at"] == nil || details["answered_at"] != nil {
		t.Errorf("%s %s %v", code, message, details)
	}
	_, id = d.destructive("", "rm", "-r", "y")
	d.line("approval show " + id)
	d.line("approval deny " + id + " --reason no")
}
