package acp

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// The agents here are real, and so are their questions and what their tools
// do; only the model behind them is scripted.

func serveModel(t *testing.T) *model.Server {
	t.Helper()
	m := expect.Of(model.Start(model.Options{}))(t)
	t.Cleanup(m.Close)
	return m
}

// recorder is the way from behind the wall to the models.
func recorder(t *testing.T) *modelproxy.Proxy {
	t.Helper()
	p := modelproxy.New()
	t.Cleanup(func() { expect.Is(t, p.Close(), nil) })
	return p
}

// gemini is Gemini CLI as its example runs it, on the scripted model.
func gemini(t *testing.T, m *model.Server) fleet.Agent {
	return fleet.Agent{
		Name: "gemini", TenantID: "t_test", Runtime: "acp", Dir: t.TempDir(),
		Command: []string{filepath.Join(drivertest.Installed(t), "node_modules/.bin/gemini"), "--acp"},
		Env:     map[string]string{"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": m.URL},
		Options: core.MustEncode(settings{Mode: "default", Choices: keeper.Choices{Options: home.Options{Skeleton: example(t, "gemini-cli/home")}}, RecordModels: []string{"GOOGLE_GEMINI_BASE_URL"}}),
	}
}

// codex is codex-acp as its example runs it, on the scripted model.
func codex(t *testing.T, m *model.Server) fleet.Agent {
	own := filepath.Join(drivertest.OutsideTemp(t), "home")
	config := expect.Of(os.ReadFile(filepath.Join(example(t, "codex-acp/home"), ".codex/config.toml")))(t)
	text := "model = \"scripted\"\nmodel_provider = \"loopback\"\n" + string(config) + fmt.Sprintf(`
[model_providers.loopback]
name = "loopback"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
`, m.URL)
	expect.No(t, os.MkdirAll(filepath.Join(own, ".codex"), 0o700))
	expect.No(t, os.WriteFile(filepath.Join(own, ".codex/config.toml"), []byte(text), 0o600))
	return fleet.Agent{
		Name: "codex", TenantID: "t_test", Runtime: "acp", Dir: t.TempDir(),
		Command: []string{"sh", "-c", `exec codex-acp -c model_providers.loopback.base_url="$CODEX_BASE_URL"`},
		Env: map[string]string{
			"FAKE_KEY": "x", "CODEX_BASE_URL": m.URL + "/v1",
			"PATH": filepath.Join(drivertest.Installed(t), "node_modules/@zed-industries/codex-acp-linux-x64/bin") + ":" + os.Getenv("PATH"),
		},
		Options: core.MustEncode(settings{Choices: keeper.Choices{Options: home.Options{Home: own}}, RecordModels: []string{"CODEX_BASE_URL"}}),
	}
}

func example(t *testing.T, name string) string {
	t.Helper()
	return expect.Of(filepath.Abs(filepath.Join("../../examples", name)))(t)
}

func TestRealAgentsAreGated(t *testing.T) {
	for name, agent := range realAgents() {
		t.Run(name, func(t *testing.T) {
			m := serveModel(t)
			a := agent(t, m)
			s := open(t, newRuntime(t, Options{Local: keeper.Local{Models: recorder(t)}, Patience: 3 * time.Minute}), a)
			in := func(name string) string { return filepath.Join(a.Dir, name) }

			s.always("approve")
			out := s.ends(task.Succeeded, "", "RUN: echo hello > "+in("yes"))
			data, err := os.ReadFile(in("yes"))
			expect.True(t, string(data) == "hello\n", "an allowed command left %q: %v", data, err)
			expect.True(t, strings.HasPrefix(out.Text, "FINAL: the tool said: "), "result %q", out.Text)
			asked := s.of("tool_request")
			expect.True(t, len(asked) == 1 && asked[0].Tool == "execute" && strings.Contains(asked[0].Intent, "echo hello > "), "asked %+v", asked)
			got := s.of("tool_result")
			expect.True(t, len(got) == 1 && got[0].Status == "ok" && got[0].CallID == asked[0].CallID, "results %+v", got)
			spent := int64(0)
			for _, e := range s.of("usage") {
				spent += int64(e.Tokens)
			}
			n := int64(len(s.of("model_response")))
			expect.True(t, n >= 2 && spent == n*(model.TokensIn+model.TokensOut), "%d tokens of %d requests", spent, n)

			s.always("deny")
			s.forget()
			s.ends(task.Succeeded, "", "RUN: echo hello > "+in("no"))
			told := s.of("prompt")
			expect.True(t, len(told) == 1 && strings.Contains(told[0].Text, "by the test"), "told %+v", told)
			expect.Fails(t, expect.Fault(os.Stat(in("no"))), "a denied command ran")

			cancelHeld(t, s, in("never"))
			cancelRunning(t, s, in("pid"))
			out = s.ends(task.Succeeded, "", "SAY: still here")
			if !strings.HasSuffix(out.Text, "still here") { // without ids, a notice before it runs into it
				t.Errorf("result %q", out.Text)
			}
		})
	}
}

