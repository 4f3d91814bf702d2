package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"swarmdeck/expect"
)

// TestAgentsGetTheirPlacesByLabels: none of the hosts is there, which their places do
// not need.
func TestAgentsGetTheirPlacesByLabels(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.program = u.built()
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("host", "add", "ant", "--command", "no-such-ant", "--label", "arch=amd64", "--slots", "2")
	u.ok("host", "add", "bee", "--command", "no-such-bee", "--label", "arch=amd64", "--label", "gpu=yes", "--slots", "2")
	make := func(name string, args ...string) (int, string, string) {
		return u.run(append(append([]string{"agent", "create", name, "--project", "p", "-o", "json"}, args...), "--", "true")...)
	}
	var all sync.WaitGroup
	codes := [6]int{}
	for i := range codes { // two are too many
		all.Go(func() { codes[i], _, _ = make(fmt.Sprint("agent", i), "--on", "arch=amd64") })
	}
	all.Wait()
	list := u.ok("host", "list")
	expect.True(t, strings.Count(list, "2 of 2") == 2, "%v\n%s", codes, list)
	_, _, stderr := make("more", "--on", "arch=amd64")
	expect.Has(t, stderr, "ant: it is full, with 2 of 2 agents; bee: it is full")
	for want, args := range map[string][]string{
		"give one of them": {"--host", "ant", "--on", "gpu=yes"}, "LABEL=VALUE": {"--on", "gpu"},
	} {
		code, _, stderr := make("bad", args...)
		expect.True(t, code == 2 && strings.Contains(stderr, want), "%v: %d %s", args, code, stderr)
	}
	u.ok("host", "add", "bee", "--command", "no-such-bee", "--label", "arch=amd64", "--label", "gpu=yes", "--slots", "3")
	_, out, _ := make("last", "--on", "gpu=yes")
	expect.True(t, field(out, "host") == "bee" && field(out, "on") == "gpu=yes", "%v", out)
	expect.Has(t, u.ok("agent", "show", "last", "-o", "wide"), "gpu=yes")
	code, out, stderr := u.run("host", "drain", "bee")
	expect.True(t, code == 0 && strings.Contains(out+stderr, "3 agents have their place there: agent"), "%v %v %v", code, out, stderr)
	file := filepath.Join(u.home, "swarm.yaml")
	write := func(text string) {
		expect.No(t, os.WriteFile(file, []byte(text), 0o600))
	}
	u.ok("host", "add", "cat", "--command", "no-such-cat", "--label", "disk=large")
	write("agents:\n  - {name: far, project: p, command: [\"true\"], on: disk=large}\n  - {name: by-name, project: p, command: [\"true\"], host: cat, dir: /srv}\n")
	u.ok("up", file)
	out = u.ok("agent", "show", "far", "-o", "json")
	expect.True(t, field(out, "host") == "cat" && field(out, "on") == "disk=large" && field(out, "dir") == "", "%v", out)
	out = u.ok("agent", "show", "by-name", "-o", "json")
	expect.True(t, field(out, "host") == "cat" && field(out, "dir") == "/srv", "%v", out)
	u.ok("host", "drain", "cat")
	if out := u.ok("up", file); strings.Count(out, "unchanged") != 2 { // they stay
		t.Error(out)
	}
	write("agents:\n  - {name: far, project: p, command: [\"true\"], on: disk=small}\n")
	code, _, stderr = u.run("up", file)
	expect.True(t, code != 0 && strings.Contains(stderr, "has its place on cat"), "%v %v", code, stderr)
	u.ok("audit", "verify")
}
