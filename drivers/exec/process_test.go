package exec

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

func start(t *testing.T, s *Supervisor, spec Spec) *Process {
	t.Helper()
	if spec.Dir == "" {
		spec.Dir = t.TempDir()
	}
	if spec.Run == "" {
		spec.Run = t.Name()
	}
	p, err := s.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(Grace{Interrupt: -1, Terminate: -1}); err != nil {
			t.Error(err)
		}
		p.CloseIO()
	})
	return p
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestACommandRunsInItsOwnGroupWithAMarkedCleanEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	s := newSupervisor(t)
	p := start(t, s, Spec{Run: "r1", Argv: sh("env; ulimit -c; ulimit -n; cat"), Env: map[string]string{"GIVEN": "yes"}, Limits: DefaultLimits()})
	if pgid, _ := unix.Getpgid(p.PID()); pgid != p.PID() {
		t.Errorf("process group %d, want its own %d", pgid, p.PID())
	}
	p.Stdin.Close()
	out, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Exit(); e.Code != 0 || e.Signal != 0 {
		t.Errorf("exit %+v, want 0", e)
	}
	for _, want := range []string{"TERM=dumb\n", "GIVEN=yes\n", "PATH=", "HOME=", "LANG=", Marker + "=" + s.instance + "/r1\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("environment lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "hunter2") {
		t.Error("the operator's own variables reached the command")
	}
	if !strings.HasSuffix(string(out), "\n0\n4096\n") {
		t.Errorf("limits: got %q, want core 0 and 4096 files", out[max(0, len(out)-20):])
	}
}

