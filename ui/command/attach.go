package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

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
