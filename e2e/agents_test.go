package e2e

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
	"swarmdeck/expect"
)

// realAgents are the examples with agents that are programs of others. They
// run as they stand, except that a scripted model answers them: from behind the
// wall it is reached through the recorder.
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

// opencode drives the fleet as the others do; the rest of what they do is held by
// the tests of the runtime.
const opencode = "opencode"

// realAgent is what is known of an example.
func realAgent(name string) (c struct{ agent, config, from, to string }) {
	if name == opencode {
		c.agent, c.config, c.from, c.to = "opener", "swarm.yaml", "env:\n", "env:\n      OPENAI_BASE_URL: \"MODEL/v1\"\n"
		return c
	}
	return realAgents[name]
}

// codexCommand runs Codex on the model that its environment names.
const codexCommand = `command: [sh, -c, "exec codex-acp -c model_providers.loopback.base_url=$CODEX_BASE_URL"]`

// gateScript allows one command of the agent at the cockpit and denies another.
const gateScript = `
up $HERE/EXAMPLE
await -t 120s agent AGENT status=idle
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
agent history AGENT -o json --page-size 1
capture T task_id
await -t 120s task $T status=succeeded
exec cat allowed.txt
stdout '^hello$'
agent log AGENT --page-size 50
stdout 'asks for execute'
stdout 'FINAL: the t'

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
agent history AGENT -o json --page-size 1
capture T task_id
await -t 120s task $T status=succeeded
! exists denied.txt
result list -o json
stdout '"denials":\['
await -t 120s agent AGENT status=idle
agent show AGENT -o json
stdout '"tokens":[1-9]'
audit verify
`

func TestRealAgentsPassTheCockpitsGate(t *testing.T) {
	t.Parallel()
	for name, c := range realAgents {
		t.Run(name, func(t *testing.T) {
			play, _, _ := withAgents(t, name)
			play(strings.NewReplacer("EXAMPLE", name, "AGENT", c.agent).Replace(gateScript))
		})
	}
}

// withAgents copies an example of real agents, on a scripted model, and gives
// what plays a script beside it, and the model.
func withAgents(t *testing.T, name string) (play func(script string), dir string, m *model.Server) {
	t.Helper()
	play, dir, m = withModel(t, name)
	c := realAgent(name)
	replaceIn(t, filepath.Join(dir, name, c.config), c.from, strings.ReplaceAll(c.to, "MODEL", m.URL))
	if name == "codex-acp" {
		codexOnModel(t, filepath.Join(dir, name, "swarm.yaml"), m)
	}
	return play, dir, m
}

// codexOnModel has the Codex of a swarm file ask a scripted model: its login would ask a
// server, and it takes the model's address from no variable.
func codexOnModel(t *testing.T, swarm string, m *model.Server) {
	t.Helper()
	replaceIn(t, swarm, "auth: openai-api-key, shared: true", "record_models: [CODEX_BASE_URL]")
	replaceIn(t, swarm, "command: [codex-acp]", codexCommand)
	replaceIn(t, swarm, "env: {", fmt.Sprintf("env: {CODEX_BASE_URL: %q, ", m.URL+"/v1"))
}

// withModel copies examples and starts a scripted model, and gives what plays a script
// beside them with real agents installed.
func withModel(t *testing.T, names ...string) (play func(script string), dir string, m *model.Server) {
	t.Helper()
	installed := drivertest.Installed(t)
	m = expect.Of(model.Start(model.Options{}))(t)
	t.Cleanup(m.Close)
	// Some agents keep no files under the system's temporary directory.
	dir = drivertest.OutsideTemp(t)
	for _, name := range names {
		expect.No(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("examples", name))))
	}
	u := newPlayer(t)
	u.env = append(u.env, fmt.Sprintf("PATH=%s/node_modules/opencode-linux-x64/bin:%[1]s/node_modules/.bin:%s", installed, os.Getenv("PATH")))
	return func(script string) {
		t.Helper()
		path := filepath.Join(dir, "script.txtar")
		expect.No(t, os.WriteFile(path, []byte(script), 0o600))
		cmd := u.command("--script", path, "--data", filepath.Join(dir, "swarm.db"))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		timer := time.AfterFunc(10*patience, func() { cmd.Process.Kill() })
		defer timer.Stop()
		err := cmd.Run()
		expect.Must(t, err == nil, "%v\n%s", err, out.String())
	}, dir, m
}

