package command

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/keymap"
)

// ConfigDir is where the user's keys and themes are kept:
// $XDG_CONFIG_HOME/swarmdeck, or ~/.config/swarmdeck.
func ConfigDir(getenv func(string) string) string {
	return filepath.Join(baseDir(getenv, "XDG_CONFIG_HOME", ".config"), "swarmdeck")
}

// Vocabulary is what a user's keymap may speak of: the cockpit's scopes and
// actions, and lines that name a command.
func Vocabulary() keymap.Vocabulary {
	v := keymap.Words()
	var known Lexicon
	v.Line = func(line string) error {
		words, err := Split(line)
		if err != nil {
			return err
		}
		if known.Describe(words).Path == "" {
			return core.Errorf(core.InvalidInput, "%q names no command", core.Clip(line))
		}
		return nil
	}
	return v
}

func (t *tree) keys() *cobra.Command {
	return t.group("keys", "The cockpit's keys",
		lists(t, spec{
			use: "list", short: "List the keys in force: the defaults and your keys.toml over them", effect: Reads, ownScope: true,
		}, nil, face.Of[boundKey]{Columns: "SCOPE:scope KEYS:keys DOES:what,48 HELP:help,60", Wide: "FROM:from"}.Face(),
			func(c *call, f core.Filter) (core.Page[boundKey], error) {
				all, err := boundKeys(c.env)
				return core.Pick(all, err, f, func(b boundKey) core.Traits {
					return core.Traits{Kind: b.Scope, Text: strings.Join([]string{b.Scope, b.Keys, b.What, b.Help}, " ")}
				})
			}),
		t.command(spec{
			use: "check FILE", short: "Check a keymap file", effect: Reads, args: []string{sourceText}, ownScope: true,
			run: func(c *call, args []string) error {
				data, err := c.file("file", args[0])
				if err != nil {
					return err
				}
				if err := keymap.Check(data, args[0], Vocabulary()); err != nil {
					return inFile(core.Errorf(core.InvalidInput, "%s", err.Error()).With("field", "file").With("value", core.Clip(args[0])))
				}
				return c.say(map[string]any{"file": args[0], "ok": true}, "%s: ok", args[0])
			},
		}),
	)
}

// boundKey is one binding as `keys list` prints it.
type boundKey struct {
	Scope string `json:"scope"`
	Keys  string `json:"keys"`
	What  string `json:"what"`
	Help  string `json:"help"`
	From  string `json:"from"`
}

func boundKeys(env *Env) ([]boundKey, error) {
	keys, err := LoadKeys(env.getenv)
	if err != nil {
		return nil, err
	}
	var all []boundKey
	for _, b := range keys.All() {
		all = append(all, boundKey{Scope: b.Scope, Keys: b.Label(), What: b.What(), Help: b.Help, From: b.From})
	}
	return all, nil
}
