package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/ui/keyring"
)

func (w *walk) operators() {
	w.t.Helper()
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8pn0rDDZVUOQRPLpNBIwGvXhBbNKQkcDgY0UlPpUQG"
	w.no(os.WriteFile(filepath.Join(w.env.Dir, "bob.pub"), []byte("# of Bob\n"+key+" bob@home\n"), 0o600))
	expect.Row(w.t, w.do("operator set bob --rights approver --key @bob.pub"), "role", "approver")
	w.slots()
	w.do("operator set ann --rights approver --uid 4242")
	w.do("operator list")
	w.do("operator here")
	expect.Row(w.t, w.do("operator away --to bob --for 1h --of ann"), "delegate", "bob")
	w.do("operator away --end --of ann")
	w.text("operator list", "bob", "approver", "SHA256:")
	expect.Row(w.t, w.do("operator show bob"), "name", "bob")
	w.do("operator remove ann")
	w.do("operator remove bob")
}

func (w *walk) handover() {
	w.t.Helper()
	h := w.do("operator handover --since 1h")
	for _, part := range []string{"approvals", "decisions", "failures", "agents", "budgets", "running", "estop_changes", "estop", "counts"} {
		_, ok := h[part]
		expect.True(w.t, ok, "a hand-over without %s: %v", part, h)
	}
	expect.True(w.t, h["to"] == nil && len(w.objects("audit list --kind operator.handover")) == 0, "a report alone is no hand-over")
	h = w.do("operator handover --to carol")
	expect.True(w.t, h["to"] == "carol" && h["event_id"] != nil, "%v", h)
	all := w.objects("audit list --kind operator.handover")
	expect.True(w.t, len(all) == 1 && all[0]["actor"] != nil, "%v", all)
	w.text("operator handover", "Hand-over of t_test", "Decisions: ", "Failures: ", "Emergency stops: ", "Running work (")
	w.fails(2, "operator handover --since yesterday")
	w.fails(2, "operator handover --since 900h")
	w.fails(2, "operator handover --to ' '")
	w.fails(1, "operator handover --to carol --read-only")
}

// signedAnswer answers with a statement that is signed apart.
func (w *walk) signedAnswer() {
	w.t.Helper()
	sam := w.person("sam", operator.Approver)
	id := str(w.do("grant request --server exec --tool fs.write --any '*' --agent asker --expires 1d --max-uses 5 --reason 'a long night'")["approval_id"])
	said := w.do("approval statement " + id + " --answer deny --reason no" + sam)
	expect.Row(w.t, said, "approval_id", id, "answer", "deny")
	statement := w.line("approval statement " + id + " --answer deny --reason no" + sam)
	ring := expect.Of(keyring.Open(filepath.Join(w.dir, "sam.key"), ""))(w.t)
	key := expect.Of(operator.ParseKey(w.key("sam")))(w.t)
	signature := expect.Of(ring.Sign(judge.SignNamespace, statement, []operator.Key{key}))(w.t)
	expect.Row(w.t, w.do("approval answer '"+strings.TrimSpace(statement)+"' --signature '"+string(signature)+"'"+sam), "status", "denied", "answered_by", "sam")
	all := w.do("decision export " + id)["answers"].([]any)
	expect.True(w.t, len(all) == 1 && all[0].(map[string]any)["principal"] == "sam", "%v", all)
}

