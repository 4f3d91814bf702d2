package acp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.No(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestEachAgentHasAHomeOfItsOwn(t *testing.T) {
	skeleton := t.TempDir()
	write(t, filepath.Join(skeleton, ".tool/settings"), "fresh")
	write(t, filepath.Join(skeleton, "other"), "fresh")
	expect.No(t, os.Symlink("/etc/passwd", filepath.Join(skeleton, "link")))
	r := newRuntime(t, Options{})
	homes := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		a := fakeAgent(t, traits{}, settings{Terminal: true, Choices: keeper.Choices{Options: home.Options{Skeleton: skeleton}}})
		a.Name = name
		s := open(t, r, a)
		s.always("approve")
		out := s.ends(task.Succeeded, "", "run printenv HOME")
		home := strings.TrimPrefix(out.Text, "exit 0: ")
		homes[home] = true
		expect.True(t, strings.HasPrefix(home, r.State), "home %s, want one below %s", home, r.State)
		// What the agent has changed is kept at the next start.
		settings := filepath.Join(home, ".tool/settings")
		if got, err := os.ReadFile(settings); string(got) != "fresh" {
			t.Errorf("settings %q: %v", got, err)
		}
		expect.Fails(t, expect.Fault(os.Lstat(filepath.Join(home, "link"))), "a link of the skeleton was copied")
		write(t, settings, "changed")
		s.ends(task.Failed, "agent_killed", "crash")
		s.ends(task.Succeeded, "", "say again")
		got, _ := os.ReadFile(settings)
		expect.True(t, string(got) == "changed", "settings %q after a restart", got)
	}
	expect.Is(t, len(homes), 2, "homes", homes)
}

func TestADeletedAgentLeavesNothingBehind(t *testing.T) {
	r := newRuntime(t, Options{})
	for _, shared := range []bool{false, true} {
		a := fakeAgent(t, traits{}, settings{Shared: shared})
		a.Name = fmt.Sprintf("gone-%v", shared)
		s := open(t, r, a)
		s.ends(task.Succeeded, "", "say one")
		expect.No(t, s.handle.Close())
		expect.No(t, r.Forget(t.Context(), a))
	}
	left := func() (names []string) {
		list := expect.Of(os.ReadDir(filepath.Join(r.State, "t_test")))(t)
		for _, d := range list {
			names = append(names, strings.Split(d.Name(), "-")[0])
		}
		return names
	}
	expect.Is(t, fmt.Sprint(left()), "[shared]", "left")
	// At the next start, what deletes could not remove goes too.
	stays := fakeAgent(t, traits{}, settings{Shared: true})
	write(t, filepath.Join(home.Of(r.State, stays), "session.json"), "{}")
	write(t, filepath.Join(r.State, "t_test/lost/home/secret"), "x")
	expect.No(t, r.Keep(t.Context(), []fleet.Agent{stays}))
	expect.Is(t, fmt.Sprint(left()), "[actor shared]", "left")
	if err := r.Keep(t.Context(), nil); err != nil || len(left()) != 0 {
		t.Errorf("left %v: %v", left(), err)
	}
}

func TestAnAgentRunsAsTheUserThatIsNamed(t *testing.T) {
	const uid = 65534
	if os.Geteuid() != 0 {
		expect.Says(t, expect.Fault(readSettings([]byte(`{"user":"65534"}`))), "unless the engine runs as root", "another user without root")
		return
	}
	base := expect.Of(os.MkdirTemp("/tmp", "acp-user-"))(t)
	defer os.RemoveAll(base)
	work := filepath.Join(base, "work")
	expect.No(t, os.Chmod(base, 0o755))
	expect.No(t, os.Mkdir(work, 0o777))
	self, err := os.ReadFile("/proc/self/exe") // the test's own directory may be closed to others
	expect.No(t, err)
	program := filepath.Join(base, "agent")
	expect.No(t, os.WriteFile(program, self, 0o755))
	a := fakeAgent(t, traits{}, settings{User: fmt.Sprint(uid), FS: "write", Terminal: true})
	a.Command, a.Dir = []string{program}, work
	s := open(t, newRuntime(t, Options{Local: keeper.Local{State: filepath.Join(base, "state")}}), a)
	s.always("approve")
	s.ends(task.Succeeded, "", "run id -u", "write "+filepath.Join(work, "f")+" x", "run cat "+filepath.Join(work, "f"))
	for _, want := range []string{fmt.Sprintf("exit 0: %d", uid), "written", "exit 0: x"} {
		s.heard("message", want)
	}
	expect.Is(t, expect.Of(os.Stat(filepath.Join(work, "f")))(t).Sys().(*syscall.Stat_t).Uid, uid, "the file is not the agent's")
	said := len(s.of("message"))
	done := s.start("say at work", "hang")
	expect.Await(t, "it works", func() bool { return len(s.of("message")) > said })
	expect.No(t, s.handle.Pause(context.Background()), "pause")
	s.handle.Interrupt()
	out := s.wait(done)
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
}

func TestAUserThatCantEnterTheDirectoryIsToldSo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run an agent as somebody else")
	}
	a := fakeAgent(t, traits{}, settings{User: "65534"})
	a.Dir = t.TempDir() // below a directory that is closed to others
	s := open(t, newRuntime(t, Options{}), a)
	out := s.ends(task.Failed, "agent_start", "say hello")
	expect.Has(t, out.Error.Message, "user 65534 can't enter ", "message")
	h := s.now()
	expect.True(t, h.Status == fleet.Failed, "health %+v", h)
}
