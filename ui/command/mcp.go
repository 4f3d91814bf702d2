package command

import (
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// MCP is how the Model Context Protocol is to be served.
type MCP struct {
	HTTP   string // address to listen on; "" serves one client on stdin and stdout
	Tokens string // file of bearer tokens, for HTTP
	Agent  string // in whose name the client on stdin calls; "" is the operator
	Viewer bool   // that operator only looks
}

func (t *tree) mcp() *cobra.Command {
	var m MCP
	cmd := t.command(spec{
		stays: true, use: "mcp", short: "Serve the Model Context Protocol", effect: Writes,
		long: "Serve the fleet, tasks, messages and skills to a client of the Model Context Protocol on stdin and stdout, in the\n" +
			"operator's name: put this command into the client's configuration. Each call is judged, and none can approve.\n" +
			"With --http ADDR: serve many clients at http://ADDR/mcp, each in the name that its bearer token stands for.",
		example: "mcp\nmcp --http 127.0.0.1:9001 --tokens tokens.yaml",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&m.HTTP, "http", "", "listen on `ADDR`; without a host on this machine only")
			f.StringVar(&m.Tokens, "tokens", "", "`FILE` of bearer tokens, for --http")
			f.StringVar(&m.Agent, "agent", "", "call in the name of this agent: `NAME`")
			f.BoolVar(&m.Viewer, "viewer", false, "only look")
			source(f, "tokens", "file")
			source(f, "agent", "agent")
		},
		check: func(c *call, _ []string) error { return m.check(c) },
		run: func(c *call, _ []string) error {
			if m.Tokens != "" {
				m.Tokens = c.env.path(m.Tokens)
			}
			return c.env.Doors.MCP(c.ctx, c.env, c.start(), m)
		},
	})
	cmd.AddCommand(t.below(op.Of("mcp"), t.mcpConnect())...)
	return cmd
}

func (m *MCP) check(c *call) error {
	switch {
	case c.env.Doors.MCP == nil || c.env.Caller.Door != core.DoorCLI && c.env.Caller.Door != core.DoorSSH || c.env.Remote && m.HTTP != "":
		return core.Errorf(core.Unavailable, "mcp: only from the command line")
	case c.env.Remote && m.Agent != "":
		return core.Errorf(core.Denied, "--agent: your key makes you an operator here, not an agent").With("field", "agent")
	case (m.HTTP != "") != (m.Tokens != ""):
		return usage("tokens", "mcp: --http ADDR and --tokens FILE belong together")
	case m.HTTP != "" && (m.Agent != "" || m.Viewer):
		return usage("http", "mcp: with --http it is the tokens that say who calls: leave --agent and --viewer out")
	case m.Agent != "" && m.Viewer:
		return usage("viewer", "mcp: an agent has no role: --agent and --viewer exclude each other")
	}
	if m.HTTP != "" {
		if _, _, err := net.SplitHostPort(m.HTTP); err != nil {
			return usage("http", "--http: %q is not allowed; allowed: HOST:PORT or :PORT", core.Clip(m.HTTP))
		}
	}
	return c.activate()
}

// The environment that mcp connect reads.
const (
	envMCPURL   = "SWARMDECK_MCP_URL"
	envMCPToken = "SWARMDECK_MCP_TOKEN"
)

func (t *tree) mcpConnect() *cobra.Command {
	return t.command(spec{
		stays: true, use: "connect [URL]", short: "Pass a client's messages on to a server over HTTP", effect: Reads, ownScope: true,
		long: "Pass the messages of a client on stdin and stdout on to a server of the Model Context Protocol over HTTP, for clients\n" +
			"that speak no HTTP. The URL may also stand in " + envMCPURL + "; the bearer token is read from " + envMCPToken + ".",
		example: "mcp connect http://127.0.0.1:9001/mcp",
		run: func(c *call, args []string) error {
			if c.env.Doors.Connect == nil || c.env.Caller.Door != core.DoorCLI {
				return core.Errorf(core.Unavailable, "mcp connect: only from the command line")
			}
			url := c.env.getenv(envMCPURL)
			if len(args) > 0 {
				url = args[0]
			}
			if strings.TrimSpace(url) == "" {
				return usage("url", "mcp connect: URL is missing; give it, or set %s", envMCPURL)
			}
			return c.env.Doors.Connect(c.ctx, c.env, url, c.env.getenv(envMCPToken))
		},
	})
}
