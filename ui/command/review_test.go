package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git/gittest"
	driver "swarmdeck/drivers/tree"
	"swarmdeck/engine"
	"swarmdeck/engine/trace"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

func worktrees(t testing.TB, sup *cell.Supervisor, dir string) tree.Driver {
	t.Helper()
	return expect.Of(driver.New(driver.Options{Cells: sup, Dir: filepath.Join(dir, "trees"), Kept: filepath.Join(dir, "kept")}))(t)
}

// repository makes one with a commit, and a remote.
func (w *walk) repository() string {
	w.t.Helper()
	repo := filepath.Join(w.dir, "repo")
	w.no(os.MkdirAll(repo, 0o755))
	w.no(os.WriteFile(filepath.Join(repo, "a"), []byte("one\ntwo\nthree\n"), 0o644))
	w.git("init", "-q", "-b", "main")
	w.git("init", "-q", "--bare", "../remote.git")
	w.git("remote", "add", "origin", "../remote.git")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "first")
	return repo
}

func (w *walk) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = filepath.Join(w.dir, "repo")
	out, err := cmd.CombinedOutput()
	expect.No(w.t, err, "git", args, out)
	return strings.TrimSpace(string(out))
}

// approved approves what waits, and waits for the task.
func (w *walk) approved(task map[string]any) {
	w.t.Helper()
	open := w.objects("approval list --open")
	expect.Must(w.t, len(open) == 1, "%d approvals: %v", len(open), open)
	w.do(fmt.Sprintf("approval approve %v --reason 'looked at it'", open[0]["approval_id"]))
	if done := w.do(fmt.Sprintf("task wait %v --timeout 60s", task["task_id"])); done["status"] != "succeeded" {
		w.text(fmt.Sprintf("result show %v", task["task_id"]), "succeeded")
	}
}

