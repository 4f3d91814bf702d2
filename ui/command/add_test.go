package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/acp"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine"
	"swarmdeck/engine/secret"
	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// greets is a coding agent that speaks the Agent Client Protocol.
const greets = `#!/bin/sh
[ "$1" = --version ] && echo 'gem 1.2.3 (test)' && exit
while read -r line; do
	id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case $line in
	*'"initialize"'*) r='{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*session/new*) r='{"sessionId":"s1","modes":{"currentModeId":"default","availableModes":[{"id":"default","name":"Default"}]}}' ;;
	*session/prompt*) r='{"stopReason":"end_turn"}' ;;
	*) r='{}' ;;
	esac
	case $line in *'"id":'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$r"'}' ;; esac
done
`

// coders is a deck in a git repository, with real runtimes, whose caller has a PATH of
// its own with these programs.
func coders(t *testing.T, programs map[string]string) *deck {
	t.Helper()
	var d *deck
	secrets := func(ctx context.Context, tenant string, env map[string]string) (map[string]string, *secret.Mask, error) {
		return d.eng.Secrets.Resolve(ctx, tenant, env)
	}
	d = newDeck(t, func(sup *cell.Supervisor, opt *engine.Options) {
		models := modelproxy.New()
		t.Cleanup(func() { expect.Is(t, models.Close(), nil) })
		opt.Runtimes["acp"] = expect.Of(acp.NewRuntime(sup, acp.Options{Local: keeper.Local{Dir: opt.Dir, State: filepath.Join(opt.Dir, "state"), Models: models, Secrets: secrets}}))(t)
	})
	d.env.Dir = (&walk{deck: d}).repository()
	for name, text := range programs {
		d.write("bin/"+name, text)
		d.no(os.Chmod(filepath.Join(d.dir, "bin", name), 0o755))
	}
	d.has("PATH", filepath.Join(d.dir, "bin")+":/usr/bin:/bin")
	d.env.Doctor = func(_ context.Context, look command.Look) (all []command.Check) {
		for _, argv := range look.Versions {
			all = append(all, command.Check{Check: argv[0], OK: true, Detail: "1.2.3"})
		}
		return all
	}
	return d
}

func TestACodingAgentOfTheCallersPathIsAdded(t *testing.T) {
	d := coders(t, map[string]string{"gemini": greets})
	d.write(".gemini/oauth_creds.json", "token")
	text := d.line("add gemini --task hello")
	for _, part := range []string{
		"gemini is ready: Gemini CLI 1.2.3, by acp (created)", "yours, copied at each start: ~/.gemini/oauth_creds.json", "project   repo",
		"branch swarmdeck/gemini", "profile worker", "google; any other host asks you first", "swarmdeck tell gemini 'TEXT'",
	} {
		expect.Has(t, text, part)
	}
	expect.True(t, strings.Count(text, "\n") <= 20 && !strings.Contains(text, "token"), "it prints\n%s", text)
	d.until("agent history gemini", "status", "succeeded")
	rules := d.objects("egress list")
	expect.True(t, len(rules) == 1 && rules[0]["host"] == "google" && rules[0]["agent"] == "gemini", "%v", rules)

	again := d.object("add gemini")
	expect.Row(t, again, "agent", "gemini", "action", "unchanged", "status", "idle")
	expect.Row(t, d.object("add gemini --name second --tree=false"), "agent", "second", "dir", d.env.Dir)
	d.env.Dir = d.dir
	expect.Row(t, d.object("add gemini --tree=false"), "agent", "gemini-2", "project", filepath.Base(d.dir))
	kind, message, _ := d.fails(1, "add gemini --name second")
	expect.True(t, kind == "CONFLICT" && strings.Contains(message, "say another --name"), "%s", message)
}

func TestWhatACodingAgentLacksIsSaid(t *testing.T) {
	d := coders(t, map[string]string{"gemini": greets, "qwen": "#!/bin/sh\necho 'no model: log in' >&2\nexit 3\n"})
	kind, message, _ := d.fails(1, "add codex")
	expect.True(t, kind == "NOT_FOUND" && strings.Contains(message, "npm install -g @openai/codex"), "%s", message)
	d.fails(2, "add clod")
	d.fails(2, "add --all gemini")
	all := d.objects("agent list")
	expect.True(t, len(all) == 0 && len(d.objects("egress list")) == 0, "half made: %v", all)

	expect.Has(t, d.line("add gemini"), "gemini is started: Gemini CLI 1.2.3, by acp (created)")
	expect.Row(t, d.object("add gemini"), "log_in", "gemini", "login", nil)
	d.has("GEMINI_API_KEY", "set")
	expect.Row(t, d.object("add gemini"), "log_in", "printenv GEMINI_API_KEY | swarmdeck secret set GEMINI_API_KEY")
	d.env.Stdin = strings.NewReader("key-of-gemini")
	d.line("secret set GEMINI_API_KEY")
	expect.Row(t, d.object("add gemini"), "action", "changed", "login", "GEMINI_API_KEY", "log_in", nil)

	code, out, told := d.run("add", "qwen")
	expect.True(t, code == 1 && strings.Contains(told, "exited with status 3") && strings.Contains(out, "none found; log in: qwen") && !strings.Contains(out, "swarmdeck tell"), "exit %d %s\n%s", code, told, out)
	code, out, told = d.run("add", "--all")
	expect.True(t, code == 1 && strings.Contains(out, "gemini        ready") && strings.Count(out, "\n") == 2, "exit %d %s\n%s", code, told, out)
}

func TestCodingAgentsAreListedWithWhatIsNext(t *testing.T) {
	d := coders(t, map[string]string{"codex": "", "codex-acp": "", "gemini": "", "mine": ""})
	d.write(".codex/auth.json", "token")
	d.write("config/swarmdeck/agents.yaml", `
agents:
  - {name: mine, about: Mine, program: mine, ways: [{runtime: exec, command: [mine], asks: nothing}], login: {command: mine login, files: [~/.mine]}, install: make mine}
`)
	seen := map[string]map[string]any{}
	for _, o := range d.objects("add") {
		seen[str(o["name"])] = o
	}
	expect.Row(t, seen["codex"], "login", "~/.codex/auth.json", "version", "1.2.3", "wire", "acp", "next", "swarmdeck add codex")
	expect.Row(t, seen["gemini"], "login", nil, "next", "gemini")
	expect.Row(t, seen["claude"], "program", nil, "next", "npm install -g @anthropic-ai/claude-code @agentclientprotocol/claude-agent-acp")
	expect.Row(t, seen["mine"], "wire", "exec", "next", "mine login")
	expect.Has(t, d.line("add --read-only"), "not found")
	d.fails(1, "add codex --read-only")
	d.write("config/swarmdeck/agents.yaml", "agents: [{name: x}]")
	_, message, _ := d.fails(1, "add")
	expect.Has(t, message, "agents.yaml:1: agents[0].ways: missing")
	expect.Is(t, len(d.needs), 0, "listing opened the data file")
}
