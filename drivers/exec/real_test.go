package exec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// TestRealAgentsAreHeardOnTheirWires has the real programs work behind the wall; only the
// model is scripted. They go on with their conversation in another process.
func TestRealAgentsAreHeardOnTheirWires(t *testing.T) {
	bin := filepath.Join(drivertest.Installed(t), "node_modules/.bin")
	for name, c := range map[string]struct {
		wire    string
		command []string
		env     func(m *model.Server) map[string]string
		home    map[string]string
		login   string // what it fails with that has none; "" for one that goes to its network first
	}{
		"claude": {
			wire: "claude", command: []string{bin + "/claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"},
			env: func(m *model.Server) map[string]string {
				return map[string]string{"ANTHROPIC_API_KEY": "fake", "ANTHROPIC_BASE_URL": m.URL}
			},
			login: "agent_login: the agent needs a login: Not logged in · Please run /login",
		},
		"codex": {
			wire: "codex", command: []string{"sh", "-c", `exec codex exec --json --skip-git-repo-check -c model_providers.loopback.base_url="\"$OPENAI_BASE_URL\"" "$@"`, "sh"},
			env: func(m *model.Server) map[string]string {
				return map[string]string{"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": m.URL + "/v1", "PATH": bin + ":" + os.Getenv("PATH")}
			},
			home: map[string]string{".codex/config.toml": `model = "scripted"
model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.loopback]
name = "loopback"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
`},
		},
		"gemini, lines": {
			wire: "gemini", command: []string{bin + "/gemini", "-o", "stream-json", "--yolo"}, env: geminiEnv, home: geminiHome,
			login: "agent_login: the agent needs a login: Please set an Auth method",
		},
		"gemini, one document": {wire: "gemini", command: []string{bin + "/gemini", "-o", "json", "--yolo"}, env: geminiEnv, home: geminiHome},
	} {
		t.Run(name, func(t *testing.T) {
			m := expect.Of(model.Start(model.Options{}))(t)
			t.Cleanup(m.Close)
			proxy := modelproxy.New()
			t.Cleanup(func() { expect.Is(t, proxy.Close(), nil) })
			r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{State: t.TempDir(), Models: proxy}))(t)
			skeleton := t.TempDir()
			for file, text := range c.home {
				expect.No(t, os.MkdirAll(filepath.Dir(filepath.Join(skeleton, file)), 0o700))
				expect.No(t, os.WriteFile(filepath.Join(skeleton, file), []byte(text), 0o600))
			}
			a := fleet.Agent{
				Name: "a", TenantID: "t_test", Profile: "worker", Dir: t.TempDir(), Command: c.command, Env: c.env(m),
				Options: core.Raw(fmt.Sprintf(`{"wire":%q,"skeleton":%q}`, c.wire, skeleton)),
			}
			w := &watch{}
			h := expect.Of(r.Open(context.Background(), a, w.notify))(t)
			t.Cleanup(func() { _ = h.Close() })

			out := ask(t, h, w.prompt("RUN: echo hello > "+a.Dir+"/made"))
			expect.Must(t, out.Status == task.Succeeded && strings.HasPrefix(out.Text, "FINAL: the tool said: "), "%s\n%s", came(out), strings.Join(w.texts("log"), "\n"))
			expect.Is(t, string(expect.Of(os.ReadFile(a.Dir+"/made"))(t)), "hello\n")
			if calls := w.texts("tool_call"); name != "gemini, one document" { // which has none
				expect.True(t, len(calls) == 1 && strings.Contains(calls[0], "echo hello > ") && strings.Contains(heard(w), " ok {"), "%s", heard(w))
			}
			out = ask(t, h, w.prompt("SAY: more"))
			expect.True(t, out.Status == task.Succeeded && out.Text == "more", "%s", came(out))
			tokens := int64(0)
			for _, e := range w.events {
				tokens += e.Tokens
			}
			expect.Is(t, tokens, int64(3*(model.TokensIn+model.TokensOut)), "of three requests")
			all := m.Requests()
			expect.Has(t, string(all[len(all)-1].Body), "RUN: echo hello", "what is said in the second task")

			if c.login == "" {
				return
			}
			a.Name, a.Env, a.Options = "stranger", nil, core.Raw(`{"wire":"`+c.wire+`"}`)
			w = &watch{}
			h = expect.Of(r.Open(context.Background(), a, w.notify))(t)
			t.Cleanup(func() { _ = h.Close() })
			expect.True(t, strings.HasPrefix(came(ask(t, h, w.prompt("SAY: hello"))), c.login), "%s", heard(w))
		})
	}
}

func geminiEnv(m *model.Server) map[string]string {
	return map[string]string{"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": m.URL}
}

var geminiHome = map[string]string{".gemini/settings.json": `{"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},
"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},"model":{"name":"gemini-2.5-flash"}}`}
