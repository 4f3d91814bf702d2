package cell

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// each runs a test in every way in which this machine can hold a run.
func each(t *testing.T, run func(t *testing.T, s *Supervisor)) {
	for name, without := range map[string][]string{"all": nil, "no cgroup": {layerCgroup}, "no name spaces": {layerSpaces}, "bare": {layerSpaces, layerCgroup}} {
		t.Run(name, func(t *testing.T) { run(t, newSupervisor(t, without...)) })
	}
}

func start(t testing.TB, s *Supervisor, spec Spec) *Process {
	t.Helper()
	if spec.Dir == "" {
		spec.Dir = yard(t)
	}
	if spec.Run == "" {
		spec.Run = strings.ReplaceAll(t.Name(), "/", "-")
	}
	if spec.Wall.Profile == "" {
		spec.Wall.Profile = Open
	}
	p := expect.Of(s.Start(spec))(t)
	t.Cleanup(func() {
		expect.Is(t, p.Stop(Grace{Interrupt: -1, Terminate: -1}), nil)
		p.CloseIO()
	})
	return p
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestACommandRunsInItsOwnGroupWithAMarkedCleanEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	each(t, func(t *testing.T, s *Supervisor) {
		p := start(t, s, Spec{Run: "r1", Argv: sh("env; ulimit -c; ulimit -n; cat"), Env: map[string]string{"GIVEN": "yes"}, Limits: DefaultLimits()})
		if pgid, _ := unix.Getpgid(p.PID()); pgid != p.PID() {
			t.Errorf("process group %d, want its own %d", pgid, p.PID())
		}
		p.Stdin.Close()
		out := expect.Of(io.ReadAll(p.Stdout))(t)
		e := p.Exit()
		expect.True(t, e.Code == 0 && e.Signal == 0, "exit %+v, want 0", e)
		for _, want := range []string{"TERM=dumb\n", "GIVEN=yes\n", "PATH=", "HOME=", "LANG=", Marker + "=" + s.opt.Instance + "/r1\n"} {
			expect.Has(t, string(out), want, "environment lacks", out)
		}
		expect.True(t, !strings.Contains(string(out), "hunter2"), "the operator's own variables reached the command")
		if !strings.HasSuffix(string(out), "\n0\n4096\n") {
			t.Errorf("limits: got %q, want core 0 and 4096 files", out[max(0, len(out)-20):])
		}
	})
}

func TestACommandOpensNothingButItsPipes(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		p := start(t, s, Spec{Argv: sh(`for f in /proc/self/fd/*; do readlink "$f"; done`)})
		p.Stdin.Close()
		out, _ := io.ReadAll(p.Stdout)
		for _, line := range strings.Fields(string(out)) {
			expect.True(t, strings.HasPrefix(line, "pipe:") || strings.HasPrefix(line, "/proc/"), "it has %s", line)
		}
	})
}

func TestStartTellsWhatIsMissing(t *testing.T) {
	dir := yard(t)
	plain := filepath.Join(dir, "plain")
	expect.No(t, os.WriteFile(plain, []byte("x"), 0o600))
	bad := filepath.Join(dir, "bad")
	expect.No(t, os.WriteFile(bad, []byte("\x7fELF"), 0o755))
	each(t, func(t *testing.T, s *Supervisor) {
		for _, c := range []struct {
			name string
			spec Spec
			want error
		}{
			{"no such program", Spec{Argv: []string{"no-such-program-here"}, Dir: dir}, os.ErrNotExist},
			{"no such path", Spec{Argv: []string{"./nothing"}, Dir: dir}, os.ErrNotExist},
			{"not executable", Spec{Argv: []string{plain}, Dir: dir}, os.ErrPermission},
			{"no format", Spec{Argv: []string{bad}, Dir: dir}, syscall.ENOEXEC},
			{"a directory", Spec{Argv: []string{"/"}, Dir: dir}, os.ErrPermission},
			{"no such directory", Spec{Argv: []string{"true"}, Dir: dir + "/gone"}, os.ErrNotExist},
			{"not a directory", Spec{Argv: []string{"true"}, Dir: plain}, syscall.ENOTDIR},
			{"empty", Spec{Dir: dir}, core.Kind(core.InvalidInput)},
			{"forged mark", Spec{Argv: []string{"true"}, Dir: dir, Env: map[string]string{Marker: "x"}}, core.Kind(core.InvalidInput)},
		} {
			for _, profile := range []Profile{Open, Worker} {
				c.spec.Wall.Profile = profile
				expect.Err(t, expect.Fault(s.Start(c.spec)), c.want, c.name, profile)
			}
		}
		kids := childrenOf(os.Getpid())
		expect.True(t, len(kids) == 0, "children after failed starts: %v", kids)
	})
}

