package command_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// skillText is a small skill file.
func skillText(name, version, needs string) string {
	return fmt.Sprintf("name: %s\nversion: %s\ndescription: \"\\e]0;owned\\a\\u202e does %s\"\nparameters_schema: {type: object}\ndependencies: [%s]\ntags: [motion]\nrunner: {kind: builtin, name: echo}\n",
		name, version, name, needs)
}

// skills is the part of the walk through every command.
func (w *walk) skills() {
	t := w.t
	w.write("skills/navigate.yaml", skillText("navigate", "1.0.0", ""))
	w.write("skills/sub/detect.yaml", skillText("detect", "0.2.0", "navigate"))
	w.write("newer.yaml", skillText("navigate", "1.10.0", ""))
	w.used["skill check"] = true
	expect.Row(t, w.object("skill check skills newer.yaml"), "ok", true)
	got := w.do("skill list")
	expect.True(t, got == nil, "checking loaded %v", got)
	if got := w.objects("skill load skills newer.yaml"); len(got) != 3 || got[0]["action"] != "created" || got[0]["object"] != "skill" ||
		got[0]["name"] != "navigate" || got[0]["version"] != "1.0.0" || got[0]["source"] != w.dir+"/skills/navigate.yaml" {
		t.Errorf("load: %v", got)
	}
	w.do("skill load newer.yaml")
	w.text("skill load skills", "ACTION", "unchanged", "navigate", "1.0.0", "skills/sub/detect.yaml")
	if got := w.objects("skill list --tag motion --page 1"); len(got) != 4 || got[0]["name"] != "detect" || got[1]["version"] != "1.10.0" ||
		got[2]["version"] != "1.0.0" || got[3]["total_count"] != 3.0 {
		t.Errorf("list: %v", got)
	}
	for line, want := range map[string]int{
		"skill list --tag none": 0, "skill list --kind builtin": 3, "skill list --kind exec": 0, "skill list --match DETECT": 1,
		"skill list --since 1h": 3, "skill list --until 1h": 0, "skill list --agent x": 0, "skill list --tag motion --tag none": 0,
	} {
		got := w.objects(line)
		expect.True(t, len(got) == want, "%s: %v", line, got)
	}
	w.text("skill list", "SKILL", "navigate", "1.0.0 (older)", "1.10.0", "builtin", "motion", "does detect")
	got = w.do("skill show navigate")
	expect.True(t, got["version"] == "1.10.0" && got["timeout"] == 30.0 && len(str(got["digest"])) == 64 && got["parameters_schema"] != nil, "show: %v", got)
	w.text("skill show navigate@1.0.0", "parameters_schema", "⟨ESC⟩")
	if got := w.objects("skill order detect"); len(got) != 2 || got[0]["name"] != "navigate" || got[0]["version"] != "1.10.0" || got[1]["name"] != "detect" || got[1]["position"] != 2.0 {
		t.Errorf("order: %v", got)
	}
	w.do("skill order detect")
	w.text("skill order detect", "STEP", "navigate", "detect")
	registry := w.do("skill registry")
	if registry["registry_id"] != "default" || registry["last_updated"] == nil || fmt.Sprint(registry["dependency_graph"]) != "map[detect:[navigate] navigate:[]]" {
		t.Errorf("registry: %v", registry)
	}
	if got := w.objects("skill sources"); len(got) != 2 || got[1]["path"] != w.dir+"/skills" {
		t.Errorf("sources: %v", got)
	}
	w.do("skill sources")
	got = w.do("skill forget newer.yaml")
	expect.True(t, got["path"] == w.dir+"/newer.yaml" && len(w.objects("skill sources")) == 1, "forget: %v", got)
	code, _, _ := w.fails(1, "skill forget newer.yaml")
	expect.True(t, code == "NOT_FOUND", "forgotten twice: %s", code)
	code, message, details := w.fails(1, "skill unload navigate")
	expect.True(t, code == "CONFLICT" && strings.Contains(message, "needed by detect@0.2.0"), "unload: %s %s %v", code, message, details)
	expect.Row(t, w.do("skill unload navigate@1.10.0"), "action", "unloaded", "version", "1.10.0")
	w.write("skills/bad.yaml", skillText("bad", "1", ""))
	w.fails(1, "skill load skills")
	expect.Row(t, w.do("skill problems"), "field", "version", "line", 2.0, "value", "1", "file", w.dir+"/skills/bad.yaml")
	w.text("skill problems", "skills/bad.yaml:2", "version", "is not allowed")
	w.text("help skill-file", "parameters_schema", "X.Y.Z")
}

