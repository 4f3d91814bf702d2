package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func (w *walk) project() {
	w.t.Helper()
	w.no(os.Mkdir(filepath.Join(w.dir, "made"), 0o755))
	w.do("project init made")
	w.fails(1, "project init made")
	w.do("project tree trees --env DATABASE=db_{n}")
	w.text("project tree trees", "DATABASE=db_{n}")
	w.do("role set tidy --project trees --prompt 'Be short.' --profile reader --tool 'read*' --tasks 9 -- cat")
	expect.Row(w.t, w.do("role list --project trees --match tidy"), "prompt", "Be short.", "profile", "reader")
	w.text("role list", "cat (reader)")
	w.fails(2, "role set tidy --project trees --shell a --command b")
	w.fails(2, "role set tidy --project trees --runtime acp")
	w.fails(2, "role set tidy --project trees --tool 'a*b' -- cat")
}

// project is a directory with a module, a package and a fake agent on PATH.
func (d *deck) project() (env command.Env) {
	d.t.Helper()
	for name, text := range map[string]string{
		"web/go.mod":       "module web\n",
		"web/package.json": `{"scripts":{"test":"vitest: run # \"all\"","lint":"eslint .","start":"node ."}}`,
		"web/.env.example": "A=1\n",
		"bin/codex-acp":    "#!/bin/sh\n",
		"bin/aider":        "#!/bin/sh\n",
	} {
		path := filepath.Join(d.dir, name)
		d.no(os.MkdirAll(filepath.Dir(path), 0o755))
		d.no(os.WriteFile(path, []byte(text), 0o755))
	}
	env, getenv := d.env, d.env.Getenv
	env.Getenv = func(name string) string {
		if name == "PATH" {
			return filepath.Join(d.dir, "bin")
		}
		return getenv(name)
	}
	return env
}

func TestASwarmFileIsWrittenFromWhatIsFound(t *testing.T) {
	d := newDeck(t)
	d.env = d.project()
	file := filepath.Join(d.dir, "web", "swarm.yaml")
	text := d.line("project init web --dry-run")
	expect.Fails(t, expect.Fault(os.Stat(file)), "a dry run wrote the file")
	for _, part := range []string{"go vet ./...", "go test ./...", "npm run lint", "npm run test", "# egress: [go, npm]", "codex-acp", "aider"} {
		expect.Has(t, text, part, "without")
	}
	found := d.object("project init web")
	expect.True(t, found["file"] == file && fmt.Sprint(found["languages"]) == "[Go JavaScript]", "%v", found)
	expect.Is(t, string(expect.Of(os.ReadFile(file))(t)), text)
	kind, message, _ := d.fails(1, "project init web")
	expect.True(t, kind == "CONFLICT" && strings.Contains(message, "--force"), "%s: %s", kind, message)
	d.line("project init web --force")
	left, _ := filepath.Glob(filepath.Join(d.dir, "web", ".swarm-*"))
	expect.True(t, len(left) == 0, "left behind: %v", left)
	d.fails(1, "project init nowhere")
	d.fails(1, "project init web --force --read-only")
}

func TestAWrittenSwarmFileIsApplied(t *testing.T) {
	d := newDeck(t)
	d.project()
	d.line("project init web")
	expect.Same(t, d.applied("web"), []string{"created checks web", "changed tree web"})
	expect.Same(t, d.applied("web"), []string{"unchanged checks web", "unchanged tree web"}, "again")
	file := filepath.Join(d.dir, "web", "swarm.yaml")
	text := expect.Of(os.ReadFile(file))(d.t)
	taken := bytes.Replace(text, []byte("# egress: [go, npm]"), []byte("egress: [go, npm]"), 1)
	d.no(os.WriteFile(file, taken, 0o600))
	for _, action := range []string{"created", "unchanged"} { // the offer is taken
		got := d.applied("web")
		expect.True(t, slices.Equal(got[2:], []string{action + " egress go", action + " egress npm"}), "%q", got)
	}
	rules := d.objects("egress list")
	expect.True(t, len(rules) == 2 && rules[0]["host"] == "go" && rules[0]["project"] == "web", "%v", rules)
	d.no(os.WriteFile(file, bytes.Replace(taken, []byte("[go, npm]"), []byte("[https://go.dev]"), 1), 0o600))
	d.fails(1, "up web")
	d.no(os.Mkdir(filepath.Join(d.dir, "it's: empty"), 0o755))
	d.line(`project init "it's: empty"`)
	got := d.applied(`"it's: empty"`)
	expect.True(t, len(got) == 0, "%q", got)
}

