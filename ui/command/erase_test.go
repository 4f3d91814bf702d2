package command_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// typed is in all that alice types, and in what comes of it; others say it not.
const typed = "zqxMARKER"

// TestWhatAPersonSaidIsNowhereOnceItIsErased has alice say a word wherever a
// person can, erases it, and looks for it in the files and in what every
// reading command prints.
func TestWhatAPersonSaidIsNowhereOnceItIsErased(t *testing.T) {
	w := &walk{deck: newDeck(t), used: map[string]bool{}}
	lines := w.says()
	w.othersSay()
	before := w.reads(lines, typed)
	for _, want := range []string{"task show", "result show", "task log", "agent log", "bus list", "skill executions", "subagent show", "approval show", "decision show", "dag events", "task list"} {
		expect.True(t, slices.ContainsFunc(before, func(line string) bool { return strings.HasPrefix(line, want) }),
			"%s shows nothing of what was said, before it was erased", want)
	}
	exported := filepath.Join(w.dir, "before.jsonl")
	w.line("dag export jsonl " + exported)
	done := w.object("tenant erase alice --yes")
	t.Log(done)
	left := done["left"].([]any)
	expect.True(t, len(left) == 0, "left: %v", left)
	rows := w.rows()
	expect.True(t, len(rows) == 0, "rows that hold it still:\n%s", strings.Join(rows, "\n"))
	after := w.reads(lines, typed)
	expect.True(t, len(after) == 0, "commands that show it still: %v", after)
	say := w.reads(lines, "erased")
	for _, line := range before {
		expect.True(t, slices.Contains(say, line), "%s does not say that something was erased", line)
	}
	got := w.object("audit verify")
	expect.True(t, got["ok"] == true, "verify: %v", got)
	deltas := w.objects("audit reconcile")
	expect.True(t, len(deltas) == 0, "reconcile: %v", deltas)
	w.line("store compact")
	found := w.filesWith()
	expect.True(t, len(found) == 0, "files that hold it still: %v", found)
	for _, line := range []string{"task list --match bobs-word", "task list --match bobs-prompt", "agent list --match other", "dag events --match bobs-prompt"} {
		expect.True(t, len(w.objects(line)) != 0, "%s: what bob said is gone", line)
	}
	message := str(w.object("bus list --status read --match erased")["message_id"])
	code, _, _ := w.fails(1, "bus resend "+message)
	expect.True(t, code == "CONFLICT", "an erased message was sent again: %s", code)
	running := str(w.object(`task dispatch --kind exec.run --input '{"argv":["sleep","3000"]}'`)["task_id"])
	expect.Has(t, fmt.Sprint(w.object("tenant erase alice --yes")["left"]), "task "+running, "left")
	w.text("tenant erase alice --yes", "erased of alice: nothing", "left: task "+running, "store compact")
	w.line("task cancel " + running)
	w.until("task show "+running, "status", "cancelled")
	w.line("tenant erase alice --yes")
	again := w.object("tenant erase alice --yes")
	expect.True(t, len(again["erased"].(map[string]any)) == 0, "erased twice: %v", again)
}

// othersSay has bob say something, and alice answer it.
func (w *walk) othersSay() {
	w.t.Helper()
	bob := w.person("bob", operator.Approver)
	w.line(`task dispatch --kind exec.run --input '{"argv":["echo","bobs-word"]}' --wait` + bob)
	w.no(os.WriteFile(filepath.Join(w.dir, "other.sh"), []byte(asking), 0o700))
	w.line("agent create other --project tools --role writer -- sh other.sh")
	w.until("agent show other", "status", "idle")
	task := str(w.object("agent assign other 'bobs-prompt'" + bob)["task_id"])
	w.line("approval deny " + w.approval() + " --abort --reason '" + typed + " to bob'")
	w.until("task show "+task, "status", "blocked")
	w.until("agent show other", "status", "idle")
}

// rows are those of the tenant that hold what was typed.
func (w *walk) rows() (found []string) {
	w.t.Helper()
	w.no(w.eng.Store().View(w.t.Context(), "t_test", func(tx store.Tx) error {
		all, err := tx.(store.Inventory).Buckets()
		for _, b := range all {
			err := tx.Scan(b, nil, nil, false, func(k, v []byte) (bool, error) {
				if i := bytes.Index(v, []byte(typed)); i >= 0 || bytes.Contains(k, []byte(typed)) {
					found = append(found, fmt.Sprintf("%s %q: …%q", b, k, v[max(0, i-200):min(len(v), max(0, i)+40)]))
				}
				return true, nil
			})
			if err != nil {
				return err
			}
		}
		return err
	}))
	return found
}

// files are those of the engine that hold what was typed.
func (w *walk) filesWith() (found []string) {
	w.t.Helper()
	for _, root := range []string{w.data, filepath.Join(w.dir, "spill")} {
		w.no(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(typed)) {
				found = append(found, path)
			}
			return err
		}))
	}
	return found
}

