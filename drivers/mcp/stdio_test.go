package mcp

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"swarmdeck/expect"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n"

// TestALineThatIsNoMessageEndsNoClient: it is answered and audited, and what comes
// next is heard.
func TestALineThatIsNoMessageEndsNoClient(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"
	for name, c := range map[string]struct {
		line, want string
	}{
		"too large":    {`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":"` + strings.Repeat("a", 2*maxMessage) + "\"}}\n", "at most 2097152 are read"},
		"malformed":    {"{]\n", `"code":-32700`},
		"no JSON-RPC":  {`{"id":2,"tool":"list_agents"}` + "\n", `"code":-32600`},
		"no batch":     {"[]\n", "an empty batch"},
		"from nowhere": {"GET / HTTP/1.1\r\n\r\n", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			served := expect.Later(func() error { return h.srv.Stdio(t.Context(), person, inR, outW) })
			go func() { _, _ = io.WriteString(inW, hello+c.line+ping) }()
			said := heard(t, outR, 3)
			for _, want := range []string{`"id":1,`, c.want, `"id":7,`} {
				expect.Has(t, said, want)
			}
			events := h.events(t, lab, "mcp.refused")
			expect.True(t, len(events) == 1 && strings.Contains(events[0], `"code":"INVALID_INPUT"`), "%q", events)
			_ = inW.Close()
			expect.No(t, <-served)
		})
	}
}

// heard are the next lines that a client is sent, in whatever order.
func heard(t *testing.T, from io.Reader, n int) (said string) {
	t.Helper()
	lines := bufio.NewReader(from)
	for range n {
		line := expect.Of(lines.ReadString('\n'))(t)
		said += line
	}
	return said
}

// TestABatchIsAnsweredMessageByMessage, whatever version was agreed on.
func TestABatchIsAnsweredMessageByMessage(t *testing.T) {
	h := newHouse(t)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := expect.Later(func() error { return h.srv.Stdio(t.Context(), person, inR, outW) })
	go func() {
		_, _ = io.WriteString(inW, hello+`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`+"\n")
	}()
	said := heard(t, outR, 3)
	expect.True(t, strings.Contains(said, `"id":7`) && strings.Contains(said, `"id":8`), "%v", said)
	_ = inW.Close()
	expect.No(t, <-served)
}

// TestModernClientsAreToldThatARefusalIsComplete, by whatever the call fails.
func TestModernClientsAreToldThatARefusalIsComplete(t *testing.T) {
	h := newHouse(t)
	tokens := &Tokens{}
	token := expect.Of(tokens.Issue(viewer))(t)
	url := h.web(t, tokens)
	for name, params := range map[string]string{
		"arguments": `"name":"list_agents","arguments":{"page":0}`,
		"role":      `"name":"delete_agent","arguments":{"agent_name":"Sony"}`,
		"call id":   `"name":"list_agents","arguments":{}`,
	} {
		meta := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
		if name == "call id" {
			meta += `,"swarmdeck/call_id":""`
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `,"_meta":{` + meta + `}}}`
		r := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body)))(t)
		tool := strings.Split(params, `"`)[3]
		for header, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": stateless, "Mcp-Method": "tools/call", "Mcp-Name": tool,
		} {
			r.Header.Set(header, value)
		}
		got := expect.Of(bearer(token).RoundTrip(r))(t)
		said, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if !strings.Contains(string(said), `"isError":true`) || !strings.Contains(string(said), `"resultType":"complete"`) {
			t.Errorf("%s: HTTP %d: %s", name, got.StatusCode, said)
		}
	}
}

// TestARelayWithoutAGoodTokenTellsItsClient: the way of agents, over stdio.
func TestARelayWithoutAGoodTokenTellsItsClient(t *testing.T) {
	h := newHouse(t)
	tokens := &Tokens{}
	good := expect.Of(tokens.Issue(sony))(t)
	url := h.web(t, tokens)
	for _, token := range []string{"", good + "x"} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		relayed := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { relayed <- Relay(ctx, url, token, inR, outW) }()
		go func() {
			_, _ = io.WriteString(inW, hello)
		}()
		buf := make([]byte, 4096)
		n, _ := outR.Read(buf)
		if answer := string(buf[:n]); !strings.Contains(answer, `"error"`) || !strings.Contains(answer, "Unauthorized") || strings.Contains(answer, good) {
			t.Errorf("token %q: %s", token, answer)
		}
		cancel()
		_ = inW.Close()
		err := <-relayed
		expect.True(t, err == nil || !strings.Contains(err.Error(), good), "%v", err)
	}
	events := h.events(t, lab, "mcp.refused")
	expect.True(t, len(events) != 0 && strings.Contains(events[0], "HTTP 401"), "%q", events)
}

// TestARelayWhoseServerTurnsAwayTellsAllWhoWait: one call is refused for all
// while another is under way.
func TestARelayWhoseServerTurnsAwayTellsAllWhoWait(t *testing.T) {
	came := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"id":1,`) {
			close(came)
			<-r.Context().Done()
			return
		}
		<-came
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer srv.Close()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	relayed := expect.Later(func() error { return Relay(t.Context(), srv.URL, "", inR, outW) })
	go func() { _, _ = io.WriteString(inW, hello+`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n") }()
	said := heard(t, outR, 2)
	expect.True(t, strings.Contains(said, `"id":1,`) && strings.Contains(said, `"id":2,`) && strings.Count(said, "Unauthorized") == 2, "%v", said)
	err := <-relayed
	expect.Says(t, err, "Unauthorized")
}
