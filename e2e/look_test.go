package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestALineWithoutAnEngineSeesWhatAgentsChanged looks at trees with nothing but lines:
// each is an engine as long as it lasts, and none of them lets an agent work.
func TestALineWithoutAnEngineSeesWhatAgentsChanged(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	src := filepath.Join(u.home, "src")
	expect.No(t, os.MkdirAll(src, 0o755))
	expect.No(t, os.WriteFile(filepath.Join(src, "a"), []byte("one\ntwo\n"), 0o644))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", src, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "git %q: %v\n%s", args, err, out)
	}
	for _, name := range []string{"ada", "bob"} {
		u.ok("agent", "create", name, "--project", "p", "--dir", src, "--tree", "--", "sh", "-c", "read line; sed -i s/two/"+name+"/ a")
		u.ok("agent", "assign", name, "go on", "--wait")
	}
	for _, see := range []struct{ line, want string }{
		{"agent diff ada", "\n-two\n+ada\n"},
		{"agent diff ada --against bob", "\n-bob\n+ada\n"},
		{"review show ada", "changed   1 files, +1 -1\n"},
		{"review show ada", "also      bob: a"},
		{"review list", "ada: a"},
		{"review file ada a", "one\nada\n"},
	} {
		expect.Has(t, u.ok(strings.Fields(see.line)...), see.want, see.line)
		code, out, stderr := u.run(append([]string{"--read-only"}, strings.Fields(see.line)...)...)
		expect.True(t, code == 1 && out == "" && strings.Contains(stderr, "not looked at with --read-only"),
			"--read-only %s: exit %d\n%s%s", see.line, code, out, stderr)
	}
}
