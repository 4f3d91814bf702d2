package cell

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell/celltest"
	filerules "swarmdeck/engine/files"
	"swarmdeck/expect"
)

// sharedYard is a repository of a person's in which agents work.
func sharedYard(t *testing.T) string {
	t.Helper()
	dir := yard(t)
	expect.No(t, os.Chown(dir, os.Geteuid(), os.Getegid()))
	script := `git init -q . && mkdir -p .vscode .claude sub && echo mine >.envrc && echo mine >.vscode/tasks.json && echo mine >.claude/settings.json && echo mine >.mcp.json &&
		ln -s sub/real .exrc && echo mine >sub/real && echo x >f && git add . && git -c user.name=x -c user.email=x@x commit -qm first &&
		mkdir -p packages/web && echo mine >packages/web/.envrc && git init -q packages/lib && echo packages/lib >>.git/info/exclude`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	expect.Must(t, err == nil, "%v: %s", err, out)
	if os.Geteuid() == 0 {
		out, err := exec.Command("chown", "-R", "65534:65534", dir).CombinedOutput()
		expect.Must(t, err == nil, "%v: %s", err, out)
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
			guarded := []string{".git/config", ".git/hooks", ".envrc", ".vscode/tasks.json", ".claude/settings.json", ".mcp.json", "sub/real", "packages/web/.envrc", "packages/lib/.git/config"}
			before := map[string]string{}
			for _, g := range guarded {
				data, _ := os.ReadFile(filepath.Join(dir, g))
				before[g] = string(data)
			}
			run := func(script string) string {
				return said(t, start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh("exec 2>&1; " + script)}))
			}
			for _, script := range []string{
				`for f in .git/config .envrc .vscode/tasks.json .claude/settings.json .mcp.json .exrc sub/real packages/web/.envrc packages/lib/.git/config; do echo pwned >>$f && echo "wrote $f"; done`,
				`for f in .git/hooks/pre-commit .vscode/new .claude/new packages/lib/.git/hooks/pre-commit; do echo pwned >$f && echo "made $f"; done`,
				`git config core.fsmonitor ./pwned && echo set; git remote add x /tmp && echo added; git -C packages/lib config core.fsmonitor ./pwned && echo set`,
				`for f in .git .git/config .git/hooks .envrc .vscode .claude .mcp.json sub packages packages/lib packages/lib/.git packages/web; do mv $f moved && echo "moved $f"; done`,
				`for f in .git .git/config .git/hooks .envrc .vscode .claude .mcp.json sub/real; do rm -rf $f; [ -e $f ] || echo "removed $f"; done`,
				`for f in .git/config .envrc .mcp.json; do echo pwned >n; mv -f n $f && echo "over $f"; ln -f n $f && echo "linked $f"; done; rm -f n`,
				`chmod 777 .git/config .envrc && echo chmod; touch -d @1 .envrc && echo touched; truncate -s 0 .mcp.json && echo cut`,
			} {
				out := run(script)
				for line := range strings.Lines(out) {
					word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
					expect.True(t, !strings.Contains("wrote made set added moved removed over linked chmod touched cut", word), "%s: %s", script, line)
				}
			}
			for _, g := range guarded {
				data, _ := os.ReadFile(filepath.Join(dir, g))
				expect.True(t, string(data) == before[g], "%s is %q, was %q", g, data, before[g])
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
	expect.True(t, strings.HasSuffix(out, "third\nmine\ndone\n"), "%v", out)
}

// lays collects what a supervisor is told was laid.
type lays struct {
	mu  sync.Mutex
	all map[string]string
}

func (l *lays) take(one Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[one.Laid] = one.When
}

// laying is a supervisor that tells of it, with what a project adds.
func laying(t *testing.T, l *lays, more []string, without ...string) *Supervisor {
	t.Helper()
	l.all = map[string]string{}
	s, err := NewSupervisor(Options{
		Instance: "lays" + strconv.Itoa(os.Getpid()), Without: without, Held: l.take,
		Files: func(Whose) (filerules.Places, error) { return filerules.Places{Guard: more}, nil },
	})
	expect.No(t, err)
	t.Cleanup(func() { expect.Is(t, s.Close(), nil) })
	return s
}