func TestTheCommentsOfAWrittenSwarmFileApply(t *testing.T) {
	d := newDeck(t)
	d.project()
	d.no(os.Mkdir(filepath.Join(d.dir, "empty"), 0o755))
	d.no(os.Mkdir(filepath.Join(d.dir, "go"), 0o755))
	d.no(os.WriteFile(filepath.Join(d.dir, "go", "go.mod"), []byte("module go\n"), 0o644))
	for dir, want := range map[string][]string{
		"web":   {"created checks web", "changed tree web", "created egress go", "created egress npm", "created role coder"},
		"go":    {"created checks go", "changed tree go", "created egress go", "created role coder"},
		"empty": {"created checks empty", "created role coder"},
	} {
		text := d.line("project init " + dir + " --dry-run")
		was := text
		text = regexp.MustCompile(`(?m)^( *)# ( *(- )?[a-z]+:)`).ReplaceAllString(text, "$1$2")
		text = regexp.MustCompile(`(?m)^( *)# ( *- ")`).ReplaceAllString(text, "$1$2")
		text = strings.NewReplacer("runtime: acp", "runtime: exec", "claude-agent-acp", "cat").Replace(text) // which no test has
		d.write(dir+".yaml", text)
		expect.Same(t, d.applied(dir+".yaml"), want, "of", text, "which was", was)
	}
}

func TestAgentsAreMadeFromARole(t *testing.T) {
	d := newDeck(t)
	(&walk{deck: d}).repository()
	d.line("tenant create t_one")
	d.line("role set coder --project web --prompt 'Answer in one line.' --tool read* --tokens 1000 --tasks 5 --shell 'read l; echo \"$l\" >>said'")
	made := d.objects("agent create fix --project web --from coder --times 2 --dir repo --tree --task 'make it pass'")
	expect.Must(t, len(made) == 2 && made[0]["name"] == "fix-1" && made[1]["name"] == "fix-2" && made[0]["role"] == "coder", "%v", made)
	expect.True(t, made[0]["dir"] != made[1]["dir"] && strings.HasSuffix(str(made[1]["dir"]), "/fix-2/repo"),
		"they work in %v and %v", made[0]["dir"], made[1]["dir"])
	for _, a := range made {
		name := str(a["name"])
		d.until("agent history "+name, "status", "succeeded")
		said, err := os.ReadFile(filepath.Join(str(a["dir"]), "said"))
		expect.True(t, err == nil && strings.Contains(string(said), "Answer in one line."), "%s was told %s, %v", name, said, err)
		expect.Row(t, d.object("budget list --agent "+name), "tokens", 1000.0, "tasks", 5.0)
	}
	expect.Row(t, d.object("agent history fix-1"), "message", "make it pass")
	for line, part := range map[string]string{
		"agent create x --project web --from painter":                            "allowed: coder",
		"agent create x --project none --from coder":                             "not found",
		"agent create x --project web --from coder --role coder":                 "--from says the role",
		"agent create fix --project web --from coder --times 2 --tree":           "fix-1",
		"agent create a-name-of-twenty-xyz --project web --from coder --times 2": "1-20 of",
	} {
		code, _, stderr := d.run(strings.Fields("-o json " + line)...)
		expect.True(t, code != 0 && strings.Contains(stderr, part), "%s: exit %d, %s", line, code, stderr)
	}
	all := d.objects("agent list")
	expect.True(t, len(all) == 2, "%v", all)
}

func TestACallOfAToolThatTheRoleDoesNotHaveIsDenied(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_one")
	ask := `read l; echo '{"type":"tool_request","call_id":"c","tool":"shell.run","args":{}}'; read answer; echo "$answer"; echo '{"type":"result","status":"succeeded","output":{}}'`
	d.no(os.WriteFile(filepath.Join(d.dir, "ask.sh"), []byte(ask), 0o600))
	d.line("role set looker --project web --tool fs.read --tool fs.list* -- sh ask.sh")
	d.line("agent create ada --project web --from looker --task look")
	d.until("agent history ada", "status", "succeeded")
	log := d.line("agent log ada --page-size 50")
	expect.True(t, strings.Contains(log, "fs.list*") && strings.Contains(log, "deny"), "%v", log)
	open := d.objects("approval list --open")
	expect.True(t, len(open) == 0, "somebody is asked: %v", open)
}