func (w *walk) trees() {
	w.t.Helper()
	repo := w.repository()
	script := "read line; case $line in *reviewed*) sed -i s/TWO/Two/ a;; *) sed -i s/two/TWO/ a; echo new >new; echo b >b;; esac"
	made := w.do(fmt.Sprintf("agent create tess --project trees --dir %s --tree -- sh -c %q", repo, script))
	dir := fmt.Sprint(made["dir"])
	expect.True(w.t, dir != repo && strings.HasSuffix(dir, "/tess/repo"), "it works in %s", dir)
	w.do("agent assign tess 'in upper case' --wait")
	w.do("review list")
	w.do("review show tess")
	w.do("agent diff tess")
	w.text("review list", "tess", "main")
	w.text("review show tess", "changed   3 files, +3 -1", "tree  ")
	w.text("agent diff tess", "-two", "+TWO")
	w.text("agent diff tess a --since task --stat", "changed   +1 -1")
	w.fails(1, "agent diff tess --since nothing")
	w.fails(1, "review show asker")
	w.do("review remark tess a:2 'not all of it'")
	w.do("review remark tess . 'and a test'")
	w.fails(1, "review unremark tess --remark 9")
	w.do("review unremark tess --remark 2")
	w.fails(2, "review viewed tess none")
	w.do("review viewed tess a")
	w.do("review viewed tess b")
	w.text("review show tess", "a  viewed by", "b  viewed by")
	w.do("review unviewed tess b")
	w.fails(1, "review unviewed tess b")
	state := fmt.Sprint(w.do("agent diff tess --stat")["to"])
	w.do("review send tess --wait")
	text := w.line("review show tess")
	expect.True(w.t, !strings.Contains(text, "viewed by"), "a file that has changed since is still viewed: %s", text)
	w.fails(1, "review accept tess a --state "+state)
	w.fails(2, "review file tess none")
	w.text("review file tess a", "Two")
	as := fmt.Sprint(w.do("review file tess a")["content"])
	for name, text := range map[string]string{"mended": as + "mended\n", "as": as} {
		w.no(os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
	}
	w.fails(1, "review edit tess a --from-file mended --state "+state)
	w.do("review edit tess a --from-file mended")
	w.text("review file tess a", "mended")
	w.do("review edit tess a --from-file as")
	w.text("agent diff tess a", "+Two")
	w.fails(1, "review send tess")
	w.do("project checks trees --check 'grep -q one a' --check 'test -f new'")
	c := w.do("project checks trees")
	expect.True(w.t, fmt.Sprint(c["checks"]) == "[grep -q one a test -f new]", "%v", c)
	w.do("review check tess --wait")
	w.text("review show tess", "checks    pass", "not all of it")
	// A part is taken over first: the checks look at the result, and not at the tree.
	part := w.do("review accept tess a --message 'Only a'")
	w.do("merge queue")
	w.text("merge queue", "take tess over into main")
	open := w.objects("approval list --open")
	w.do(fmt.Sprintf("approval approve %v --reason 'looked at it'", open[0]["approval_id"]))
	expect.Row(w.t, w.do(fmt.Sprintf("task wait %v --status failed --timeout 60s", part["task_id"])), "status", "failed")
	w.approved(w.do("review accept tess a --message 'Only a' --no-checks"))
	w.text("review show tess", "changed   2 files")
	merged := w.do("merge tess --message 'The rest'")
	w.approved(merged)
	if log := w.git("log", "--format=%s"); log != "The rest\nOnly a\nfirst" || w.git("status", "--short") != "" {
		w.t.Errorf("%s\n%s", log, w.git("status", "--short"))
	}
	w.fails(1, "merge tess") // nothing is left to merge
	expect.Row(w.t, w.do("review show tess"), "behind", nil)
	w.fails(1, fmt.Sprintf("merge undo %v", part["task_id"])) // which failed
	back := w.do(fmt.Sprintf("merge undo %v", merged["task_id"]))
	lock := filepath.Join(repo, ".git/index.lock")
	w.no(os.WriteFile(lock, nil, 0o600)) // another git is at work there, which it waits for
	open = w.objects("approval list --open")
	w.do(fmt.Sprintf("approval approve %v --reason 'looked at it'", open[0]["approval_id"]))
	w.do(fmt.Sprintf("task wait %v --status running --timeout 60s", back["task_id"]))
	w.fails(1, fmt.Sprintf("merge undo %v", merged["task_id"])) // which is at work
	expect.Is(w.t, len(w.objects("approval list --open")), 0, "questions about a second way back")
	w.no(os.Remove(lock))
	w.do(fmt.Sprintf("task wait %v --status succeeded --timeout 60s", back["task_id"]))
	w.fails(1, fmt.Sprintf("merge undo %v", merged["task_id"]))
	expect.Is(w.t, w.git("log", "--format=%s"), "Only a\nfirst")
	w.git("commit", "-q", "--allow-empty", "-m", "meanwhile")
	w.do("review update tess")
	w.text("review update tess", "up to date")
	url := filepath.Join(w.dir, "remote.git")
	w.fails(1, "push tess --to fix")
	w.fails(2, "project remote trees origin")
	w.fails(2, "project remote trees origin ../remote.git")
	w.fails(2, "project remote trees 'no name' "+url)
	w.do("project remote trees origin " + url)
	w.text("project remote trees", "origin="+url)
	w.do("project remote trees mirror " + url + ".mirror")
	w.do("project remote trees mirror --none")
	w.fails(1, "project remote trees mirror --none")
	w.fails(2, "project guard trees --path ../a")
	w.fails(2, "project guard trees --path a --none")
	w.do("project guard trees --path justfile --path 'scripts/*.sh'")
	w.text("project guard trees", "justfile,scripts/*.sh", "origin="+url)
	w.do("project guard trees --none")
	expect.Row(w.t, w.do("project guard trees"), "guarded", nil)
	w.approved(w.do("push tess --to fix"))
	expect.True(w.t, w.git("ls-remote", "origin", "fix") != "", "nothing was pushed")
	w.fails(1, "agent delete tess --yes")
	w.do("agent delete tess --yes --discard")
}

func TestAConflictIsGivenToTheAgentOrKeptInOneStep(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d, used: map[string]bool{}}
	repo := w.repository()
	w.do(fmt.Sprintf("agent create tess --project trees --dir %s --tree -- sh -c %q", repo, "read line; sed -i s/two/TWO/ a"))
	w.do("agent assign tess 'in upper case' --wait")
	moves := func(text string) {
		w.no(os.WriteFile(filepath.Join(repo, "a"), []byte("one\n"+text+"\nthree\n"), 0o644))
		w.git("commit", "-q", "-am", text)
	}
	moves("deux")
	if _, message, _ := w.fails(1, "merge tess"); !strings.Contains(message, "review update tess --conflicts send") || !strings.Contains(message, "review edit tess FILE") {
		t.Error(message)
	}
	given := w.do("review update tess --conflicts send")
	expect.Must(t, fmt.Sprint(given["conflicts"]) == "[a]" && given["task_id"] != nil, "%v", given)
	w.do(fmt.Sprintf("task wait %v --timeout 60s", given["task_id"]))
	w.text("review show tess", fmt.Sprintf(", sent as %v)", given["task_id"]), "hold both sides of a conflict")
	_, message, _ := w.fails(1, "merge tess")
	expect.True(t, strings.Contains(message, "conflict markers in a"), "%v", message)
	w.no(os.WriteFile(filepath.Join(w.dir, "settled"), []byte("one\nDEUX\nthree\n"), 0o600))
	w.do("review edit tess a --from-file settled")
	moves("zwei")
	expect.Has(t, w.line("review update tess --conflicts keep"), "settle them there: review edit tess FILE")
	all := w.do("review show tess")["remarks"].([]any)
	expect.True(t, len(all) == 1, "what a person settles is not remarked: %v", all)
}

