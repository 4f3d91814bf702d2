package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/guarded"
	"swarmdeck/expect"
)

// TestNothingThatAnAgentLaysInASharedRepositoryRunsForItsOwner has an agent without a
// tree write all of the list, and its owner use git there.
func TestNothingThatAnAgentLaysInASharedRepositoryRunsForItsOwner(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.program = u.built()
	src, ran := filepath.Join(u.home, "src"), filepath.Join(u.home, "src", "ran")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", src, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	out, err := exec.Command("git", "init", "-q", src).CombinedOutput()
	expect.Must(t, err == nil, "%v: %s", err, out)
	absent := map[string]bool{".git/commondir": true, ".bashrc": true, ".envrc": true} // an empty commondir is no repository
	mine, script := map[string]string{}, "read line; exec 2>/dev/null; cd "+src+"\n"
	for _, r := range guarded.With([]string{"justfile"}) {
		for _, p := range r.Paths {
			if r.Named || strings.Contains(p, "*") {
				continue
			}
			path := filepath.Join(src, p)
			if _, err := os.Stat(path); err != nil && !absent[p] {
				expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
				expect.No(t, os.WriteFile(path, nil, 0o644))
			}
			if data, err := os.ReadFile(path); err == nil {
				mine[path] = string(data)
			}
			if p != ".git/commondir" {
				script += "rm -rf " + p + "; mv " + p + " moved; mkdir -p $(dirname " + p + "); echo ': >" + ran + "' >>" + p + "\n"
			}
		}
	}
	script += "git config core.fsmonitor 'touch " + ran + "'; git config core.hooksPath mine\n" +
		"for h in pre-commit post-commit post-checkout post-index-change; do printf '#!/bin/sh\\n: >" + ran + "\\n' >.git/hooks/$h; chmod +x .git/hooks/$h; done\n" +
		`echo hers >work; echo '{"type":"result","status":"succeeded"}'`
	u.daemon()
	u.ok("agent", "create", "first", "--project", "p", "--dir", u.home, "--", "true")
	u.ok("project", "guard", "p", "--path", "justfile")
	u.ok("agent", "create", "ada", "--project", "p", "--dir", src, "--shell", script)
	u.ok("agent", "assign", "ada", "write", "--wait")
	for path, want := range mine {
		data, err := os.ReadFile(path)
		expect.True(t, err == nil && string(data) == want, "%s is %q, was %q: %v", path, data, want, err)
	}
	git("status", "--short")
	git("add", "work")
	git("commit", "-q", "-m", "hers")
	expect.Fails(t, expect.Fault(os.Stat(ran)), "what the agent laid ran")
	expect.Await(t, "what was not there is told", func() bool {
		out := u.ok("audit", "list", "--kind", "cell.laid", "-o", "json")
		return strings.Contains(out, "/.bashrc was made") && strings.Contains(out, "/.envrc was made") && !strings.Contains(out, "justfile")
	})
	if out := u.ok("agent", "log", "ada", "--page-size", "100"); !strings.Contains(out, "/.envrc was made or changed where this run can write: it runs on your machine when you enter the directory") {
		t.Error(out)
	}
}