func (w *walk) grants() {
	w.t.Helper()
	for _, bad := range []string{
		"grant request", "grant request --tool x --expires 1h --max-uses 1", "grant request --tool x --any nowhere --expires 1h --max-uses 1 --reason x",
		"grant request --tool fs.read --expires 1h --max-uses 1 --reason x", "grant request --tool x --expires 31d --max-uses 1 --reason x",
	} {
		w.fails(2, bad)
	}
	asked := w.do("grant request --server exec --tool fs.write --any '*' --agent asker --expires 1d --max-uses 5 --reason 'a long night'")
	id := str(asked["approval_id"])
	if asked["gate"] != "grant" || asked["status"] != "open" || asked["subject"].(map[string]any)["headline"] != "let agent asker call exec/fs.write with any arguments up to 5 times within 24h of the approval" {
		w.t.Errorf("%v", asked)
	}
	w.text("approval show "+id, "a long night", "expires_s", "checked")
	w.fails(1, "approval reply "+id+" 'nobody asked'")
	w.do("approval ask " + id + " 'why at night?'")
	got := w.do("approval reply " + id + " 'it is quiet'")
	expect.True(w.t, strings.Contains(fmt.Sprint(got["inquiries"]), "it is quiet"), "%v", got)
	w.text("approval show "+id, "why at night?", "it is quiet")
	other := str(w.do("grant request --server exec --tool fs.write --any '*' --agent asker --expires 1d --max-uses 5 --reason 'and another'")["approval_id"])
	got = w.do("approval withdraw " + other + " --reason 'no need'")
	expect.True(w.t, got["status"] == "void" && strings.Contains(str(got["void_reason"]), "no need"), "%v", got)
	w.do("approval approve " + id + ` --edit '{"max_uses":2}'`)
	granted := w.do("grant list --status active")
	expect.Row(w.t, granted, "approval_id", id, "max_uses", 2.0, "agent", "asker")
	w.text("grant list", str(granted["rule_id"]), "asker", "0/2")
	all := w.objects("policy rules list --status active")
	expect.True(w.t, len(all) == 1 && all[0]["rule_id"] == granted["rule_id"], "the rules are others than what is granted: %v", all)
	expect.Row(w.t, w.do("grant revoke "+str(granted["rule_id"])), "revoked", true)
	code, _, _ := w.fails(1, "grant request --tool fs.write --agent nobody --expires 1h --max-uses 1 --reason x")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
	code, _, _ = w.fails(1, `grant request --kind exec.run --args '{"argv":["rm","-rf","/"]}' --expires 1h --max-uses 1 --reason x`)
	expect.True(w.t, code == "DENIED", "%v", code)
}

func (w *walk) signing() {
	t := w.t
	k := w.do("audit key rotate")
	expect.True(t, k["signed_by"] != nil && k["first_seq"] != nil, "rotate: %v", k)
	w.do("audit key show")
	w.refuses("audit key trust x", "INVALID_INPUT request")
	w.refuses("audit key retire 00000000", "NOT_FOUND signing key")
	w.text("audit key show", "the first", "swarmdeck/t_")
	got := w.do("audit verify")
	expect.True(t, got["ok"] == true && len(got["keys"].([]any)) == 2, "verify after a rotation: %v", got)
	other, err := audit.OpenShared(filepath.Join(t.TempDir(), "other.key"))
	w.no(err)
	untrusted := new(audit.UntrustedError)
	err = w.eng.Store().View(t.Context(), "t_test", other.MaySign)
	expect.Must(t, errors.As(err, &untrusted), "another key: %v", err)
	key := w.do("audit key trust -- " + untrusted.Request)
	expect.Row(t, key, "trusted", true, "key_id", untrusted.KeyID)
	key = w.do("audit key retire " + untrusted.KeyID)
	expect.True(t, key["retired"] != nil, "retire: %v", key)
	w.do("audit key endorse -- " + untrusted.Request) // which undoes no retirement
	got = w.do("audit verify")
	expect.True(t, got["ok"] == true && len(got["keys"].([]any)) == 3, "verify with a key that was trusted and retired: %v", got)
}

func (w *walk) witnesses() {
	t := w.t
	// Once published, nothing more comes until the file is looked at below.
	expect.Row(t, w.do("audit witness add kept.log --every 1h"), "name", "file", "kind", "file", "every_s", 3600.0, "path", filepath.Join(w.dir, "kept.log"))
	expect.Row(t, w.do("audit witness add file kept.log --every 2h"), "name", "file", "every_s", 7200.0)
	w.do("audit witness add git kept.git --name repo")
	w.do("audit witness add command --name far -- sh -c 'cat >> far.log'")
	w.do("audit witness add --name broken -- sh -c 'echo no room >&2; exit 1'")
	for _, name := range []string{"file", "repo", "far"} {
		w.untilIt("audit witness list --match "+name, "something is published", func(last map[string]any) bool { return last["published"] != 0.0 })
	}
	w.until("audit witness list --match broken", "last_error", "the command exited with status 1: no room")
	w.do("audit witness list")
	w.text("audit witness list", "repo", "published ", "failing: the command", "no room")
	got := w.do("audit verify")
	all, _ := got["witnesses"].([]any)
	expect.True(t, got["ok"] == true && len(all) == 2, "verify: %v", got)
	w.do("audit verify --witness kept.log")
	w.do("audit verify --witness far.log")
	for _, bad := range []string{
		"audit witness add", "audit witness add git", "audit witness add command", "audit witness add a b c", "audit witness add x -- y", "audit witness add a --every 1ms",
		"audit witness add a --every 25h", "audit witness add a --name A", "audit witness add file -- x",
	} {
		w.fails(2, bad)
	}
	for _, own := range []string{"deck.db", "deck.db.key", "deck.db.run/spill/x"} {
		code, _, _ := w.fails(1, "audit witness add "+own)
		expect.True(t, code == "DENIED", "%s: %s", own, code)
	}
	w.fails(1, "audit verify --witness nowhere")
	w.no(os.WriteFile(filepath.Join(w.dir, "garbage"), []byte("{}\n"), 0o600))
	_, message, _ := w.fails(1, "audit verify --witness garbage")
	expect.True(t, strings.Contains(message, "holds no checkpoint of"), "%v", message)
	// A file that somebody else wrote over is found without being named.
	w.no(os.WriteFile(filepath.Join(w.dir, "kept.log"), nil, 0o600))
	code, out, _ := w.run("audit", "verify")
	expect.True(t, code == 1 && strings.Contains(out, "witness file: it was cut short"), "exit %d: %s", code, out)
	for _, name := range []string{"file", "repo", "far", "broken"} {
		w.do("audit witness remove " + name)
	}
	if code, _, _ := w.fails(1, "audit witness remove far"); code != "NOT_FOUND" {
		t.Error(code)
	}
}

