package coding

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestEachRowOfTheTableIsWhole(t *testing.T) {
	all := expect.Of(Load("", nil))(t)
	seen := map[string]bool{}
	for _, a := range all {
		expect.True(t, !seen[a.Name], "%s is there twice", a.Name)
		seen[a.Name] = true
		for what, has := range map[string]bool{
			"about": a.About != "", "install": a.Install != "", "hosts": len(a.Hosts) > 0, "login": a.Login.Command != "",
			"by what it is logged in": len(a.Login.Files)+len(a.Login.Variables) > 0, "version": len(a.Version) > 0,
		} {
			expect.True(t, has, "%s has no %s", a.Name, what)
		}
		for _, w := range a.Ways {
			expect.True(t, w.Asks != "" && !strings.Contains(w.Command[0], "/"), "%s: %+v", a.Name, w)
		}
		expect.True(t, a.Ways[0].Runtime == "acp" || !slices.ContainsFunc(a.Ways, func(w Way) bool { return w.Runtime == "acp" }), "%s has a better way than its first", a.Name)
	}
	for _, name := range []string{"claude", "codex", "gemini", "opencode", "copilot", "cline", "goose", "qwen", "auggie"} {
		expect.True(t, seen[name], "no %s", name)
	}
}

func TestAFileOfTheUserAddsAgents(t *testing.T) {
	text := `
agents:
  - {name: mine, about: Mine, program: mine, ways: [{runtime: exec, command: [mine, -x], asks: nothing}], login: {command: mine login, files: [~/.mine]}, install: make mine, hosts: ["api.mine.example:443"]}
  - {name: claude, about: Other, program: other, ways: [{runtime: terminal, command: [other], asks: nothing}], login: {command: other}, install: make other}
`
	all := expect.Of(Load("own.yaml", []byte(text)))(t)
	mine := expect.Of(Find(all, "mine"))(t)
	expect.True(t, mine.Ways[0].Command[1] == "-x" && mine.Hosts[0] == "api.mine.example:443", "%+v", mine)
	expect.Is(t, expect.Of(Find(all, "claude"))(t).Program, "other")
	_, err := Find(all, "clod")
	expect.Says(t, err, "claude, codex")
	for text, says := range map[string]string{
		"agents: [{name: a b}]":                                  "own.yaml:1: agents[0].name",
		"agents:\n  - {name: x, prog: y}":                        "own.yaml:2: agents[0].prog: unknown field",
		"agents:\n  - {name: x}":                                 "agents[0].ways: missing",
		"agents:\n  - {ways: []}":                                "wants one way at least",
		"agents:\n  - {ways: [{runtime: rocket, command: [x]}]}": "acp, exec, terminal",
		"agents:\n  - {login: {command: x, files: [/etc/x]}}":    "begins with ~/",
		"agents:\n  - {login: {command: x, files: [~/../x]}}":    "begins with ~/",
		"agents:\n  - {hosts: ['https://x.example']}":            "agents[0].hosts[0]",
		"agents:\n  - {ways: [{runtime: acp, options: [1]}]}":    "want a mapping",
		"agents: [{}]\nmore: 1":                                  "own.yaml:2: more: unknown field",
	} {
		_, err := Load("own.yaml", []byte(text))
		expect.Says(t, err, says, text)
	}
}

func TestALoginIsSeenAndNotRead(t *testing.T) {
	home, none := t.TempDir(), func(string) bool { return false }
	a := Agent{Login: Login{Files: []string{"~/.x/token"}, Variables: []string{"ONE", "TWO"}}}
	see := func(has func(string) bool) string { file, variable := a.LoggedIn(home, has); return file + variable }
	expect.Is(t, see(none), "")
	expect.Is(t, see(func(v string) bool { return v == "TWO" }), "TWO")
	expect.No(t, os.MkdirAll(filepath.Join(home, ".x"), 0o700))
	expect.No(t, os.WriteFile(filepath.Join(home, ".x/token"), []byte("secret"), 0)) // nobody may read it
	expect.Is(t, see(none), "~/.x/token")
}