func TestABadSkillFileIsRefusedAndTheGoodOnesAreLoaded(t *testing.T) {
	d := newDeck(t)
	d.write("skills/good.yaml", skillText("good", "1.0.0", ""))
	d.write("skills/bad.yaml", strings.Replace(skillText("bad", "1.0", "nowhere"), "tags: [motion]", "timeout: 0\nmax_retries: 9", 1))
	code, out, stderr := d.run("skill", "load", "skills", "-o", "json")
	expect.True(t, code == command.ExitFailed && strings.Contains(out, `"action":"created"`) && strings.Contains(out, `"name":"good"`),
		"exit %d: %s %s", code, out, stderr)
	_, message, details := d.fails(1, "skill load skills/bad.yaml")
	want := []string{
		`skills/bad.yaml:2: version: "1.0" is not allowed; allowed: X.Y.Z`,
		`skills/bad.yaml:5: dependencies[0]: "nowhere" is not allowed; allowed: a skill that is loaded`,
		`skills/bad.yaml:6: timeout: 0 is not allowed; allowed: a whole number, 1-3600`,
		`skills/bad.yaml:7: max_retries: 9 is not allowed; allowed: a whole number, 0-5`,
	}
	lines := strings.Split(message, "\n")
	for i, w := range want {
		expect.True(t, i < len(lines) && strings.HasPrefix(lines[i], w), "%q is missing in\n%s", w, message)
	}
	problems, _ := details["problems"].([]any)
	if len(problems) != 4 || fmt.Sprint(problems[2]) != "map[allowed:a whole number, 1-3600 field:timeout file:skills/bad.yaml line:6 message:0 is not allowed; allowed: a whole number, 1-3600 value:0]" {
		t.Errorf("%v", problems)
	}
	if code, _, details := d.fails(1, "skill check skills"); code != "INVALID_INPUT" || details["problems"] == nil {
		t.Errorf("check: %s %v", code, details)
	}
	if code, _, details := d.fails(1, "skill load nowhere"); code != "NOT_FOUND" || details["field"] != "path" {
		t.Errorf("%s %v", code, details)
	}
	for line, want := range map[string]string{"skill show nosuch": "NOT_FOUND", "skill order nosuch": "NOT_FOUND", "skill unload nosuch": "NOT_FOUND", "skill show x": "INVALID_INPUT", "skill show good@1": "INVALID_INPUT", "skill show good@2.0.0": "NOT_FOUND"} {
		exit := 1
		if want == "INVALID_INPUT" {
			exit = 2
		}
		code, _, _ := d.fails(exit, line)
		expect.True(t, code == want, "%s: %s", line, code)
	}
	expect.Is(t, len(d.objects("audit list --kind skill.refused")), 2, "refusals in the audit log")
}

func TestASwarmFileBringsSkills(t *testing.T) {
	d := newDeck(t)
	d.write("deck/lib/move.yaml", skillText("move", "1.0.0", ""))
	d.write("deck/swarm.yaml", "skills:\n  - lib\n  - name: look\n    version: 1.0.0\n    parameters_schema: {type: object}\n    dependencies: [move]\n    runner: {kind: builtin, name: echo}\nsessions:\n  - name: day\n")
	got := d.objects("up deck")
	expect.True(t, len(got) == 3 && got[0]["object"] == "skill" && got[0]["action"] == "created" && got[0]["name"] == "move" && got[1]["id"] == "look@1.0.0",
		"%v", got)
	for _, x := range d.objects("up deck") {
		expect.Is(t, x["action"], "unchanged", "again", x)
	}
	expect.Row(t, d.object("skill show look"), "source", d.dir+"/deck/swarm.yaml")

	// One mistake anywhere, and nothing is applied.
	d.write("bad/lib/grab.yaml", skillText("grab", "1.0.0", "nowhere"))
	d.write("bad/swarm.yaml", "sessions:\n  - name: night\nskills:\n  - lib\n  - none.yaml\n  - name: x\n    version: 1.0.0\n    parameters_schema: {type: object}\n    runner: {kind: builtin, name: echo}\n")
	_, message, _ := d.fails(1, "up bad")
	expect.True(t, strings.Contains(message, `bad/swarm.yaml:6: skills[2].name: "x" is not allowed`), "%s", message)
	d.write("bad/swarm.yaml", "sessions:\n  - name: night\nskills:\n  - lib\n  - none.yaml\n")
	_, message, _ = d.fails(1, "up bad")
	expect.True(t, strings.Contains(message, "bad/swarm.yaml:5: skills[1]: can't read "+d.dir+"/bad/none.yaml: no such file"), "%s", message)
	d.write("bad/swarm.yaml", "sessions:\n  - name: night\nskills: [lib]\n")
	_, message, _ = d.fails(1, "up bad")
	expect.True(t, strings.Contains(message, `lib/grab.yaml:5: dependencies[0]: "nowhere" is not allowed; allowed: a skill that is loaded`), "%s", message)
	all := d.objects("session list --match night")
	expect.True(t, len(all) == 0, "a refused file made %v", all)
}
