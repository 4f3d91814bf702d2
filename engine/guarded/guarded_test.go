package guarded

import (
	"path"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestEachRuleSaysWhenAndNamesPathsBelowADirectory(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		expect.True(t, (strings.HasPrefix(r.When, "you ") || strings.HasPrefix(r.When, "a shell of yours ")) && len(r.Paths) != 0, "%+v", r)
		for _, p := range r.Paths {
			_, err := path.Match(p, "x")
			expect.True(t, err == nil && !path.IsAbs(p) && path.Clean(p) == p && !seen[p], "%q: %v", p, err)
			seen[p] = true
		}
	}
}

func TestWhatAProjectAddsIsPathsBelowADirectory(t *testing.T) {
	expect.No(t, Check([]string{"justfile", "scripts/*.sh", ".tool/[ab]"}))
	for _, bad := range [][]string{{""}, {"."}, {"../x"}, {"/x"}, {"a//b"}, {"a/"}, {"[a"}, {"a\nb"}, {strings.Repeat("x", 201)}, make([]string, 51)} {
		expect.True(t, Check(bad) != nil, "%q is taken", bad)
	}
}

func TestWhenFindsAPathAnywhereInAChange(t *testing.T) {
	for file, want := range map[string]string{
		".envrc":                       "you enter the directory with direnv, mise or asdf",
		"a/b/.envrc":                   "you enter the directory with direnv, mise or asdf",
		".ENVRC":                       "you enter the directory with direnv, mise or asdf",
		".vscode/tasks.json":           "you open the folder in VS Code or an editor made of it",
		"x/my.code-workspace":          "you open the folder in VS Code or an editor made of it",
		".claude/settings.local.json":  "you start Claude Code there",
		".mcp.json":                    "you start Claude Code there",
		"web/node_modules/.bin/tsc":    "you run node there",
		"node_modules/x/index.js":      "",
		".husky/_/pre-commit":          "you commit there and its hooks are installed",
		".cargo/config.toml":           "you run cargo there",
		".cargo/registry":              "",
		".worktreeinclude":             "you make a tree of the project for an agent",
		"docs/envrc":                   "",
		"envrc":                        "",
		"package.json":                 "",
		".git/modules/lib/hooks/x":     "you run git there",
		"src/.claude":                  "you start Claude Code there",
		"src/notclaude/.claudeish/x.y": "",
	} {
		expect.Is(t, When(file, nil), want, file)
	}
}
