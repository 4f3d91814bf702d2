package cockpit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui"
	"swarmdeck/ui/command"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestTheEnvironmentSaysHowToNotify(t *testing.T) {
	for value, want := range map[string]ui.Notice{"": ui.NoticeBell, "osc9": ui.NoticeOSC9, "osc777": ui.NoticeOSC777, "off": ui.NoticeOff} {
		expect.Is(t, expect.Of(notice(environment(notify, value)))(t), want, value)
	}
	expect.Says(t, expect.Fault(notice(environment(notify, "growl"))), "osc777")
}

func TestThePagerGetsTheText(t *testing.T) {
	cmd := pager(environment("PAGER", "tr a-z A-Z"))("a diff\n")
	cmd.Stdout = nil
	out, err := cmd.Output()
	expect.True(t, err == nil && string(out) == "A DIFF\n", "%q, %v", out, err)
}

func TestAMistakeInTheUsersKeysIsToldInTheCockpit(t *testing.T) {
	dir := t.TempDir()
	env := &command.Env{Getenv: environment("XDG_CONFIG_HOME", dir)}
	expect.No(t, os.MkdirAll(filepath.Join(dir, "swarmdeck"), 0o700))
	expect.No(t, os.WriteFile(filepath.Join(dir, "swarmdeck", "keys.toml"), []byte("[[bind]]\nnosuch = 1\n"), 0o600))
	keys, warning, err := keysInForce(env, command.Start{})
	expect.True(t, err == nil && keys != nil && strings.Contains(warning, "keys.toml:2") && strings.Contains(warning, "default keys"),
		"%v, %q, %v", keys, warning, err)
	_, _, err = keysInForce(env, command.Start{Globals: command.Globals{Script: "x.txt"}})
	expect.Fails(t, err, "a script runs with keys that it does not mean")
}
