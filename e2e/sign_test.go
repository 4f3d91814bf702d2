package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnAnswerIsSignedOnTheMachineOfWhoAnswers: nothing but ssh and ssh-keygen is
// there, and no key and no agent leaves it.
func TestAnAnswerIsSignedOnTheMachineOfWhoAnswers(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	dora := d.client(7, "dora", "approver")
	u.ok("policy", "terms", "--sign", "high")
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-rf","x"]}`, "-o", "json"), "task_id")
	id := field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id")
	if code, _, stderr := dora.run("", "approval approve "+id+" --reason fine"); code != 1 || !strings.Contains(stderr, "has to be signed") {
		t.Errorf("unsigned: exit %d %s", code, stderr)
	}
	if code, _, stderr := u.run("approval", "approve", id, "--reason", "fine"); code != 1 || !strings.Contains(stderr, "has to be signed") {
		t.Errorf("unsigned here: exit %d %s", code, stderr)
	}
	code, statement, stderr := dora.run("", "approval statement "+id+" --answer approve --reason 'I looked'")
	if code != 0 {
		t.Fatalf("exit %d %s", code, stderr)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "statement")
	if err := os.WriteFile(path, []byte(statement), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-Y", "sign", "-n", "swarmdeck", "-f", dora.key(), path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	signature, err := os.ReadFile(path + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	answer := "approval answer '" + strings.TrimSpace(statement) + "' --signature -"
	if code, _, stderr := dora.run(string(signature), strings.Replace(answer, "I looked", "He looked", 1)); code != 1 || !strings.Contains(stderr, "signature") {
		t.Errorf("another reason: exit %d %s", code, stderr)
	}
	if code, out, stderr := dora.run(string(signature), answer); code != 0 || !strings.Contains(out, "approved") {
		t.Fatalf("exit %d %s%s", code, out, stderr)
	}
	u.ok("task", "wait", task)
	if report := u.ok("audit", "verify", "-o", "json"); !strings.Contains(report, `"signed_answers":1`) {
		t.Errorf("%s", report)
	}
	u.ok("audit", "reconcile")
	line := u.ok("decision", "export", id, "--out", "proof")
	check := exec.Command("sh", "-c", line)
	check.Dir = filepath.Join(u.home, "proof")
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), `Good "swarmdeck" signature for dora`) {
		t.Errorf("%v\n%s", err, out)
	}
}