// cancelHeld cancels while the agent waits for an answer.
func cancelHeld(t *testing.T, s *stand, file string) {
	t.Helper()
	s.forget()
	s.mu.Lock()
	s.answer = nil
	s.mu.Unlock()
	done := s.start("RUN: echo hello > " + file)
	expect.Await(t, "it asks", func() bool { return len(s.of("tool_request")) == 1 })
	s.handle.Interrupt()
	out := s.wait(done)
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	expect.Fails(t, expect.Fault(os.Stat(file)), "a cancelled command ran")
}

// cancelRunning cancels while the agent's shell runs a command that stays.
func cancelRunning(t *testing.T, s *stand, file string) {
	t.Helper()
	s.always("approve")
	done := s.start("RUN: echo $$ > " + file + "; sleep 300; echo x >> " + file)
	expect.Await(t, "the command runs", func() bool { return readPID(file) > 0 })
	expect.No(t, s.handle.Pause(context.Background()), "pause")
	expect.No(t, s.handle.Resume(context.Background()), "resume")
	s.handle.Interrupt()
	out := s.wait(done)
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	expect.True(t, !runs(file), "the command outlived the cancel")
}

// TestRealAgentsWorkBehindTheWall has each change a file of its directory and
// run the test of that, and then try what lies outside.
func TestRealAgentsWorkBehindTheWall(t *testing.T) {
	for name, agent := range map[string]func(*testing.T, *model.Server) fleet.Agent{"gemini-cli": gemini, "codex-acp": codex} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, serveModel(t))
			outside := filepath.Join(drivertest.OutsideTemp(t), "outside")
			for path, text := range map[string]string{
				outside: "secret\n", filepath.Join(a.Dir, "sum.sh"): "echo $(($1 - $2))\n", filepath.Join(a.Dir, "test.sh"): "test $(sh sum.sh 2 2) = 4 && echo all is well\n",
			} {
				expect.No(t, os.WriteFile(path, []byte(text), 0o600))
			}
			other, knocks := listener(t)
			s := open(t, newRuntime(t, Options{Local: keeper.Local{Models: recorder(t)}, Patience: 3 * time.Minute}), a)
			s.always("approve")
			out := s.ends(task.Succeeded, "", "RUN: sed -i s/-/+/ sum.sh && sh test.sh")
			expect.Has(t, out.Text, "all is well", "the test said")
			got, err := os.ReadFile(filepath.Join(a.Dir, "sum.sh"))
			expect.True(t, string(got) == "echo $(($1 + $2))\n", "the file holds %q: %v", got, err)
			tries := fmt.Sprintf(`try() { "$@" >>tried 2>&1 && echo REACHED "$@" >>tried; }
try cat %[1]s
try sh -c 'echo x >%[1]s'
try kill -0 %[2]d
for at in 127.0.0.1/%[3]d %[4]s/%[3]d 1.1.1.1/53; do try timeout 10 bash -c "echo x >/dev/tcp/$at"; done
echo over >>tried
`, outside, os.Getpid(), other, ownAddress())
			expect.No(t, os.WriteFile(filepath.Join(a.Dir, "try.sh"), []byte(tries), 0o600))
			s.ends(task.Succeeded, "", "RUN: sh try.sh")
			tried, err := os.ReadFile(filepath.Join(a.Dir, "tried"))
			if err != nil || !strings.HasSuffix(string(tried), "over\n") || strings.Contains(string(tried), "REACHED") || strings.Contains(string(tried), "secret\n") {
				t.Errorf("tried: %s %v", tried, err)
			}
			got, err = os.ReadFile(outside)
			expect.True(t, string(got) == "secret\n", "what lies outside holds %q: %v", got, err)
			n := knocks.Load()
			expect.True(t, n <= 0, "%d connections left the cell", n)
		})
	}
}

