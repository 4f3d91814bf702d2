package command

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
)

// runCockpit is swarmdeck without a command.
func runCockpit(c *call, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c.cmd, args[0])
	}
	s := Start{Globals: c.g, Open: c.env.Open, Dir: c.env.Dir, Caller: c.operator()}
	if c.g.Script != "" {
		if c.env.Doors.Script == nil {
			return core.Errorf(core.Unavailable, "--script is not available here").With("field", "script")
		}
		if c.g.Script != "-" {
			s.Script = c.env.path(c.g.Script)
		}
		if !c.flags.Changed("data") {
			s.Data = "" // the environment's is for people, not for scripts
		}
		return c.env.Doors.Script(c.ctx, c.env, s)
	}
	for flag, set := range map[string]bool{"update": c.g.Update, "show": c.g.Show} {
		if set {
			return usage(flag, "--%s belongs to --script FILE", flag)
		}
	}
	return c.enterCockpit(s)
}

func (c *call) enterCockpit(s Start) error {
	if c.env.Doors.Cockpit == nil {
		return usage("command", "a command is missing; try: help")
	}
	c.active = !c.g.ReadOnly
	eng, by, err := c.scope()
	if err != nil {
		return err
	}
	s.Engine, s.Caller = eng, by
	s.Data = c.g.Data
	// Lines given inside the door work on this engine, whatever they ask for.
	inside := *c.env
	inside.Caller, inside.ReadOnly, inside.Close, inside.Doors = by, c.g.ReadOnly, nil, Doors{}
	inside.Open = func(context.Context, Need) (*engine.Engine, error) { return eng, nil }
	return c.env.Doors.Cockpit(c.ctx, &inside, s)
}

func (t *tree) version() *cobra.Command {
	return t.command(spec{
		use: "version", short: "Print the version", effect: Reads,
		run: func(c *call, _ []string) error {
			v := map[string]string{"version": c.env.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				if v["version"] == "" {
					v["version"] = info.Main.Version
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v["revision"] = s.Value
					}
				}
			}
			if v["version"] == "" {
				v["version"] = "(devel)"
			}
			return c.say(v, "swarmdeck %s %s %s", v["version"], v["go"], v["platform"])
		},
	})
}

func (t *tree) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return t.command(spec{
		use: "completion SHELL", short: "Print a completion script for bash, zsh, fish or powershell", effect: Reads,
		long: "Print a completion script. For bash: source <(swarmdeck completion bash)",
		args: []string{"enum:" + strings.Join(shells, ",")},
		run: func(c *call, args []string) error {
			var out bytes.Buffer
			var err error
			root := c.cmd.Root()
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(&out, true)
			case "zsh":
				err = root.GenZshCompletion(&out)
			case "fish":
				err = root.GenFishCompletion(&out, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(&out)
			default:
				return usage("shell", "completion: %q is not allowed; allowed: %s", clip(args[0]), strings.Join(shells, ", "))
			}
			if err != nil {
				return fmt.Errorf("write completion script: %w", err)
			}
			return c.flush(&out)
		},
	})
}

// help replaces cobra's own, which ends the process when it can't write.
func (t *tree) help() *cobra.Command {
	cmd := t.command(spec{
		use: "help [COMMAND…]", short: "Help about a command", effect: Reads, args: []string{"command"},
		run: func(c *call, args []string) error {
			cmd, rest, err := c.cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage("command", "help: unknown command %q", clip(strings.Join(args, " ")))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	})
	return cmd
}
