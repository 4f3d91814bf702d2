package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestAnAgentOnAHostHasAWorkTree has what it changed there, committed or not, reviewed and
// merged here as if it were on this machine: its commits, a submodule, a file that git
// ignores and the source lists, and what the base became meanwhile.
func TestAnAgentOnAHostHasAWorkTree(t *testing.T) {
	t.Parallel()
	k := &treeKills{user: withHost(t)}
	k.src = filepath.Join(k.home, "src")
	lib := filepath.Join(k.home, "lib")
	k.write(lib, "lib.txt", "lib\n")
	k.git(lib, "init", "-q", "-b", "main")
	k.git(lib, "add", "-A")
	k.git(lib, "commit", "-q", "-m", "lib")
	for name, text := range map[string]string{
		"a.txt": lines("a", 60), "sub/b.txt": lines("b", 60), "own.txt": lines("own", 5), ".gitignore": ".env\nbuilt\n", ".env": "KEY=1\n", ".worktreeinclude": ".env\n",
	} {
		k.write(k.src, name, text)
	}
	k.git(k.src, "init", "-q", "-b", "main")
	k.git(k.src, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
	k.git(k.src, "add", "-A")
	k.git(k.src, "commit", "-q", "-m", "first")
	k.write(k.home, "trees.yaml", treePolicy)
	k.write(k.home, "trees.jsonl", `{"name":"goes on","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"approve"}}`+"\n")
	k.ok("policy", "activate", field(k.ok("policy", "propose", "trees.yaml", "--tests", "trees.jsonl", "-o", "json"), "policy_id"))

	line := `while read line; do case $line in
*first*) sed -i 's/^a 1$/A 1/' a.txt; git commit -qam "one more"; echo loose > new.txt; mkdir -p built; echo x > built/x; rm own.txt;
  said="$(cat .env) $(cat lib/lib.txt) $(git log --format=%s | wc -l)";;
*second*) said="$(sed -n 60p a.txt)"; echo again >> new.txt;;
esac
echo "{\"type\":\"result\",\"status\":\"succeeded\",\"output\":{\"said\":\"$(echo $said)\"}}"; done`
	k.ok("agent", "create", "far", "--project", "p", "--host", "box", "--tree", "--dir", k.src, "--shell", line)
	did := func(what, want string) {
		t.Helper()
		id := field(k.ok("agent", "assign", "far", what, "-o", "json"), "task_id")
		out := k.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json")
		expect.Must(t, strings.Contains(out, `"succeeded"`), "%v", out)
		expect.Has(t, k.ok("result", "show", id, "-o", "json"), want, what)
	}
	did("first", `"said":"KEY=1 lib 2"`)
	at := field(k.ok("agent", "show", "far", "-o", "json"), "dir")
	expect.True(t, strings.Contains(at, "/keeper-") && strings.HasSuffix(at, "/far/src"), "%v", at)
	out := k.ok("agent", "diff", "far", "--stat")
	for _, want := range []string{"a.txt", "new.txt", "own.txt"} {
		expect.Has(t, out, want, "no")
	}
	for _, never := range []string{".env", "built"} {
		expect.True(t, !strings.Contains(out, never), "%s in %s", never, out)
	}
	k.ok("merge", "far", "--rebase", "--message", "what is left", "--wait")
	expect.Is(t, k.git(k.src, "log", "--format=%s"), "what is left\none more\nfirst")
	expect.Has(t, string(expect.Of(os.ReadFile(filepath.Join(k.src, "a.txt")))(t)), "\nA 1\n")
	k.write(k.src, "a.txt", strings.ReplaceAll(lines("a", 60), "a 59", "a LAST"))
	k.git(k.src, "commit", "-q", "-am", "a user's")
	k.ok("review", "update", "far")
	did("second", `"said":"a LAST"`)
	k.ok("merge", "far", "--message", "again", "--wait")
	expect.Is(t, string(expect.Of(os.ReadFile(filepath.Join(k.src, "new.txt")))(t)), "loose\nagain\n")
	k.ok("agent", "delete", "far", "--yes")
	k.ok("audit", "verify")
	k.ok("audit", "reconcile")
}
