package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestAKilledSetupRunsAnew(t *testing.T) {
	t.Parallel()
	k := newTreeKills(t, rand.New(rand.NewPCG(1, 1)))
	k.ok("project", "tree", "p", "--setup", "echo begun >>.git/begun; sleep 2", "--setup", "echo ready >>.git/ready")
	k.ok("agent", "create", "ada", "--project", "p", "--dir", k.src, "--tree", "--task", "go", "--", "sh", "-c", "read l; cp .git/ready .git/seen")
	k.tree = field(k.ok("agent", "show", "ada", "-o", "json"), "dir")
	text := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(k.tree, ".git", name)) // it may not be there
		return string(text)
	}
	expect.Await(t, "nothing sets the tree up", func() bool { return text("begun") != "" })
	k.kill()
	k.serve()
	said := k.ok("review", "show", "ada")
	expect.True(t, text("ready") != "" || strings.Contains(said, "setup     not done"), "%s", said)
	expect.Await(t, "the agent has not worked", func() bool { return text("seen") != "" })
	expect.True(t, text("begun") == "begun\nbegun\n" && text("ready") == "ready\n" && text("seen") == "ready\n",
		"begun %q, ready %q, seen %q", text("begun"), text("ready"), text("seen"))
	expect.Has(t, k.ok("review", "show", "ada"), "setup     done")
	said = k.ok("task", "list", "--kind", "tree.setup")
	expect.True(t, strings.Contains(said, "1 of 1") || strings.Count(said, "tree.setup") == 1, "%s", said)
}
