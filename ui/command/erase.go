package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (t *tree) tenantErase() *cobra.Command {
	var yes bool
	return t.command(spec{
		use: "erase SUBJECT", short: "Erase what a person or agent said, and leave the digests", effect: Destroys, role: Admin, confirm: ConfirmType, args: []string{"party"},
		long: "Erase the content of a person or agent: of the tasks that they asked for, and of those that were run for these, the input,\n" +
			"title, output, errors, logs and files; their messages; the parameters and results of skills; what approvals showed, and the\n" +
			"reasons that they gave; what the record holds of it. SUBJECT is a name of an operator or agent, or who a person is to the\n" +
			"door: uid:1000, or a key's SHA256:…. In place of the content stand its SHA-256 and size. Who did what, and when, stays in\n" +
			"the audit log. What is not over is left and named: end it, and erase again. An erasure that was ended is finished by\n" +
			"another. The free space of the data file holds what was there until store compact.",
		example: "tenant erase alice --yes\ntenant erase uid:1000 --yes",
		flags:   func(f *pflag.FlagSet) { f.BoolVar(&yes, "yes", false, "it is meant") },
		check: func(_ *call, args []string) error {
			if !yes {
				return usage("yes", "tenant erase: this can't be undone; say --yes to erase what %q said", core.Clip(args[0]))
			}
			return nil
		},
		run: func(c *call, args []string) error {
			done, err := c.eng.Retention.Erase(c.ctx, c.by, args[0])
			if err != nil {
				return err
			}
			var text []string
			for _, kind := range slices.Sorted(maps.Keys(done.Erased)) {
				text = append(text, fmt.Sprintf("%d %s", done.Erased[kind], kind))
			}
			if len(text) == 0 {
				text = []string{"nothing"}
			}
			line := "erased of " + done.Subject + ": " + strings.Join(text, ", ")
			for _, left := range done.Left {
				line += "\nleft: " + left
			}
			if done.More > 0 {
				line += fmt.Sprintf("\nleft: %d more", done.More)
			}
			return c.say(done, "%s\n%s", line, done.Next)
		},
	})
}
