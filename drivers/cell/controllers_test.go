package cell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// whole reports whether runs are bounded as a whole here. Where they are not,
// the system must say why.
func whole(t *testing.T, s *Supervisor) bool {
	t.Helper()
	for _, l := range s.Layers(t.Context(), Open, yard(t)) {
		switch {
		case l.Name != layerBounds:
		case l.OK:
			return true
		case os.Getenv(guestWord) != "" && !s.without(layerCgroup):
			t.Fatalf("%+v", l)
		case l.Detail == "":
			t.Error("nothing says why a run is not bounded as a whole")
		}
	}
	return false
}

// hold is the script of n processes that each hold 8 MB of memory until all do:
// what they have read nobody takes from them before.
func hold(n int) string {
	return strings.ReplaceAll(`for i in $(seq N); do
	dd if=/dev/zero bs=8M count=1 2>/dev/null | { head -c 1 >/dev/null; echo x >>up; while [ $(wc -l <up) -lt N ]; do sleep 0.1; done; cat >/dev/null; } &
done; wait`, "N", strconv.Itoa(n))
}

func TestMemoryOfAllProcessesOfARunIsBounded(t *testing.T) {
	for _, profile := range []Profile{Open, Worker} {
		s := newSupervisor(t)
		bounded := whole(t, s)
		other := start(t, s, Spec{Run: "other", Argv: []string{"cat"}, Limits: DefaultLimits(), Wall: Wall{Profile: profile}})
		limits := Limits{RunMemory: 64 << 20}

		few := start(t, s, Spec{Run: "few", Argv: sh(hold(1)), Limits: limits, Wall: Wall{Profile: profile}})
		if e := few.Exit(); e.Code != 0 || e.Limited() {
			t.Errorf("%s: below its memory it %s", profile, e.Describe())
		}
		many := start(t, s, Spec{Run: "many", Argv: sh(hold(12)), Limits: limits, Wall: Wall{Profile: profile}})
		e := many.Exit()
		if bounded && (e.Overran != limits.RunMemory || !e.Limited() || e.Describe() != "was ended because it exceeded its memory of 64 MiB") {
			t.Errorf("%s: %+v, it %s", profile, e, e.Describe())
		}
		if !bounded && e.Code != 0 {
			t.Errorf("%s: unbounded it %s", profile, e.Describe())
		}
		expect.No(t, many.Stop(Grace{}))
		if other.Ended() {
			t.Errorf("%s: another run %s", profile, other.Exit().Describe())
		}
		if many.group != nil {
			expect.Err(t, expect.Fault(os.Stat(many.group.path)), fs.ErrNotExist, "its cgroup is left")
		}
	}
}

func TestAForkBombIsHeldAndHarmsNoOther(t *testing.T) {
	s := newSupervisor(t)
	if !whole(t, s) {
		return // a machine that can't hold it is not to be tried with one
	}
	for _, profile := range []Profile{Open, Worker} {
		const most = 40
		bomb := start(t, s, Spec{Run: "bomb", Argv: sh(`b() { b & b & exec sleep 300; }; b & exec cat`), Limits: Limits{RunProcesses: most}, Wall: Wall{Profile: profile}})
		expect.Await(t, "no more of it can be started", func() bool {
			return !strings.Contains(switchOf(filepath.Join(bomb.group.path, "pids.events"))+"\n", "max 0\n")
		})
		if n, err := strconv.Atoi(switchOf(filepath.Join(bomb.group.path, "pids.current"))); err != nil || n > most+initThreads { // it may be faster than its init leaves
			t.Errorf("%s: %d processes: %v", profile, n, err)
		}
		other := start(t, s, Spec{Run: "other", Argv: sh(hold(1)), Limits: DefaultLimits(), Wall: Wall{Profile: profile}})
		if e := other.Exit(); e.Code != 0 {
			t.Errorf("%s: another run %s", profile, e.Describe())
		}
		expect.No(t, bomb.Pause(t.Context()), profile)
		expect.No(t, bomb.Stop(Grace{}))
		expect.Err(t, expect.Fault(os.Stat(bomb.group.path)), fs.ErrNotExist, "its cgroup is left")
	}
}

