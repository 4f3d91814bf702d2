package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// The values that must be seen nowhere: one that was set, and credentials that
// were given in clear to an agent, a task, and by a swarm file.
var canaries = []string{"Canary/one+two&3-of-this-test", "sk-clearAgentCanary0123456789", "clear-Task-canary-0123", "clear-File-canary-4567"}

// telltale prints what it was given in every way it knows.
const telltale = `printf '%s\n' "$V"; printf '%s\n' "$V" >&2; printf %s "$V" | base64 -w0; echo; printf 'x:%s' "$V" | base64; printf %s "$V" | od -An -v -tx1 | tr -d ' \n'; echo
printf '%s' "$V" | sed 's,/,%2F,g;s,+,%2B,g;s,&,%26,g'; echo
`

// skewed is a value as JSON with an escape that nobody needs.
const skewed = `printf '{"type":"%s","%s":"\\u%04x%s"}\n' message text "'$V" "${V#?}"
`

func spelled(value string) (all [][]byte) {
	for _, text := range []string{value, hex.EncodeToString([]byte(value)), url.QueryEscape(value), strings.ReplaceAll(value, "/", `\/`)} {
		all = append(all, []byte(text))
	}
	for pad := range 3 { // without the characters that depend on what stands around it
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, pad), value...))
		all = append(all, []byte(text[4:len(text)-2]))
	}
	return all
}

