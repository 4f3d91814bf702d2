package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// speaker is an agent of the Agent Client Protocol that asks to write a file, waits for
// the answer and is done.
const speaker = `while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}' ;;
*'"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
*'"session/prompt"'*) echo prompt >> got
  printf '%s\n' '{"jsonrpc":"2.0","id":"w1","method":"fs/write_text_file","params":{"sessionId":"s","path":"'$PWD'/notes.txt","content":"by the agent\n"}}'
  read -r answer; echo "$answer" >> got; sleep 2
  echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"it is written"}}}}'
  echo '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn"}}' ;;
esac
done`

// TestAnAgentOfTheProtocolWorksOnAHost has one write a file behind a real sshd: who is
// asked sees what the host's file holds, and the link is cut before and after the answer.
func TestAnAgentOfTheProtocolWorksOnAHost(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.program = u.built()
	address := u.sshTo()
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("host", "add", "box", address)
	for name, text := range map[string]string{
		"asks.yaml": `schema: 1
name: asks
rules:
  - {id: tools, gates: [tool.call], when: "true", decision: hitl, reason_code: asks, risk: low}
  - {id: rest, gates: [task.start, result], when: "true", decision: approve, reason_code: rest, risk: low}
`,
		"asks.jsonl": `{"name":"asks","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"hitl"}}`,
	} {
		expect.No(t, os.WriteFile(filepath.Join(u.home, name), []byte(text), 0o600))
	}
	u.ok("policy", "activate", field(u.ok("policy", "propose", "asks.yaml", "--tests", "asks.jsonl", "-o", "json"), "policy_id"))
	expect.Await(t, "the host is up", func() bool {
		return strings.Contains(u.ok("host", "show", "box", "-o", "json"), `"state":"up"`)
	})
	u.ok("agent", "create", "far", "--project", "p", "--host", "box", "--runtime", "acp", "--options", `{"fs":"write"}`, "--", "sh", "-c", speaker)
	expect.Await(t, "the agent is idle", func() bool { return strings.Contains(u.ok("agent", "show", "far", "-o", "json"), `"status":"idle"`) })
	found, _ := filepath.Glob(filepath.Join(u.home, ".cache/swarmdeck/keeper-*/agents/far/work"))
	expect.Must(t, len(found) == 1, "%v", found)
	in := func(name string) string { return filepath.Join(found[0], name) }
	expect.No(t, os.WriteFile(in("notes.txt"), []byte("of the host\n"), 0o600))
	cut := func() {
		for _, pid := range u.keepers("link") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	id := field(u.ok("agent", "assign", "far", "do it", "-o", "json"), "task_id")
	approval := ""
	expect.Await(t, "somebody is asked", func() bool {
		approval = field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id")
		return approval != ""
	})
	expect.Has(t, u.ok("approval", "show", approval), "of the host", "the card does not show the host's file")
	cut()
	expect.Await(t, "the link is back", func() bool { return strings.Contains(u.ok("agent", "log", "far", "--page-size", "100"), "is back") })
	u.ok("approval", "approve", approval, "--reason", "it only writes there")
	expect.Await(t, "the agent goes on", func() bool {
		got, _ := os.ReadFile(in("got"))
		return strings.Contains(string(got), "result")
	})
	cut()
	expect.Has(t, u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json"), `"succeeded"`)
	got, _ := os.ReadFile(in("got"))
	expect.True(t, strings.Count(string(got), "prompt\n") == 1 && strings.Count(string(got), "\n") == 2, "the agent was told %q", got)
	expect.Is(t, string(expect.Of(os.ReadFile(in("notes.txt")))(t)), "by the agent\n")
	log := u.ok("agent", "log", "far", "--page-size", "100")
	expect.True(t, strings.Count(log, "it is written") == 1 && strings.Contains(log, "+by the agent"), "%s", log)
	u.ok("agent", "delete", "far", "--yes")
	u.ok("host", "remove", "box")
	u.ok("audit", "verify")
}

// TestATerminalOnAHostIsSatAt has a person at the terminal of a shell behind a real sshd,
// whose link is cut while they type.
func TestATerminalOnAHostIsSatAt(t *testing.T) {
	t.Parallel()
	u := withHost(t)
	u.ok("agent", "create", "shell", "--project", "p", "--host", "box", "--runtime", "terminal", "--env", "PS1=ready$ ", "--", "sh", "-i")
	s := u.atTerminal().sit(80, 24, "agent", "attach", "shell")
	s.see(`you type`)
	s.see(`ready\$`)
	s.press("echo a$((6*7))b\r")
	s.see(`a42b`)
	for _, pid := range u.keepers("link") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.press("echo once >> count; echo c$((6*7))d\r")
	s.see(`c42d`)
	s.press(detach)
	s.gone(`you type`)
	found, _ := filepath.Glob(filepath.Join(u.home, ".cache/swarmdeck/keeper-*/agents/shell/work/count"))
	expect.Must(t, len(found) == 1, "%v", found)
	got, err := os.ReadFile(found[0])
	expect.True(t, string(got) == "once\n", "%q %v", got, err)
	expect.Await(t, "the agent is idle", func() bool { return strings.Contains(u.ok("agent", "show", "shell", "-o", "json"), `"status":"idle"`) })
	id := field(u.ok("agent", "assign", "shell", "echo $((40+4)) done", "-o", "json"), "task_id")
	expect.Has(t, u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json"), `"succeeded"`)
	expect.Has(t, u.ok("result", "show", id, "-o", "json"), "44 done")
	u.ok("agent", "delete", "shell", "--yes")
	u.ok("host", "remove", "box")
}
