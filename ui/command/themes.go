package command

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/themes"
	"swarmdeck/ui/keymap"
	"swarmdeck/ui/screen"
)

// LoadKeys reads the keys in force: the defaults and, over them, keys.toml of
// the user's ConfigDir.
func LoadKeys(getenv func(string) string) (*keymap.Keymap, error) {
	name := filepath.Join(ConfigDir(getenv), "keys.toml")
	data, err := userFile(name, keymap.MaxFile)
	if err != nil {
		return nil, err
	}
	return keymap.Load(data, name, Vocabulary())
}

// LoadTheme finds a theme by name: themes/NAME.toml of the user's ConfigDir,
// or a built-in one; "" is the default.
func LoadTheme(getenv func(string) string, name string) (*screen.Theme, error) {
	text, from, err := themeText(getenv, cmp.Or(name, themes.Default))
	if err != nil {
		return nil, err
	}
	return themes.Parse([]byte(text), from)
}

var themeName = core.Pattern(`^[a-z0-9][a-z0-9-]{0,31}$`)

// themeText finds a theme's file and what to call it in a mistake.
func themeText(getenv func(string) string, name string) (text, from string, err error) {
	if !themeName().MatchString(name) {
		return "", "", core.Invalid("theme", name, "a name of lower-case letters, digits and -")
	}
	path := filepath.Join(ConfigDir(getenv), "themes", name+".toml")
	data, err := userFile(path, themes.MaxFile)
	if err != nil || data != nil {
		return string(data), path, err
	}
	if !slices.Contains(themes.Names(), name) {
		return "", "", core.Errorf(core.NotFound, "theme %q: not found; there are: %s", name, strings.Join(themeNames(getenv), ", ")).With("field", "theme").With("value", name)
	}
	text, err = themes.Builtin(name)
	return text, name, err
}

// userFile reads a file of the user's configuration; none is no data.
func userFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > most {
		return nil, core.Errorf(core.InvalidInput, "%s: larger than %d bytes", path, most)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError("config", path, err)
	}
	return data, nil
}

// themeNames are the built-in themes and the user's.
func themeNames(getenv func(string) string) []string {
	all := themes.Names()
	entries, _ := os.ReadDir(filepath.Join(ConfigDir(getenv), "themes"))
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".toml")
		if ok && themeName().MatchString(name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// look is one theme as `theme list` prints it.
type look struct {
	Name    string `json:"name"`
	Default bool   `json:"default,omitzero"`
	From    string `json:"from"`
}

func looks(getenv func(string) string) []look {
	var all []look
	for _, name := range themeNames(getenv) {
		from := "built in"
		path := filepath.Join(ConfigDir(getenv), "themes", name+".toml")
		if _, err := os.Stat(path); err == nil {
			from = path
		}
		all = append(all, look{Name: name, Default: name == themes.Default, From: from})
	}
	return all
}

func (t *tree) themes() *cobra.Command {
	return t.group("theme", "The cockpit's looks",
		lists(t, spec{use: "list", short: "List the themes", effect: Reads, ownScope: true}, nil, face.Of[look]{Columns: "THEME:name FROM:from"}.Face(),
			func(c *call, f core.Filter) (core.Page[look], error) {
				return core.Pick(looks(c.env.getenv), nil, f, func(x look) core.Traits { return core.Traits{Text: x.Name} })
			}),
		t.command(spec{
			use: "show NAME", short: "Print a theme's file", effect: Reads, args: []string{"theme"}, ownScope: true,
			run: func(c *call, args []string) error {
				text, from, err := themeText(c.env.getenv, args[0])
				if err != nil {
					return err
				}
				if _, err := themes.Parse([]byte(text), from); err != nil {
					return core.Errorf(core.InvalidInput, "%s", err.Error()).With("field", "theme").With("value", args[0])
				}
				return c.verbatim(map[string]string{"name": args[0], "from": from, "toml": text}, []byte(text))
			},
		}),
	)
}

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
				if _, err := keymap.Load(data, args[0], Vocabulary()); err != nil {
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
	all := core.Map(keys.All(), func(b keymap.Binding) boundKey {
		return boundKey{Scope: b.Scope, Keys: b.Label(), What: b.What(), Help: b.Help, From: b.From}
	})
	return all, nil
}