func TestSeveralAgentsOfASwarmFileTryTheSame(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d}
	w.repository()
	d.write("swarm.yaml", `
tenant: t_tries
agents:
  - {name: ada, project: p, role: r, command: [cat], dir: repo, tree: true, times: 2}
`)
	want := []string{"created tenant t_tries", "created agent ada-1", "created agent ada-2"}
	expect.Same(t, d.applied("swarm.yaml"), want)
	expect.Same(t, d.applied("swarm.yaml"), []string{"unchanged tenant t_tries", "unchanged agent ada-1", "unchanged agent ada-2"}, "again")
	all := d.objects("review list --tenant t_tries")
	expect.True(t, len(all) == 2 && all[0]["base"] == "main", "%v", all)
	d.write("bad.yaml", "tenant: t_tries\nagents:\n  - {name: eve, project: p, command: [cat], tree: false, base: main}\n")
	_, message, _ := d.fails(1, "up bad.yaml")
	expect.True(t, strings.Contains(message, "tree: false"), "%v", message)
}

func TestTheSameFileIsToldAtOnce(t *testing.T) {
	d := newDeck(t, func(_ *cell.Supervisor, opt *engine.Options) { opt.Changes = opt.Resources["files"].(trace.Changes) })
	w := &walk{deck: d, used: map[string]bool{}}
	repo := w.repository()
	// bob writes a, and waits in his task after a tool call: nothing of his has ended.
	script := `read l; sed -i s/two/TWO/ a; echo built >b.o; echo '{"type":"tool_result","call_id":"c1","status":"ok","result":{}}'; read l`
	for _, name := range []string{"ada", "bob"} {
		w.do(fmt.Sprintf("agent create %s --project p --dir %s --tree -- sh -c %q", name, repo, script))
		w.until("agent show "+name, "status", "idle")
		w.do(fmt.Sprintf("agent assign %s 'in upper case'", name))
		w.until("agent show "+name, "status", "busy")
	}
	told := w.untilIt("bus read bob --peek", "the news of the same file", func(m map[string]any) bool { return m["payload"] != nil })
	text := fmt.Sprint(told["payload"])
	expect.True(t, strings.Contains(text, "tree.overlap") && strings.Contains(text, "ada") && strings.Contains(text, "[a"), "told is %v", told)
	all := w.objects("bus read ada --peek")
	expect.True(t, len(all) == 1, "ada was told %d times: %v", len(all), all)
	w.text("review list", "bob: a")
}

