package keymap

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestWrongTypesAreNamedInPlainWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# mine\n[[bind]]\nkeys = \"zz\"\n", "k.toml:3: keys: want a list of strings"},
		{"[[bind]]\nkeys = [1]\n", "k.toml:2: keys: want a list of strings"},
		{"[[bind]]\nkey = 3\n", "k.toml:2: key: want a string"},
		{"[[bind]]\nscope = [\"list\"]\n", "k.toml:2: scope: want a string"},
		{"[[bind]]\nscope = \"list\"\nfill = \"yes\"\n", "k.toml:3: fill: want true or false"},
		{"[[unbind]]\nkeys = true\n", "k.toml:2: keys: want a list of strings"},
		{"bind = 3\n", "k.toml:1: bind: want [[bind]]"},
		{"bind = [3]\n", "k.toml:1: bind: want [[bind]]"},
		{"unbind = \"x\"\n", "k.toml:1: unbind: want [[unbind]]"},
	} {
		_, err := Load([]byte(c.text), "k.toml", Vocabulary{})
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), c.want) && !strings.Contains(err.Error(), "struct") && !strings.Contains(err.Error(), "Go"),
			"%q:\n got %v\nwant %s", c.text, err, c.want)
	}
}