// reads are the lines that print a word. All must succeed.
func (w *walk) reads(lines []string, word string) (found []string) {
	w.t.Helper()
	for _, line := range lines {
		for _, form := range []string{"json", "wide"} {
			args := append(strings.Fields(line), "-o", form)
			code, out, stderr := w.run(args...)
			expect.True(w.t, code == 0, "%s: exit %d: %s", line, code, stderr)
			if strings.Contains(out+stderr, word) {
				found = append(found, line+" -o "+form)
			}
		}
	}
	return found
}

// says has alice type it wherever a person can, and returns lines that read what
// came of it.
func (w *walk) says() []string {
	w.t.Helper()
	w.line("tenant create t_test")
	w.no(os.WriteFile(filepath.Join(w.dir, "asking.sh"), []byte(strings.ReplaceAll(asking, `write \\u001b[31mx`, typed+`-intent`)), 0o700))
	w.line(`task dispatch --kind exec.run --input '{"argv":["sh","-c","echo ` + typed + `-out; yes ` + typed + `-spill-$(printf %0200d 0) | head -c 1300000; yes ` + typed + `-spillerr-$(printf %0200d 0) | head -c 1300000 >&2"]}' --wait`)
	expect.True(w.t, len(w.filesWith()) >= 3, "nothing was spilled")
	w.run("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","-c","echo `+typed+`-fail >&2; exit 3"]}`, "--wait")
	w.line("agent create asker --project tools --role writer -- sh asking.sh")
	for i, answer := range []string{
		"approve %s --reason " + typed + "-reason --edit '{\"path\":\"" + typed + "-edit\"}'", "deny %s --reason " + typed + "-deny", "deny %s --reason " + typed + "-abort --abort",
	} {
		w.until("agent show asker", "status", "idle")
		task := str(w.object(fmt.Sprintf("agent assign asker '%s-prompt %d'", typed, i))["task_id"])
		w.line("approval " + fmt.Sprintf(answer, w.approval()))
		w.run("task", "wait", task, "--timeout", "2m")
	}
	w.until("agent show asker", "status", "idle")
	bob := w.person("bob", operator.Approver)
	w.line("agent assign asker '" + typed + "-prompt'")
	handed := w.approval()
	w.line("approval escalate " + handed + " --to bob --reason " + typed + "-escalate")
	w.line("approval deny " + handed + " --reason no" + bob)
	w.until("agent show asker", "status", "idle")
	long := str(w.object(`task dispatch --kind exec.run --input '{"argv":["sleep","30","` + typed + `-sleep"]}'`)["task_id"])
	w.line("task wait " + long + " --status running --timeout 10s")
	w.line("task cancel " + long + " --reason " + typed + "-cancel")
	w.until("task show "+long, "status", "cancelled")
	w.line(`bus publish nav.complete '{"location":"` + typed + `-topic"}' --from asker`)
	w.line(`bus send asker '{"text":"` + typed + `-bus"}'`)
	w.line(`bus read asker`)
	w.write("reach.yaml", reachFile)
	w.line("skill load reach.yaml")
	w.line(`skill invoke reach --params '{"to":"` + typed + `-param"}' --name Arm-1 --metadata '{"k":"` + typed + `-meta"}' --wait`)
	w.line(`dag emit '{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"alice","nodes":[{"type":"Message","id":"m-1","role":"user","content":[{"type":"text","text":"` + typed + `-dag"}],"created_at":"2026-01-02T03:04:05Z"}]}'`)

	lines := []string{
		"task list", "result list", "agent list", "agent show asker", "agent history asker --page-size 100", "agent log asker --page-size 100", "approval list", "decision list --page-size 100",
		"bus list", "skill executions", "subagent list", "dag events --page-size 100", "dag calls", "dag timeline agent:asker --page-size 100", "dag timeline agent:alice", "dag show m-1",
		"audit list --page-size 100", "audit export", "operator handover", "estop show", "policy rules list",
	}
	for list, verbs := range map[string][]string{
		"task list task_id":                         {"task show", "task why", "task log", "task tree", "result show"},
		"approval list approval_id":                 {"approval show", "approval why"},
		"decision list --page-size 100 decision_id": {"decision show", "decision why"},
		"bus list message_id":                       {"bus show"},
		"skill executions execution_id":             {"skill execution"},
		"subagent list agent_id":                    {"subagent show"},
		"dag events --page-size 100 event_id":       {"dag show", "dag at"},
	} {
		i := strings.LastIndexByte(list, ' ')
		for _, one := range w.objects(list[:i]) {
			for _, verb := range verbs {
				lines = append(lines, verb+" "+str(one[list[i+1:]]))
			}
		}
	}
	return lines
}