func TestWhatNoMountHoldsIsTold(t *testing.T) {
	for name, without := range map[string][]string{"all": nil, "no name spaces": {layerSpaces}} {
		t.Run(name, func(t *testing.T) {
			var told lays
			s := laying(t, &told, []string{"justfile"}, without...)
			dir := sharedYard(t)
			said(t, start(t, s, Spec{Dir: dir, Whose: Whose{Tenant: "t", Agent: "eve"}, Wall: Wall{Profile: Worker}, Argv: sh(
				`exec 2>&1; echo x >.bashrc; mkdir .husky; echo x >.husky/pre-commit; echo .. >.git/commondir; rm .exrc; echo x >.exrc; echo x >justfile; echo x >README; echo x >>.envrc; mkdir node_modules; touch node_modules/.bin; mkdir a; git init -q a/b`)}))
			want := map[string]string{
				".bashrc": "a shell of yours has its home there", ".husky": "you commit there and its hooks are installed", ".git/commondir": "you run git there",
				"a/b/.git/config": "you run git there", "a/b/.git/hooks": "you run git there",
				".exrc": "you open the folder in Vim, Neovim or Emacs", "justfile": "you work on the project, whose guard names it",
			}
			if !s.spaced(t) {
				want[".envrc"] = "you enter the directory with direnv, mise or asdf"
			}
			got := map[string]string{}
			for path, when := range told.all {
				got[strings.TrimPrefix(path, dir+"/")] = when
			}
			expect.True(t, maps.Equal(got, want), "told %q, want %q", got, want)
		})
	}
}

func TestWhatIsPutInTheWayOfAMountIsTold(t *testing.T) {
	var told lays
	s := laying(t, &told, nil)
	dir := sharedYard(t)
	p := start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh("echo ready; cat")})
	expect.Of(p.Stdout.Read(make([]byte, 8)))(t)
	path := filepath.Join(dir, ".envrc")
	expect.No(t, errors.Join(os.WriteFile(path+".new", []byte("x"), 0o600), os.Rename(path+".new", path)))
	expect.Await(t, "it is told while the run lives", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()
		return told.all[path] != ""
	})
	said(t, p)
	expect.Is(t, len(told.all), 1, "told", told.all)
}

func TestWhatAProjectGuardsIsReadOnly(t *testing.T) {
	var told lays
	s := laying(t, &told, []string{"f", "sub/*"})
	if !s.spaced(t) {
		t.Skip("there are no name spaces")
	}
	dir := sharedYard(t)
	out := said(t, start(t, s, Spec{Dir: dir, Whose: Whose{Tenant: "t", Agent: "eve"}, Wall: Wall{Profile: Worker}, Argv: sh(
		`echo x >f && echo wrote; echo x >sub/real && echo wrote; mv sub other && echo moved; rm -f f && echo removed; echo x >g && echo done`)}))
	expect.True(t, out == "done\n" && len(told.all) == 0, "%q, told %q", out, told.all)
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
		s := expect.Of(NewSupervisor(o))(t)
		out := said(t, start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh(`exec 2>&1; git config a.b c && echo x >>.envrc && echo done`)}))
		expect.Is(t, out, "done\n")
		expect.No(t, s.Close())
	}
}

func TestASharedDirectoryIsGuardedInEverySetting(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as an ordinary one already")
	}
	for _, c := range celltest.Settings() {
		t.Run(c.Name, func(t *testing.T) {
			said := inSetting(t, c, "^TestWhat(APersonsToolsRun|NoMountHolds|IsPutInTheWay|AProjectGuards)|^TestWorkInAShared")
			n := strings.Count(said, "\n--- PASS:")
			expect.True(t, (n == 5 || !c.Spaces) && n >= 3, "%d passed:\n%s", n, said)
		})
	}
}