// listener is a port of this machine, and how many came to it.
func listener(t *testing.T) (port int, came *atomic.Int32) {
	t.Helper()
	l := expect.Of(net.Listen("tcp", ":0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	came = &atomic.Int32{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			_ = conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, came
}

// ownAddress is one that others know this machine by, if there is any.
func ownAddress() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return "127.0.0.2"
}

func TestARealWriteShowsItsDiffFirst(t *testing.T) {
	m := serveModel(t)
	a := gemini(t, m)
	s := open(t, newRuntime(t, Options{Local: keeper.Local{Models: recorder(t)}, Patience: 3 * time.Minute}), a)
	s.always("approve")
	file := filepath.Join(a.Dir, "note.txt")
	s.ends(task.Succeeded, "", "WRITE: "+file+" a few words")
	data, err := os.ReadFile(file)
	expect.True(t, strings.TrimSpace(string(data)) == "a few words", "the file holds %q: %v", data, err)
	var order []string
	for _, e := range s.of("") {
		if e.Type == "diff" || e.Type == "tool_request" || e.Type == "tool_result" {
			order = append(order, e.Type)
		}
	}
	expect.Is(t, strings.Join(order, " "), "diff tool_request tool_result", "events")
	s.heard("diff", "note.txt\n@@ -0,0 +1 @@\n+a few words")
}

func TestEightRealSessionsShareOneProcess(t *testing.T) {
	m := serveModel(t)
	r := newRuntime(t, Options{Local: keeper.Local{Models: recorder(t)}, Patience: 3 * time.Minute})
	base := codex(t, m)
	var home settings
	expect.No(t, core.Decode(base.Options, &home))
	home.Shared = true
	base.Options, base.Env = core.MustEncode(home), maps.Clone(base.Env)
	base.Env["OPENAI_API_KEY"], base.Env["FAKE_KEY"] = modelKey, modelKey
	var all []*stand
	var done []<-chan task.Outcome
	var files []string
	for i := range 8 {
		a := base
		a.Name = fmt.Sprintf("codex%d", i) // what they share sees one directory
		s := open(t, r, a)
		files = append(files, filepath.Join(a.Dir, fmt.Sprintf("f%d", i)))
		all, done = append(all, s), append(done, s.start(fmt.Sprintf("RUN: echo %d > %s", i, files[i])))
	}
	for i, s := range all {
		expect.Await(t, "all ask", func() bool { return len(s.of("tool_request")) == 1 })
		expect.Has(t, s.of("tool_request")[0].Intent, files[i], "agent", i, "was asked about")
	}
	for i, s := range all {
		decision := map[bool]string{true: "approve", false: "deny"}[i%2 == 0]
		s.release(decision)
	}
	pids := map[int]bool{}
	for i, s := range all {
		out := s.wait(done[i])
		expect.True(t, out.Status == task.Succeeded, "agent %d: %s %+v", i, out.Status, out.Error)
		_, err := os.Stat(files[i])
		expect.True(t, (err == nil) == (i%2 == 0), "agent %d: its file: %v", i, err)
		pids[s.now().PID] = true
		var asked strings.Builder
		for _, e := range s.of("model_request") {
			for _, m := range e.Model.Messages {
				for _, p := range m.Content {
					asked.WriteString(p.Text)
				}
			}
		}
		for j, file := range files {
			expect.True(t, strings.Contains(asked.String(), file) == (j == i), "agent %d: its record has what %d asked: %t", i, j, j != i)
		}
	}
	expect.Is(t, len(pids), 1)
	for _, r := range m.Requests() {
		expect.Is(t, r.Credential, modelKey, r.Path, "was asked with")
	}
}
