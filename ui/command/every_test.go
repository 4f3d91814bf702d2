package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// walk is one story that uses every command at least once; what it does not
// use is reported by the test.
type walk struct {
	*deck
	used map[string]bool
}

func (w *walk) do(line string) map[string]any {
	w.t.Helper()
	args := expect.Of(command.Split(line))(w.t)
	w.used[command.Describe(args).Path] = true
	all := w.objects(line)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// text runs a line in text and wide form and checks what every table must be.
func (w *walk) text(line string, want ...string) {
	w.t.Helper()
	for _, form := range []string{"text", "wide"} {
		out := w.line(line + " -o " + form)
		for _, text := range want {
			expect.Has(w.t, out, text, line, "-o", form)
		}
		i := strings.IndexFunc(out, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e })
		expect.True(w.t, i < 0, "%s -o %s: control character at %d in %q", line, form, i, out)
	}
}

// TestEveryCommand is one story in acts, which follow each other in one world.
// What all of it has written is forged in the end.
func TestEveryCommand(t *testing.T) {
	w := &walk{deck: newDeck(t), used: map[string]bool{}}
	for _, act := range []struct {
		name string
		do   func()
	}{
		{"sessions and tasks", w.sessionsAndTasks},
		{"agents and approvals", w.agentsAndApprovals},
		{"skills", w.skills},
		{"messages", w.messages},
		{"subagents", w.subagents},
		{"audit and budgets", w.auditAndBudgets},
		{"files and looks", w.filesAndLooks},
		{"servers", w.servers},
		{"record", w.record},
		{"forks", w.forks},
		{"intents", w.intents},
		{"trees", w.trees},
		{"project", w.project},
		{"operators", w.operators},
		{"secrets", w.secrets},
		{"notices", w.notices},
		{"signing", w.signing},
		{"witnesses", w.witnesses},
		{"hosts", w.hosts},
		{"engines", w.engines},
		{"egress", w.egress},
		{"files", w.files},
		{"handover", w.handover},
		{"signed answers", w.signedAnswer},
		{"grants", w.grants},
		{"cad", w.cads},
		{"flows", w.flows},
		{"solids", w.solids},
		{"policies", w.policies},
		{"doctor", w.doctor},
		{"erasure", w.erasure},
		{"retention", w.retention},
	} {
		if !w.act(t, act.name, act.do) {
			return
		}
	}
	for _, info := range command.Commands() {
		// What opens a door of its own is tested with it.
		if !w.used[info.Path] && !slices.Contains([]string{"demo", "agent attach", "mcp", "mcp connect", "mcp tools", "cad env", "serve", "attach"}, info.Path) {
			t.Errorf("not used in this test: %s", info.Path)
		}
	}
	t.Run("every forgery is found", func(t *testing.T) {
		if testing.Short() {
			t.Skip("each takes a replay of the log")
		}
		w.forged(t)
	})
}

// act runs one act, whose failures are its own.
func (w *walk) act(t *testing.T, name string, do func()) bool {
	return t.Run(name, func(t *testing.T) {
		whole := w.t
		w.t = t
		defer func() { w.t = whole }()
		do()
	})
}

func TestExamplesInHelpAreLinesOfTheirCommand(t *testing.T) {
	d := newDeck(t)
	found := 0
	for _, info := range command.Commands() {
		_, rest, _ := strings.Cut(d.line("help "+info.Path), "Examples:\n")
		for line := range strings.Lines(rest) {
			line, ok := strings.CutPrefix(line, "  swarmdeck ")
			if !ok {
				break
			}
			found++
			words, err := command.Split(line)
			expect.True(t, err == nil && command.Describe(words).Path == info.Path, "%s: %q is no line of it: %v", info.Path, line, err)
			// The first mistake is found after all the flags before it.
			end := slices.Index(append(words, "--"), "--")
			code, _, stderr := d.run(slices.Insert(words, end, "--nosuch")...)
			expect.True(t, code == command.ExitUsage && strings.Contains(stderr, "--nosuch"), "%s: %q: exit %d %s", info.Path, line, code, stderr)
		}
	}
	expect.True(t, found >= 15, "only %d examples", found)
}

