package command

import (
	"cmp"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/ui/serve"
)

// Serve is how an engine without a screen is to be reached.
type Serve struct {
	SSH     string // address to listen on; "" lets nobody in from elsewhere
	Join    string // address at which other engines of a database reach SSH; "" lets none in
	HostKey string // file of the host key, made when it is missing
	MCP     string // address of the Model Context Protocol over HTTP
	Tokens  string // file of bearer tokens, for MCP
	Metrics string // address of the figures for Prometheus
	Bearer  string // file of the token that reads them; "" asks for none
	Limits  serve.Limits
}

func (t *tree) serve() *cobra.Command {
	var s Serve
	var log Log
	var slots int
	var deadline time.Duration
	return t.command(spec{
		stays: true, use: "serve", short: "Run the engine without a screen, for others to attach to", effect: Writes, role: Admin, ownScope: true,
		long: "Run the engine without a screen until it is interrupted. Commands and cockpits of this user attach to it by themselves.\n" +
			"With --ssh ADDR operators enter from elsewhere with the keys of `operator set`: `ssh -p PORT HOST` opens the cockpit,\n" +
			"`ssh -p PORT HOST task list -o json` runs a command. Who is known in several tenants names one: `ssh t_acme@HOST`.",
		example: "serve --ssh :2222",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&s.SSH, "ssh", "", "let operators in over SSH at `ADDR`; without a host at every address of this machine")
			f.StringVar(&s.Join, "join", "", "let the other engines of the database in at `HOST:PORT`, where they reach --ssh of this one")
			f.StringVar(&s.HostKey, "host-key", "", "`FILE` of the SSH host key, made when missing (default beside the data file)")
			f.StringVar(&s.MCP, "mcp", "", "serve the Model Context Protocol over HTTP at `ADDR`; without a host on this machine only")
			f.StringVar(&s.Tokens, "tokens", "", "`FILE` of bearer tokens, for --mcp")
			f.StringVar(&s.Metrics, "metrics", "", "serve figures for Prometheus at `ADDR`/metrics, and the probes /livez and /readyz; without a host on this machine only")
			f.StringVar(&s.Bearer, "metrics-token", "", "`FILE` of the bearer token that figures are read with, for --metrics; without it whoever reaches ADDR reads them")
			f.IntVar(&slots, "slots", 0, "run at most `N` tasks at once that go to no agent, of tenants without slots of their own (default SWARMDECK_SLOTS, or 8)")
			f.DurationVar(&deadline, "deadline", 0, "deny what a running agent asks when nobody answers within `DURATION` (default SWARMDECK_DEADLINE, or 30m, 15m or 10m by its risk)")
			f.IntVar(&s.Limits.Sessions, "max-sessions", 256, "of all operators at once over SSH; one more exits with 75")
			f.IntVar(&s.Limits.PerKey, "max-sessions-per-key", 32, "of one key at once, so that nobody keeps the others out; it may have 8 connections more")
			f.IntVar(&s.Limits.PerAddress, "max-connections-per-address", 128, "at once; those behind one gateway share them")
			f.IntVar(&s.Limits.Failures, "max-failures-per-minute", 60, "connections of one address that prove no key; then it is turned away for a while")
			f.DurationVar(&s.Limits.Idle, "idle", 0, "close a screen over SSH after `DURATION` without a key; 0 never does")
			f.DurationVar(&s.Limits.Stall, "stall", 15*time.Minute, "end a connection whose output was not read for `DURATION`")
			enumVar(f, &log.Format, "log-format", "", "text", "of the engine's log: text, json", "text", "json")
			enumVar(f, &log.Level, "log-level", "", "info", "the least that is logged: debug, info, warn, error", "debug", "info", "warn", "error")
			f.StringVar(&log.File, "log-file", "", "append the engine's log to `FILE`; without it to the standard error")
			source(f, "tokens", "file")
			source(f, "metrics-token", "file")
			source(f, "log-file", "file")
			source(f, "host-key", "file")
		},
		check: func(c *call, _ []string) error {
			if c.env.Busy != nil {
				return c.env.Busy()
			}
			if c.env.Doors.Serve == nil || c.env.Attached {
				return core.Errorf(core.Unavailable, "serve: only from the command line")
			}
			if (s.MCP != "") != (s.Tokens != "") {
				return usage("tokens", "serve: --mcp ADDR and --tokens FILE belong together")
			}
			if s.Bearer != "" && s.Metrics == "" {
				return usage("metrics-token", "serve: --metrics-token FILE belongs to --metrics ADDR")
			}
			if s.Join != "" && s.SSH == "" {
				return usage("join", "serve: --join HOST:PORT belongs to --ssh ADDR")
			}
			for flag, addr := range map[string]string{"ssh": s.SSH, "join": s.Join, "mcp": s.MCP, "metrics": s.Metrics} {
				if addr == "" {
					continue
				}
				if _, _, err := net.SplitHostPort(addr); err != nil {
					return core.Invalid(flag, addr, "HOST:PORT or :PORT")
				}
			}
			if err := bound.Check(s.Limits); err != nil {
				return err
			}
			if log.File != "" {
				log.File = c.env.path(log.File)
			}
			if c.flags.Changed("slots") {
				if err := swarm.CheckSlots("slots", slots); err != nil {
					return err
				}
			}
			if c.flags.Changed("deadline") {
				if err := judge.CheckDeadline("deadline", deadline); err != nil {
					return err
				}
			}
			c.need = Need{Alone: true, Slots: slots, Deadline: deadline, Shared: true, Log: log}
			return c.activate()
		},
		run: func(c *call, _ []string) (err error) {
			if _, err := c.engine(); err != nil {
				return err
			}
			if c.by, err = c.operator(); err != nil {
				return err
			}
			if s.MCP != "" {
				if c.by.Tenant, err = c.tokensTenant(); err != nil {
					return err
				}
			}
			s.HostKey = cmp.Or(s.HostKey, c.g.Data+".hostkey")
			for _, path := range []*string{&s.Tokens, &s.Bearer, &s.HostKey} {
				if *path != "" {
					*path = c.env.path(*path)
				}
			}
			return c.env.Doors.Serve(c.ctx, c.env, c.start(), s)
		},
	})
}

