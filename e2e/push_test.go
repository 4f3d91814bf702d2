package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestAPushGoesToTheRegisteredRemoteBySSH has a real sshd, and a repository whose own
// configuration leads to a local one with hooks.
func TestAPushGoesToTheRegisteredRemoteBySSH(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.program = u.built()
	address := u.sshTo()
	src, remote, planted := filepath.Join(u.home, "src"), filepath.Join(u.home, "remote.git"), filepath.Join(u.home, "planted.git")
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		expect.No(t, err, "git", args, out)
		return strings.TrimSpace(string(out))
	}
	ran := filepath.Join(u.home, "ran")
	git(u.home, "init", "-q", "-b", "main", src)
	git(src, "commit", "-q", "--allow-empty", "-m", "first")
	git(u.home, "init", "-q", "--bare", remote)
	git(u.home, "init", "-q", "--bare", planted)
	expect.No(t, os.WriteFile(filepath.Join(planted, "hooks", "pre-receive"), []byte("#!/bin/sh\n: >"+ran+"\n"), 0o755))
	git(src, "remote", "add", "origin", planted)
	git(src, "config", "url."+planted+".pushInsteadOf", address+remote)
	git(src, "config", "core.sshCommand", "touch "+ran+"; false")
	u.daemon()
	u.ok("agent", "create", "ada", "--project", "p", "--dir", src, "--tree", "--shell", "read line; echo hers > new; echo '{\"type\":\"result\",\"status\":\"succeeded\"}'")
	u.ok("agent", "assign", "ada", "write", "--wait")
	code, _, stderr := u.run("push", "ada", "--to", "fix")
	expect.True(t, code == 1 && strings.Contains(stderr, "project remote p origin URL"), "%d %s", code, stderr)
	for _, url := range []string{"planted.git", "file:planted.git", "ext::sh -c id", "fd::3", "http://git.example.org/x"} {
		code, _, stderr := u.run("project", "remote", "p", "origin", url)
		expect.True(t, code == 2 && strings.Contains(stderr, "not "), "%s: %d %s", url, code, stderr)
	}
	u.ok("project", "remote", "p", "origin", address+remote)
	task := field(u.ok("push", "ada", "--to", "fix", "-o", "json"), "task_id")
	expect.Await(t, "it is asked for", func() bool { return strings.Contains(u.ok("approval", "list", "--open"), "push ada") })
	u.ok("approval", "approve", field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id"), "--reason", "looked at it")
	if out := u.ok("task", "wait", task, "--timeout", patience.String(), "-o", "json"); !strings.Contains(out, `"succeeded"`) {
		t.Error(out, u.ok("result", "show", task))
	}
	expect.Is(t, git(remote, "show", "fix:new"), "hers")
	expect.Fails(t, expect.Fault(os.Stat(ran)), "a program of the repository's configuration ran")
}
