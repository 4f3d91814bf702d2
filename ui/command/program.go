package command

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

func (t *tree) version() *cobra.Command {
	return t.command(spec{
		use: "version", short: "Print the version", effect: Reads, ownScope: true,
		run: func(c *call, _ []string) error {
			v := map[string]string{"version": c.env.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				v["version"] = cmp.Or(v["version"], info.Main.Version)
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v["revision"] = s.Value
					}
				}
			}
			v["version"] = cmp.Or(v["version"], "(devel)")
			return c.say(v, "swarmdeck %s %s %s", v["version"], v["go"], v["platform"])
		},
	})
}

func (t *tree) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return t.command(spec{
		use: "completion SHELL", short: "Print a completion script for bash, zsh, fish or powershell", effect: Reads, ownScope: true,
		long: "Print a completion script, for the shell to read.\nFor bash: source <(swarmdeck completion bash)",
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
				return usage("shell", "completion: %q is not allowed; allowed: %s", core.Clip(args[0]), strings.Join(shells, ", "))
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
	var markdown string
	return t.command(spec{
		use: "help [COMMAND…]", short: "Help about a command, or about: skill-file, swarm-file", effect: Reads, args: []string{"command"}, ownScope: true,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&markdown, "markdown", "", "write a page for each command into `DIR`, which is there, instead")
			source(f, "markdown", "dir")
			f.BoolVar(&t.all, "all", false, "every command and flag")
		},
		run: func(c *call, args []string) error {
			if markdown != "" {
				own, err := c.own()
				switch {
				case len(args) > 0:
					err = usage("markdown", "help: --markdown writes the pages of all commands, and takes no COMMAND")
				case c.env.Caller.Kind == core.Agent:
					err = core.Errorf(core.Denied, "help: --markdown writes files, and an agent does that by its tools").With("field", "markdown")
				case err == nil:
					err = cmp.Or(c.makesFile(), c.namesPlace(&markdown))
				}
				if err != nil {
					return err
				}
				return writeReference(own, markdown, c.cmd.Root())
			}
			if text, ok := topic(strings.Join(args, " ")); ok {
				return c.verbatim(map[string]string{"topic": args[0], "text": text}, []byte(text))
			}
			cmd, rest, err := c.cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmp.Or(cmd, c.cmd.Root()), append(rest, args[len(args)-1])[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	})
}

// topicFiles are texts of help that belong to no one command, by NAME.txt.
//
//go:embed topics
var topicFiles embed.FS

// topic is the text of help about something that is no command.
func topic(name string) (string, bool) {
	text, err := topicFiles.ReadFile("topics/" + name + ".txt")
	return string(text), err == nil
}
