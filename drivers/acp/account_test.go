package acp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestALoginIsCopiedToOneAgent(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("HOME", mine)
	write(t, filepath.Join(mine, ".gemini/oauth.json"), "first")
	write(t, filepath.Join(mine, ".config/tool/key"), "key")
	r := newRuntime(t, Options{})
	a := fakeAgent(t, traits{}, settings{Terminal: true, Choices: keeper.Choices{Options: home.Options{Login: []string{"~/.gemini", "~/.config/tool", "~/.absent"}}}})
	s := open(t, r, a)
	s.always("approve")
	home := strings.TrimPrefix(s.ends(task.Succeeded, "", "run printenv HOME").Text, "exit 0: ")
	has := func(name, want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(home, name))
		expect.True(t, string(got) == want, "%s holds %q, want %q (%v)", name, got, want, err)
	}
	has(".gemini/oauth.json", "first")
	has(".config/tool/key", "key")
	said := "its home has a copy of the login of the engine's user: ~/.gemini, ~/.config/tool, ~/.absent"
	expect.True(t, slices.ContainsFunc(s.texts("log"), func(line string) bool { return strings.Contains(line, said) }), "its log says %q", s.texts("log"))
	// What the agent has renewed stays; what its user has renewed since comes.
	write(t, filepath.Join(home, ".config/tool/key"), "renewed by the agent")
	write(t, filepath.Join(mine, ".gemini/oauth.json"), "second")
	soon := time.Now().Add(time.Hour)
	expect.No(t, os.Chtimes(filepath.Join(mine, ".gemini/oauth.json"), soon, soon))
	s.ends(task.Failed, "agent_killed", "crash")
	s.ends(task.Succeeded, "", "say again")
	has(".gemini/oauth.json", "second")
	has(".config/tool/key", "renewed by the agent")
}

func TestALoginIsRefusedThatWouldNotBeItsAlone(t *testing.T) {
	r := newRuntime(t, Options{})
	for name, bad := range map[string]settings{
		"absolute": {Choices: keeper.Choices{Options: home.Options{Login: []string{"/root/.gemini"}}}}, "above": {Choices: keeper.Choices{Options: home.Options{Login: []string{"~/../x"}}}}, "all": {Choices: keeper.Choices{Options: home.Options{Login: []string{"~/."}}}}, "no name": {Choices: keeper.Choices{Options: home.Options{Login: []string{"~/"}}}},
		"shared": {Choices: keeper.Choices{Options: home.Options{Login: []string{"~/.gemini"}}}, Shared: true}, "home": {Choices: keeper.Choices{Options: home.Options{Login: []string{"~/.gemini"}, Home: "/srv/home"}}},
	} {
		expect.Says(t, expect.Fault(readSettings(core.MustEncode(bad))), "options.login", name)
	}
	places, _ := r.Reach(core.MustEncode(settings{Choices: keeper.Choices{Options: home.Options{Login: []string{"~/.gemini"}}}}))
	expect.True(t, slices.Contains(places, "login"), "from another machine it reaches %v", places)
}
