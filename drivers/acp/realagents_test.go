package acp

import (
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// realAgents are the agents that tests run for real, each on the scripted model.
func realAgents() map[string]func(*testing.T, *model.Server) fleet.Agent {
	return map[string]func(*testing.T, *model.Server) fleet.Agent{
		"gemini-cli": gemini, "codex-acp": codex, "opencode": opencode, "qwen-code": qwen, "claude-agent-acp": claude, "codex-acp-2": codex2,
	}
}

// homeWith is a home directory with one file of settings.
func homeWith(t *testing.T, path, text string) string {
	t.Helper()
	dir := filepath.Join(drivertest.OutsideTemp(t), "home")
	file := filepath.Join(dir, path)
	expect.No(t, os.MkdirAll(filepath.Dir(file), 0o700))
	expect.No(t, os.WriteFile(file, []byte(text), 0o600))
	return dir
}

func bin(t *testing.T, name string) string {
	return filepath.Join(drivertest.Installed(t), "node_modules/.bin", name)
}

func opencode(t *testing.T, m *model.Server) fleet.Agent {
	config := `{
  "autoupdate": false, "share": "disabled", "model": "loopback/scripted", "small_model": "loopback/scripted",
  "provider": {"loopback": {"npm": "@ai-sdk/openai-compatible", "name": "loopback", "options": {"baseURL": "{env:LOOPBACK_URL}", "apiKey": "x"},
    "models": {"scripted": {"name": "scripted", "tool_call": true, "limit": {"context": 100000, "output": 8000}}}}},
  "permission": {"bash": "ask", "edit": "ask", "webfetch": "ask"}
}`
	return fleet.Agent{
		Name: "opencode", TenantID: "t_test", Runtime: "acp", Dir: t.TempDir(),
		Command: []string{filepath.Join(drivertest.Installed(t), "node_modules/opencode-linux-x64/bin/opencode"), "acp"},
		Env:     map[string]string{"LOOPBACK_URL": m.URL + "/v1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
		Options: core.MustEncode(settings{Mode: "build", Choices: keeper.Choices{Options: home.Options{Home: homeWith(t, ".config/opencode/opencode.json", config)}}, RecordModels: []string{"LOOPBACK_URL"}}),
	}
}

func qwen(t *testing.T, m *model.Server) fleet.Agent {
	return fleet.Agent{
		Name: "qwen", TenantID: "t_test", Runtime: "acp", Dir: t.TempDir(),
		Command: []string{bin(t, "qwen"), "--acp"},
		Env:     map[string]string{"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": m.URL + "/v1", "OPENAI_MODEL": "scripted"},
		Options: core.MustEncode(settings{Mode: "default", Choices: keeper.Choices{Options: home.Options{Home: homeWith(t, ".qwen/settings.json", `{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}}, "model": {"name": "scripted"},
  "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false}
}`)}}, RecordModels: []string{"OPENAI_BASE_URL"}}),
	}
}

func claude(t *testing.T, m *model.Server) fleet.Agent {
	return fleet.Agent{
		Name: "claude", TenantID: "t_test", Runtime: "acp", Dir: t.TempDir(),
		Command: []string{bin(t, "claude-agent-acp")},
		Env: map[string]string{
			"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": m.URL, "ANTHROPIC_MODEL": "scripted", "ANTHROPIC_SMALL_FAST_MODEL": "scripted", "IS_SANDBOX": "1",
			"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		},
		Options: core.MustEncode(settings{Mode: "default", Choices: keeper.Choices{Options: home.Options{Home: homeWith(t, ".claude.json", `{"hasCompletedOnboarding": true}`)}}, RecordModels: []string{"ANTHROPIC_BASE_URL"}}),
	}
}

// codex2 takes the address of its model from its configuration alone, which is filled in as
// it starts.
func codex2(t *testing.T, m *model.Server) fleet.Agent {
	m.Behave(model.Options{Escalate: true})
	own := homeWith(t, ".codex/template", `model = "scripted"
model_provider = "loopback"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.loopback]
name = "loopback"
base_url = "BASE_URL"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
`)
	return fleet.Agent{
		Name: "codex-2", TenantID: "t_test", Runtime: "acp", Dir: t.TempDir(),
		Command: []string{"sh", "-c", `sed "s|BASE_URL|$CODEX_BASE_URL|" "$CODEX_HOME/template" >"$CODEX_HOME/config.toml" && exec ` + filepath.Join(drivertest.Installed(t), "next/node_modules/.bin/codex-acp")},
		Env:     map[string]string{"FAKE_KEY": "x", "CODEX_HOME": filepath.Join(own, ".codex"), "CODEX_BASE_URL": m.URL + "/v1"},
		Options: core.MustEncode(settings{Mode: "read-only", Choices: keeper.Choices{Options: home.Options{Home: own}, Places: files.Places{Read: []string{drivertest.Installed(t)}}}, RecordModels: []string{"CODEX_BASE_URL"}}),
	}
}
