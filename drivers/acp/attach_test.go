package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// filesOf gives an agent a directory with a text, a large one, and links out of it.
func filesOf(t *testing.T, a *fleet.Agent) string {
	t.Helper()
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	outside := filepath.Join(t.TempDir(), "secret")
	for name, text := range map[string]string{
		filepath.Join(dir, "a.txt"): "hello", filepath.Join(dir, "sub", "b c.txt"): "there", filepath.Join(dir, "large"): strings.Repeat("x", maxCarried+1),
		filepath.Join(dir, "binary"): "a\x00\xff", outside: "no",
	} {
		expect.No(t, os.MkdirAll(filepath.Dir(name), 0o755))
		expect.No(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for link, to := range map[string]string{"out": outside, "up": filepath.Dir(outside)} {
		expect.No(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	a.Dir = dir
	return dir
}

func TestFilesThatAMessageMentionsAreHandedOver(t *testing.T) {
	text := `say see (@a.txt), @"sub/b c.txt" and @large. Ask @nobody or me@a.txt; not @out, @up/secret, @../x, @/etc/passwd or @binary`
	for name, c := range map[string]struct {
		embed bool
		want  []string
	}{
		"within the prompt": {true, []string{"file file://DIR/a.txt: hello", "file file://DIR/sub/b%20c.txt: there", "link file://DIR/large", "link file://DIR/binary"}},
		"by their names":    {false, []string{"link file://DIR/a.txt", "link file://DIR/sub/b%20c.txt", "link file://DIR/large", "link file://DIR/binary"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := fakeAgent(t, traits{Embed: c.embed}, settings{})
			dir := filesOf(t, &a)
			s := open(t, newRuntime(t, Options{}), a)
			s.ends(task.Succeeded, "", text)
			got := s.texts("message")[1:]
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], dir, "DIR")
			}
			expect.Is(t, strings.Join(got, "|"), strings.Join(c.want, "|"), "it got", got, c.want)
			log := strings.Join(s.texts("log"), "\n")
			for _, want := range []string{"attached a.txt", "out can't be attached", "up/secret can't be attached", "../x can't be attached", "/etc/passwd can't be attached"} {
				expect.Has(t, log, want, "the log lacks")
			}
			expect.True(t, !strings.Contains(log, "nobody"), "a word that is no file is told of: %s", log)
		})
	}
}

func TestAFileThatCanNotBeAttachedIsRefusedByName(t *testing.T) {
	a := fakeAgent(t, traits{}, settings{})
	filesOf(t, &a)
	r := newRuntime(t, Options{})
	for path, why := range map[string]string{
		"a.txt": "", "sub/b c.txt": "", "large": "", "nothing": "within", "sub": "sub", "out": "out", "up/secret": "up/secret", "../a.txt": "within", "/etc/passwd": "within",
	} {
		err := r.Attaches(a, path)
		expect.Says(t, err, why, path)
		expect.True(t, err == nil || strings.Contains(err.Error(), path), "%s is not named: %v", path, err)
	}
}

func TestWhatAnAgentsCommandsAreIsReported(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	s.ends(task.Succeeded, "", `raw {"sessionUpdate":"available_commands_update","availableCommands":[{"name":"plan","description":"Make a plan","input":{"hint":"what for"}},{"name":"web"}]}`+"\nsay x")
	expect.Await(t, "the commands", func() bool { return len(s.offered().Commands) == 2 })
	expect.Is(t, s.offered().Commands[0], fleet.Command{Name: "plan", Description: "Make a plan", Hint: "what for"})
	s.ends(task.Succeeded, "", `raw {"sessionUpdate":"available_commands_update","availableCommands":[]}`)
	expect.Await(t, "none any more", func() bool { return len(s.offered().Commands) == 0 })
}