func TestASwarmFileMakesAgentsFromItsRoles(t *testing.T) {
	d := newDeck(t)
	d.write("swarm.yaml", `
tenant: t_one
projects:
  - name: web
    checks: [true]
    roles:
      - {name: coder, command: [cat], profile: reader, budget: {tokens: 5000}, tools: [read], prompt: Be short.}
agents:
  - {name: ada, project: web, from: coder}
`)
	want := []string{"created tenant t_one", "created checks web", "created role coder", "created agent ada"}
	expect.Same(t, d.applied("swarm.yaml"), want)
	got := d.applied("swarm.yaml")
	expect.True(t, !slices.ContainsFunc(got, func(s string) bool { return !strings.HasPrefix(s, "unchanged") }), "again: %q", got)
	text := expect.Of(os.ReadFile(filepath.Join(d.dir, "swarm.yaml")))(d.t)
	d.write("narrow.yaml", strings.ReplaceAll(string(text), "tools: [read]", "tools: [look]"))
	got = d.applied("narrow.yaml")
	expect.True(t, slices.Contains(got, "changed agent ada"), "other tools: %q", got)
	a := d.object("agent show ada")
	expect.True(t, fmt.Sprint(a["tools"]) == "[look]", "tools: %v", a["tools"])
	a = d.object("agent show ada")
	expect.True(t, a["profile"] == "reader" && a["role"] == "coder" && fmt.Sprint(a["command"]) == "[cat]", "%v", a)
	d.write("bad.yaml", `
tenant: t_one
projects:
  - name: web
    checks: [""]
    roles:
      - {name: coder, runtime: rocket}
      - {name: coder, command: [cat]}
      - {name: wide, command: [cat], profile: open}
agents:
  - {name: eve, project: web, from: painter}
  - {name: eva, project: web, from: coder, role: other}
`)
	_, message, details := d.fails(1, "up bad.yaml")
	for _, part := range []string{"rocket", "already a role", "painter", "from says the role", "checks", "open agent"} {
		expect.Has(t, message+fmt.Sprint(details), part, "without", message, details)
	}
}

func TestEachTreeHasAnEnvironmentOfItsOwn(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d}
	w.repository()
	d.line("tenant create t_one")
	d.line("project tree web --env DATABASE={project}_{n} --env FOR={agent}:{branch} --env MINE=no")
	d.line(`project checks web --check 'test "$DATABASE" = web_2'`)
	p := d.object("project tree web")
	expect.True(t, fmt.Sprint(p["checks"]) == `[test "$DATABASE" = web_2]`, "%v", p)
	d.no(os.WriteFile(filepath.Join(d.dir, "env.sh"), []byte(`read l; echo "$DATABASE $FOR $MINE" >said`), 0o600))
	made := d.objects("agent create fix --project web --times 2 --dir repo --tree --env MINE=yes --task go -- sh " + filepath.Join(d.dir, "env.sh"))
	for n, a := range made {
		name := str(a["name"])
		d.until("agent history "+name, "status", "succeeded")
		said, err := os.ReadFile(filepath.Join(str(a["dir"]), "said"))
		expect.True(t, err == nil && string(said) == fmt.Sprintf("web_%d %s:swarmdeck/%s yes\n", n+1, name, name), "%s has %q, %v", name, said, err)
	}
	d.line("review check fix-2 --wait")
	if code, _, _ := d.run("review", "check", "fix-1", "--wait"); code == 0 {
		d.object("review show fix-1")
		expect.True(t, !strings.Contains(d.line("review show fix-1"), "checks    pass"), "a check has the environment of another tree")
	}
	d.line("agent create ada --project web --like fix-1 --tree")
	d.line("agent assign ada go --wait")
	said, _ := os.ReadFile(filepath.Join(str(d.object("agent show ada")["dir"]), "said"))
	expect.True(t, string(said) == "web_1 ada:swarmdeck/ada yes\n", "one made like another has %q", said)
	for _, bad := range []string{"PATH=x", "1A=x", "A={b}", "A=@KEY", "SWARMDECK_DATA=x"} {
		d.fails(2, "project tree web --env "+bad)
	}
	d.line("project tree web --none")
	d.write("swarm.yaml", `
tenant: t_one
projects:
  - {name: web, tree: {env: {PORT_OFFSET: "{n}"}}}
agents:
  - {name: eve, project: web, role: r, command: [cat], dir: repo, tree: true, times: 2}
`)
	want := []string{"unchanged tenant t_one", "changed tree web", "created agent eve-1", "created agent eve-2"}
	expect.Same(t, d.applied("swarm.yaml"), want)
	got := d.applied("swarm.yaml")
	expect.True(t, !slices.ContainsFunc(got, func(s string) bool { return !strings.HasPrefix(s, "unchanged") }), "again: %q", got)
}