func (w *walk) sessionsAndTasks() {
	t := w.t
	expect.Row(t, w.do("tenant create t_test"), "tenant_id", "t_test")
	w.do("tenant list --match TEST")
	w.do("tenant troubles")
	w.do("tenant use t_test")
	got := w.do("tenant show")
	expect.True(t, got["tenant_id"] == "t_test" && got["created_at"] != nil, "tenant show: %v", got)
	session := str(w.do("session create --name day --budget tasks=50,wall=1h,tokens=9,cost=1.5")["session_id"])
	for _, step := range []struct{ verb, state string }{{"start", "running"}, {"pause", "paused"}, {"resume", "running"}} {
		expect.Row(t, w.do("session "+step.verb+" "+session), "state", step.state)
	}
	w.do("session list --status running")
	w.do("session show " + session)
	w.text("session list", "SESSION", session, "day")

	made := w.do(`task dispatch --kind exec.run --input '{"argv":["sh","-c","echo one; echo two"]}' --priority 70 --timeout 1m --start-within 1h --max-attempts 2 --session ` +
		session + ` --trace 0af7651916cd43dd8448eb211c80319c --idempotency-key k1 --wait`)
	id := str(made["task_id"])
	expect.Row(t, made, "status", "succeeded", "priority", 70.0, "timeout_s", 60.0, "start_timeout_s", 3600.0, "session_id", session)
	if again := w.do(`task dispatch --kind exec.run --input '{"argv":["sh","-c","echo one; echo two"]}' --idempotency-key k1 --session ` + session +
		` --priority 70 --timeout 1m --max-attempts 2 --trace 0af7651916cd43dd8448eb211c80319c`); again["task_id"] != id {
		t.Errorf("the same key made another task: %v", again)
	}
	child := str(w.do(`task dispatch --kind exec.run --input '{"argv":["sleep","30"]}' --parent ` + id)["task_id"])
	w.do("task wait " + child + " --status running --timeout 10s")
	expect.Row(t, w.do("task pause "+child), "paused", true)
	w.do("task resume " + child)
	expect.Row(t, w.do("task why "+child), "task_id", child, "status", "running")
	tree := w.objects("task tree " + id)
	expect.True(t, len(tree) == 2 && tree[1]["task_id"] == child, "tree: %v", tree)
	w.do("task tree " + id)
	w.text("task tree "+id, "· "+child)
	w.do("task cancel " + child + " --reason 'not needed'")
	w.until("task show "+child, "status", "cancelled")
	again := str(w.do("task retry " + child)["task_id"])
	w.line("task cancel " + again)
	got = w.do("task show " + id)
	expect.True(t, got["input"] != nil && got["trace_id"] == "0af7651916cd43dd8448eb211c80319c", "show: %v", got)
	w.do("session pause " + session + " --reason 'a look'")
	queued := str(w.object(`task dispatch --kind exec.run --input '{"argv":["true"]}' --session ` + session)["task_id"])
	w.text("task why "+queued, "pause")
	expect.Row(t, w.do("task undo "+queued), "status", "cancelled")
	lines := w.objects("task log " + id)
	expect.True(t, len(lines) == 2 && lines[0]["message"] == "one" && lines[1]["seq"] == 2.0, "log: %v", lines)
	w.do("task log " + id + " --follow --lines 1")
	w.do("log " + id + " -f")
	w.do("run -- true")
	w.do("show " + id)
	w.do("why " + id)
	w.do("status")
	w.text("overview --over day", "the last day:", "working ")
	expect.Row(t, w.do("overview --by project"), "over", "hour", "by", "project")
	w.text("status", "Working")
	w.text("show "+id, id)
	w.text("task log "+id, "one", "two")
	w.do("task list --page 1 --page-size 1")
	w.text("task list", "TASK", id, "succeeded", "exec.run")
	got = w.do("result show " + id)
	expect.True(t, got["status"] == "succeeded" && got["output"].(map[string]any)["stdout"] == "one\ntwo\n", "result: %v", got)
	w.do("result list --status succeeded")
	w.text("result list", id)
	w.text("result show "+id, "completed_at")
	expect.Row(t, w.do("session stop "+session+" --reason done"), "state", "stopped")
}

const asking = `#!/bin/sh
while read -r line; do
	case $line in
	*'"type":"task"'*) printf '{"type":"tool_request","call_id":"c%s","tool":"fs.write","args":{"path":"x","content":"\\u001b]0;owned\\u0007\\u202e"},"intent":"write \\u001b[31mx","risk":"medium"}\n' $((n += 1)) ;;
	*'"decision":"approve"'*) echo '{"type":"result","status":"succeeded","output":{"did":true},"confidence":0.99}' ;;
	*'"decision":"deny"'*) echo '{"type":"result","status":"succeeded","output":{"did":false},"confidence":0.99}' ;;
	*) echo '{"type":"result","status":"failed","output":{},"error":"stopped"}' ;;
	esac
done
`