// tokensTenant is the tenant of tokens that name none; "" where there are several, so
// that each has to.
func (c *call) tokensTenant() (string, error) {
	if all, err := c.eng.Swarm.Tenants(c.ctx); err == nil && len(all) > 1 && c.wanted() == "" {
		return "", nil
	}
	return c.tenant(c.by)
}

// Attach is a cockpit on another machine.
type Attach struct {
	Host    string   // [USER@]HOST, as ssh takes it
	Port    string   // of a `serve --ssh` there; "" is the machine's own sshd, which runs Program
	Program string   // the program there
	Options []string // more arguments of ssh
	Key     string   // file of the private key that signs; "" asks ssh-agent
}

func (t *tree) attach() *cobra.Command {
	var a Attach
	return t.command(spec{
		stays: true, use: "attach HOST [-- SSH-OPTION…]", short: "Open the cockpit of another machine, over the system's ssh", effect: Reads, anyArg: true, ownScope: true,
		long: "Open the cockpit of another machine over the system's ssh, with its keys, agent and configuration. With --port it is a\n" +
			"`serve --ssh` that answers there; without, the machine's own sshd runs swarmdeck, which attaches to the running engine.\n" +
			"A connection that is lost is made again until ctrl+c; the work there goes on meanwhile.\n" +
			"Answers that have to be signed are signed here, by ssh-agent or --key: you are shown what, and asked. No agent is forwarded.",
		example: "attach bob@deck.example.com --port 2222",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&a.Port, "port", "", "`PORT` of a serve --ssh there")
			f.StringVar(&a.Program, "program", "swarmdeck", "`PROGRAM` that the sshd there runs")
		},
		check: func(c *call, args []string) error {
			if dash := c.flags.ArgsLenAtDash(); dash >= 0 {
				args, a.Options = args[:dash], args[dash:]
			}
			switch {
			case len(args) != 1:
				return usage("host", "attach: want one HOST, and options of ssh after --")
			case args[0] == "" || strings.HasPrefix(args[0], "-") || strings.ContainsAny(args[0], " \t\n\x00"):
				return core.Invalid("host", args[0], "[USER@]HOST")
			case c.env.Doors.Attach == nil || c.env.Attached:
				return core.Errorf(core.Unavailable, "attach: only from the command line")
			}
			a.Host, a.Key = args[0], c.g.Key
			return nil
		},
		run: func(c *call, _ []string) error { return c.env.Doors.Attach(c.ctx, c.env, a) },
	})
}
