package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestAnAgentThatIsLookedIntoReadsAndDoesNotWrite has an agent behind the wall
// speak to a host that it may read. What went there is in its record and in the
// audit log.
func TestAnAgentThatIsLookedIntoReadsAndDoesNotWrite(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 5000)) }))
	t.Cleanup(server.Close)
	u := newUser(t)
	host := server.Listener.Addr().String()
	expect.No(t, os.WriteFile(filepath.Join(u.home, "agent.sh"), []byte(`read -r line
curl -sS --noproxy '' http://`+host+`/read?token=secret | wc -c
curl -sS --noproxy '' -d words http://`+host+`/write
echo $SSL_CERT_FILE; grep -c BEGIN $GIT_SSL_CAINFO
`), 0o600))
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("egress", "allow", host, "--read")
	u.ok("egress", "deny", host, "--method", "POST", "--path", "/wr*")
	u.ok("agent", "create", "ada", "--project", "app", "--options", `{"inspect":true}`, "--command", "sh agent.sh")
	u.ok("agent", "assign", "ada", "go", "--wait")
	out := u.ok("agent", "log", "ada", "--page-size", "50")
	for _, want := range []string{"5000", "swarmdeck: no route to " + host + " for POST /write: egress rule " + host + " POST /wr* denies it", "/.trust.pem"} {
		expect.Has(t, out, want)
	}
	said := u.ok("egress", "log", "--kind", "egress.refused")
	expect.True(t, strings.Contains(said, "POST /write") && !strings.Contains(said, "secret"), "%v", said)
	events := u.ok("dag", "events", "--kind", "run_finished", "-o", "json")
	var end struct {
		Network []struct {
			Host        string
			Port        int
			Connections int
			Refused     int
			Sent        int `json:"sent_bytes"`
			Received    int `json:"received_bytes"`
		}
	}
	err := json.Unmarshal([]byte(strings.TrimSpace(events)), &end)
	expect.Must(t, err == nil && len(end.Network) == 1, "%v in %s", err, events)
	h := end.Network[0]
	expect.True(t, host == fmt.Sprintf("%s:%d", h.Host, h.Port) && h.Connections == 1 && h.Refused == 1 && h.Received >= 5000 && h.Sent >= 50, "%+v", h)
}
