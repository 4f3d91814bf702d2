package acp

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/hosttest"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// onHost is a fake agent that works on a host, in its own directory there.
func onHost(t *testing.T, as traits, options settings) (s *stand, box *hosttest.Box, dir string, pins *pin.Keeper) {
	t.Helper()
	a := fakeAgent(t, as, options)
	a.Host = "box"
	box = hosttest.New(t, drivertest.Cells(t, cell.Options{}), a.TenantID, a.Host, a.Name)
	pins = expect.Of(pin.New(t.TempDir(), filepath.Join(t.TempDir(), "runs"), nil))(t)
	s = open(t, newRuntime(t, Options{Local: keeper.Local{Hosts: box, Pins: pins}}), a)
	s.always("approve")
	s.ends(task.Succeeded, "", "say hello")
	return s, box, box.Work(t, a.Name), pins
}

// bound has every question bound, as the fleet does, and approved with what it was bound
// to; meanwhile runs between the two.
func (s *stand) bound(meanwhile func([]judge.File)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(_ context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		ans := fleet.ToolAnswer{CallID: e.CallID, Decision: "approve", Args: e.Args}
		if e.Bind != nil {
			ans.Files = e.Bind(e.Args)
			meanwhile(ans.Files)
		}
		return ans, nil
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	expect.No(t, os.WriteFile(path, []byte(text), 0o700))
}

func TestTheFilesOfAnAgentOnAHostAreThere(t *testing.T) {
	s, _, dir, pins := onHost(t, traits{}, settings{FS: "write"})
	a := filepath.Join(dir, "a.txt")
	put(t, a, "one\ntwo\n")
	put(t, filepath.Join(filepath.Dir(dir), "beside"), "no")
	expect.No(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	var seen []judge.File
	s.bound(func(f []judge.File) { seen = append(seen, f...) })
	s.ends(task.Succeeded, "", "read "+a, "write "+a+" three", "read "+dir+"/none", "read "+dir+"/link", "read "+dir+"/../beside", "read /etc/passwd", "write "+dir+"/../x y")
	s.heard("message", "read one\ntwo\n")
	s.heard("diff", "-one\n-two\n+three")
	var refused int
	for _, text := range s.texts("message") {
		if strings.HasPrefix(text, "error: ") {
			refused++
		}
	}
	expect.True(t, refused == 5, "refused %d of 5: %q", refused, s.texts("message"))
	got, err := os.ReadFile(a)
	expect.True(t, string(got) == "three", "%q %v", got, err)
	expect.Must(t, len(seen) == 1 && seen[0].Path == "a.txt" && seen[0].Size == 8, "bound to %+v", seen)
	text, is := pins.Content("t_test", seen[0].SHA256)
	expect.True(t, is && string(text) == "one\ntwo\n", "the card shows %q", text)
}

func TestACommandOfAnAgentOnAHostRunsThereAsItWasJudged(t *testing.T) {
	s, _, dir, _ := onHost(t, traits{}, settings{Terminal: true})
	script := filepath.Join(dir, "do.sh")
	put(t, script, "#!/bin/sh\necho judged in $PWD; cat\n")
	s.bound(func([]judge.File) {})
	s.ends(task.Succeeded, "", "run ./do.sh now")
	s.heard("message", "exit 0: judged in "+dir)
	s.bound(func([]judge.File) { put(t, script, "#!/bin/sh\necho other\n") })
	put(t, script, "#!/bin/sh\necho judged\n")
	s.ends(task.Succeeded, "", "run ./do.sh now")
	s.heard("message", "do.sh is not what was judged")
	expect.True(t, !slices.ContainsFunc(s.texts("message"), func(m string) bool { return strings.Contains(m, "other") }), "something else ran")
}

func TestALostLinkGivesAPromptOnce(t *testing.T) {
	s, box, dir, _ := onHost(t, traits{}, settings{FS: "write", Terminal: true})
	s.mu.Lock()
	s.answer = nil // held
	s.mu.Unlock()
	pid := s.now().PID
	done := s.start("run sh -c echo${IFS}x>>ran", "write "+dir+"/a once", "say over")
	for range 2 {
		expect.Await(t, "it asks", func() bool { return len(s.of("tool_request")) > len(s.of("tool_result")) })
		box.Cut()
		s.release("approve")
		box.Await(t)
		expect.Await(t, "it was done", func() bool { return len(s.of("tool_request")) <= len(s.of("tool_result")) })
	}
	out := s.wait(done)
	expect.True(t, out.Status == task.Succeeded && out.Text == "over", "%+v %q", out, s.texts("message"))
	now := s.now().PID
	expect.True(t, now == pid && len(s.of("tool_request")) == 2, "process %d, before %d; asked %+v", now, pid, s.of("tool_request"))
	got, err := os.ReadFile(filepath.Join(dir, "a"))
	expect.True(t, string(got) == "once", "%q %v: %q", got, err, s.texts("message"))
}

func TestWhatAHostCantGiveAnAgentIsRefused(t *testing.T) {
	r := newRuntime(t, Options{Local: keeper.Local{Hosts: &hosttest.Box{}}})
	for options, want := range map[string]string{
		`{"user":"0:0"}`: "only mode, model", `{"shared":true}`: "only mode, model", `{"read":["/x"]}`: "only mode, model",
		`{"home":"/x"}`: "only mode, model", `{"record_models":["A"]}`: "a variable that env sets",
	} {
		expect.Says(t, r.Check(fleet.Create{Name: "a", Host: "box", Command: []string{"x"}, Options: core.Raw(options)}), want, options)
	}
	expect.No(t, r.Check(fleet.Create{Name: "a", Host: "box", Command: []string{"no-such-program"}, Dir: "/no/such", Options: core.Raw(`{"mode":"x","fs":"write"}`)}))
}

func TestConformanceOfAnAgentOnAHost(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		on := subject(t, traits{}, settings{})
		on.Actor.Host = "box"
		on.Runtime = newRuntime(t, Options{Local: keeper.Local{Hosts: hosttest.New(t, drivertest.Cells(t, cell.Options{}), on.Actor.TenantID, "box", on.Actor.Name)}})
		return on
	})
}

func TestAnAgentOnAHostIsGivenServersOfTheProgramThere(t *testing.T) {
	for _, profile := range []string{"worker", "open"} {
		a := fakeAgent(t, traits{}, settings{})
		a.Host, a.Profile = "box", profile
		box := hosttest.New(t, drivertest.Cells(t, cell.Options{}), a.TenantID, a.Host, a.Name)
		var given []string // programs
		s := open(t, newRuntime(t, Options{Local: keeper.Local{Hosts: box}, Servers: func(_ fleet.Agent, program string) ([]acp.McpServer, error) {
			given = append(given, program)
			return nil, nil
		}}), a)
		s.ends(task.Succeeded, "", "say hello")
		said := strings.Join(s.texts("log"), "\n")
		if profile == "open" {
			expect.True(t, len(given) == 0 && strings.Contains(said, "an open agent on a host has no way to the engine"), "%q: %s", given, said)
			continue
		}
		if strings.Contains(said, "no network of its own") {
			t.Skip("there are no name spaces")
		}
		if len(given) == 0 || !strings.HasPrefix(given[0], filepath.Join(box.Home, ".cache", "swarmdeck")) {
			t.Errorf("%q: %s", given, said)
		} else if _, err := os.Stat(given[0]); err != nil {
			t.Error(err)
		}
	}
}