func (w *walk) notices() {
	w.t.Helper()
	n := w.do("notice add pager --on approval,sys.dag.> --min-risk high --url https://hooks.example/a --secret-env PAGER")
	expect.True(w.t, n["secret_env"] == "PAGER" && n["min_risk"] == "high" && n["rate"] == 10.0, "%v", n)
	w.do("notice add mail --on failure --rate 3 -- sh -c true")
	w.do("notice list")
	w.text("notice list", "pager", "approval,sys.dag.>", "https://hooks.example/a", "sh -c true", "nothing told yet")
	n = w.do("notice show mail")
	expect.True(w.t, fmt.Sprint(n["command"]) == "[sh -c true]" && n["lag"] != nil && n["cursor"] != nil, "%v", n)
	for _, bad := range []string{"notice add Mail -- x", "notice add mail", "notice add mail --on all -- x", "notice add mail --url ftp://x", "notice add mail --rate 0 --url http://x --secret-env 1-"} {
		w.fails(2, bad)
	}
	w.used["notice test"] = true // no one is there to take it
	code, _, _ := w.fails(1, "notice test mail")
	expect.True(w.t, code == "UNAVAILABLE", "%v", code)
	w.do("notice remove mail")
	code, _, _ = w.fails(1, "notice show mail")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
}

func (w *walk) hosts() {
	w.t.Helper()
	h := w.do("host add build ssh://ci@build.example:2222 --label arch=arm64 --slots 4 --lease 2m")
	expect.True(w.t, h["address"] == "ssh://ci@build.example:2222" && h["slots"] == 4.0 && h["lease_s"] == 120.0 && h["state"] == "unlinked", "%v", h)
	w.do("host add box --command 'docker exec -i box'")
	w.do("host list")
	w.text("host list", "build", "unlinked", "0 of 4", "docker exec -i box")
	h = w.do("host show box")
	expect.True(w.t, fmt.Sprint(h["command"]) == "[docker exec -i box]" && h["slots"] == 16.0, "%v", h)
	for _, bad := range []string{
		"host add", "host add x", "host add X ssh://x", "host add x ssh://x --command y", "host add x ssh://a:b@c", "host add x ssh://-oProxyCommand=x",
		"host add x ssh://x/y", "host add x http://x", "host add x ssh://x:0", "host add x ssh://x --slots 0", "host add x ssh://x --lease 1s", "host add x ssh://x --label a",
	} {
		w.fails(2, bad)
	}
	code, _, _ := w.fails(1, "host add box ssh://elsewhere.example")
	expect.True(w.t, code == "CONFLICT", "%v", code)
	expect.Row(w.t, w.do("host drain box"), "draining", true)
	w.do("host drain box --undo")
	w.do("host remove box --force")
	code, _, _ = w.fails(1, "host show box")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
	w.do("host remove build --force")
}

