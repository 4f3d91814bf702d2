package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// conversation calls tools as a client of MCP on stdin and stdout, all in one session;
// it returns the replies in the order of the calls.
func (u *user) conversation(calls []string, args ...string) (replies []string) {
	u.t.Helper()
	cmd := u.command(append([]string{"mcp"}, args...)...)
	in := expect.Of(cmd.StdinPipe())(u.t)
	out := &answers{}
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errs
	expect.No(u.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, call := range calls {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`+"\n", i+2, call)
		expect.Await(u.t, "reply to "+call, func() bool {
			expect.Must(u.t, len(ended) == 0, "%v", errs.String())
			return out.of(i+2) != ""
		})
		replies = append(replies, out.of(i+2))
	}
	_ = in.Close()
	<-ended
	return replies
}

// answers are the lines that a server said, by the id of what they answer.
type answers struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buf.Write(p)
}

func (a *answers) of(id int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for line := range strings.Lines(a.buf.String()) {
		var said struct{ ID int }
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &said) == nil && said.ID == id {
			return line
		}
	}
	return ""
}

// TestNobodyNamesWhatTheyDoNotReach has an agent and an operator of another machine name
// what is not theirs, by each parameter that leads to files, through each door that they
// have: hidden directories, homes, parents, links, the engine's and others' files. The
// engine runs as whom, and with how much of a wall, there may be.
func TestNobodyNamesWhatTheyDoNotReach(t *testing.T) {
	settings := []celltest.Setting{{Name: "this user", Spaces: true}}
	if os.Geteuid() == 0 {
		settings = append(settings, celltest.Settings()...)
	}
	for _, as := range settings {
		t.Run(as.Name, func(t *testing.T) {
			s := siegeAs(t, "/bin/true", as)
			signer, key := pair(t, 1)
			s.ok("operator", "set", "mallory", "--role", "operator", "--key", key)
			for link, to := range map[string]string{"out": "home/.ssh", "up": "home", "away": "foreign", "gone": "nowhere", "all": "."} {
				expect.No(t, os.Symlink(filepath.Join(s.root, to), filepath.Join(s.dir, link)))
			}
			s.ok("agent", "create", "ada", "--project", "P", "--dir", s.dir, "--", "cat")
			other := filepath.Join(s.root, "foreign")
			s.ok("tenant", "create", "t_other")
			s.ok("agent", "create", "carl", "--project", "P", "--tenant", "t_other", "--dir", other, "--", "cat")

			file := s.data()
			home := filepath.Join(s.root, "home")
			dirs := []string{
				home + "/.ssh", home + "/.ssh/", home + "/.ssh/..", home, home + "/.local", home + "/.local/share", home + "/.local/share/swarmdeck", home + "/.config/gh",
				filepath.Dir(file), file + ".run/trees", file + ".run/trees/t_other", file + ".run/homes", file + ".run/homes/t_acme", file + ".run/snapshots", file + ".run/spill", file + ".run/spill/t_acme",
				file + ".run/cells", file + ".run/agents", file + ".run/work", file + ".run/work/t_acme", file + ".run/terminals", file + ".run/servers", file + ".run/workspaces",
				filepath.Join(s.root, "run"), filepath.Join(s.root, "run", "swarmdeck"), s.root, filepath.Dir(s.root), other, filepath.Join(s.root, "kept"), filepath.Join(s.root, "scratch"),
				"/", "/etc", "/root", "/root/.ssh", "/home", "/proc", "/proc/self", "/proc/self/root" + home + "/.ssh", "/dev", "/dev/shm", "/sys", "/usr/local", "/var", "/tmp", "/run", "/boot",
				s.dir + "/out", s.dir + "/up", s.dir + "/up/.ssh", s.dir + "/away", s.dir + "/gone", s.dir + "/all", s.dir + "/all/foreign", s.dir + "/../home/.ssh", s.dir + "/..",
				"..", "../home", "../home/.ssh", "out", "up/.ssh", "./out/.", "all/run", "../../../../../../../etc",
			}
			// What each attempt names, by the parameter that the refusal must name.
			type attempt struct{ field, given string }
			var tools, lines []attempt
			tool := func(field, name string, arguments map[string]any) {
				tools = append(tools, attempt{field, string(core.MustEncode(map[string]any{"name": name, "arguments": arguments}))})
			}
			run := func(input map[string]any) map[string]any {
				if input["argv"] == nil {
					input["argv"] = []string{"grep", "-r", "", "."}
				}
				return map[string]any{"kind": "exec.run", "input": input}
			}
			line := func(field, format string, args ...any) {
				lines = append(lines, attempt{field, fmt.Sprintf(format, args...)})
			}
			for _, dir := range dirs {
				tool("dir", "dispatch_task", run(map[string]any{"dir": dir}))
				if filepath.IsAbs(dir) {
					line("dir", "task dispatch --kind exec.run --input '%s' -o json", core.MustEncode(map[string]any{"argv": []string{"sh", "-c", "echo x >>authorized_keys"}, "dir": dir}))
				}
			}
			for _, program := range []string{other + "/bin/run", home + "/bin/run", "../foreign/bin/run", s.dir + "/away/bin/run", "./away/bin/run", "away/bin/run", "/proc/self/root" + other + "/bin/run"} {
				tool("argv", "dispatch_task", run(map[string]any{"argv": []string{program}}))
			}
			for _, path := range []string{other, home + "/bin:/usr/bin", "/usr/bin:" + s.dir + "/away", "/usr/.." + other} {
				tool("env", "dispatch_task", run(map[string]any{"argv": []string{"ls"}, "env": map[string]string{"PATH": path}}))
				line("env", "task dispatch --kind exec.run --input '%s' -o json", core.MustEncode(map[string]any{"argv": []string{"ls"}, "env": map[string]string{"PATH": path}}))
				line("", "agent create eve --project P --env PATH=%s -- cat", path)
			}
			for _, dir := range []string{home + "/.ssh", home, other, file + ".run/trees", "/etc", s.root} {
				tool("dir", "create_agent", map[string]any{"name": "eve", "project": "P", "role": "coder", "task": "x", "dir": dir})
				line("", "agent create eve --project P --dir %s -- cat", dir)
				line("", "dag resource attach ada %s", dir)
			}
			for _, command := range []string{
				"agent create eve --project P -- " + other + "/bin/run", "agent create eve --project P -- cat " + other + "/secret",
				"agent create eve --project P -- sh -c x y " + other, "agent create eve --project P --shell '/bin/cat /../../.." + other + "/secret'", "role set r --project P -- cat " + other + "/secret", "skill load " + home + "/.ssh", "dag export " + other + "/x", "dag import " + other + "/secret",
				"cad workspace create --dir " + other, "policy propose " + other + "/secret", "files read " + other, "mcp add x -- cat " + other + "/secret",
				"notice add x --secret-env HOME --url http://127.0.0.1:1", "project remote P origin ext::sh", "tenant retention set audit --export " + other,
				"audit witness add file " + other + "/w", "host add h --command 'sh -c x'", "agent create eve --project P --options '{\"read\":[\"" + other + "\"]}' -- cat",
				"decision export --out " + other, "store copy --to " + other + "/x.db", "agent assign ada x --attach ../foreign/secret", "agent diff ada ../foreign/secret",
			} {
				line("", "%s", command)
			}
			refused := 0
			var calls []string
			for _, a := range tools {
				calls = append(calls, a.given)
			}
			for i, said := range s.conversation(calls, "--agent", "ada", "--tenant", "t_acme") {
				if !strings.Contains(said, "DENIED") || !strings.Contains(said, tools[i].field+": ") || strings.Contains(said, s.secret) {
					t.Errorf("agent: %s: %s", tools[i].given, said)
					continue
				}
				refused++
			}
			g := s.d.enter("mallory", signer)
			for _, a := range lines {
				code, out, stderr := g.run(a.given)
				if code == 0 || a.field != "" && (!strings.Contains(stderr, `"DENIED"`) || !strings.Contains(stderr, a.field+": ")) || strings.Contains(out+stderr, s.secret) {
					t.Errorf("operator: %s: exit %d %s%s", a.given, code, out, stderr)
					continue
				}
				refused++
			}
			t.Logf("%d attempts were refused", refused)
			expect.True(t, refused >= 100, "%d were refused", refused)
			expect.Fails(t, expect.Fault(os.Stat(filepath.Join(home, ".ssh", "authorized_keys"))), "somebody may come in")
			out := s.ok("agent", "list", "--tenant", "t_acme")
			expect.True(t, !strings.Contains(out, "eve"), "an agent was made: %s", out)
			log := s.ok("audit", "list", "--kind", "reach.refused", "--page-size", "100", "-o", "json", "--tenant", "t_acme")
			n := strings.Count(log, "\n")
			expect.True(t, n >= 100, "%d refusals in the log, of %d", n, refused)
			for _, who := range []string{`"actor":"ada"`, `"actor":"mallory"`} {
				expect.Has(t, log, who, "the log has no word of")
			}

			// What is theirs is theirs, and no directory is one of their own.
			said := s.conversation([]string{`{"name":"dispatch_task","arguments":{"kind":"exec.run","input":{"argv":["ls"]},"wait_s":20}}`}, "--agent", "ada", "--tenant", "t_acme")[0]
			expect.Has(t, s.ok("task", "show", regexp.MustCompile(`tk_\w+`).FindString(said), "-o", "json", "--tenant", "t_acme"), `"dir":"`+s.dir+`"`, "an agent's own", said)
			code, out, stderr := g.run(`task dispatch --kind exec.run --input '{"argv":["sh","-c","pwd; ls -A; echo x >y; cat y"]}' -o json`)
			id := field(out, "task_id")
			shown := func() string { return s.ok("task", "show", id, "-o", "json", "--tenant", "t_acme") }
			expect.True(t, code == 0 && strings.Contains(out+shown(), file+".run/work/t_acme/"), "from afar: exit %d %s%s", code, out, stderr)
			if as.Spaces || as.Owner() != 0 {
				expect.Await(t, "end of the task", func() bool { return strings.Contains(shown(), `"completed_at"`) })
				if out := shown(); !strings.Contains(out, `"succeeded"`) {
					t.Errorf("from afar: %s %s", out, s.ok("result", "show", id, "-o", "json", "--tenant", "t_acme"))
				}
			}

			// So it is with files of skills.
			expect.No(t, os.WriteFile(filepath.Join(s.dir, "mine"), []byte("of my own"), 0o644))
			read := func(path string) string {
				return string(core.MustEncode(map[string]any{"name": "invoke_skill", "arguments": map[string]any{"skill": "file-read", "params": map[string]string{"path": path}, "wait_s": 20}}))
			}
			calls = []string{read("mine")}
			for _, path := range []string{other + "/secret", "../foreign/secret", s.dir + "/away/secret", file} {
				calls = append(calls, read(path))
				_, out, stderr := g.run("skill invoke file-read --params '" + string(core.MustEncode(map[string]string{"path": path})) + "' --wait -o json")
				expect.True(t, strings.Contains(out+stderr, "lies outside of what mallory"), "from afar: %s: %s%s", path, out, stderr)
			}
			for i, said := range s.conversation(calls, "--agent", "ada", "--tenant", "t_acme") {
				if i == 0 {
					expect.Has(t, said, "of my own", "an agent's own file")
					continue
				}
				expect.True(t, strings.Contains(said, "lies outside of what agent ada") && !strings.Contains(said, s.secret), "%s: %s", calls[i], said)
			}
			s.ok("audit", "verify", "--tenant", "t_acme")
		})
	}
}
