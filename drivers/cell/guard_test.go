package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell/celltest"
)

// sharedYard is a repository of a person's in which agents work.
func sharedYard(t *testing.T) string {
	t.Helper()
	dir := yard(t)
	if err := os.Chown(dir, os.Geteuid(), os.Getegid()); err != nil {
		t.Fatal(err)
	}
	script := `git init -q . && mkdir -p .vscode .claude sub && echo mine >.envrc && echo mine >.vscode/tasks.json && echo mine >.claude/settings.json && echo mine >.mcp.json &&
		ln -s sub/real .exrc && echo mine >sub/real && echo x >f && git add . && git -c user.name=x -c user.email=x@x commit -qm first`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if os.Geteuid() == 0 {
		if out, err := exec.Command("chown", "-R", "65534:65534", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

func TestWhatAPersonsToolsRunIsReadOnlyInASharedDirectory(t *testing.T) {
	for name, without := range map[string][]string{"all": nil, "no other owner": {layerIDMap}} {
		t.Run(name, func(t *testing.T) {
			s := newSupervisor(t, without...)
			if !s.spaced(t) {
				t.Skip("there are no name spaces")
			}
			dir := sharedYard(t)
			guarded := []string{".git/config", ".git/hooks", ".envrc", ".vscode/tasks.json", ".claude/settings.json", ".mcp.json", "sub/real"}
			before := map[string]string{}
			for _, g := range guarded {
				data, _ := os.ReadFile(filepath.Join(dir, g))
				before[g] = string(data)
			}
			run := func(script string) string {
				return said(t, start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh("exec 2>&1; " + script)}))
			}
			for _, script := range []string{
				`for f in .git/config .envrc .vscode/tasks.json .claude/settings.json .mcp.json .exrc sub/real; do echo pwned >>$f && echo "wrote $f"; done`,
				`for f in .git/hooks/pre-commit .vscode/new .claude/new; do echo pwned >$f && echo "made $f"; done`,
				`git config core.fsmonitor ./pwned && echo set; git remote add x /tmp && echo added`,
				`for f in .git .git/config .git/hooks .envrc .vscode .claude .mcp.json sub; do mv $f moved && echo "moved $f"; done`,
				`for f in .git .git/config .git/hooks .envrc .vscode .claude .mcp.json sub/real; do rm -rf $f; [ -e $f ] || echo "removed $f"; done`,
				`for f in .git/config .envrc .mcp.json; do echo pwned >n; mv -f n $f && echo "over $f"; ln -f n $f && echo "linked $f"; done; rm -f n`,
				`chmod 777 .git/config .envrc && echo chmod; touch -d @1 .envrc && echo touched; truncate -s 0 .mcp.json && echo cut`,
			} {
				out := run(script)
				for line := range strings.Lines(out) {
					if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains("wrote made set added moved removed over linked chmod touched cut", word) {
						t.Errorf("%s: %s", script, line)
					}
				}
			}
			for _, g := range guarded {
				if data, _ := os.ReadFile(filepath.Join(dir, g)); string(data) != before[g] {
					t.Errorf("%s is %q, was %q", g, data, before[g])
				}
			}
		})
	}
}

func TestWorkInASharedDirectoryGoesOn(t *testing.T) {
	s := newSupervisor(t)
	dir := sharedYard(t)
	id := `git -c user.name=x -c user.email=x@x `
	out := said(t, start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh(`set -e; exec 2>&1; git status --short; echo y >f; mkdir new; echo z >new/f; git checkout -q -b other; ` +
		`git add -A; ` + id + `commit -qm second; ` + id + `commit -q --amend -m third; git stash list; git gc -q; git worktree list >/dev/null; git log --format=%s | head -1; cat .envrc; echo done`)}))
	if !strings.HasSuffix(out, "third\nmine\ndone\n") {
		t.Error(out)
	}
}

func TestInDirectoriesOfTheEngineNothingIsGuarded(t *testing.T) {
	for _, opt := range []func(dir string, o *Options){
		func(dir string, o *Options) { o.Hide = []string{dir} },
		func(dir string, o *Options) { o.Private = []string{dir} },
	} {
		dir := sharedYard(t)
		o := Options{Instance: "own"}
		opt(filepath.Dir(dir), &o)
		celltest.Passable(t, dir)
		s, err := NewSupervisor(o)
		if err != nil {
			t.Fatal(err)
		}
		out := said(t, start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh(`exec 2>&1; git config a.b c && echo x >>.envrc && echo done`)}))
		if out != "done\n" {
			t.Error(out)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