func (w *walk) egress() {
	w.t.Helper()
	if r := w.do("egress allow API.example.com:443 --agent ada --for 8h"); r["host"] != "api.example.com" || r["port"] != 443.0 || r["effect"] != "allow" || r["agent"] != "ada" || r["expires_at"] == nil {
		w.t.Errorf("%v", r)
	}
	r := w.do("egress allow npm --project site")
	expect.True(w.t, fmt.Sprint(r["hosts"]) == "[registry.npmjs.org registry.yarnpkg.com]" && r["project"] == "site", "%v", r)
	r = w.do("egress allow github-read --role coder")
	expect.True(w.t, fmt.Sprint(r["methods"]) == "[GET HEAD OPTIONS git-upload-pack]", "%v", r)
	w.do("egress remove github-read --role coder")
	expect.Row(w.t, w.do("egress allow 127.0.0.1:8080"), "private", true)
	expect.Row(w.t, w.do("egress deny '*.evil.example'"), "effect", "deny", "host", "*.evil.example")
	r = w.do("egress allow git.example --read --path '/acme/*'")
	expect.True(w.t, fmt.Sprint(r["methods"]) == "[GET HEAD OPTIONS git-upload-pack]" && r["path"] == "/acme/*", "%v", r)
	r = w.do("egress deny git.example --method PUT,git-receive-pack")
	expect.True(w.t, fmt.Sprint(r["methods"]) == "[PUT git-receive-pack]" && r["effect"] == "deny", "%v", r)
	expect.Row(w.t, w.do("egress allow pins.example --inspect=false"), "opaque", true)
	w.text("egress list", "GET,HEAD,OPTIONS,git-upload-pack /acme/*", "PUT,git-receive-pack", "unread")
	w.do("egress remove git.example --method git-receive-pack,PUT")
	w.do("egress list")
	w.text("egress list", "api.example.com:443", "agent ada", "npm", "project site", "*.evil.example", "deny", "everybody")
	all := w.objects("egress list --status deny")
	expect.True(w.t, len(all) == 1, "%v", all)
	for _, bad := range []string{
		"egress allow *.com", "egress allow http://example.com", "egress allow example.com:0", "egress allow 0x7f.1", "egress allow a b",
		"egress allow x.example --role a --agent b", "egress allow x.example --role a --project b", "egress allow '*.x.example' --private", "egress deny x.example --private", "egress remove",
		"egress allow x.example --method get", "egress allow x.example --path x", "egress allow x.example --path '/a/*/b'", "egress allow x.example --read --method GET",
		"egress allow x.example --inspect=false --read",
	} {
		w.fails(2, bad)
	}
	w.do("egress remove api.example.com:443 --agent ada")
	code, _, _ := w.fails(1, "egress remove api.example.com:443 --agent ada")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
	w.do("egress log")
	w.text("egress log", "removed", "api.example.com:443 agent ada", "*.evil.example")
	w.fails(2, "egress log --kind task.queued")
	all = w.objects("audit reconcile")
	expect.True(w.t, len(all) == 0 || all[0]["subject"] != "egress.rule", "%v", all)
}

func (w *walk) files() {
	w.t.Helper()
	expect.Row(w.t, w.do("files read /usr/local/share/x --role coder"), "path", "/usr/local/share/x", "effect", "read", "role", "coder")
	r := w.do("files write shared/../shared")
	expect.True(w.t, strings.HasSuffix(fmt.Sprint(r["path"]), "/shared") && r["effect"] == "write", "a path is that of the one who gives it: %v", r)
	w.do("files hide /usr/local/share/x --agent ada")
	w.do("files list")
	w.text("files list", "/usr/local/share/x", "role coder", "agent ada", "hide", "everybody")
	all := w.objects("files list --status hide")
	expect.True(w.t, len(all) == 1, "%v", all)
	for _, bad := range []string{"files read /", "files read -", "files write /a --role a --agent b", "files hide", "files remove"} {
		w.fails(2, bad)
	}
	w.do("files remove /usr/local/share/x --agent ada")
	code, _, _ := w.fails(1, "files remove /usr/local/share/x --agent ada")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
	all = w.objects("audit reconcile")
	expect.True(w.t, len(all) == 0 || all[0]["subject"] != "files.rule", "%v", all)
}

