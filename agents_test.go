package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
)

// realAgents are the examples with agents that are programs of others. They
// run as they stand, except that a scripted model answers them.
var realAgents = map[string]struct{ agent, config, from, to string }{
	"gemini-cli": {
		agent: "gemini", config: "swarm.yaml",
		from: "env:\n", to: "env:\n      GOOGLE_GEMINI_BASE_URL: \"MODEL\"\n",
	},
	"codex-acp": {
		agent: "builder", config: "home/.codex/config.toml",
		from: "approval_policy", to: `model = "scripted"
model_provider = "loopback"
model_providers.loopback = { name = "loopback", base_url = "MODEL/v1", wire_api = "responses", env_key = "OPENAI_API_KEY" }
approval_policy`,
	},
}

// gateScript allows one command of the agent at the cockpit and denies another.
const gateScript = `
up $HERE/EXAMPLE
await agent AGENT status=idle
cockpit 80x24
await quiet
key :
type 'agent assign AGENT ''RUN: echo hello > allowed.txt'''
key enter
await -t 120s status /1 need you/
await quiet
key i
await screen /approval . open/
screen /echo hello > allowed.txt/
screen /execute/
! exists allowed.txt
await quiet
key G
await quiet
key a
await screen /Reason/
type 'it only writes here'
key enter
await screen /sure/
await quiet
key y
await approval 0
await -t 120s agent AGENT status=idle
exec cat allowed.txt
stdout '^hello$'
agent log AGENT --page-size 50
stdout 'asks for execute'
stdout 'FINAL: the tool said'

await quiet
key :
type 'agent assign AGENT ''RUN: echo hello > denied.txt'''
key enter
await -t 120s status /1 need you/
await quiet
key i
await screen /approval . open/
screen /echo hello > denied.txt/
await quiet
key x
await screen /Reason to deny/
type 'not this one'
key enter
await -t 120s agent AGENT status=idle
! exists denied.txt
task list --status blocked -o json
stdout '"title":"RUN: echo hello > denied.txt"'
result list -o json
stdout 'approval_denied.*not this one'
agent show AGENT -o json
stdout '"tokens":[1-9]'
audit verify
`

func TestRealAgentsPassTheCockpitsGate(t *testing.T) {
	installed := drivertest.Installed(t)
	for name, c := range realAgents {
		t.Run(name, func(t *testing.T) {
			m, err := model.Start(model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			u := newPlayer(t)
			// Some agents keep no files under the system's temporary directory.
			dir := drivertest.OutsideTemp(t)
			if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("examples", name))); err != nil {
				t.Fatal(err)
			}
			replaceIn(t, filepath.Join(dir, name, c.config), c.from, strings.ReplaceAll(c.to, "MODEL", m.URL))
			if name == "codex-acp" { // its login would ask a server
				replaceIn(t, filepath.Join(dir, name, "swarm.yaml"), "auth: openai-api-key, ", "")
			}
			text := strings.NewReplacer("EXAMPLE", name, "AGENT", c.agent).Replace(gateScript)
			script := filepath.Join(dir, "gate.txtar")
			if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			u.env = append(u.env, fmt.Sprintf("PATH=%s/node_modules/.bin:%s", installed, os.Getenv("PATH")))
			cmd := u.command("--script", script, "--data", filepath.Join(dir, "swarm.db"))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			timer := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
			defer timer.Stop()
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
		})
	}
}

func replaceIn(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%s does not hold %q", path, from)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600); err != nil {
		t.Fatal(err)
	}
}
