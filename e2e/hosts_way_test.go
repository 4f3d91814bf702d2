package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// TestAnAgentOnAHostGoesOutByTheEngineAlone has one reach what the rules allow and a
// person lets through, behind a real sshd, and nothing else. The link is cut while an
// answer comes.
func TestAnAgentOnAHostGoesOutByTheEngineAlone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			fmt.Fprint(w, "it begins\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(patience):
			}
			return
		}
		fmt.Fprint(w, strings.Repeat("x", 5000))
	}))
	t.Cleanup(server.Close)
	at := server.Listener.Addr().String()
	u := newUser(t)
	u.program = u.built()
	address := u.sshTo()
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("egress", "allow", at)
	u.ok("egress", "deny", "denied.invalid")
	u.ok("host", "add", "box", address)
	expect.Await(t, "the host is up", func() bool {
		return strings.Contains(u.ok("host", "show", "box", "-o", "json"), `"state":"up"`)
	})
	line := `while read -r line; do
curl -sS --noproxy '' -m 60 http://` + at + `/read | wc -c
curl -sS --noproxy '' -m 60 http://denied.invalid/
curl -sS --noproxy '' -m 60 -x socks5h://127.0.0.1:1080 http://` + at + `/socks | wc -c
curl -sS --noproxy '*' -m 5 http://` + at + `/ && echo REACHED
curl -sS --noproxy '' -m 90 http://asked.invalid/
touch slow
curl -sSN --noproxy '' -m 60 http://` + at + `/slow > slow; echo "slow: $? $(cat slow)"
echo '{"type":"result","status":"succeeded","output":{}}'; done`
	u.ok("agent", "create", "far", "--project", "p", "--host", "box", "--shell", line)
	id := field(u.ok("agent", "assign", "far", "go", "-o", "json"), "task_id")
	approval := ""
	expect.Await(t, "a person is asked", func() bool {
		approval = field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id")
		return approval != ""
	})
	asked := u.ok("approval", "show", approval, "-o", "json")
	for _, want := range []string{`"gate":"net.connect"`, `"process":"curl"`, `"name":"far"`, `"asked.invalid"`, id} {
		expect.Has(t, asked, want)
	}
	u.ok("approval", "deny", approval, "--reason", "not there")
	expect.Await(t, "an answer comes", func() bool {
		found, _ := filepath.Glob(filepath.Join(u.home, ".cache/swarmdeck/keeper-*/agents/far/work/slow"))
		if len(found) != 1 {
			return false
		}
		text, _ := os.ReadFile(found[0])
		return len(text) > 0
	})
	for _, pid := range u.keepers("link") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	expect.Has(t, u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json"), `"succeeded"`)
	out := u.ok("agent", "log", "far", "--page-size", "100")
	for _, want := range []string{
		"swarmdeck: no route to denied.invalid:80: egress rule denied.invalid denies it", "no route to asked.invalid:80: denied by", "it begins",
	} {
		expect.Has(t, out, want)
	}
	expect.True(t, strings.Count(out, "5000") == 2 && !strings.Contains(out, "REACHED") && !strings.Contains(out, "slow: 0"), "%s", out)
	said := u.ok("egress", "log", "--kind", "egress.refused", "-o", "json")
	expect.True(t, strings.Contains(said, `"denied.invalid"`) && strings.Contains(said, `"agent":"far"`), "%v", said)
	var end struct {
		Network []struct {
			Host, Process string
			Port          int
			Connections   int
			Received      int `json:"received_bytes"`
		}
	}
	events := u.ok("dag", "events", "--kind", "run_finished", "-o", "json")
	expect.No(t, json.Unmarshal([]byte(strings.TrimSpace(events)), &end), "in", events)
	counted := false
	for _, h := range end.Network {
		counted = counted || fmt.Sprintf("%s:%d", h.Host, h.Port) == at && h.Connections == 3
	}
	expect.True(t, counted, "%s", events)
	u.ok("agent", "delete", "far", "--yes")
	u.ok("host", "remove", "box")
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}
