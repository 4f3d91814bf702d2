package cockpit

import (
	"os"
	"os/exec"
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

func TestThePagerAndTheEditorGetTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a diff")
	run := func(line string) string {
		return string(expect.Of(exec.Command("sh", "-c", line, "sh", path).Output())(t))
	}
	expect.No(t, os.WriteFile(path, []byte("a diff\n"), 0o600))
	expect.Is(t, run(pager(environment("PAGER", "tr a-z A-Z"))), "A DIFF\n", "the pager")
	expect.Is(t, run(editor(environment("EDITOR", "printf %s"))), path, "the editor")
	expect.Is(t, editor(environment()), `vi "$1"`, "without either")
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
