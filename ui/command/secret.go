package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/ui/term"
)

func (t *tree) secrets() *cobra.Command {
	return t.group("secret", "Credentials that agents and tasks get unseen",
		t.secretSet(),
		lists(t, spec{
			use: "list", short: "List the secrets and the agents that use them; never a value", effect: Reads,
		}, nil, secretColumns, func(c *call, f core.Filter) (core.Page[usedSecret], error) {
			all, err := c.eng.Secrets.List(c.ctx, c.by.Tenant)
			return pick(c.used(all...), err, f, func(s usedSecret) traits {
				return traits{at: s.CreatedAt, text: s.Name + " " + s.Origin + " " + strings.Join(s.Agents, " ")}
			})
		}),
		t.command(spec{
			use: "delete NAME", short: "Delete a secret; what refers to it starts no more", effect: Destroys, confirm: ConfirmAsk,
			run: changes(secretColumns, func(c *call, name string) (usedSecret, error) {
				gone, err := c.eng.Secrets.Delete(c.ctx, c.by, name)
				return c.used(gone)[0], err
			}),
		}),
	)
}

// usedSecret is a secret with the agents whose environment refers to it.
type usedSecret struct {
	secret.Secret
	Agents []string `json:"agents"`
}

func (c *call) used(all ...secret.Secret) []usedSecret {
	uses := c.eng.SecretUses(c.by.Tenant)
	out := make([]usedSecret, len(all))
	for i, s := range all {
		out[i] = usedSecret{s, uses[s.Name]}
	}
	return out
}

func (t *tree) secretSet() *cobra.Command {
	var from string
	var value []byte
	return t.command(spec{
		use: "set NAME", short: "Keep a credential that nobody is shown", effect: Writes,
		long: "Keep a credential under a name, or give it another value. The value is read from a file or from stdin, never from the\n" +
			"line; there is no command that shows it. Give it to an agent with --env KEY=@NAME, and to a task, a skill or a server in\n" +
			"its env in the same way; a text that begins with @ itself is written with two. It is put in where a process starts, and\n" +
			"hidden in what that process prints: as it is, in base64, hex, URLs and JSON. A program can always print it in another way.\n" +
			"A process that runs keeps the value it started with.",
		example: "secret set OPENAI_KEY --from-file key.txt",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&from, "from-file", "-", "`FILE` with the value, - for stdin; the end of a single line does not count")
		},
		check: func(c *call, args []string) (err error) {
			if err := secret.CheckName(args[0]); err != nil {
				return err
			}
			value, err = c.file("from-file", from)
			return err
		},
		run: func(c *call, args []string) error {
			made, _, err := c.eng.Secrets.Set(c.ctx, c.by, args[0], value)
			if err != nil {
				return err
			}
			return record(c, c.used(made)[0], secretColumns(c))
		},
	})
}

func secretColumns(c *call) []column[usedSecret] {
	type S = usedSecret
	return []column[S]{
		{title: "SECRET", text: func(s S) string { return s.Name }},
		{title: "AGE", right: true, text: func(s S) string { return c.age(s.CreatedAt) }},
		{title: "CHANGED", right: true, text: func(s S) string { return c.age(s.UpdatedAt) }},
		{title: "BY", most: 20, text: func(s S) string { return s.UpdatedBy }},
		{title: "ORIGIN", wide: true, text: func(s S) string { return s.Origin }},
		{title: "AGENTS", most: 60, text: func(s S) string { return strings.Join(s.Agents, " ") }},
	}
}

// concealed tells of variables that were given in clear and are kept as secrets.
func (c *call) concealed(given, kept map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if name := secret.Reference(kept[key]); name != "" && secret.Reference(given[key]) == "" {
			fmt.Fprintf(c.env.Stderr, "%s\n", term.Clean(fmt.Sprintf("%s looks like a credential: it is kept as secret %s, and the record refers to it by @%s", key, name, name)))
		}
	}
}
