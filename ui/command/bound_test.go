package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// destructive dispatches a command that a person is asked about, and returns
// its task and its open approval.
func (d *deck) destructive(flags string, argv ...string) (task, approval string) {
	d.t.Helper()
	input := core.MustEncode(map[string]any{"argv": argv})
	made := d.object(fmt.Sprintf("task dispatch --kind exec.run --input '%s' %s", input, flags))
	task = made["task_id"].(string)
	return task, d.asked(task, "")
}

// asked waits for the open approval of a task, another one than before.
func (d *deck) asked(task, before string) string {
	d.t.Helper()
	shown := d.until("task show "+task, "waiting", "approval")
	id := shown["approval_id"].(string)
	expect.Must(d.t, id != before, "task %s still waits for %s", task, id)
	return id
}

func (d *deck) job(text string) { d.write("job.sh", text) }

func TestWhatWasApprovedIsWhatRuns(t *testing.T) {
	d := newDeck(t)
	d.job("echo one\necho two\n")
	task, first := d.destructive("", "sh", "-c", "rm -rf gone; sh job.sh")
	card := d.line("approval show " + first)
	for _, want := range []string{"file  job.sh, 0", "runs as shown", "  echo one\n  echo two\n", "1 file", "reads by itself"} {
		expect.Has(t, card, want, "the card lacks")
	}
	d.line("approval approve " + first + " --reason fine")
	d.until("task show "+task, "status", "succeeded")

	task, second := d.destructive("", "sh", "-c", "rm -rf gone; sh job.sh")
	expect.Has(t, d.line("approval show "+second), "as approved in "+first, "the card does not say that it knows the file")
	d.job("echo one\necho \x1b[31mevil\n")
	d.line("approval approve " + second + " --reason fine")
	d.until("approval show "+second, "status", "void")
	expect.Row(t, d.object("approval show "+second), "void_reason", "job.sh is not what was approved")
	d.until("task show "+task, "status", "queued")
	third := d.asked(task, second)
	card = d.line("approval show " + third)
	for _, want := range []string{"against what was approved in " + first, "  -echo two\n", "evil"} {
		expect.Has(t, card, want, "the card lacks")
	}
	expect.True(t, !strings.Contains(card, "\x1b[31m"), "an escape sequence came through: %q", card)
	d.line("approval approve " + third + " --reason fine")
	d.until("task show "+task, "status", "succeeded")
	left, _ := filepath.Glob(filepath.Join(d.dir, "spill", "approved", "runs", "*"))
	expect.True(t, len(left) == 0, "copies are left: %q", left)
}

func TestAFileThatAnEarlierTaskMakesIsAskedAbout(t *testing.T) {
	d := newDeck(t)
	input := core.MustEncode(map[string]any{"argv": []string{"sh", "-c", "until test -e go; do sleep 0.02; done; echo echo made >job.sh"}})
	maker := d.object(fmt.Sprintf("task dispatch --kind exec.run --input '%s'", input))["task_id"].(string)
	task, first := d.destructive("--after "+maker, "sh", "-c", "rm -rf gone; sh job.sh")
	card := d.line("approval show " + first)
	expect.True(t, !strings.Contains(card, "file  "), "a file that is not there is on the card:\n%s", card)
	d.line("approval approve " + first + " --reason fine")
	d.no(os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	d.until("approval show "+first, "status", "void")
	d.until("task show "+task, "status", "queued")
	expect.Has(t, d.line("approval show "+d.asked(task, first)), "  echo made\n", "the card does not show what was made")
}

func TestAnEditedCommandIsBoundToItsOwnFiles(t *testing.T) {
	d := newDeck(t)
	d.job("echo one\n")
	d.write("other.sh", "echo other\n")
	task, id := d.destructive("", "sh", "-c", "rm -rf gone; sh job.sh")
	d.line("approval approve " + id + ` --reason fine --edit '{"argv":["sh","other.sh"]}'`)
	d.until("task show "+task, "status", "succeeded")
	card := d.line("approval show " + id)
	expect.True(t, strings.Contains(card, "file  other.sh") && !strings.Contains(card, "file  job.sh"), "%s", card)
}

func TestAnExactRuleDoesNotCoverAnotherContent(t *testing.T) {
	d := newDeck(t)
	d.job("echo one\n")
	task, id := d.destructive("", "sh", "-c", "rm -rf gone; sh job.sh")
	told := d.line("approval approve " + id + " --reason fine --always anyone --expires 1h --max-uses 5")
	expect.True(t, strings.Contains(told, "from now on: let anyone run `sh -c \"rm -rf gone; sh job.sh\"`"), "what the rule says is not told: %s", told)
	d.until("task show "+task, "status", "succeeded")
	input := core.MustEncode(map[string]any{"argv": []string{"sh", "-c", "rm -rf gone; sh job.sh"}})
	again := d.object(fmt.Sprintf("task dispatch --kind exec.run --input '%s' --wait", input))
	expect.Is(t, again["status"], "succeeded", "the rule does not cover the same content", again)
	d.job("echo two\n")
	d.destructive("", "sh", "-c", "rm -rf gone; sh job.sh")
}