func TestASecretIsSeenNowhere(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	write := func(name, text string) {
		expect.No(t, os.WriteFile(filepath.Join(u.home, name), []byte(text), 0o600))
	}
	var seen bytes.Buffer // all that was printed
	try := func(args ...string) string {
		_, out, errs := u.run(args...)
		fmt.Fprintf(&seen, "%q\n%s%s\n", args, out, errs)
		return out
	}
	ok := func(args ...string) string {
		t.Helper()
		code, out, errs := u.run(args...)
		fmt.Fprintf(&seen, "%q\n%s%s\n", args, out, errs)
		expect.Must(t, code == 0, "%q: exit %d\n%s%s", args, code, out, errs)
		return out
	}
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	// What a person gives lies elsewhere: agents' directories are snapshot.
	given := t.TempDir()
	give := func(name, text string) string {
		path := filepath.Join(given, name)
		expect.No(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	value := give("value", canaries[0]+"\n")
	task := give("task.json", `{"argv":["sh","tell.sh"],"env":{"API_TOKEN":"`+canaries[2]+`","V":"@ONE","PLAIN":"plain-text"}}`)
	write("tell.sh", telltale+`V=${API_TOKEN:-$V}`+"\n"+telltale)
	write("flood.sh", `i=0; while [ $i -lt 30000 ]; do echo "$V and some more to fill the line with $i"; i=$((i+1)); done`)
	write("agent.sh", `while read -r line; do `+telltale+skewed+`
printf '{"type":"log","level":"INFO","message":"%s"}\n' "$V"
printf '{"type":"tool_request","call_id":"c","tool":"fs.read","args":{"path":"%s"},"intent":"%s"}\n' "$V" "$V"
read -r line
printf '{"type":"result","status":"succeeded","output":{"said":"%s"},"confidence":0.99}\n' "$V"; done`)
	write("skill.yaml", `name: tell
version: 1.0.0
description: says it
parameters_schema: {type: object}
effects: [exec]
runner: {kind: exec, argv: [sh, -c, 'echo "$V" >&2; printf "{\"said\":\"%s\"}" "$V"'], env: {V: "@ONE"}}
`)
	swarm := give("swarm.yaml", `tenant: t_acme
agents:
  - {name: filed, project: p, role: r, dir: `+u.home+`, command: [sh, agent.sh], env: {V: "@ONE", DB_PASSWORD: "`+canaries[3]+`"}}
`)

	ok("secret", "set", "ONE", "--from-file", value)
	ok("agent", "create", "teller", "--project", "p", "--env", "V="+canaries[1], "--env", "OTHER=@ONE", "--", "sh", "agent.sh")
	seen.Reset() // the line itself was typed
	ok("up", swarm)
	out := ok("up", swarm, "-o", "json")
	expect.True(t, strings.Contains(out, `"unchanged"`) && !strings.Contains(out, `"changed"`), "applied once more: %s", out)
	for _, agent := range []string{"teller", "filed"} {
		task := field(ok("agent", "assign", agent, "say it", "--wait", "-o", "json"), "task_id")
		for _, form := range []string{"json", "wide"} {
			try("agent", "show", agent, "-o", form)
			out := ok("agent", "log", agent, "--page-size", "100", "-o", form)
			expect.True(t, strings.Count(out, "[secret ") == 9, "what %s said: %s", agent, out)
			try("agent", "history", agent, "-o", form)
			try("result", "show", task, "-o", form)
			try("task", "show", task, "-o", form)
			try("task", "log", task, "-o", form)
		}
	}
	out = ok("agent", "show", "teller", "-o", "json")
	expect.True(t, strings.Contains(out, `"V":"@teller_V"`) && strings.Contains(out, `"OTHER":"@ONE"`), "what is recorded of an agent: %s", out)
	for i := range 2 { // the value that is known is not kept twice
		task := field(ok("task", "dispatch", "--kind", "exec.run", "--input", "@"+task, "--wait", "-o", "json"), "task_id")
		out := ok("task", "show", task, "-o", "json")
		expect.True(t, strings.Contains(out, `"API_TOKEN":"@task_API_TOKEN"`) && !strings.Contains(out, "plain-text"), "what is shown of task %d: %s", i, out)
		out = ok("result", "show", task, "-o", "json")
		expect.True(t, strings.Count(out, "[secret ONE]") == 6 && strings.Count(out, "[secret task_API_TOKEN]") == 6, "what task %d printed: %s", i, out)
		ok("task", "log", task)
	}
	flood := field(ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","flood.sh"],"env":{"V":"@ONE"}}`, "--wait", "-o", "json"), "task_id")
	expect.Has(t, ok("result", "show", flood, "-o", "json"), `"spill":`, "nothing was spilled")
	ok("skill", "load", "skill.yaml")
	expect.Has(t, try("skill", "invoke", "tell", "--params", "{}", "--wait", "-o", "json"), "succeeded", "the skill")
	code, _, errs := u.run("secret", "delete", "ONE")
	expect.Must(t, code == 0, "%v", errs)
	expect.Is(t, try("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"],"env":{"V":"@ONE"}}`), "", "a secret that is gone is given")
	for _, line := range []string{
		"secret list", "agent list", "task list", "result list", "approval list", "decision list", "audit list --page-size 100", "skill list", "skill show tell",
		"skill executions", "dag events --page-size 100", "dag calls", "bus list", "role list --project p", "mcp servers",
	} {
		for _, form := range []string{"json", "wide"} {
			ok(append(strings.Fields(line), "-o", form)...)
		}
	}
	ok("audit", "export", "--format", "jsonl", "--out", filepath.Join(u.home, "audit.jsonl"))
	ok("audit", "export", "--format", "csv", "--out", filepath.Join(u.home, "audit.csv"))
	ok("dag", "export", "jsonl", filepath.Join(u.home, "dag"))
	ok("audit", "verify")
	ok("audit", "reconcile")

	look := func(where string, data []byte) {
		for _, value := range canaries {
			for _, text := range spelled(value) {
				if at := bytes.Index(data, text); at >= 0 {
					t.Errorf("%s: %q is seen as %q in %q", where, value, text, data[max(0, at-120):min(len(data), at+120)])
				}
			}
		}
	}
	look("what was printed", seen.Bytes())
	files := 0
	err := filepath.WalkDir(u.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		look(path, data)
		return err
	})
	expect.True(t, err == nil && files >= 8, "%d files were looked at: %v", files, err)
	info, err := os.Stat(u.data() + ".secrets.key")
	expect.True(t, err == nil && info.Mode() == 0o600, "the key: %v %v", info, err)
}
