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

// lined is an agent that adds each message to a file in its tree.
const lined = `-- sh -c 'read l; test -f ready && echo worked >>said'`

func TestATreeIsSetUpBeforeTheFirstTaskOfItsAgent(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d}
	w.repository()
	d.line("tenant create t_one")
	d.line("project tree web --env MADE_FOR={agent}")
	d.line(`project tree web --setup 'sleep 0.3; echo "for $MADE_FOR" | tee ready' --setup 'echo twice >>ready'`)
	p := d.object("project tree web")
	expect.True(t, len(p["setup"].([]any)) == 2 && p["env"] != nil, "%v", p)
	made := d.object("agent create ada --project web --dir repo --tree --task go " + lined)
	given := d.objects("task list --kind agent.prompt")
	why := d.object(fmt.Sprintf("task why %v", given[0]["task_id"]))
	expect.True(t, given[0]["status"] == "queued" && strings.Contains(str(why["text"]), "set up"), "%v: %v", given[0]["status"], why)
	d.until("agent history ada", "status", "succeeded")
	for name, want := range map[string]string{"ready": "for ada\ntwice\n", "said": "worked\n"} {
		expect.Is(t, string(expect.Of(os.ReadFile(filepath.Join(str(made["dir"]), name)))(t)), want, name, "holds")
	}
	ran := d.objects("task list --kind tree.setup")
	expect.Must(t, len(ran) == 1 && ran[0]["status"] == "succeeded", "%v", ran)
	expect.Has(t, d.line(fmt.Sprintf("task log %v", ran[0]["task_id"])), "for ada")
	expect.Has(t, d.line("review show ada"), "setup     done")
	// Nobody else runs anything that way, and what is done is not done again.
	d.fails(1, `task dispatch --kind tree.setup --input '{"agent":"ada","lines":["echo no"]}'`)
	d.line(`task dispatch --kind tree.setup --input '{"agent":"ada","lines":["sleep 0.3; echo \"for $MADE_FOR\" | tee ready","echo twice >>ready"]}' --wait`)
	text, _ := os.ReadFile(filepath.Join(str(made["dir"]), "ready"))
	expect.True(t, string(text) == "for ada\ntwice\n", "set up twice: %q", text)
}

// TestAnEmergencyStopHoldsWhatRunsInATree: also in the midst of a line.
func TestAnEmergencyStopHoldsWhatRunsInATree(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d}
	w.repository()
	d.line("tenant create t_one")
	d.line(`project tree web --setup 'until [ -e go ]; do echo >>n; sleep 0.01; done'`)
	made := d.object("agent create ada --project web --dir repo --tree " + lined)
	at := func(name string) string { return filepath.Join(str(made["dir"]), name) }
	size := func() int { text, _ := os.ReadFile(at("n")); return len(text) }
	moves := func() {
		t.Helper()
		was := size()
		expect.Await(t, "the setup moves", func() bool { return size() > was })
	}
	moves()
	d.line("estop on --reason test")
	expect.Still(t, size, "the setup moves")
	d.line("estop off --reason test")
	moves()
	d.no(os.WriteFile(at("go"), nil, 0o600))
	d.until("task list --kind tree.setup", "status", "succeeded")
}

func TestAFailedSetupHoldsItsAgent(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d}
	w.repository()
	d.line("tenant create t_one")
	d.write("swarm.yaml", `
tenant: t_one
projects:
  - name: web
    tree: {setup: ["echo half >half", "test -f may-go", "touch ready"]}
agents:
  - {name: ada, project: web, role: r, dir: repo, tree: true, command: [sh, -c, "read l; test -f ready && echo worked >>said"], task: go}
`)
	got := d.applied("swarm.yaml")
	expect.True(t, slices.Contains(got, "created tree web"), "%q", got)
	d.until("task list --kind tree.setup", "status", "failed")
	failed := d.objects("task list --kind tree.setup")
	expect.Await(t, "trouble that says what to do", func() bool {
		return strings.Contains(fmt.Sprint(d.eng.Health.Of("t_one")), fmt.Sprintf("task retry %v", failed[0]["task_id"]))
	})
	text := d.line("review show ada")
	expect.True(t, strings.Contains(text, "setup     not done") && strings.Contains(text, "1  test -f may-go"), "%s", text)
	given := d.objects("task list --kind agent.prompt")
	expect.True(t, given[0]["status"] == "queued", "%v", given)
	d.no(os.WriteFile(filepath.Join(str(d.object("agent show ada")["dir"]), "may-go"), nil, 0o644))
	d.line(fmt.Sprintf("task retry %v", failed[0]["task_id"]))
	d.until("agent history ada", "status", "succeeded")
	expect.Await(t, "end of the trouble", func() bool { return len(d.eng.Health.Of("t_one")) == 0 })
	d.line("project tree web --none")
	d.line("agent create bob --project web --dir repo --tree --task go -- sh -c 'read l; touch said'")
	d.until("agent history bob", "status", "succeeded")
}

func TestASetupEndsWithItsAgent(t *testing.T) {
	d := newDeck(t)
	w := &walk{deck: d}
	w.repository()
	d.line("tenant create t_one")
	d.line("project tree web --setup 'echo begun >begun; sleep 600'")
	dir := str(d.object("agent create ada --project web --dir repo --tree -- cat")["dir"])
	there := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	expect.Await(t, "the setup", func() bool { return there("begun") })
	d.line("agent delete ada --yes --discard")
	d.until("task list --kind tree.setup", "status", "failed")
	expect.Await(t, "the tree is gone", func() bool { return !there("") })
}