func TestStartTellsWhatIsMissing(t *testing.T) {
	s := newSupervisor(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		spec Spec
		want error
	}{
		{"no such program", Spec{Argv: []string{"no-such-program-here"}, Dir: dir}, os.ErrNotExist},
		{"no such path", Spec{Argv: []string{"./nothing"}, Dir: dir}, os.ErrNotExist},
		{"not executable", Spec{Argv: []string{plain}, Dir: dir}, os.ErrPermission},
		{"a directory", Spec{Argv: []string{"/"}, Dir: dir}, os.ErrPermission},
		{"no such directory", Spec{Argv: []string{"true"}, Dir: dir + "/gone"}, os.ErrNotExist},
		{"not a directory", Spec{Argv: []string{"true"}, Dir: plain}, syscall.ENOTDIR},
		{"empty", Spec{Dir: dir}, core.Kind(core.InvalidInput)},
		{"forged mark", Spec{Argv: []string{"true"}, Dir: dir, Env: map[string]string{Marker: "x"}}, core.Kind(core.InvalidInput)},
	} {
		if _, err := s.Start(c.spec); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if kids := childrenOf(os.Getpid()); len(kids) != 0 {
		t.Errorf("children after failed starts: %v", kids)
	}
}

// runaway starts processes that try everything to get away: a background
// one, one in a session of its own, a double fork, and one of each that
// also emptied its environment or ignores every signal it can.
const runaway = `
trap '' INT TERM HUP
echo $$ >>pids
sleep 300 & echo $! >>pids
setsid sh -c 'echo $$ >>pids; exec sleep 300' &
(setsid sh -c 'trap "" TERM; echo $$ >>pids; while :; do sleep 300; done' &) &
env -i PATH="$PATH" setsid sh -c '(env -i sh -c "echo \$\$ >>pids; sleep 300" &)' &
while :; do sleep 1; done
`

func TestStopLeavesNothingBehind(t *testing.T) {
	s := newSupervisor(t)
	dir := t.TempDir()
	p := start(t, s, Spec{Argv: sh(runaway), Dir: dir})
	pids := pidsIn(t, filepath.Join(dir, "pids"), 5)
	began := time.Now()
	if err := p.Stop(Grace{Interrupt: 50 * time.Millisecond, Terminate: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("stopping took %v", d)
	}
	for _, pid := range pids {
		if _, ok := look(pid); ok {
			t.Errorf("process %d of %v is still there", pid, pids)
		}
	}
	if e := p.Exit(); e.Signal != syscall.SIGKILL {
		t.Errorf("exit %+v, want SIGKILL", e)
	}
}

func TestStopBeginsGently(t *testing.T) {
	s := newSupervisor(t)
	for _, c := range []struct {
		name, script string
		code         int
	}{
		{"interrupt", `trap 'exit 7' INT; echo up; while :; do sleep 0.01; done`, 7},
		{"terminate", `trap '' INT; trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done`, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, s, Spec{Argv: sh(c.script)})
			if _, err := p.Stdout.Read(make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			if err := p.Stop(Grace{Interrupt: 300 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			if e := p.Exit(); e.Code != c.code {
				t.Errorf("exit %+v, want its own handler's %d", e, c.code)
			}
		})
	}
}

func TestPauseStopsTheWholeTreeAndResumeContinuesIt(t *testing.T) {
	s := newSupervisor(t)
	dir := t.TempDir()
	p := start(t, s, Spec{Dir: dir, Argv: sh(`
		count() { i=0; while :; do i=$((i+1)); echo $i >$1; done; }
		count a & setsid sh -c 'i=0; while :; do i=$((i+1)); echo $i >b; done' & count c`)})
	read := func() string {
		var all strings.Builder
		for _, f := range []string{"a", "b", "c"} {
			data, _ := os.ReadFile(filepath.Join(dir, f))
			all.WriteString(strings.TrimSpace(string(data)) + " ")
		}
		return all.String()
	}
	eventually(t, "all three count", func() bool { return len(strings.Fields(read())) == 3 })
	if err := p.Pause(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, q := range p.tree() {
		if !q.stopped() {
			t.Errorf("process %d is in state %c after the pause was acknowledged", q.pid, q.state)
		}
	}
	before := read()
	time.Sleep(50 * time.Millisecond)
	if after := read(); after != before {
		t.Errorf("it went on while paused: %q, then %q", before, after)
	}
	if err := p.Resume(context.Background()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it counts on", func() bool {
		now := strings.Fields(read())
		return len(now) == 3 && read() != before
	})
	if err := p.Stop(Grace{Interrupt: -1, Terminate: time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(context.Background()); !errors.Is(err, core.Kind(core.Conflict)) {
		t.Errorf("pause after the end: %v, want a conflict", err)
	}
}

func TestAPausedRunIsKilledWithoutRunningAgain(t *testing.T) {
	s := newSupervisor(t)
	p := start(t, s, Spec{Argv: sh(`trap 'exit 5' INT TERM; echo up; while :; do sleep 0.01; done`)})
	if _, err := p.Stdout.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(Grace{}); err != nil {
		t.Fatal(err)
	}
	if e := p.Exit(); e.Signal != syscall.SIGKILL {
		t.Errorf("exit %+v, want SIGKILL", e)
	}
}

func TestTheDeadlineStopsARun(t *testing.T) {
	s := newSupervisor(t)
	p := start(t, s, Spec{Argv: []string{"sleep", "300"}, Deadline: 50 * time.Millisecond})
	if e := p.Exit(); !e.Late || e.Signal != syscall.SIGINT {
		t.Errorf("exit %+v, want late and interrupted", e)
	}
}

func TestSweepFindsWhatAFormerEngineLeft(t *testing.T) {
	s := newSupervisor(t)
	dir := t.TempDir()
	p := start(t, s, Spec{Argv: sh(runaway), Dir: dir})
	pids := pidsIn(t, filepath.Join(dir, "pids"), 5)
	other := start(t, s, Spec{Argv: []string{"sleep", "300"}})
	_ = other
	n, err := Sweep(context.Background(), s.instance+"-other")
	if n != 0 || err != nil {
		t.Fatalf("sweep of another instance killed %d, %v", n, err)
	}
	n, err = Sweep(context.Background(), s.instance)
	if err != nil {
		t.Fatal(err)
	}
	if n < 6 {
		t.Errorf("sweep killed %d processes, want at least 6", n)
	}
	// The one with an empty environment descends from nothing that is
	// marked any more: its run's tag finds it.
	if err := p.Stop(Grace{Interrupt: -1, Terminate: -1}); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestASweepSparesWhatItsEngineHasBegun(t *testing.T) {
	s := newSupervisor(t)
	former, err := NewSupervisor(s.instance)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = former.Close() })
	dirs := []string{t.TempDir(), t.TempDir()}
	start(t, former, Spec{Argv: sh(runaway), Dir: dirs[0]})
	old := pidsIn(t, filepath.Join(dirs[0], "pids"), 5)
	start(t, s, Spec{Argv: sh(runaway), Dir: dirs[1]})
	fresh := pidsIn(t, filepath.Join(dirs[1], "pids"), 5)
	if n, err := s.Sweep(t.Context()); err != nil || n == 0 {
		t.Errorf("killed %d: %v", n, err)
	}
	for _, pid := range fresh {
		if !alive(pid) {
			t.Errorf("process %d of its own was killed", pid)
		}
	}
	if alive(old[0]) {
		t.Errorf("process %d of a former engine survived", old[0])
	}
}

func TestAnEngineThatDiesTakesItsRunsAlong(t *testing.T) {
	dir, instance := t.TempDir(), "dying"+strconv.Itoa(os.Getpid())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newSupervisor(t)
	engine := start(t, s, Spec{Argv: []string{self}, Env: map[string]string{
		"EXEC_TEST_ROLE": "engine", "EXEC_TEST_DIR": dir, "EXEC_TEST_INSTANCE": instance,
	}})
	pids := pidsIn(t, filepath.Join(dir, "pids"), 2)
	if err := syscall.Kill(engine.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The kernel ends the run's first process; the rest waits for the next engine.
	eventually(t, "the first process is gone", func() bool { return !alive(pids[0]) })
	if !alive(pids[1]) {
		t.Error("the process in another session is gone already: nothing is left to sweep")
	}
	n, err := Sweep(context.Background(), instance)
	if err != nil || n == 0 {
		t.Errorf("sweep killed %d: %v", n, err)
	}
	if alive(pids[1]) {
		t.Errorf("process %d survived the sweep", pids[1])
	}
	// Here they have become this process's children; in life they are init's.
	eventually(t, "they are reaped", func() bool {
		for _, pid := range childrenOf(os.Getpid()) {
			if !s.isMain(pid) {
				collect(pid)
			}
		}
		return len(childrenOf(os.Getpid())) == 0
	})
}

func TestOrphansThatEndAreReapedWhileTheRunGoesOn(t *testing.T) {
	s := newSupervisor(t)
	dir := t.TempDir()
	p := start(t, s, Spec{Argv: sh(`(setsid sh -c 'echo $$ >>pids' &); sleep 300`), Dir: dir})
	pid := pidsIn(t, filepath.Join(dir, "pids"), 1)[0]
	eventually(t, "the orphan is reaped", func() bool {
		_, ok := look(pid)
		return !ok
	})
	if p.reaped() {
		t.Error("the run ended")
	}
}

func TestCloseStopsEveryRun(t *testing.T) {
	s, err := NewSupervisor("closing")
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Start(Spec{Run: "x", Argv: []string{"sleep", "300"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(p.PID()) {
		t.Error("still running")
	}
	p.CloseIO()
	if _, err := s.Start(Spec{Run: "y", Argv: []string{"true"}, Dir: t.TempDir()}); err == nil {
		t.Error("a closed supervisor started a command")
	}
}
