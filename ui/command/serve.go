package command

import (
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

// Serve is how an engine without a screen is to be reached.
type Serve struct {
	SSH     string // address to listen on; "" lets nobody in from elsewhere
	HostKey string // file of the host key, made when it is missing
	MCP     string // address of the Model Context Protocol over HTTP
	Tokens  string // file of bearer tokens, for MCP
	Metrics string // address of the figures for Prometheus
}

func (t *tree) serve() *cobra.Command {
	var s Serve
	return t.command(spec{
		use: "serve", short: "Run the engine without a screen, for others to attach to", effect: Writes, role: Admin, ownScope: true,
		long: "Run the engine without a screen until it is interrupted. Commands and cockpits of this user attach to it by themselves.\n" +
			"With --ssh ADDR operators enter from elsewhere with the keys of `operator set`: `ssh -p PORT HOST` opens the cockpit,\n" +
			"`ssh -p PORT HOST task list -o json` runs a command. Who is known in several tenants names one: `ssh t_acme@HOST`.",
		example: "serve --ssh :2222",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&s.SSH, "ssh", "", "let operators in over SSH at `ADDR`; without a host at every address of this machine")
			f.StringVar(&s.HostKey, "host-key", "", "`FILE` of the SSH host key, made when missing (default beside the data file)")
			f.StringVar(&s.MCP, "mcp", "", "serve the Model Context Protocol over HTTP at `ADDR`; without a host on this machine only")
			f.StringVar(&s.Tokens, "tokens", "", "`FILE` of bearer tokens, for --mcp")
			f.StringVar(&s.Metrics, "metrics", "", "serve figures for Prometheus at `ADDR`/metrics; without a host on this machine only")
			source(f, "tokens", "file")
			source(f, "host-key", "file")
		},
		check: func(c *call, _ []string) error {
			if c.env.Doors.Serve == nil || c.env.Away {
				return core.Errorf(core.Unavailable, "serve: only from the command line")
			}
			if (s.MCP != "") != (s.Tokens != "") {
				return usage("tokens", "serve: --mcp ADDR and --tokens FILE belong together")
			}
			for flag, addr := range map[string]string{"ssh": s.SSH, "mcp": s.MCP, "metrics": s.Metrics} {
				if addr == "" {
					continue
				}
				if _, _, err := net.SplitHostPort(addr); err != nil {
					return core.Invalid(flag, addr, "HOST:PORT or :PORT")
				}
			}
			return c.activate()
		},
		run: func(c *call, _ []string) (err error) {
			if _, err := c.engine(); err != nil {
				return err
			}
			if c.by, err = c.operator(); err != nil {
				return err
			}
			if s.MCP != "" { // whose tokens name no tenant
				if c.by.Tenant, err = c.tenant(c.by); err != nil {
					return err
				}
			}
			if s.Tokens != "" {
				s.Tokens = c.env.path(s.Tokens)
			}
			if s.HostKey == "" {
				s.HostKey = c.g.Data + ".hostkey"
			} else {
				s.HostKey = c.env.path(s.HostKey)
			}
			return c.env.Doors.Serve(c.ctx, c.env, Start{Globals: c.g, Caller: c.by, Engine: c.eng, Open: c.env.Open, Dir: c.env.Dir}, s)
		},
	})
}