func (w *walk) agentsAndApprovals() {
	t := w.t
	w.no(os.WriteFile(filepath.Join(w.dir, "asking.sh"), []byte(asking), 0o700))
	made := w.do("agent create asker --project tools --role writer --env A=1 --env B=2 -- sh asking.sh")
	if made["name"] != "asker" || made["dir"] != w.dir || fmt.Sprint(made["command"]) != "[sh asking.sh]" || fmt.Sprint(made["env"]) != "map[A:[hidden] B:[hidden]]" {
		t.Errorf("agent create: %v", made)
	}
	w.line(`agent create quoted --project tools --command "sh -c 'cat >/dev/null; echo it'"`)
	got := w.do("agent show quoted")
	expect.True(t, fmt.Sprint(got["command"]) == "[sh -c cat >/dev/null; echo it]", "a command in one string: %v", got["command"])
	w.text(`project learn shop --options '{"url":"here"}'`, "Web", "painter,tester")
	got = w.do(`project learn shop --options '{"url":"here"}'`)
	expect.True(t, got["name"] == "Web" && fmt.Sprint(got["roles"]) == "[painter tester]", "what a server offers: %v", got)
	all := w.objects("role list --project Web")
	expect.True(t, len(all) == 2, "roles that were learned: %v", all)
	all = w.objects(`project learn exec --options '{"url":"here"}'`)
	expect.True(t, len(all) == 0, "a runtime without a server offers %v", all)
	all = w.objects("project list --match tools")
	expect.True(t, len(all) == 1 && all[0]["name"] == "tools", "projects: %v", all)
	w.do("project list")
	all = w.objects("role list --project tools --match writer")
	expect.True(t, len(all) == 1, "roles: %v", all)
	w.do("role list")
	w.text("role list", "writer", "tools")
	w.until("agent show asker", "status", "idle")
	w.do("agent pause asker")
	w.do("agent resume asker")
	w.do("agent stop asker")
	w.until("agent show asker", "status", "offline")
	w.do("agent start asker")
	w.do("agent restart asker")

	// Approved with other arguments, and a rule made of it.
	w.until("agent show asker", "status", "idle")
	task := str(w.do("agent assign asker 'write x' --uri file:x")["task_id"])
	code, _, _ := w.fails(1, "agent assign asker more")
	expect.True(t, code == "CONFLICT", "a busy agent took a task: %s", code)
	w.queue()
	id := w.approval()
	shown := w.do("approval show " + id)
	expect.True(t, shown["status"] == "open" && shown["digest"] != nil && shown["task_id"] == task, "approval: %v", shown)
	w.text("approval list", id, "fs.write", "medium")
	why := w.do("approval why " + id)
	expect.True(w.t, why["rule_id"] != "" && why["when"] != "" && why["values"] != nil && why["rules_now"] == true, "why: %v", why)
	w.text("approval show "+id, "digest", "at_deadline", `\u001b`)
	code, _, _ = w.fails(1, "approval approve "+id+" --digest 00")
	expect.True(t, code == "CONFLICT", "approved with another digest: %s", code)
	uma := w.person("uma", operator.Approver)
	w.do("approval escalate " + id + " --to uma --reason 'your call'")
	code, _, _ = w.fails(1, "approval approve "+id+" --reason fine")
	expect.True(t, code == "DENIED", "approved by another than who it was escalated to: %s", code)
	w.do("approval defer " + id + " --for 20m" + uma)
	w.do(fmt.Sprintf(`approval approve %s --reason fine --edit '{"path":"y","content":"z"}' --digest %s --shown 2026-01-02T03:04:05Z`, id, shown["digest"]) + uma)
	w.do("approval list --status approved")
	expect.Row(t, w.do("task wait "+task+" --timeout 20s"), "status", "succeeded")
	code, _, _ = w.fails(1, "approval deny "+id+" --reason late")
	expect.True(t, code == "CONFLICT", "answered twice: %s", code)

	w.until("agent show asker", "status", "idle")
	w.used["tell"] = true // tested beside
	task = str(w.do("agent assign asker 'write x again'")["task_id"])
	w.do("approval deny " + w.approval() + " --reason no --abort")
	w.until("task show "+task, "status", "blocked")
	w.until("agent show asker", "status", "idle")
	task = str(w.do("agent assign asker 'and again'")["task_id"])
	w.do("approval approve " + w.approval() + " --always agent --expires 1d --max-uses 5")
	w.do("task wait " + task + " --timeout 20s")
	rule := str(w.do("policy rules list --status active")["rule_id"])
	w.text("policy rules list", rule, "agent", "fs.write")
	expect.Row(t, w.do("policy rules revoke "+rule), "revoked", true)
	w.until("agent show asker", "status", "idle")
	w.do("agent assign asker 'last one'")
	w.approval()
	w.do("agent cancel asker")
	w.until("agent show asker", "status", "idle")

	w.do("agent history asker --page 1 --page-size 2")
	w.text("agent history asker", "write x", "succeeded", "blocked")
	w.do("agent log asker --page-size 5")
	w.text("agent log asker --page-size 50", "MESSAGE")
	w.do("agent list --project tools --status idle")
	w.text("agent list", "asker", "quoted", "tools")
	w.text("agent show asker")
	w.do("agent delete quoted --yes")

	decided := w.do("decision list --status hitl")
	expect.Row(t, w.do("decision show "+str(decided["decision_id"])), "gate", "tool.call")
	expect.Row(w.t, w.do("decision why "+str(decided["decision_id"])), "gone", "the arguments were edited since", "rule_id", "tool.write")
	w.text("decision list --page-size 100", "hitl", "tool.call")
}

