package command_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"unicode/utf8"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
)

func TestSplitFollowsTheShellsQuoting(t *testing.T) {
	for line, want := range map[string][]string{
		``:                             nil,
		"  \t ":                        nil,
		`task list`:                    {"task", "list"},
		`a 'b c' d`:                    {"a", "b c", "d"},
		`a "b \"c\" \\ \n" d`:          {"a", `b "c" \ \n`, "d"},
		`--input '{"argv":["a","b"]}'`: {"--input", `{"argv":["a","b"]}`},
		`x'y'"z"`:                      {"xyz"},
		`'' ""`:                        {"", ""},
		`a\ b`:                         {"a b"},
		`$HOME *.go ~ #x ; | &`:        {"$HOME", "*.go", "~", "#x", ";", "|", "&"},
		"é 日本":                         {"é", "日本"},
	} {
		expect.Same(t, expect.Of(command.Split(line))(t), want, line)
	}
	for _, line := range []string{`'`, `"`, `a 'b`, `a "b\"`, `a\`} {
		got, err := command.Split(line)
		expect.True(t, err != nil, "%s: %q, want an error", line, got)
	}
}

func FuzzSplit(f *testing.F) {
	for _, line := range []string{
		`task list`, `a 'b c' "d\"e" f\ g`, `'`, `\`, "\x00\xff é", `--input '{"a":"\u202e"}'`,
		`task dispatch --kind exec.run --input '{"argv":["x"]}' -o json --wait`, `session create --budget tokens=1,cost=2,tasks=3,wall=1h`, `--read-only agent delete x --yes`,
		`approval approve x --always tool --expires 1d --max-uses 2`, `agent create x --project p --env A=1 -- y z`, `task list --since 2026-01-02T15:04:05Z --page 2`, `help task wait`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := command.Split(line)
		if err != nil {
			return
		}
		again, err := command.Split(core.Join(words))
		expect.Must(t, err == nil && slices.Equal(words, again), "%q splits to %q, joined and split again to %q, %v", line, words, again, err)
		env := command.Env{
			Dir: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard,
			Caller: core.Caller{Door: core.DoorScript},
			Open:   func(context.Context, command.Need) (*engine.Engine, error) { return nil, store.ErrUnusable },
		}
		for _, c := range command.Complete(context.Background(), &env, line) {
			expect.Must(t, utf8.ValidString(c.Text) || !utf8.ValidString(line), "%q offers %q", line, c.Text)
		}
		command.Describe(words)
		code := command.Run(context.Background(), &env, words)
		expect.Must(t, code >= 0 && code <= 4, "%q: exit %d", line, code)
	})
}
