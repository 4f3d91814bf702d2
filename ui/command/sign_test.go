package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// asker asks for something at critical risk for each task, and does as it is told.
const asker = `#!/bin/sh
while read -r x; do
	echo '{"type":"tool_request","call_id":"c","tool":"db.drop","args":{},"risk":"critical"}'
	read -r answer
	echo '{"type":"result","status":"succeeded"}'
done
`

// question has an agent ask at critical risk.
func (d *deck) question() string {
	d.t.Helper()
	for _, task := range d.objects("task list --status running") {
		d.until("task show "+str(task["task_id"]), "status", "succeeded")
	}
	d.until("agent show asker", "status", "idle")
	d.line("agent assign asker go")
	return str(d.until("approval list --open", "status", "open")["approval_id"])
}

func TestCriticalAnswersAreSignedAndVerifyElsewhere(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed (openssh-client)")
	}
	d := newDeck(t)
	d.write("asker", asker)
	d.no(os.Chmod(filepath.Join(d.dir, "asker"), 0o700))
	d.line("agent create asker --project p -- " + filepath.Join(d.dir, "asker"))
	ann, bob := d.person("ann", operator.Approver), d.person("bob", operator.Approver)
	d.key("eve")
	d.line("policy terms --sign critical")
	id := d.question()

	// Without one, and with another's.
	code, says, _ := d.fails(1, "approval approve "+id+" --reason fine")
	expect.True(t, code == "DENIED" && strings.Contains(says, "has to be signed"), "unsigned: %s %s", code, says)
	d.line("approval approve " + id + " --reason 'I looked'" + ann)

	// Signed elsewhere, with nothing but ssh-keygen.
	statement := d.line("approval statement " + id + " --answer approve --reason 'so did I'" + bob)
	path := filepath.Join(d.dir, "statement")
	sign := func(key, namespace string) {
		t.Helper()
		d.no(os.WriteFile(path, []byte(statement), 0o600))
		_ = os.Remove(path + ".sig")
		out, err := exec.Command(keygen, "-Y", "sign", "-n", namespace, "-f", filepath.Join(d.dir, key+".key"), path).CombinedOutput()
		expect.Must(t, err == nil, "%v\n%s", err, out)
	}
	answer := "approval answer @statement --signature @statement.sig"
	for name, c := range map[string]struct {
		key, namespace, line, says string
	}{
		"another's key":        {"eve", "swarmdeck", answer + bob, "not one of bob's"},
		"another namespace":    {"bob", "git", answer + bob, "namespace"},
		"another's statement":  {"bob", "swarmdeck", answer + ann, "it is bob's"},
		"no signature":         {"bob", "swarmdeck", "approval answer @statement --signature hello" + bob, "no signature of ssh-keygen"},
		"another reason":       {"bob", "swarmdeck", "approval answer '" + strings.Replace(strings.TrimSpace(statement), "so did I", "so did we", 1) + "' --signature @statement.sig" + bob, "signature"},
		"a statement reshaped": {"bob", "swarmdeck", "approval answer '" + strings.Replace(strings.TrimSpace(statement), ",", ", ", 1) + "' --signature @statement.sig" + bob, "as `approval statement` printed it"},
	} {
		sign(c.key, c.namespace)
		args := c.line
		code := 1
		if name == "a statement reshaped" {
			code = 2
		}
		_, says, _ := d.fails(code, args)
		expect.True(t, strings.Contains(says, c.says), "%s: %s", name, says)
	}
	sign("bob", "swarmdeck")
	got := d.object(answer + bob)
	expect.Must(t, got["status"] == "approved", "%v", got)
	_, says, _ = d.fails(1, answer+bob)
	expect.True(t, strings.Contains(says, "already approved"), "replayed: %s", says)
	second := d.question()
	_, says, _ = d.fails(1, "approval answer '"+strings.Replace(strings.TrimSpace(statement), id, second, 1)+"' --signature @statement.sig"+bob)
	expect.True(t, strings.Contains(says, "signature") || strings.Contains(says, "digest"), "for another question: %s", says)
	d.line("approval deny " + second + " --reason 'not that'" + ann)

	expect.Row(t, d.object("audit verify"), "ok", true, "signed_answers", 3.0)
	// From the export alone, with a stock ssh-keygen.
	lines := strings.TrimSpace(d.line("decision export " + id + " --out proof"))
	for line := range strings.Lines(lines) {
		run := exec.Command("sh", "-c", line)
		run.Dir = filepath.Join(d.dir, "proof")
		expect.Has(t, string(expect.Of(run.CombinedOutput())(t)), "Good \"swarmdeck\" signature", line)
	}
	expect.Is(t, strings.Count(lines, "\n"), 1, "two keys", lines)
	denied := d.line("-o json decision export " + second)
	if !strings.Contains(denied, `\"answer\":\"deny\"`) || !strings.Contains(denied, `\"log\":\"swarmdeck/`) || strings.Count(denied, `"principal"`) != 1 {
		t.Errorf("%s", denied)
	}
	d.fails(1, "decision export "+id+" --out proof")
	all := d.objects("decision list")
	d.fails(1, "decision export "+str(all[len(all)-1]["decision_id"]))
	deltas := strings.TrimSpace(d.line("-o json audit reconcile"))
	expect.True(t, !strings.Contains(deltas, "decision"), "%s", deltas)
}