func TestDefaultLimitsHoldARunAsAWhole(t *testing.T) {
	s := newSupervisor(t)
	if !whole(t, s) {
		return
	}
	l := DefaultLimits()
	p := start(t, s, Spec{Argv: []string{"cat"}, Limits: l})
	<-p.apart // till then there is room for its init
	for name, want := range map[string]string{"pids.max": strconv.FormatUint(l.RunProcesses, 10), "memory.oom.group": "1"} {
		expect.Is(t, switchOf(filepath.Join(p.group.path, name)), want, name, "is")
	}
	most, err := strconv.ParseUint(switchOf(filepath.Join(p.group.path, "memory.max")), 10, 64)
	if err != nil || most > l.RunMemory || most < l.RunMemory-1<<16 { // in whole pages
		t.Errorf("memory.max is %d, not %d: %v", most, l.RunMemory, err)
	}
}

// fake is a directory that looks like a cgroup with these files.
func fake(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		expect.No(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestControllersAreHandedOnAsFarAsTheyAreGiven(t *testing.T) {
	for _, c := range []struct{ has, now, want string }{
		{"cpuset cpu io memory pids", "", "+memory +pids"},
		{"cpu memory pids", "memory pids", "memory pids"}, // and nothing is written
		{"cpu pids", "cpu", "+pids"},
		{"cpu io", "", ""},
		{"", "", ""},
	} {
		dir := fake(t, map[string]string{"cgroup.controllers": c.has, "cgroup.subtree_control": c.now, "cgroup.procs": ""})
		groups := cgroupsAt(dir, "x")
		groups.handOn()
		if got := switchOf(filepath.Join(dir, "cgroup.subtree_control")); got != c.want && !(c.want == "" && got == c.now) {
			t.Errorf("given %q: wrote %q, not %q", c.has, got, c.want)
		}
		groups.close()
	}
}

func TestAnEngineFindsTheParentThatItSteppedAsideFrom(t *testing.T) {
	dir := fake(t, map[string]string{"cgroup.procs": ""})
	aside := filepath.Join(dir, engines)
	expect.No(t, errors.Join(os.Mkdir(aside, 0o700), os.WriteFile(filepath.Join(aside, "cgroup.procs"), nil, 0o600)))
	for _, own := range []string{dir, aside} {
		c := cgroupsAt(own, "a.b")
		expect.True(t, c != nil && c.parent == dir && c.own == own && c.dir == filepath.Join(dir, "swarmdeck-a_b"), "from %s: %+v", own, c)
	}
	c := cgroupsAt(filepath.Join(dir, "none"), "x")
	expect.True(t, c == nil, "of a cgroup that is not there: %+v", c)
}

func TestBoundsOfARunAreWritten(t *testing.T) {
	for _, c := range []struct {
		limits       Limits
		memory, pids string
	}{
		{Limits{RunMemory: 1 << 20, RunProcesses: 7, Memory: 1 << 30, Processes: 9}, "1048576", "7"},
		{Limits{Memory: 1 << 30, Processes: 9}, "1073741824", "9"},
		{Limits{}, "", ""},
	} {
		g := &cgroup{path: fake(t, map[string]string{"memory.max": "", "pids.max": "", "memory.swap.max": "", "memory.oom.group": ""})}
		groups := &cgroups{given: controllers[:]}
		groups.boundMemory(g, c.limits)
		groups.boundProcesses(g, c.limits, 0)
		m, p := switchOf(filepath.Join(g.path, "memory.max")), switchOf(filepath.Join(g.path, "pids.max"))
		expect.True(t, m == c.memory && p == c.pids, "%+v: wrote %s and %s", c.limits, m, p)
		swap, group := switchOf(filepath.Join(g.path, "memory.swap.max")), switchOf(filepath.Join(g.path, "memory.oom.group"))
		want := c.memory != ""
		expect.True(t, (swap == "0") == want && (group == "1") == want, "%+v: wrote %q for swap and %q for the group", c.limits, swap, group)
	}
}

func TestARunOverranItsMemoryWhenThatWasFullAndItsProcessesWereEnded(t *testing.T) {
	for events, want := range map[string]uint64{
		"low 0\nhigh 0\nmax 31\noom 2\noom_kill 5\noom_group_kill 1\n": 100,
		"max 31\noom 0\noom_kill 1\n":                                  0, // the machine's was
		"max 31\noom 4\noom_kill 0\n":                                  0,
		"max 31\n":                                                     0,
		"":                                                             0,
	} {
		g := &cgroup{path: fake(t, map[string]string{"memory.events": events}), memory: 100}
		expect.Is(t, g.overran(), want, events)
	}
}
