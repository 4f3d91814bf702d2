package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// Options of agents that would send the engine's secrets somewhere, or name
// what is on its machine, are held at every door.
func TestOptionsThatReachForTheMachineAreHeldAtEachDoor(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.env = append(u.env, "SECRET=xyzzy")
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	roles := []string{"viewer", "operator", "approver", "admin"}
	guests := map[string]*guest{}
	for i, role := range roles {
		signer, line := pair(t, byte(i))
		u.ok("operator", "set", role, "--role", role, "--key", line)
		guests[role] = d.enter("anyone", signer)
	}
	const far = `"url":"http://127.0.0.1:1"`
	for _, c := range []struct {
		runtime, options string
		from             int // the least of the roles that may from another machine
		field            string
	}{
		{"coder", `{` + far + `}`, 3, "options.url"},
		{"coder", `{` + far + `,"token_env":"SECRET"}`, 3, "options.token_env"},
		{"coder", `{` + far + `,"token_file":"/etc/hostname"}`, 4, "options.token_file"},
		{"acp", `{"home":"/root"}`, 4, "options.home"},
		{"acp", `{"skeleton":"/etc"}`, 4, "options.skeleton"},
		{"acp", `{"user":"nobody"}`, 4, "options.user"},
		{"acp", `{"fresh":true}`, 1, ""},
	} {
		for i, role := range roles[1:] {
			lines := []string{"agent create a --project p --role r --runtime " + c.runtime + " --options '" + c.options + "'"}
			if c.runtime == "acp" {
				lines[0] += " -- true"
			} else {
				lines = append(lines, "project learn coder --options '"+c.options+"'")
			}
			for _, line := range lines {
				_, _, stderr := guests[role].run("-o json " + line)
				denied := strings.Contains(stderr, `"DENIED"`) && strings.Contains(stderr, c.field)
				expect.True(t, denied != (i+1 >= c.from) && !strings.Contains(stderr, "xyzzy"), "%s: %s: %s", role, line, stderr)
			}
		}
		// The same user on the same machine may: by a command that attaches.
		_, _, stderr := u.run("project", "learn", c.runtime, "--options", c.options, "-o", "json")
		expect.True(t, !strings.Contains(stderr, `"DENIED"`), "attached: %s: %s", c.options, stderr)
	}
	n := strings.Count(u.ok("audit", "list", "--kind", "operator.refused", "--page-size", "100", "-o", "json"), "\n")
	expect.True(t, n >= 10, "%d refusals in the log", n)
	// Over MCP no client has a word for options at all.
	out := guests["admin"].mcp(`{"name":"create_agent","arguments":{"name":"a","project":"p","role":"r","task":"x","options":{"token_env":"SECRET"}}}`)
	expect.True(t, strings.Contains(out, "options") && strings.Contains(out, "INVALID_INPUT"), "mcp: %s", out)
}

// mcp calls a tool by the protocol on stdin and stdout.
func (g *guest) mcp(call string) string {
	g.t.Helper()
	s := expect.Of(g.client.NewSession())(g.t)
	defer s.Close()
	var out strings.Builder
	in := expect.Of(s.StdinPipe())(g.t)
	said := make(chan struct{})
	s.Stdout = &until{b: &out, what: `"id":2`, seen: said}
	expect.No(g.t, s.Start("mcp"))
	_, _ = in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + call + `}
`))
	<-said
	_ = in.Close()
	_ = s.Wait()
	return out.String()
}

// until tells when something was written.
type until struct {
	b    *strings.Builder
	what string
	seen chan struct{}
}

func (u *until) Write(p []byte) (int, error) {
	before := strings.Contains(u.b.String(), u.what)
	n, err := u.b.Write(p)
	if !before && strings.Contains(u.b.String(), u.what) {
		close(u.seen)
	}
	return n, err
}

func TestAnAgentThatAnotherMachineMakesWorksInADirectoryOfItsOwn(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	signer, line := pair(t, 1)
	u.ok("operator", "set", "olga", "--role", "operator", "--key", line)
	d := u.daemon()
	g := d.enter("anyone", signer)
	here := expect.Of(os.Getwd())(t) // where the engine was started
	code, _, stderr := g.run("agent create near --project p --dir " + here + " -- cat")
	expect.True(t, code != 0 && strings.Contains(stderr, "another machine"), "exit %d: %s", code, stderr)
	var dirs []string
	for _, name := range []string{"one", "two"} {
		code, _, stderr := g.run("agent create " + name + " --project p -- sh -c 'pwd; touch made'")
		expect.True(t, code == 0, "exit %d: %s", code, stderr)
		dirs = append(dirs, field(u.ok("agent", "show", name, "-o", "json"), "dir"))
		code, _, stderr = g.run("agent assign " + name + " go --wait")
		expect.True(t, code == 0, "exit %d: %s", code, stderr)
		_, err := os.Stat(filepath.Join(dirs[len(dirs)-1], "made"))
		expect.No(t, err)
	}
	expect.True(t, dirs[0] != dirs[1] && strings.HasPrefix(dirs[0], u.data()+".run/work/"), "%q", dirs)
}