func (w *walk) approval() string {
	w.t.Helper()
	return str(w.until("approval list --open", "status", "open")["approval_id"])
}

func (w *walk) auditAndBudgets() {
	t := w.t
	expect.Row(t, w.do("budget set agent:asker --tasks 90 --cost 2.5"), "subject", "agent:asker", "tasks", 90.0)
	expect.Row(t, w.do("budget set agent:asker --wall 2h"), "tasks", 90.0, "wall_s", 7200.0)
	w.do("budget list --agent asker")
	w.text("budget list", "agent:asker", "/90", "/2h")
	w.do("estop on --reason 'smoke'")
	expect.Row(t, w.do("estop show"), "on", true, "reason", "smoke")
	w.text("estop show", "ON", "smoke")
	w.do("estop off --reason clear")

	event := str(w.do("audit list --kind task.* --page-size 3")["event_id"])
	w.do("audit show " + event)
	w.do("story asker --page-size 1")
	w.text("story --since 1h", "turn", "AGENT")
	w.text("story asker --since 1h --page 1", "fs.write y: approved by uma: fine", "turn")
	w.text("audit list", "SEQ", "TYPE")
	w.text("audit list --all --page-size 100", "dag.finished")
	w.text("audit show "+event, "payload")
	expect.Row(t, w.do("audit verify"), "ok", true)
	w.do("audit checkpoint")
	w.no(os.WriteFile(filepath.Join(w.dir, "checkpoint"), []byte(w.line("audit checkpoint")), 0o600))
	w.line("session create")
	w.line("audit verify --checkpoint checkpoint")
	proof := w.line("audit prove " + event)
	w.do("audit prove " + event)
	w.no(os.WriteFile(filepath.Join(w.dir, "proof"), []byte(proof), 0o600))
	expect.Row(t, w.do("audit check-proof proof"), "event_id", event)
	w.no(os.WriteFile(filepath.Join(w.dir, "checkpoint"), []byte(w.line("-o json audit checkpoint")), 0o600))
	w.line("audit verify --checkpoint checkpoint")
	w.no(os.WriteFile(filepath.Join(w.dir, "proof"), []byte(w.line("-o json audit prove "+event)), 0o600))
	expect.Row(t, w.object("audit check-proof proof"), "event_id", event)
	_, message, _ := w.fails(1, "audit check-proof checkpoint")
	expect.True(t, strings.Contains(message, `{"proof": TEXT}`), "a checkpoint for a proof: %s", message)
	_, message, details := w.fails(1, "audit verify --checkpoint proof")
	expect.True(t, details["field"] == "checkpoint", "a proof for a checkpoint: %s", message)
	w.no(os.WriteFile(filepath.Join(w.dir, "proof"), []byte(strings.Replace(proof, "a", "b", 1)), 0o600))
	w.fails(1, "audit check-proof proof")
	deltas := w.objects("audit reconcile")
	expect.True(t, len(deltas) == 0, "reconcile: %v", deltas)
	w.used["audit reconcile"] = true
	w.text("audit reconcile", "no unexplained difference")
	w.do("audit export --format jsonl --out log.jsonl")
	lines := expect.Of(os.ReadFile(filepath.Join(w.dir, "log.jsonl")))(w.t)
	expect.True(t, strings.HasPrefix(w.line("audit export"), string(lines)), "export to a file and to stdout differ")
	csv := w.line("audit export --format csv")
	expect.True(t, strings.Contains(strings.SplitN(csv, "\n", 2)[0], "event_type"), "csv: %.200s", csv)
}

