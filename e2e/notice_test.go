package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"swarmdeck/expect"
)

// An approval that opens while nobody looks reaches a URL and a command, and
// what happened while the engine was dead is told when it is back.
func TestNoticesReachThoseWhoLookElsewhere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ids := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ids[r.Header.Get("webhook-id")]++
	}))
	defer srv.Close()
	u := newUser(t)
	file := filepath.Join(u.home, "told")
	swarm := filepath.Join(u.home, "swarm.yaml")
	text := "tenant: t_acme\nnotices:\n  - name: hook\n    events: [approval, estop]\n    url: " + srv.URL + "\n" +
		"  - name: file\n    events: [approval]\n    min_risk: high\n    command: [sh, -c, 'cat >> " + file + "']\n"
	expect.No(t, os.WriteFile(swarm, []byte(text), 0o600))
	out := u.ok("up", swarm)
	expect.Must(t, strings.Count(out, "created") >= 2, "%v", out)
	told := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(ids) == n }
	}
	d := u.daemon()
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","x"]}`)
	expect.Await(t, "the webhook", told(1))
	expect.Await(t, "the command", func() bool { b, _ := os.ReadFile(file); return strings.Contains(string(b), `"type":"approval.opened"`) })
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	u.ok("estop", "on", "--reason", "smoke") // by a process that tells nothing
	u.daemon()
	expect.Await(t, "what happened meanwhile", told(2))
	out = u.ok("notice", "list")
	expect.True(t, strings.Contains(out, "hook") && !strings.Contains(out, "failing"), "%v", out)
}
