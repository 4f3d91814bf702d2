package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/examples"
	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// slow are the examples that -short leaves out.
var slow = []string{"agents", "hostile", "results", "retries", "walk"}

func TestEveryExampleScriptPasses(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("examples/scripts/*.txtar")
	expect.Must(t, err == nil && len(scripts) >= 15, "found %d scripts: %v", len(scripts), err)
	for _, path := range scripts {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			for _, s := range slow {
				if s == name && testing.Short() {
					t.Skip("takes seconds")
				}
			}
			t.Parallel()
			u := newPlayer(t)
			path := expect.Of(filepath.Abs(path))(t)
			code, stdout, stderr := u.run("--script", path)
			expect.True(t, code == 0 && strings.Contains(stdout, name+".txtar: ok"), "exit code %d\n%s%s", code, stdout, stderr)
		})
	}
}

// onFiles are the examples that are about a data file: on a database each tenant has a
// cockpit of its own.
var onFiles = []string{"store", "tenant-switch"}

// TestTheExampleScriptsPassOnADatabase plays the scripts that one who comes from a file
// has: nothing but the name of the data is another.
func TestTheExampleScriptsPassOnADatabase(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	scripts := strings.Fields(cmp.Or(os.Getenv("SWARMDECK_DATABASE_SCRIPTS"), "approvals tasks tenants"))
	if scripts[0] == "all" {
		all := expect.Of(filepath.Glob("examples/scripts/*.txtar"))(t)
		scripts = nil
		for _, path := range all {
			if name := strings.TrimSuffix(filepath.Base(path), ".txtar"); !slices.Contains(onFiles, name) {
				scripts = append(scripts, name)
			}
		}
	}
	for _, name := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newPlayer(t)
			u.onDatabase(t, cluster.Database(t, strings.ReplaceAll(name, "-", "_")), nil)
			path := expect.Of(filepath.Abs("examples/scripts/" + name + ".txtar"))(t)
			code, stdout, stderr := u.run("--script", path)
			expect.True(t, code == 0 && strings.Contains(stdout, name+".txtar: ok"), "exit code %d\n%s%s", code, stdout, stderr)
		})
	}
}

// newPlayer is a user whose scripts can start the program themselves.
func newPlayer(t *testing.T) *user {
	u := newUser(t)
	program := filepath.Join(u.home, "swarmdeck")
	expect.No(t, os.Symlink(u.built(), program))
	u.env = append(u.env, "SWARMDECK="+program)
	return u
}

func TestExtractedExampleIsTheOneInTheTree(t *testing.T) {
	t.Parallel()
	dir := expect.Of(examples.Extract("quickstart", t.TempDir()))(t)
	for _, name := range []string{"swarm.yaml", "agents/lib.sh", "agents/scribe.sh"} {
		want := expect.Of(os.ReadFile(filepath.Join("examples/quickstart", name)))(t)
		got, err := os.ReadFile(filepath.Join(dir, name))
		expect.True(t, err == nil && string(got) == string(want), "%s differs: %v", name, err)
	}
	info, err := os.Stat(filepath.Join(dir, "agents/scribe.sh"))
	expect.True(t, err == nil && info.Mode().Perm() == 0o700, "an agent must be executable by its owner only: %v %v", info.Mode(), err)
}