// workScript has an agent change a file and run its test, and then try every
// way out of its cell: what gets through says so.
const workScript = `
tenant create TENANT
secret set MODEL_KEY --from-file $HERE/key
up $HERE/EXAMPLE
await -t 120s agent AGENT status=idle
agent show AGENT -o json
stdout '"profile":"worker"'
stdout '@MODEL_KEY'

agent assign AGENT 'RUN: sed -i s/-/+/ sum.sh && sh test.sh && cat /proc/[0-9]*/environ >environments'
await -t 120s approval 1
approval list --open -o json
stdout 'sh test.sh'
capture A approval_id
approval approve $A --reason 'it works here'
agent history AGENT -o json --page-size 1
capture T task_id
await -t 120s task $T status=succeeded
result list -o json
stdout 'all is well'

# Each first contact with another host asks, and is refused.
agent assign AGENT 'RUN: sh try.sh'
await -t 120s approval 1
approval list --open -o json
capture A approval_id
approval approve $A --reason 'see what it reaches'
await -t 120s approval 1
approval list --open -o json
stdout '"gate":"net.connect"'
stdout '"host":"www.example.com"'
stdout '"port":443'
stdout '"process":"curl"'
stdout '"agent":{"name":"AGENT"'
capture A approval_id
approval deny $A --reason 'nothing to fetch there'
await -t 120s approval 1
approval list --open -o json
stdout '"host":"git.example.org"'
capture A approval_id
approval deny $A --reason 'nothing to push there'
agent history AGENT -o json --page-size 1
capture T task_id
await -t 120s task $T status=succeeded
await approval 0
egress log -o json
stdout '"host":"www.example.com"'
stdout '"host":"git.example.org"'
stdout '"host":"169.254.169.254"'
! stdout 'egress.allowed'
agent log AGENT --page-size 100
stdout 'the model proxy puts the credentials in: '
! stdout 'KEY-OF-THE-TEST'
audit verify
exec cp sum.sh tried environments $HERE

-- sum.sh --
echo $(($1 - $2))
-- test.sh --
test $(sh sum.sh 2 2) = 4 && echo all is well
-- try.sh --
try() { "$@" >>tried 2>&1 && echo REACHED "$@" >>tried; }
try curl -sSfv -m 100 https://www.example.com/
try timeout 100 git ls-remote https://git.example.org/it.git
try curl -sSf -m 20 http://169.254.169.254/latest/
try curl -sSf -m 20 MODEL/v1/models
try curl -sSf -m 20 --noproxy '*' MODEL/v1/models
try curl -sSf -m 20 --noproxy '*' http://1.1.1.1/
try timeout 20 bash -c 'echo x >/dev/tcp/1.1.1.1/53'
echo over >>tried
`

