package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell/celltest"
)

// conversation calls tools as a client of MCP on stdin and stdout, all in one session;
// it returns the replies in the order of the calls.
func (u *user) conversation(t *testing.T, calls []string, args ...string) (replies []string) {
	u.t.Helper()
	cmd := u.command(append([]string{"mcp"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	out := &answers{}
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errs
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, call := range calls {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`+"\n", i+2, call)
		await(t, "reply", func() bool { return out.of(i+2) != "" })
		replies = append(replies, out.of(i+2))
	}
	_ = in.Close()
	_ = cmd.Wait()
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
			_, line := pair(t, 1)
			signer, _ := pair(t, 1)
			s.ok("operator", "set", "mallory", "--role", "operator", "--key", line)
			for link, to := range map[string]string{"out": "home/.ssh", "up": "home", "away": "foreign", "gone": "nowhere", "all": "."} {
				if err := os.Symlink(filepath.Join(s.root, to), filepath.Join(s.dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			s.ok("agent", "create", "ada", "--project", "P", "--dir", s.dir, "--", "cat")
			other := filepath.Join(s.root, "foreign")
			s.ok("tenant", "create", "t_other")
			s.ok("agent", "create", "carl", "--project", "P", "--tenant", "t_other", "--dir", other, "--", "cat")

			file := s.data()
			home := filepath.Join(s.root, "home")
			dirs := []string{
				home + "/.ssh", home + "/.ssh/", home + "/.ssh/..", home, home + "/.local", home + "/.local/share", home + "/.local/share/swarmdeck", home + "/.config/gh",
				filepath.Dir(file), file + ".trees", file + ".trees/t_other", file + ".homes", file + ".homes/t_acme", file + ".snapshots", file + ".spill", file + ".spill/t_acme",
				file + ".cells", file + ".agents", file + ".work", file + ".work/t_acme", file + ".terminals", file + ".servers", file + ".workspaces",
				filepath.Join(s.root, "run"), filepath.Join(s.root, "run", "swarmdeck"), s.root, filepath.Dir(s.root), other, filepath.Join(s.root, "kept"), filepath.Join(s.root, "scratch"),
				"/", "/etc", "/root", "/root/.ssh", "/home", "/proc", "/proc/self", "/proc/self/root" + home + "/.ssh", "/proc/self/cwd", "/dev", "/dev/shm", "/sys", "/usr/local", "/var", "/tmp", "/run", "/boot",
				s.dir + "/out", s.dir + "/up", s.dir + "/up/.ssh", s.dir + "/away", s.dir + "/gone", s.dir + "/all", s.dir + "/all/foreign", s.dir + "/../home/.ssh", s.dir + "/..",
				"..", "../home", "../home/.ssh", "out", "up/.ssh", "./out/.", "all/run", "../../../../../../../etc",
			}
			var calls []string
			for _, dir := range dirs {
				input, err := json.Marshal(map[string]any{"argv": []string{"grep", "-r", "", "."}, "dir": dir})
				if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, fmt.Sprintf(`{"name":"dispatch_task","arguments":{"kind":"exec.run","input":%s}}`, input))
			}
			refused := 0
			for i, said := range s.conversation(t, calls, "--agent", "ada") {
				if !strings.Contains(said, "DENIED") || !strings.Contains(said, "dir: ") || strings.Contains(said, s.secret) {
					t.Errorf("agent: %s: %s", dirs[i], said)
					continue
				}
				refused++
			}
			g := s.d.enter("mallory", signer)
			for i, dir := range dirs {
				if !filepath.IsAbs(dir) {
					continue
				}
				input, _ := json.Marshal(map[string]any{"argv": []string{"sh", "-c", "echo x >>authorized_keys"}, "dir": dir})
				code, out, stderr := g.run("task dispatch --kind exec.run --input '" + string(input) + "' -o json")
				if code == 0 || !strings.Contains(stderr, `"DENIED"`) || !strings.Contains(stderr, "dir: ") {
					t.Errorf("operator: %s: exit %d %s%s", dirs[i], code, out, stderr)
					continue
				}
				refused++
			}
			if refused < 100 {
				t.Errorf("%d were refused", refused)
			}
			if _, err := os.Stat(filepath.Join(home, ".ssh", "authorized_keys")); err == nil {
				t.Error("somebody may come in")
			}
			log := s.ok("audit", "list", "--kind", "reach.refused", "--page-size", "1000", "-o", "json")
			if n := strings.Count(log, "\n"); n < refused {
				t.Errorf("%d refusals in the log, of %d", n, refused)
			}
			for _, who := range []string{`"actor":"ada"`, `"actor":"mallory"`} {
				if !strings.Contains(log, who) {
					t.Errorf("the log has no word of %s", who)
				}
			}

			// What is theirs is theirs, and no directory is one of their own.
			said := s.conversation(t, []string{`{"name":"dispatch_task","arguments":{"kind":"exec.run","input":{"argv":["ls"]},"wait_s":20}}`}, "--agent", "ada")[0]
			if !strings.Contains(said, s.dir) && !strings.Contains(said, "attacker") {
				t.Errorf("an agent's own: %s", said)
			}
			code, out, stderr := g.run(`task dispatch --kind exec.run --input '{"argv":["sh","-c","pwd; ls -A; echo x >y; cat y"]}' -o json`)
			id := field(out, "task_id")
			if code != 0 || !strings.Contains(out+s.ok("task", "show", id, "-o", "json"), file+".work/t_acme/") {
				t.Errorf("from afar: exit %d %s%s", code, out, stderr)
			}
			if as.Spaces || as.Owner() != 0 {
				await(t, "end of the task", func() bool { return strings.Contains(s.ok("task", "show", id, "-o", "json"), `"completed_at"`) })
				if out := s.ok("task", "show", id, "-o", "json"); !strings.Contains(out, `"succeeded"`) {
					t.Errorf("from afar: %s %s", out, s.ok("result", "show", id, "-o", "json"))
				}
			}
			s.ok("audit", "verify")
		})
	}
}
