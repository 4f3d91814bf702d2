package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// TestAProcessIsKnownAsItsRuns asks about the first process of a run, about a
// child of it, and about one that is nobody's child any more.
func TestAProcessIsKnownAsItsRuns(t *testing.T) {
	alive := func() bool { return true }
	for name, without := range map[string][]string{"with name spaces": nil, "without": {layerSpaces}} {
		t.Run(name, func(t *testing.T) {
			s := newSupervisor(t, without...)
			dir := t.TempDir()
			p, err := s.Start(Spec{
				Run: "tk_1", Whose: Whose{Tenant: "t_acme", Task: "tk_1"}, Dir: dir, Wall: Wall{Profile: Open},
				Argv: sh("(setsid env -i /bin/sh -c 'echo >lost; exec sleep 300' &); sh -c 'echo >child; sleep 300; true'; true"),
			})
			expect.No(t, err)
			defer p.CloseIO()
			defer p.Stop(Grace{})
			expect.Await(t, "both have begun", func() bool {
				_, lost := os.Stat(filepath.Join(dir, "lost"))
				_, child := os.Stat(filepath.Join(dir, "child"))
				return lost == nil && child == nil
			})
			expect.Await(t, "all four are there", func() bool { return len(p.Census()) >= 4 })
			all := p.Census()
			want := operator.Run{Name: "tk_1", Tenant: "t_acme", Task: "tk_1"}
			for pid := range all {
				got := origin.Find(s, pid, alive)
				expect.True(t, got.Kind == operator.OfRun && got.Run == want, "%d: %+v", pid, got)
			}
		})
	}
	s := newSupervisor(t)
	got := origin.Find(s, os.Getppid(), alive)
	expect.True(t, got.Kind == operator.Person, "%+v", got)
}

func TestAMarkThatSaysNonsenseNamesNothing(t *testing.T) {
	s := newSupervisor(t)
	for mark, want := range map[string]string{"agent:t_acme:ada": "agent:t_acme:ada", "x\x1b[31m": "", strings.Repeat("x", 1000): "", "a b": ""} {
		// It is not started by the supervisor, as what an earlier engine left is.
		p := expect.Of(os.StartProcess("/bin/sleep", []string{"sleep", "300"}, &os.ProcAttr{Env: []string{Marker + "=" + s.opt.Instance + "/" + mark}}))(t)
		expect.Await(t, "its environment", func() bool { return markOf(p.Pid) != "" })
		got, ok := s.Marked(p.Pid)
		expect.True(t, ok && got == (operator.Run{Name: want}), "%q: %+v, %v", mark, got, ok)
		_ = p.Kill()
		_, _ = p.Wait()
	}
}
