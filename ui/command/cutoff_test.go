package command_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// asks begins a task of an agent that asks for a call, and says which approval waits.
func (d *deck) asks(name, then, flags string) (task, approval string) {
	d.t.Helper()
	d.worker(name, `while read -r x; do
  case $x in *'"type":"task"'*) echo '{"type":"tool_request","call_id":"c","tool":"db.drop","args":{},"risk":"high"}' ;; *) `+then+` ;; esac
done
`)
	task = str(d.object("task dispatch --kind agent.prompt --max-attempts 1 --input '{\"agent\":\"" + name + "\",\"message\":\"go\"}' --agent " + name + flags)["task_id"])
	return task, str(d.untilIt("approval list --open", "it asks", func(a map[string]any) bool { return a["task_id"] == task })["approval_id"])
}

// TestTheRecordSaysWhatCutACallOff has a call end in each way that is not its own.
func TestTheRecordSaysWhatCutACallOff(t *testing.T) {
	result := `echo '{"type":"result","status":"succeeded"}'`
	for name, c := range map[string]struct {
		then, flags, status, reason string
		end                         func(d *deck, task, approval string)
	}{
		"denied": {result, "", "succeeded", "approval_denied", func(d *deck, _, approval string) { d.line("approval deny " + approval + " --reason no") }},
		"told": { // what it makes of the denial is no second call
			`echo '{"type":"tool_result","call_id":"c","status":"error","error":"denied"}'; ` + result, "", "succeeded", "approval_denied",
			func(d *deck, _, approval string) { d.line("approval deny " + approval + " --reason no") },
		},
		"ended":     {result, "", "blocked", "approval_denied", func(d *deck, _, approval string) { d.line("approval deny " + approval + " --reason no --abort") }},
		"cancelled": {result, "", "cancelled", "canceled", func(d *deck, task, _ string) { d.line("task cancel " + task) }},
		"late":      {result, " --timeout 2s", "timed_out", "timeout", func(*deck, string, string) {}},
		"killed": {result, "", "failed", "crash", func(d *deck, _, _ string) {
			d.no(exec.Command("kill", "-9", "--", fmt.Sprint(int(d.object("agent show killed")["pid"].(float64)))).Run())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeck(t)
			task, approval := d.asks(name, c.then, c.flags)
			c.end(d, task, approval)
			d.until("task list --match "+task, "status", c.status)
			var kinds []string
			for _, e := range d.objects("dag events --task " + task) {
				kind := str(e["kind"])
				if kind == "interruption" {
					kind += " " + str(e["reason"])
				}
				if strings.HasPrefix(kind, "tool_") || strings.HasPrefix(kind, "interruption") || kind == "run_finished" {
					kinds = append(kinds, kind)
				}
			}
			slices.Sort(kinds)
			expect.True(t, slices.Equal(kinds, []string{"interruption " + c.reason, "run_finished", "tool_call", "tool_result"}), "%v", kinds)
			for _, e := range d.objects("audit list --kind tool.result") {
				t.Errorf("a result is in the log: %v", e)
			}
		})
	}
}
