package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// connectScript has an agent whose call is allowed connect within it. The
// card, the task and the log name each other.
const connectScript = `
tenant create t_acme
agent create ada --project app --command 'sh agent.sh'
await agent ada status=idle
agent assign ada go
await approval 1
approval list --open -o json
stdout '"gate":"tool.call"'
capture A approval_id
approval approve $A --reason 'see what it does'
await approval 1
approval list --open -o json
stdout '"gate":"net.connect"'
stdout '"process":"curl"'
stdout '"agent":{"name":"ada","role":"coder","project":"app","profile":"worker"}'
stdout '"during":\[{"call_id":"c7","tool":"fetch","title":"read the news"}\]'
capture A approval_id
agent history ada -o json --page-size 1
capture T task_id
task why $T
stdout 'a person must answer approval ap_.*connect to api.invalid:443 for ada'
cockpit 80x24
await quiet
key i
await screen /tool call +fetch read the news \(c7\)/
screen /"host": "api.invalid"/
screen /"process": "curl"/
await quiet
key q
key :
type 'open task tk_bf4fc_0000000001'
key enter
await screen /waiting/
screen /a person must answer approval/
await quiet
key enter
await screen /tool call +fetch read the news/
approval deny $A --reason 'no news today'
await task $T status=succeeded
agent log ada --page-size 50
stdout 'no route to api.invalid:443: denied by'
egress log --kind egress.refused -o json
stdout '"call_id":"c7"'
egress log --kind egress.used -o json
stdout '"task_id":"tk_'
audit verify
audit reconcile
-- agent.sh --
read -r line
echo '{"type":"tool_request","call_id":"c7","tool":"fetch","args":{"what":"news"},"intent":"read the news"}'
read -r line
curl -sSv --noproxy '' https://api.invalid/ 2>&1
echo '{"type":"result","status":"succeeded"}'
`

func TestAConnectionTaskAndCallLeadToEachOther(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	path := filepath.Join(u.home, "script.txtar")
	expect.No(t, os.WriteFile(path, []byte(strings.TrimLeft(connectScript, "\n")), 0o600))
	out, err := u.command("--script", path, "--data", filepath.Join(u.home, "connect.db")).CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
}
