package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// files are all that lie beside the data file, and in temporary directories.
func (u *user) files() (all []string) {
	for _, dir := range []string{filepath.Dir(u.data()), filepath.Join(u.home, "tmp")} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				all = append(all, path)
			}
			return nil
		})
	}
	return all
}

// TestOfADeletedAgentNoFileIsLeft though its processes write on while they die, and
// nothing that it held: its log, home, mounts and processes go with it.
func TestOfADeletedAgentNoFileIsLeft(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	expect.No(t, os.Mkdir(filepath.Join(u.home, "tmp"), 0o700))
	u.env = append(u.env, "TMPDIR="+filepath.Join(u.home, "tmp"))
	expect.No(t, os.Mkdir(filepath.Join(u.home, "tree"), 0o700))
	script := `trap '' TERM INT
(trap '' TERM INT; while :; do mkdir -p ~/again && echo x >~/again/$RANDOM; done) 2>/dev/null &
mkdir -p ~/a/b && echo secret >~/a/b/note && chmod 500 ~/a/b
echo temporary >/tmp/note
while read -r task; do
	seq 2000
	echo '{"type":"result","status":"succeeded","output":{}}'
done
sleep 600
`
	expect.No(t, os.WriteFile(filepath.Join(u.home, "agent.sh"), []byte(script), 0o600))
	u.ok("tenant", "create", "t_test")
	u.host()
	before := u.files()
	u.ok("agent", "create", "ada", "--project", "p", "--", "sh", "agent.sh")
	out := u.ok("agent", "assign", "ada", "go", "--wait", "-o", "json")
	expect.Must(t, field(out, "status") == "succeeded", "%v", out)
	u.ok("dag", "resource", "attach", "ada", "tree")
	expect.Has(t, u.ok("dag", "mounts", "-o", "json"), "ada", "it holds nothing")
	if !slices.ContainsFunc(u.files(), func(path string) bool { return strings.HasSuffix(path, "a/b/note") }) {
		t.Errorf("it has no home: %q", u.files())
	}
	u.ok("agent", "delete", "ada", "--yes")
	for _, path := range u.files() {
		kept := strings.Contains(path, ".run/snapshots/") // of the directory that it worked in: the record goes back to them
		expect.True(t, slices.Contains(before, path) || kept, "%s is left", path)
	}
	out = u.ok("dag", "mounts", "-o", "json")
	expect.True(t, !strings.Contains(out, "ada"), "it still holds %s", out)
	code, _, _ := u.run("agent", "log", "ada")
	expect.True(t, code == 1, "its log: exit %d", code)
	if left := processesOf(u.home); len(left) > 1 { // the cockpit itself
		t.Errorf("left running: %q", left)
	}
	u.ok("audit", "reconcile")
}