// runaway starts processes that try everything to get away: a background
// one, one in a session of its own, a double fork, one with a lowered limit,
// and one of each that also emptied its environment or ignores every signal it
// can. Each writes a line when it is there.
const runaway = `
trap '' INT TERM HUP
echo x >>up
sleep 300 & echo x >>up
setsid sh -c 'echo x >>up; exec sleep 300' &
(setsid sh -c 'trap "" TERM; echo x >>up; while :; do sleep 300; done' &) &
env -i PATH="$PATH" setsid sh -c '(env -i PATH="$PATH" sh -c "echo x >>up; sleep 300" &)' &
setsid env -i PATH="$PATH" sh -c 'ulimit -t 1000; ulimit -n 20; (setsid sh -c "echo x >>up; while :; do sleep 1; done" &)'
while :; do sleep 1; done
`

const runaways = 6

// below are the live processes below this one, but for an init that waits for
// its run.
func below() (pids []int) {
	for _, p := range descendants(os.Getpid()) {
		if run, _ := ofInit(p.PID); !p.Dead() && !strings.HasSuffix(run, noRun) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func TestStopLeavesNothingBehind(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		for _, profile := range []Profile{Open, Worker} {
			dir := yard(t)
			p := start(t, s, Spec{Argv: sh(runaway), Dir: dir, Wall: Wall{Profile: profile}})
			lines(t, dir, "up", runaways)
			expect.No(t, p.Stop(Grace{Interrupt: 50 * time.Millisecond, Terminate: 100 * time.Millisecond}))
			left := below()
			expect.True(t, len(left) == 0, "%s: %v are still there", profile, left)
			e := p.Exit()
			expect.True(t, e.Signal == syscall.SIGKILL, "exit %+v, want SIGKILL", e)
		}
	})
}

func TestStopBeginsGently(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		for _, c := range []struct {
			name, script string
			code         int
			interrupt    time.Duration
		}{
			{"interrupt", `trap 'exit 7' INT; echo up; while :; do sleep 0.01; done`, 7, 2 * time.Minute},
			{"terminate", `trap '' INT; trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done`, 9, 300 * time.Millisecond},
		} {
			p := start(t, s, Spec{Argv: sh(c.script)})
			expect.Of(p.Stdout.Read(make([]byte, 3)))(t)
			expect.No(t, p.Stop(Grace{Interrupt: c.interrupt, Terminate: 2 * time.Minute}))
			e := p.Exit()
			expect.True(t, e.Code == c.code, "%s: exit %+v, want its own handler's %d", c.name, e, c.code)
		}
	})
}

// counters count on in three processes, one of which is in a session of its own.
const counters = `
count() { while :; do printf x >>$1; sleep 0.001; done; }
count a & setsid sh -c 'while :; do printf x >>b; sleep 0.001; done' & count c`

// counted is how far the three have come.
func counted(dir string) (all [3]int64) {
	for i, f := range []string{"a", "b", "c"} {
		if info, err := os.Stat(filepath.Join(dir, f)); err == nil {
			all[i] = info.Size()
		}
	}
	return all
}

// past reports whether each of them is farther than it was.
func past(dir string, was [3]int64) bool {
	now := counted(dir)
	return now[0] > was[0] && now[1] > was[1] && now[2] > was[2]
}

func TestPauseStopsTheWholeTreeAndResumeContinuesIt(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		dir := t.TempDir()
		p := start(t, s, Spec{Dir: dir, Argv: sh(counters)})
		expect.Await(t, "all three count", func() bool { return past(dir, [3]int64{}) })
		for range 3 {
			expect.No(t, p.Pause(context.Background()))
			before := counted(dir)
			expect.Still(t, func() [3]int64 { return counted(dir) }, "it went on while paused")
			expect.No(t, p.Resume(context.Background()))
			expect.Await(t, "it counts on", func() bool { return past(dir, before) })
		}
		expect.No(t, p.Stop(Grace{Interrupt: -1, Terminate: time.Second}))
		expect.Err(t, p.Pause(context.Background()), core.Kind(core.Conflict), "pause after the end")
	})
}

func TestAPausedRunIsKilledWithoutRunningAgain(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		p := start(t, s, Spec{Argv: sh(`trap 'exit 5' INT TERM; echo up; while :; do sleep 0.01; done`)})
		expect.Of(p.Stdout.Read(make([]byte, 3)))(t)
		expect.No(t, p.Pause(context.Background()))
		expect.No(t, p.Stop(Grace{}))
		e := p.Exit()
		expect.True(t, e.Signal == syscall.SIGKILL, "exit %+v, want SIGKILL", e)
	})
}

