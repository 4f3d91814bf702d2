package mcp

import (
	"context"
	"io"
	"strings"
	"testing"

	"swarmdeck/engine/core"
)

// TestBrokenMessagesEndAClientOnStdioAndAreAudited is what HTTP answers with a
// status: on a stream nobody knows where the next message begins.
func TestBrokenMessagesEndAClientOnStdioAndAreAudited(t *testing.T) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n"
	for name, said := range map[string]string{
		"too large":    hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_agents","arguments":{"x":"` + strings.Repeat("a", 2*maxMessage) + "\"}}}\n",
		"malformed":    hello + "{\"jsonrpc\":\n{]\n",
		"no JSON-RPC":  hello + `{"id":2,"tool":"list_agents"}` + "\n",
		"from nowhere": "GET / HTTP/1.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			inR, inW := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- h.srv.Stdio(t.Context(), person, inR, onlyWriter{io.Discard}) }()
			go func() {
				_, _ = io.WriteString(inW, said)
			}()
			err := <-served
			if core.AsError(err).Code != core.InvalidInput {
				t.Errorf("%v", err)
			}
			if events := h.events(t, lab, "mcp.refused"); len(events) != 1 || !strings.Contains(events[0], `"code":"INVALID_INPUT"`) {
				t.Errorf("%q", events)
			}
		})
	}
}

// TestARelayWithoutAGoodTokenTellsItsClient: the way of agents, over stdio.
func TestARelayWithoutAGoodTokenTellsItsClient(t *testing.T) {
	h := newHouse(t)
	tokens := &Tokens{}
	good, err := tokens.Issue(sony)
	if err != nil {
		t.Fatal(err)
	}
	url := h.web(t, tokens)
	for _, token := range []string{"", good + "x"} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		relayed := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { relayed <- Relay(ctx, url, token, inR, outW) }()
		go func() {
			_, _ = io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`+"\n")
		}()
		buf := make([]byte, 4096)
		n, _ := outR.Read(buf)
		if answer := string(buf[:n]); !strings.Contains(answer, `"error"`) || !strings.Contains(answer, "Unauthorized") || strings.Contains(answer, good) {
			t.Errorf("token %q: %s", token, answer)
		}
		cancel()
		_ = inW.Close()
		if err := <-relayed; err != nil && strings.Contains(err.Error(), good) {
			t.Error(err)
		}
	}
	if events := h.events(t, lab, "mcp.refused"); len(events) == 0 || !strings.Contains(events[0], "HTTP 401") {
		t.Errorf("%q", events)
	}
}
