package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// inRepository puts the deck's caller into a git repository.
func inRepository(t *testing.T) *deck {
	t.Helper()
	d := newDeck(t)
	d.env.Dir = (&walk{deck: d}).repository()
	return d
}

func TestEachDoorGivesAnAgentATree(t *testing.T) {
	d := inRepository(t)
	repo := d.env.Dir
	d.write("repo/swarm.yaml", `
tenant: t_one
projects:
  - {name: repo, roles: [{name: coder, command: [cat]}]}
agents:
  - {name: one, project: repo, command: [cat]}
  - {name: two, project: repo, command: [cat], dir: "${CWD}"}
  - {name: three, project: repo, from: coder}
  - {name: here, project: repo, command: [cat], tree: false}
`)
	made := d.applied("swarm.yaml")
	d.line("agent create four -- cat")
	d.line("agent create five --from coder")
	d.line("agent create also --tree=false -- cat")
	seen := map[string]string{}
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		a := d.object("agent show " + name)
		dir := str(a["dir"])
		expect.True(t, dir != repo && strings.HasSuffix(dir, name+"/repo") && a["project"] == "repo", "%s works in %s, of %v", name, dir, a["project"])
		expect.True(t, seen[dir] == "", "%s shares %s with %s", name, dir, seen[dir])
		seen[dir] = name
	}
	for _, name := range []string{"here", "also"} {
		expect.Row(t, d.object("agent show "+name), "dir", repo)
	}
	again := d.applied("swarm.yaml")
	expect.True(t, len(again) == len(made) && !slices.ContainsFunc(again, func(s string) bool { return !strings.HasPrefix(s, "unchanged") }), "again: %q", again)
}

func TestWhoSharesACheckoutIsToldSo(t *testing.T) {
	d := inRepository(t)
	d.write("repo/swarm.yaml", "tenant: t_one\nagents:\n  - {name: one, project: p, command: [cat], tree: false}\n  - {name: two, project: p, command: [cat], tree: false}\n")
	code, _, told := d.run("up", ".")
	expect.True(t, code == 0 && strings.Contains(told, "two shares "+d.env.Dir+" with one"), "exit %d: %s", code, told)
}

func TestAnAgentsProjectIsItsRepository(t *testing.T) {
	d := inRepository(t)
	d.line("tenant create t_one")
	expect.Row(t, d.object("agent create ada -- cat"), "project", "repo")
	(&walk{deck: d}).git("worktree", "add", "-q", "../side")
	expect.Row(t, d.object("agent create eve --dir ../side -- cat"), "project", "repo")
	expect.Row(t, d.object("agent create bob --project web -- cat"), "project", "web")
	_, message, details := d.fails(2, "agent create cy --dir .. -- cat")
	expect.True(t, details["field"] == "project" && strings.Contains(message, "--project is missing"), "%s", message)
}

// TestAProgramOfTheCallersPathIsFound has a program that is in the PATH of the caller
// and not in the engine's.
func TestAProgramOfTheCallersPathIsFound(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_one")
	bin := filepath.Join(d.dir, "bin")
	d.write("bin/only-mine", "#!/bin/sh\nread l; echo hello\n")
	d.no(os.Chmod(filepath.Join(bin, "only-mine"), 0o755))
	d.fails(2, "agent create ada --project p -- only-mine")
	path := bin + ":" + os.Getenv("PATH")
	d.has("PATH", path)
	d.line("agent create ada --project p --task go -- only-mine")
	d.until("agent history ada", "status", "succeeded")
	d.write("swarm.yaml", "tenant: t_one\nagents:\n  - {name: bob, project: p, command: [only-mine]}\n")
	expect.Same(t, d.applied("."), []string{"unchanged tenant t_one", "created agent bob"})
	for _, other := range []string{path + ":/nowhere", "/usr/bin:/bin"} { // it stays as it was made
		d.has("PATH", other)
		expect.Same(t, d.applied("."), []string{"unchanged tenant t_one", "unchanged agent bob"}, "with", other)
	}
	expect.True(t, fmt.Sprint(d.object("agent show bob")["env"]) == "map[PATH:[hidden]]", "%v", d.object("agent show bob")["env"])
}

// has gives the caller a variable.
func (d *deck) has(name, value string) {
	getenv := d.env.Getenv
	d.env.Getenv = func(asked string) string {
		if asked == name {
			return value
		}
		return getenv(asked)
	}
}