// TestRealAgentsWorkWithTheNetworkOnlyToTheirModel has each do a real task
// behind the wall of the whole program.
func TestRealAgentsWorkWithTheNetworkOnlyToTheirModel(t *testing.T) {
	t.Parallel()
	const key = "sk-KEY-OF-THE-TEST-0123456789"
	for name, c := range realAgents {
		t.Run(name, func(t *testing.T) {
			play, dir, m := withAgents(t, name)
			expect.No(t, os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600))
			replaceIn(t, filepath.Join(dir, name, "swarm.yaml"), `"your key"`, `"@MODEL_KEY"`)
			tenant := "t_" + strings.SplitN(name, "-", 2)[0]
			play(strings.NewReplacer("EXAMPLE", name, "AGENT", c.agent, "TENANT", tenant, "MODEL/", m.URL+"/").Replace(workScript))
			read := func(name string) string {
				data, err := os.ReadFile(filepath.Join(dir, name))
				expect.Is(t, err, nil)
				return string(data)
			}
			expect.Is(t, read("sum.sh"), "echo $(($1 + $2))\n", "the file holds")
			if got := read("tried"); strings.Contains(got, "REACHED") || !strings.Contains(got, "swarmdeck: no route to www.example.com:443") || !strings.HasSuffix(got, "over\n") {
				t.Errorf("it tried: %s", got)
			}
			got := read("environments")
			expect.True(t, !strings.Contains(got, key) && strings.Contains(got, "SWARMDECK_RUN="), "the environments within: %q", got)
			for _, r := range m.Requests() {
				expect.Is(t, r.Credential, key, r.Path, "was asked with")
			}
			if len(m.Requests()) < 4 {
				t.Errorf("%d requests to the model", len(m.Requests()))
			}
		})
	}
}

// TestAHundredLocalAndEightRealAgentsWorkAtOnce has all of them at work before
// the first real one is answered: every second one is allowed.
func TestAHundredLocalAndEightRealAgentsWorkAtOnce(t *testing.T) {
	play, dir, m := withAgents(t, "codex-acp")
	const local, real = 100, 8
	swarm := "tenant: t_many\nagents:\n"
	script := "up $HERE/many.yaml\n"
	for i := range local {
		swarm += fmt.Sprintf("  - {name: local-%d, project: p, dir: \"${CWD}\", task: go, command: [sh, -c, 'read -r task; echo %d >local-%d; sleep 1']}\n", i, i, i)
	}
	for i := range real {
		swarm += fmt.Sprintf("  - {name: real-%d, project: p, runtime: acp, dir: \"${CWD}\", task: 'RUN: echo %d > real-%d', %s, "+
			"env: {OPENAI_API_KEY: x, CODEX_BASE_URL: \"%s/v1\"}, options: {record_models: [CODEX_BASE_URL], skeleton: \"${DIR}/codex-acp/home\"}}\n", i, i, i, codexCommand, m.URL)
	}
	script += fmt.Sprintf("await -t 240s approval %d\n", real)
	for i := range real {
		script += fmt.Sprintf("! exists real-%d\napproval list --open --agent real-%d -o json\ncapture A approval_id\n", i, i)
		if i%2 == 0 {
			script += "approval approve $A --reason fine\n"
		} else {
			script += "approval deny $A --reason 'not that'\n"
		}
	}
	for i := range real {
		script += fmt.Sprintf("await -t 240s agent real-%d status=idle last_status=succeeded\n", i)
	}
	for i := range local {
		script += fmt.Sprintf("await -t 240s agent local-%d status=idle last_status=succeeded\nexists local-%d\n", i, i)
	}
	for i := range real {
		if i%2 == 0 {
			script += fmt.Sprintf("exec cat real-%d\nstdout '^%d$'\nagent show real-%d -o json\nstdout '\"last_status\":\"succeeded\"'\n", i, i, i)
		} else {
			script += fmt.Sprintf("! exists real-%d\nagent show real-%d -o json\nstdout '\"last_status\":\"succeeded\"'\n", i, i)
		}
	}
	expect.No(t, os.WriteFile(filepath.Join(dir, "many.yaml"), []byte(swarm), 0o600))
	play(script + "audit reconcile\naudit verify\n")
}

func replaceIn(t *testing.T, path, from, to string) {
	t.Helper()
	data := expect.Of(os.ReadFile(path))(t)
	expect.Must(t, bytes.Contains(data, []byte(from)), "%s does not hold %q", path, from)
	expect.No(t, os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600))
}