func TestTheDeadlineStopsARun(t *testing.T) {
	s := newSupervisor(t)
	p := start(t, s, Spec{Argv: []string{"sleep", "300"}, Deadline: 50 * time.Millisecond})
	e := p.Exit()
	expect.True(t, e.Late && e.Signal == syscall.SIGINT, "exit %+v, want late and interrupted", e)
}

// engine starts another engine of an instance, which runs a script in dir.
func engine(t *testing.T, instance, script, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CELL_TEST_ENGINE="+instance, "CELL_TEST_SCRIPT="+script)
	cmd.Stderr = os.Stderr
	expect.No(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestTheCellOfAKilledEngineFreezesAndIsSweptByTheNext(t *testing.T) {
	dir, instance := t.TempDir(), "dying"+strconv.Itoa(os.Getpid())
	e := engine(t, instance, counters, dir)
	expect.Await(t, "the engine knows its run", func() bool { _, err := os.Stat(filepath.Join(dir, "started")); return err == nil })
	expect.Await(t, "all three count", func() bool { return past(dir, [3]int64{}) })
	_ = e.Process.Kill()
	_ = e.Wait()
	expect.Rests(t, "they stand still", func() [3]int64 { return counted(dir) })
	next := expect.Of(NewSupervisor(Options{Instance: instance}))(t)
	defer next.Close()
	n, err := newSupervisor(t).Sweep(t.Context())
	expect.True(t, n == 0 && err == nil, "another instance swept %d: %v", n, err)
	own := start(t, next, Spec{Argv: []string{"sleep", "300"}})
	n, err = next.Sweep(t.Context())
	expect.True(t, n == 1 && err == nil, "swept %d: %v", n, err)
	expect.True(t, !own.Ended(), "the sweep took the engine's own run along")
	collectOrphans(t, next.name)
}

// collectOrphans reaps what has become this process's by its parent's death.
// The inits of an engine that lives are spared.
func collectOrphans(t *testing.T, lives string) {
	t.Helper()
	expect.Await(t, "what was swept is reaped", func() bool {
		left := false
		for _, pid := range childrenOf(os.Getpid()) {
			if _, engine := ofInit(pid); engine == "" || engine != lives {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				left = true
			}
		}
		return !left
	})
}

func TestOrphansThatEndAreReapedWhileTheRunGoesOn(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		dir := t.TempDir()
		p := start(t, s, Spec{Argv: sh(`(setsid sh -c 'echo x >>up' &); exec sleep 300`), Dir: dir})
		lines(t, dir, "up", 1)
		expect.Await(t, "only the command is there", func() bool { return len(p.tree()) == 1 })
		expect.True(t, !p.Ended(), "the run ended")
	})
}

func TestPruneEndsWhatIsNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		dir := t.TempDir()
		p := start(t, s, Spec{Argv: sh(`sleep 300 & echo x >>up; while ! [ -e go ]; do sleep 0.01; done; trap '' TERM; (setsid sh -c 'trap "" TERM; echo x >>up; while :; do sleep 300; done' &); wait`), Dir: dir})
		lines(t, dir, "up", 1)
		before := p.Census()
		expect.No(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
		lines(t, dir, "up", 2)
		p.Prune(before.Has, 20*time.Millisecond)
		for _, q := range p.left() {
			expect.True(t, before.Has(q.PID, q.Start), "%d was not there before and is there now", q.PID)
		}
		expect.True(t, !p.Ended(), "the command has ended")
	})
}

func TestCloseStopsEveryRun(t *testing.T) {
	s := expect.Of(NewSupervisor(Options{Instance: "closing"}))(t)
	p := expect.Of(s.Start(Spec{Run: "x", Argv: []string{"sleep", "300"}, Dir: t.TempDir()}))(t)
	expect.No(t, s.Close())
	expect.True(t, p.isGone(), "still running")
	p.CloseIO()
	expect.Fails(t, expect.Fault(s.Start(Spec{Run: "y", Argv: []string{"true"}, Dir: t.TempDir()})), "a closed supervisor started a command")
}

func TestMemoryIsBounded(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		for _, profile := range []Profile{Open, Worker} {
			p := start(t, s, Spec{Argv: sh(`ulimit -v; ulimit -p 2>/dev/null || ulimit -u`), Limits: Limits{Memory: 512 << 20, Processes: 1000}, Wall: Wall{Profile: profile}})
			p.Stdin.Close()
			out, _ := io.ReadAll(p.Stdout)
			errs, _ := io.ReadAll(p.Stderr)
			if string(out) != "524288\n1000\n" {
				t.Errorf("%s: %q %q %+v", profile, out, errs, p.Exit())
			}
		}
	})
}