func (w *walk) filesAndLooks() {
	t := w.t
	expect.Row(t, w.do("store check"), "ok", true)
	w.do("store backup copy.db")
	w.fails(1, "store backup copy.db")
	got := w.do("store copy --to copied.db --keep")
	expect.True(t, got["kept"] == true && got["root_hash"] != "", "copy: %v", got)
	w.do("store stats")
	w.do("store stats --full")
	w.text("store stats", "commits")
	w.text("store check")
	// What needs the file to itself is run from the command line, on a copy.
	cli := w.env
	cli.Caller.Door = "cli"
	w.env, cli = cli, w.env
	w.do("store compact --data copy.db")
	w.do("store restore copy.db --data new.db")
	w.do("store check --data new.db")
	w.do("store stats --data new.db")
	w.do("store backup again.db --data new.db")
	w.do("store check")   // by the engine that has it
	w.do("store compact") // and so is this
	w.no(os.WriteFile(filepath.Join(w.dir, "junk.db"), []byte(strings.Repeat("junk", 5000)), 0o600))
	w.fails(3, "store check --data junk.db")
	w.env, cli = cli, w.env

	all := w.objects("theme list")
	expect.True(t, len(all) >= 5 && all[0]["default"] == true, "themes: %v", all)
	w.do("theme list")
	got = w.do("theme show mono")
	expect.True(t, strings.Contains(str(got["toml"]), "="), "theme: %v", got)
	w.no(os.MkdirAll(filepath.Join(w.dir, "config", "swarmdeck", "themes"), 0o700))
	w.no(os.WriteFile(filepath.Join(w.dir, "config", "swarmdeck", "themes", "mine.toml"), []byte("extends = \"dark\"\n"), 0o600))
	w.text("theme list", "mine", "mono")
	w.do("theme show mine")
	w.do("view save mine --columns name,state --sort -age --match 'state:failed'")
	w.do("view save other --list tasks")
	w.do("view list")
	w.text("view list", "mine", "fleet", "name,state", "-age", "tasks")
	got = w.do("view use mine")
	expect.Row(t, got, "list", "fleet", "sort", "-age", "match", "state:failed")
	for line, want := range map[string]string{
		"view use none":                    `view "none": not found; there are: mine, other`,
		"view save Mine":                   "1-32 lower-case letters, digits and -",
		"view save mine --list '../fleet'": "the name of a list of the cockpit",
		"view save mine --columns " + strings.Repeat("a,", 50) + "a": "51 are too many; allowed: at most 40",
		"view save mine --match " + strings.Repeat("a", 501):         "501 bytes; allowed: at most 500",
	} {
		_, message, _ := w.fails(map[bool]int{true: 1, false: 2}[strings.Contains(line, "use")], line)
		expect.Has(t, message, want, line)
	}
	w.do("view delete other")
	expect.Is(t, len(w.objects("view list")), 1, "views")
	all = w.objects("keys list --page-size 100")
	expect.True(t, len(all) >= 20, "keys: %d", len(all))
	w.do("keys list")
	w.text("keys list", "SCOPE")
	w.no(os.WriteFile(filepath.Join(w.dir, "keys.toml"), []byte("[[bind]]\nscope = \"global\"\nkey = \"ctrl+t\"\nline = \"task list\"\nhelp = \"tasks\"\n"), 0o600))
	w.do("keys check keys.toml")
	w.no(os.WriteFile(filepath.Join(w.dir, "keys.toml"), []byte("[[bind]]\nscope = \"global\"\nkey = \"ctrl+t\"\nline = \"nosuch list\"\nhelp = \"tasks\"\n"), 0o600))
	_, message, _ := w.fails(1, "keys check keys.toml")
	expect.True(t, strings.Contains(message, "keys.toml:1") && strings.Contains(message, "nosuch"), "keys check: %s", message)
	got = w.do("version")
	expect.True(t, got["go"] != nil, "version: %v", got)
	w.text("version", "swarmdeck")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		expect.Has(t, w.line("completion "+shell), "__complete", "completion", shell)
	}
	w.used["completion"] = true
	for _, line := range []string{"help --all", "help task dispatch", "task dispatch --help", "task --help"} {
		expect.Has(t, w.line(line), "Usage:", line)
	}
	w.used["help"] = true
	w.no(os.WriteFile(filepath.Join(w.dir, "swarm.yaml"), []byte("sessions:\n  - name: night\n"), 0o600))
	w.do("up swarm.yaml")
}