func (w *walk) erasure() {
	t := w.t
	for _, bad := range []string{"tenant erase", "tenant erase nobody", "tenant erase '' --yes"} {
		w.fails(2, bad)
	}
	if got := w.do("tenant erase nobody --yes"); len(got["erased"].(map[string]any)) != 0 || len(got["left"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	got := w.do("tenant erase alice --yes")
	for _, kind := range []string{"tasks", "logs", "agents", "executions", "subagents", "messages", "events", "approvals", "decisions"} {
		n, _ := got["erased"].(map[string]any)[kind].(float64)
		expect.True(t, n != 0, "no %s are erased: %v", kind, got)
	}
	w.text("tenant erase alice --yes", "erased of alice", "store compact")
	expect.Row(t, w.do("audit verify"), "ok", true)
	w.do("audit reconcile")
	w.do("store compact")
}

func (w *walk) retention() {
	t := w.t
	for _, bad := range []string{
		"tenant retention set tasks", "tenant retention set tasks --count 0", "tenant retention set tasks --age 0s", "tenant retention set tasks --age 1s",
		"tenant retention set dust --count 1", "tenant retention set tasks --count 1 --export out", "tenant retention delete",
	} {
		w.fails(2, bad)
	}
	w.do("audit checkpoint")
	w.no(os.WriteFile(filepath.Join(w.dir, "before.txt"), []byte(w.line("audit checkpoint")), 0o600))
	events := w.do("audit list --page 1 --page-size 1")["total_count"].(float64)
	for _, kind := range []string{"tasks", "logs", "messages", "executions", "decisions"} {
		expect.Row(t, w.do("tenant retention set "+kind+" --count 3"), "kind", kind, "count", 3.0)
	}
	expect.Row(t, w.do("tenant retention set audit --count 100 --age 30d --export left"), "age_s", 30*86400.0, "export", filepath.Join(w.dir, "left"))
	w.do("tenant retention list")
	w.text("tenant retention list", "tasks", "30d", "left")
	w.do("tenant retention apply")
	expect.Is(t, len(w.objects("decision list --page-size 100")), 3, "decisions are left")
	n := w.do("audit list --page 1 --page-size 1")["total_count"].(float64)
	expect.True(t, n < events, "%v events, %v before some left", n, events)
	files := expect.Of(filepath.Glob(filepath.Join(w.dir, "left", "t_test-*.jsonl")))(w.t)
	expect.Must(t, len(files) == 1, "%v", files)
	expect.Row(t, w.do("audit check-segment "+files[0]), "from", 1.0)
	whole := expect.Of(os.ReadFile(files[0]))(w.t)
	w.no(os.WriteFile(filepath.Join(w.dir, "changed.jsonl"), bytes.Replace(whole, []byte(`"actor":"`), []byte(`"actor":"X`), 1), 0o600))
	w.fails(1, "audit check-segment changed.jsonl")
	w.fails(1, "audit check-segment nowhere")
	w.do("audit verify --checkpoint before.txt")
	w.do("audit reconcile")
	w.do("tenant retention delete logs")
	code, _, _ := w.fails(1, "tenant retention delete logs")
	expect.True(t, code == "NOT_FOUND", "%v", code)
}

func (w *walk) slots() {
	w.do("tenant slots set --slots 3")
	expect.Row(w.t, w.do("tenant slots show"), "slots", 3.0)
	w.do("tenant slots delete")
}

// queue tells an agent that works something, and takes it back.
func (w *walk) queue() {
	w.t.Helper()
	w.do("agent create hearer --project tools --task listen -- sh -c 'while read -r line; do :; done'")
	w.until("agent show hearer", "status", "busy")
	later := w.do("agent tell hearer 'and then\nthis' --after")
	expect.True(w.t, later["state"] == "queued" && later["text"] == "and then\nthis" && later["note"] != nil, "told a busy agent: %v", later)
	now := w.do("agent tell hearer 'not there' --now")
	expect.True(w.t, now["state"] == "told" && now["task_id"] != nil, "steered: %v", now)
	first := w.do("agent tell hearer first")
	w.do("agent move hearer " + str(first["message_id"]) + " 1")
	all := w.objects("agent queue hearer")
	expect.Is(w.t, len(all), 3, "queue", all)
	w.do("agent queue hearer")
	w.text("agent queue hearer", "PLACE", "and then", "told", "after")
	shown := w.do("agent show hearer")
	expect.True(w.t, len(shown["queue"].([]any)) == 3, "shown: %v", shown["queue"])
	w.do("agent withdraw hearer " + str(later["message_id"]))
	w.do("agent withdraw hearer " + str(first["message_id"]))
	w.fails(1, "agent withdraw hearer "+str(first["message_id"]))
	w.fails(2, "agent tell hearer x --now --after")
	w.fails(1, "agent move hearer "+str(now["message_id"])+" 1")
	w.fails(2, "agent move hearer "+str(now["message_id"])+" first")
	w.fails(2, "agent mode hearer ask")
	w.fails(2, "agent model hearer small")
	w.do("agent create mute --project tools --runtime acp -- cat") // it never says what it offers
	w.do("agent mode mute ask")
	w.do("agent model mute small")
	got := w.do("agent show mute")["options"]
	expect.True(w.t, fmt.Sprint(got) == "map[mode:ask model:small]", "options %v", got)
	w.do("agent delete mute --yes")
	w.do("agent cancel hearer")
	w.do("agent delete hearer --yes")
}
