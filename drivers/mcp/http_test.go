package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// post sends a body and returns the status.
func post(t *testing.T, url, token, body string) int {
	t.Helper()
	r := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	got := expect.Of(bearer(token).RoundTrip(r))(t)
	_, _ = io.Copy(io.Discard, got.Body)
	_ = got.Body.Close()
	return got.StatusCode
}

func TestRequestsThatAreNoCallsAreRefusedAndAudited(t *testing.T) {
	h := newHouse(t)
	tokens := &Tokens{}
	good := expect.Of(tokens.Issue(person))(t)
	gone := expect.Of(tokens.Issue(Identity{Tenant: lab, Name: "Nobody", Kind: core.Agent}))(t)
	url := h.web(t, tokens)
	for _, c := range []struct {
		name, token, body string
		status            int
	}{
		{"no token", "", `{}`, 401},
		{"a wrong token", good + "x", `{}`, 401},
		{"the token of an agent that is not there", gone, `{}`, 401},
		{"too large", good, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("a", maxMessage) + `"}}`, 413},
		{"malformed", good, `{"jsonrpc":`, 400},
	} {
		before := len(h.events(t, lab, "mcp.refused"))
		var events []string
		expect.Await(t, c.name+" is audited", func() bool { // strangers fill no log: one event a second
			expect.Is(t, post(t, url, c.token, c.body), c.status, c.name, "HTTP")
			events = h.events(t, lab, "mcp.refused")
			return len(events) > before
		})
		if len(events) != before+1 || !strings.Contains(events[before], fmt.Sprint("HTTP ", c.status)) {
			t.Errorf("%s: audited %v", c.name, events[before:])
		}
	}
	began := time.Now()
	n := 0
	expect.Await(t, "one of a flood is audited", func() bool {
		for range 20 {
			_ = post(t, url, "", `{}`)
		}
		n = len(h.events(t, lab, "mcp.refused"))
		return n > 5
	})
	expect.True(t, n <= 6+int(time.Since(began)/time.Second), "%d refusals audited after a flood, want 6 and one for each second of it", n)
}

func TestATokenOpensItsTenantOnly(t *testing.T) {
	h := newHouse(t)
	sum := sha256.Sum256([]byte("the-token-of-otto"))
	file := fmt.Sprintf(`tokens:
  - {operator: vera, role: viewer, token: the-token-of-vera}
  - {operator: otto, role: operator, tenant: t_other, sha256: %s}
  - {agent: Sony, token: the-token-of-sony}
`, hex.EncodeToString(sum[:]))
	tokens := expect.Of(LoadTokens("tokens.yaml", []byte(file), lab))(t)
	url := h.web(t, tokens)
	for _, era := range eras {
		for token, want := range map[string]string{"the-token-of-vera": "Sony", "the-token-of-otto": "Papi", "the-token-of-sony": "Sony"} {
			cs := expect.Of(dial(t, url, token, era, nil))(t)
			var list listAgentsAnswer
			use(t, cs, "list_agents", nil, &list)
			expect.True(t, list.Total == 1 && list.Agents[0].Name == want, "%s in %s sees %+v", token, era, list)
			hidden := map[string]string{"Sony": "Papi", "Papi": "Sony"}[want]
			e := refusal(t, cs, "show_agent", map[string]any{"agent_name": hidden})
			expect.True(t, e.Code == core.Denied, "%s in %s: %+v", token, era, e)
			e = refusal(t, cs, "start_agent_task", map[string]any{"agent_name": "Sony", "task": ""})
			expect.True(t, token != "the-token-of-vera" || e.Code == core.Denied, "a viewer: %+v", e)
		}
	}
	expect.Fails(t, expect.Fault(dial(t, url, "the-token-of-nobody", eras[0], nil)), "a wrong token opened a session")
}

func TestAFileOfTokensIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`tokens: [{operator: a, role: admin, token: 0123456789abcdef}]`: "role",
		`tokens: [{operator: a, role: viewer, token: short}]`:           "16-512",
		`tokens: [{agent: a, role: viewer, token: 0123456789abcdef}]`:   "agents have none",
		`tokens: [{agent: a}]`: "either token or sha256",
		`tokens: [{agent: a, operator: b, token: 0123456789abcdef}]`:                         "either operator or agent",
		`tokens: [{agent: a, token: 0123456789abcdef}, {agent: b, token: 0123456789abcdef}]`: "already",
		`tokens: [{agent: a, tenant: lab, token: 0123456789abcdef}]`:                         "tenant",
		`tokens: [{agent: a, sha256: zz}]`:                                                   "64 hex digits",
		`token: 1`:                                                                           "unknown field",
	} {
		expect.Says(t, expect.Fault(LoadTokens("t.yaml", []byte(text), lab)), want, text)
	}
}

func TestAnAgentsProgramReachesItsEngineThroughTheRelay(t *testing.T) {
	h := newHouse(t)
	self := expect.Of(os.Executable())(t)
	g := NewGateway(self, Options{})
	g.Open(h.eng)
	defer func() {
		expect.Is(t, g.Close(), nil)
	}()
	a := expect.Of(h.eng.Fleet.Agent(t.Context(), lab, "Sony"))(t)
	first := expect.Of(g.Launch(a))(t)
	l := expect.Of(g.Launch(a))(t)
	expect.Is(t, post(t, first.Env["SWARMDECK_MCP_URL"], first.Env["SWARMDECK_MCP_TOKEN"], "{}"), 401, "the token before: HTTP")
	for _, era := range eras {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		relayed := expect.Later(func() error { return Relay(ctx, l.Env["SWARMDECK_MCP_URL"], l.Env["SWARMDECK_MCP_TOKEN"], inR, outW) })
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
			Connect(ctx, &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: era})
		expect.No(t, err, era)
		var list listAgentsAnswer
		use(t, cs, "list_agents", nil, &list)
		expect.Is(t, list.Total, 1, list)
		_ = cs.Close()
		expect.No(t, <-relayed, era)
		cancel()
	}
	expect.Fails(t, Relay(t.Context(), "file:///etc", "", nil, nil), "relayed to a file")
}
