package op

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

func secrets() []*Op {
	return []*Op{
		secretSet(),
		list(Op{Name: "secret list", Short: "List the secrets and the agents that use them; never a value"},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[UsedSecret], error) {
				all, err := c.Secrets.List(ctx, c.By.Tenant)
				return core.Pick(c.used(all...), err, f, func(s UsedSecret) core.Traits {
					return core.Traits{At: s.CreatedAt, Text: s.Name + " " + s.Origin + " " + strings.Join(s.Agents, " ")}
				})
			}),
		change(Op{Name: "secret delete", Short: "Delete a secret; what refers to it starts no more", Effect: Destroys, Confirm: ConfirmAsk, Done: "deleted"},
			arg("NAME", ""), func(ctx context.Context, c *Call, name string) (UsedSecret, error) {
				gone, err := c.Secrets.Delete(ctx, c.By, name)
				return c.used(gone)[0], err
			}),
	}
}

// UsedSecret is a secret with the agents whose environment refers to it.
type UsedSecret struct {
	secret.Secret
	Agents []string `json:"agents"`
}

func (c *Call) used(all ...secret.Secret) []UsedSecret {
	uses := c.SecretUses(c.By.Tenant)
	return core.Map(all, func(s secret.Secret) UsedSecret { return UsedSecret{s, uses[s.Name]} })
}

func secretSet() *Op {
	var name string
	value := File{Name: "-"}
	return define(Op{
		Name: "secret set", Short: "Keep a credential that nobody is shown", Undo: "secret delete", Done: "set",
		Long: "Keep a credential under a name, or give it another value. The value is read from a file or from stdin, never from the\n" +
			"line; there is no command that shows it. Give it to an agent with --env KEY=@NAME, and to a task, a skill or a server in\n" +
			"its env in the same way; a text that begins with @ itself is written with two. It is put in where a process starts, and\n" +
			"hidden in what that process prints: as it is, in base64, hex, URLs and JSON. A program can always print it in another way.\n" +
			"A process that runs keeps the value it started with.",
		Example: "secret set OPENAI_KEY --from-file key.txt",
		Params: []*Param{
			{Name: "name", About: "NAME", Arg: true, Need: true, Into: &name, Valid: func() error { return secret.CheckName(name) }},
			flag(&value, "from-file", "`FILE` with the value, - for stdin; the end of a single line does not count"),
		},
	}, func(ctx context.Context, c *Call) (UsedSecret, error) {
		made, _, err := c.Secrets.Set(ctx, c.By, name, value.Data)
		return c.used(made)[0], err
	})
}

// Concealed tells of variables that were given in clear and are kept as secrets.
func Concealed(given, kept map[string]string) (told []string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if name := secret.Reference(kept[key]); name != "" && secret.Reference(given[key]) == "" {
			told = append(told, fmt.Sprintf("%s looks like a credential: it is kept as secret %s, and the record refers to it by @%s", key, name, name))
		}
	}
	return told
}

func (c *Call) concealed(given, kept map[string]string) {
	for _, text := range Concealed(given, kept) {
		c.Note(text)
	}
}
