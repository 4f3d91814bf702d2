package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/expect"
)

// keepers look after files of a test.
func keepers(t testing.TB, dir string) map[string]resource.Driver {
	t.Helper()
	d := expect.Of(files.New(files.Options{Dir: filepath.Join(dir, "snapshots"), Own: filepath.Join(dir, "deck.db"), Dest: dir}))(t)
	return map[string]resource.Driver{"files": d}
}

// forks is the part of the walk that forks an agent and keeps what it works on.
func (w *walk) forks() {
	t := w.t
	work := filepath.Join(w.dir, "work")
	w.no(os.Mkdir(work, 0o755))
	w.no(os.WriteFile(filepath.Join(work, "a"), []byte("one"), 0o600))
	w.do("agent create forker --project p --dir " + work + " -- cat")
	made := w.do("dag resource attach forker work --mode rw")
	id := str(made["id"])
	expect.True(t, made["driver"] == "files" && made["kind"] == "file" && strings.HasPrefix(id, "dir-"), "attach: %v", made)
	w.do("dag resource list")
	w.do("dag resource show " + id)
	w.text("dag resource list --agent forker", id, "forker:rw", "snapshot,restore,fork,share")
	w.text("dag resource show "+id, "forker", "files")
	got := w.do("dag resource probe " + id)
	expect.True(t, got["probed"].(map[string]any)["status"] == "alive", "probe: %v", got)
	snap := w.do("dag resource snapshot " + id)
	expect.Row(t, snap, "method", "fs_copy", "restorable", true)
	w.no(os.WriteFile(filepath.Join(work, "a"), []byte("two"), 0o600))
	w.do("dag resource snapshots " + id)
	w.text("dag resource snapshots "+id, str(snap["id"]), "fs_copy")
	w.do("dag resource restore " + str(snap["id"]) + " --to " + filepath.Join(w.dir, "again"))
	data, err := os.ReadFile(filepath.Join(w.dir, "again", "a"))
	expect.True(t, string(data) == "one", "restored %q: %v", data, err)
	w.do("agent stop forker")
	w.do("dag resource restore " + str(snap["id"]) + " --yes")
	data, err = os.ReadFile(filepath.Join(work, "a"))
	expect.True(t, string(data) == "one", "restored in its place %q: %v", data, err)
	started := w.do(`dag emit '{"kind":"run_started","ts":"2126-01-02T03:04:05Z","run_id":"r-fork","agent_id":"forker"}'`)
	at := str(started["event_id"])
	expect.Row(t, w.do("dag fork forker --at "+at[:10]+" --dry-run --task ''"), "name", "forker-2", "continued", "record")
	w.no(os.WriteFile(filepath.Join(w.dir, "plan.json"), []byte(`[{"resource":"`+id+`","mode":"snapshot"}]`), 0o600))
	forked := w.do("dag fork forker --at " + at + " --to other --name forked --task '' --plan plan.json")
	expect.Row(t, forked, "name", "forked", "to_branch", "other", "from_branch", "main")
	data, err = os.ReadFile(filepath.Join(str(forked["dir"]), "a"))
	expect.True(t, string(data) == "one", "the fork has %q: %v", data, err)
	got = w.do("agent show forked")
	expect.True(t, got["forked"].(map[string]any)["continued"] == "record" && got["dir"] == forked["dir"], "the fork: %v", got)
	all := w.objects("dag forks --of forked")
	expect.True(t, len(all) >= 2, "ancestry: %v", all)
	w.text("dag fork forker --at "+at+" --dry-run --name third --task '' --plan "+id+"=discard", "third", "goes without it")
	expect.Has(t, w.line("dag fork forker --at "+at+" --name third --task '' --plan "+id+"=discard"), "continued from record")
	said := w.do(`dag emit '{"kind":"history_append","ts":"2126-01-02T03:04:06Z","run_id":"r-fork","agent_id":"forker","list":"main","message_ref":"m-fork","nodes":[{"type":"Message","id":"m-fork","role":"user","content":[{"type":"text","text":"build it"}],"created_at":"2126-01-02T03:04:06Z"}]}'`)
	line := "dag fork forker --at " + str(said["event_id"]) + " --name edited --task '' --edit " + `'{"text":"test it"}'` + " --reason 'what if'"
	got = w.do(line + " --dry-run")
	expect.True(t, got["edited"].(map[string]any)["role"] == "user", "dry run of an edit: %v", got)
	edited := w.do(line)
	w.text("dag events --run edit:"+str(edited["intent_id"]), "user: test it", "what if", "substitution")
	got = w.do("dag compare agent:forker agent:edited")
	expect.True(t, got["a"].(map[string]any)["since"] == said["event_id"], "compare with a fork: %v", got)
	got = w.do("dag resource detach forker " + id)
	expect.True(t, len(got["attached_to"].([]any)) == 0, "detach: %v", got)
	for line, word := range map[string]string{
		"dag fork forker":                                                  "--at",
		"dag fork nosuch --at " + at:                                       "nosuch",
		"dag fork forker --at 00000000":                                    "00000000",
		"dag fork forked --at " + at:                                       "forker",
		"dag fork forker --at " + at + " --plan " + id + "=move":           "keep, snapshot, discard",
		"dag fork forker --at " + at + " --plan nosuch=keep":               id,
		"dag fork forker --at " + at + " --plan " + id + "=keep:elsewhere": "main",
		"dag fork forker --at " + at + " --to other":                       "other",
		"dag fork forker --at " + at + " --name forked":                    "forked",
		"dag fork forker --at " + at + " --to a/b":                         "1-64",
		"dag fork forker --at " + at + " --plan @no.json":                  "no.json",
		"dag fork forker --at " + at + ` --edit {"text":"x"}`:              "run_started",
		"dag fork forker --at " + at + " --edit x":                         "edit",
		"dag resource attach forker nowhere":                               "nowhere",
		"dag resource attach nosuch work":                                  "nosuch",
		"dag resource attach forker work --mode x":                         "ro, rw",
		"dag resource detach ada " + id:                                    "ada",
		"dag resource show nosuch":                                         "nosuch",
		"dag resource snapshot nosuch":                                     "nosuch",
		"dag resource restore " + str(snap["id"]):                          "--yes",
		"dag resource restore nosuch --yes":                                "nosuch",
		"dag resource restore " + str(snap["id"]) + " --to " + work:        "to",
	} {
		code, _, stderr := w.run(strings.Fields(line)...)
		expect.True(t, code != 0 && strings.Contains(stderr, word), "%s: exit %d: %s", line, code, stderr)
	}
}
