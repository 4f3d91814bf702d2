package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/expect"
)

// doorCalls are calls over the program's own doors. That every tool can be
// called is tested where the tools are.
var doorCalls = [][]string{
	{"list_agents"},
	{"dispatch_task", "kind=exec.run", `input={"argv":["ls"]}`, "wait_s=10"},
	{"invoke_skill", "skill=echo", `params={"text":"hi"}`, "wait_s=10"},
}

// listed are the names of the tools in what the inspector printed.
func listed(t *testing.T, printed string) []string {
	t.Helper()
	var list struct {
		Tools []struct {
			Name        string         `json:"name"`
			InputSchema map[string]any `json:"inputSchema"`
		} `json:"tools"`
	}
	expect.No(t, json.Unmarshal([]byte(printed), &list), "in", printed)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestTheInspectorUsesTheProgram(t *testing.T) {
	t.Parallel()
	inspector := drivertest.NewInspector(t)
	u := newPlayer(t)
	u.ok("agent", "create", "Sony", "--project", "P", "--role", "coder", "--", "cat")
	program := filepath.Join(u.home, "swarmdeck")
	call := func(target []string, c []string) (code int, printed string) {
		args := append(slices.Clone(target), "--method", "tools/call", "--tool-name", c[0])
		for _, arg := range c[1:] {
			args = append(args, "--tool-arg", arg)
		}
		return inspector.Run(args...)
	}

	stdio := []string{program, "mcp", "--transport", "stdio", "-e", "SWARMDECK_DATA=" + u.data()}
	var all []string
	for _, era := range []string{"legacy", "auto", "modern"} {
		code, printed := inspector.Run(append(slices.Clone(stdio), "--protocol-era", era, "--method", "tools/list")...)
		if names := listed(t, printed); code != 0 || len(names) != 39 || all != nil && !slices.Equal(names, all) {
			t.Errorf("%s over stdio: exit code %d, %v", era, code, names)
		} else {
			all = names
		}
	}
	if code, printed := inspector.Run(append(slices.Clone(stdio), "--strict", "--method", "tools/list")...); code != 0 || strings.Contains(printed, "Warning: ") {
		t.Errorf("the schemas are not portable: exit code %d: %s", code, printed)
	}
	for _, c := range doorCalls {
		if code, printed := call(stdio, c); code != 0 {
			t.Errorf("%s over stdio: exit code %d: %s", c[0], code, printed)
		}
	}

	tokens := filepath.Join(u.home, "tokens.yaml")
	expect.No(t, os.WriteFile(tokens, []byte("tokens: [{operator: alice, role: operator, token: the-token-of-alice}]\n"), 0o600))
	addr, stop := u.serve(t, tokens)
	url := []string{"http://" + addr + "/mcp", "--transport", "http"}
	good := append(slices.Clone(url), "--header", "Authorization: Bearer the-token-of-alice")
	for _, era := range []string{"legacy", "auto", "modern"} {
		code, printed := inspector.Run(append(slices.Clone(good), "--protocol-era", era, "--method", "tools/list")...)
		names := listed(t, printed)
		expect.True(t, code == 0 && slices.Equal(names, all), "%s over HTTP: exit code %d, %v", era, code, names)
	}
	for _, c := range doorCalls {
		if code, printed := call(good, c); code != 0 {
			t.Errorf("%s over HTTP: exit code %d: %s", c[0], code, printed)
		}
	}
	code, printed := inspector.Run(append(slices.Clone(good), "--method", "resources/read", "--uri", "resource://approval-policy/policy.json")...)
	expect.True(t, code == 0 && strings.Contains(printed, "own.agent"), "the policy: exit code %d: %s", code, printed)
	for _, header := range [][]string{{"--header", "Authorization: Bearer wrong"}, nil} {
		code, printed := inspector.Run(append(append(slices.Clone(url), header...), "--method", "tools/list")...)
		expect.True(t, code != 0 && !strings.Contains(printed, `"tools"`), "%v was taken: %s", header, printed)
	}
	// A second one is told who holds the data file, rather than left without an answer.
	code, _, stderr := u.run("mcp", "--http", "127.0.0.1:0", "--tokens", tokens)
	expect.True(t, code != 0 && strings.Contains(stderr, "holds the data file"), "beside an engine: exit %d %s", code, stderr)
	stop()
	events := u.ok("audit", "list", "--kind", "mcp.refused", "-o", "json")
	expect.True(t, strings.Contains(events, "HTTP 401") && !strings.Contains(events, "wrong"), "the refusals: %s", events)
	u.ok("audit", "verify")
}

// serve serves over HTTP until stop, which waits for its end.
func (u *user) serve(t *testing.T, tokens string) (addr string, stop func()) {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr = l.Addr().String()
	_ = l.Close()
	server := u.command("mcp", "--http", addr, "--tokens", tokens)
	var said bytes.Buffer
	server.Stderr = &said
	expect.No(t, server.Start())
	stop = sync.OnceFunc(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	t.Cleanup(stop)
	expect.Await(t, "listener", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return addr, stop
}