func TestAgentsThatChangeTheSameFunctionAreToldSo(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d, used: map[string]bool{}}
	repo := w.repository()
	w.no(os.WriteFile(filepath.Join(repo, "a.go"), []byte("package a\n\nfunc Foo() int {\n\treturn 1\n}\n\nfunc Bar() int {\n\treturn 2\n}\n"), 0o644))
	w.git("add", ".")
	w.git("commit", "-q", "-m", "functions")
	for _, of := range [][2]string{{"ada", "s/1/10/"}, {"bob", "s/1/11/"}, {"eve", "s/2/20/"}} {
		name, script := of[0], of[1]
		w.do(fmt.Sprintf("agent create %s --project p --dir %s --tree -- sh -c %q", name, repo, "read l; sed -i "+script+" a.go"))
		w.do("agent assign " + name + " 'another number' --wait")
	}
	expect.Is(t, fmt.Sprint(w.do("review show ada")["overlap"]), "[bob: a.go (func Foo) eve: a.go (other symbols)]")
	told := fmt.Sprint(w.objects("bus read bob --peek"))
	expect.True(t, strings.Contains(told, "with func Foo in a.go") && strings.Contains(told, "map[a.go:[func Foo]]"), "%v", told)
}

// An agent that shares a repository can write where its remotes lead. A push goes where a
// person has said, and a task that names anything else is refused.
func TestAPushGoesOnlyWhereAPersonHasSaid(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d, used: map[string]bool{}}
	t.Setenv("GIT_SSH_COMMAND", gittest.SSH(t, w.dir))
	repo := w.repository()
	c := gittest.NewCanary(t)
	w.git("init", "-q", "--bare", "../planted.git")
	planted := filepath.Join(w.dir, "planted.git")
	for _, hook := range []string{"pre-receive", "update", "post-receive"} {
		w.no(os.Symlink(c.Program(hook), filepath.Join(planted, "hooks", hook)))
	}
	w.do(fmt.Sprintf("agent create tess --project trees --dir %s --tree -- sh -c %q", repo, "read line; sed -i s/two/TWO/ a"))
	w.do("agent assign tess 'in upper case' --wait")
	w.git("config", "remote.origin.url", planted)
	refused := func(want, line string) {
		t.Helper()
		_, message, _ := w.fails(1, line)
		expect.True(t, strings.Contains(message, want), "%s: %s", line, message)
	}
	refused("project remote trees origin URL", "push tess --to fix")
	url := "git@git.example.org:" + filepath.Join(w.dir, "remote.git")
	w.do("project remote trees origin " + url)
	state := fmt.Sprint(w.do("agent diff tess --stat")["to"])
	dispatch := func(remote, url string) string {
		return fmt.Sprintf(`task dispatch --kind tree.push --input '{"agent":"tess","state":%q,"mode":"squash","message":"m","branch":"fix","remote":%q,"url":%q}'`, state, remote, url)
	}
	refused("not to "+planted, dispatch("origin", planted))
	refused("not to ext::", dispatch("origin", "ext::sh -c id"))
	refused("project remote trees upstream URL", dispatch("upstream", planted))
	refused("project remote trees  URL", dispatch("", planted))
	task := w.do("push tess --to fix")
	open := w.objects("approval list --open")
	w.text(fmt.Sprintf("approval show %v", open[0]["approval_id"]), "goes to branch fix of origin: ssh, host git@git.example.org, path "+filepath.Join(w.dir, "remote.git"))
	w.approved(task)
	expect.True(t, w.git("--git-dir=../remote.git", "rev-parse", "--verify", "fix") != "", "nothing was pushed")
	// What a person takes away is gone, also for what was approved before.
	w.no(os.WriteFile(filepath.Join(repo, "b"), []byte("b\n"), 0o644))
	w.git("add", "b")
	w.git("commit", "-q", "-m", "meanwhile")
	task = w.do("push tess --to more")
	w.do("project remote trees origin --none")
	open = w.objects("approval list --open")
	w.do(fmt.Sprintf("approval approve %v --reason 'looked at it'", open[0]["approval_id"]))
	done := w.do(fmt.Sprintf("task wait %v --status failed --timeout 60s", task["task_id"]))
	expect.True(t, done["status"] != "succeeded", "%v", done)
	ran := c.Ran()
	expect.True(t, len(ran) == 0, "hooks ran: %v", ran)
}
