package cell

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
)

// dying is an engine that is to be killed, and its one run.
type dying struct {
	*exec.Cmd
	t                   *testing.T
	instance, dir, keep string
}

// doomed starts such an engine, with a run that has written the file up.
func doomed(t *testing.T, script string, env ...string) *dying {
	t.Helper()
	d := &dying{t: t, instance: "keep" + strconv.Itoa(os.Getpid()), dir: yard(t)}
	d.keep = filepath.Join(d.dir, "kept")
	for _, v := range append(env, "CELL_TEST_KEEP="+d.keep) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	d.Cmd = engine(t, d.instance, script, d.dir)
	t.Cleanup(func() { // of a test that failed
		for _, pid := range numbers("/proc") {
			if run, _ := ofInit(pid); run == d.instance+"/r" {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	})
	d.until("up")
	d.until("started")
	return d
}

// until waits for a file of the run's.
func (d *dying) until(name string) {
	d.t.Helper()
	expect.Await(d.t, name+" is there", func() bool { _, err := os.Stat(filepath.Join(d.dir, name)); return err == nil })
}

// kill ends the engine.
func (d *dying) kill() {
	_ = d.Process.Kill()
	_ = d.Wait()
}

// init is the init of its run.
func (d *dying) init() (pid int) {
	d.t.Helper()
	expect.Await(d.t, "there is an init", func() bool {
		for _, pid = range numbers("/proc") {
			if run, _ := ofInit(pid); run == d.instance+"/r" {
				return true
			}
		}
		return false
	})
	return pid
}

// next is what the next engine finds: one thing, once.
func (d *dying) next() (k Kept) {
	d.t.Helper()
	s := expect.Of(NewSupervisor(Options{Instance: d.instance, Keep: d.keep}))(d.t)
	defer s.Close()
	expect.Of(s.Sweep(d.t.Context()))(d.t)
	collectOrphans(d.t, s.name)
	for times := 1; times >= 0; times-- {
		found := 0
		expect.No(d.t, s.Collect(func(got Kept) error { k = got; found++; return nil }))
		expect.Must(d.t, found == times, "found %d things that were kept, want %d", found, times)
	}
	left, _ := os.ReadDir(d.keep)
	expect.True(d.t, len(left) == 0, "left: %v", left)
	if len(k.Name) != keptName || k.Run != d.instance+"/r" || k.Whose != (Whose{Tenant: "t_x", Task: "task"}) || !slices.Equal(k.Tasks, []string{"two"}) || k.Lost.IsZero() || k.Cut {
		d.t.Errorf("kept %+v", k)
	}
	return k
}

// held stops the init while the engine dies and until something has happened: what
// the cell does before it is frozen. It may do only what the init does not answer:
// start no program.
func (d *dying) held(until func(init int)) {
	d.t.Helper()
	init := d.init()
	expect.No(d.t, unix.Kill(init, unix.SIGSTOP))
	expect.Await(d.t, "the init stands still", func() bool { return frozen(init) })
	d.kill()
	until(init)
	expect.No(d.t, unix.Kill(init, unix.SIGCONT))
}

// kept waits until the init has kept something.
func (d *dying) kept() {
	d.t.Helper()
	expect.Await(d.t, "something is kept", func() bool {
		found, _ := filepath.Glob(filepath.Join(d.keep, "*"+keptSuffix))
		return len(found) == 1
	})
}

// unread are the bytes that wait to be read of a process's standard output.
func unread(pid int) int {
	f, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/fd/1", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}

// ways are the settings that one user can try, by name.
var ways = map[string][]string{
	"worker": {"CELL_TEST_PROFILE=worker"}, "open": {"CELL_TEST_PROFILE=open"}, "no cgroup": {"CELL_TEST_PROFILE=worker", "CELL_TEST_LESS=" + layerCgroup},
	"no name spaces": {"CELL_TEST_PROFILE=worker", "CELL_TEST_LESS=" + layerSpaces}, "bare": {"CELL_TEST_PROFILE=open", "CELL_TEST_LESS=" + layerSpaces + "," + layerCgroup},
}

func TestTheInitKeepsWhatADeadEngineHadNotRead(t *testing.T) {
	for name, env := range ways {
		t.Run(name, func(t *testing.T) {
			t.Run("written before", func(t *testing.T) {
				d := doomed(t, `echo out; echo err >&2; echo x >up; exec sleep 300`, env...)
				d.kill()
				if k := d.next(); string(k.Stdout) != "out\n" || string(k.Stderr) != "err\n" || k.How != EndedByReturn || k.Ended.IsZero() {
					t.Errorf("kept %+v, %q, %q", k, k.Stdout, k.Stderr)
				}
			})
			t.Run("written before it froze", func(t *testing.T) {
				d := doomed(t, `echo x >up; read x; echo late; echo later >&2; echo x >late; exec sleep 300`, env...)
				d.held(func(int) { d.until("late") })
				d.kept()
				if k := d.next(); string(k.Stdout) != "late\n" || string(k.Stderr) != "later\n" || k.How != EndedByReturn {
					t.Errorf("kept %+v, %q, %q", k, k.Stdout, k.Stderr)
				}
			})
			t.Run("ended before it froze", func(t *testing.T) {
				d := doomed(t, `echo x >up; read x; echo bye; exit 3`, env...)
				d.held(func(init int) {
					expect.Await(t, "it has ended", func() bool {
						return !slices.ContainsFunc(descendants(init), func(p proc) bool { return !p.Dead() })
					})
				})
				k := d.next()
				expect.True(t, string(k.Stdout) == "bye\n" && k.How == EndedItself && k.Code == 3 && k.Outcome() != "", "kept %+v, %q", k, k.Stdout)
			})
			t.Run("ended before the engine", func(t *testing.T) {
				d := doomed(t, `echo x >up; echo bye; echo "it failed" >&2; exit 4`, env...)
				init := d.init()
				expect.Await(t, "it is over", func() bool { return len(descendants(init)) == 0 })
				d.kill()
				if k := d.next(); string(k.Stdout) != "bye\n" || string(k.Stderr) != "it failed\n" || k.How != EndedItself || k.Code != 4 {
					t.Errorf("kept %+v, %q, %q", k, k.Stdout, k.Stderr)
				}
			})
			t.Run("killed while it was frozen", func(t *testing.T) {
				d := doomed(t, `echo out; echo x >up; while :; do sleep 300; done`, env...)
				init := d.init()
				d.kill()
				d.kept()
				for _, p := range descendants(init) {
					p.send(unix.SIGKILL)
				}
				expect.Await(t, "the init has left", func() bool { p, ok := look(init); return !ok || p.Dead() })
				k := d.next()
				expect.True(t, string(k.Stdout) == "out\n" && k.How == EndedItself && k.Signal == syscall.SIGKILL, "kept %+v, %q", k, k.Stdout)
			})
			t.Run("until the grace is over", func(t *testing.T) {
				d := doomed(t, `echo out; echo x >up; exec sleep 300`, append(env, "CELL_TEST_GRACE=1ms")...)
				init := d.init()
				d.kill()
				expect.Await(t, "the init has left", func() bool { p, ok := look(init); return !ok || p.Dead() })
				k := d.next()
				expect.True(t, string(k.Stdout) == "out\n" && k.How == EndedGrace, "kept %+v, %q", k, k.Stdout)
			})
			t.Run("a full pipe", func(t *testing.T) {
				d := doomed(t, `echo x >up; yes ""`, env...)
				init := d.init()
				expect.Await(t, "the pipe is full", func() bool {
					return slices.ContainsFunc(descendants(init), func(p proc) bool {
						name, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/comm")
						return string(name) == "yes\n" && unread(p.PID) == 64<<10
					})
				})
				d.kill()
				k := d.next()
				expect.True(t, len(k.Stdout) == 64<<10 && len(bytes.Trim(k.Stdout, "\n")) == 0, "kept %d bytes", len(k.Stdout))
			})
			t.Run("secrets are masked", func(t *testing.T) {
				d := doomed(t, `echo "battery, correct horse battery"; echo x >up; exec sleep 300`, env...)
				d.kill()
				expect.Is(t, string(d.next().Stdout), "[secret KEY], [secret KEY]\n", "kept")
			})
		})
	}
}

func TestTheInitKeepsInEverySetting(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as an ordinary one already")
	}
	for _, c := range celltest.Settings() {
		t.Run(c.Name, func(t *testing.T) {
			said := inSetting(t, c, "TestTheInitKeepsWhatADeadEngineHadNotRead$")
			expect.Must(t, strings.Contains(said, "--- PASS: TestTheInitKeepsWhatADeadEngineHadNotRead/open"), "%v", said)
		})
	}
}

func TestARunThatIsKeptEndsAsFastAsAnother(t *testing.T) {
	each(t, func(t *testing.T, _ *Supervisor) {
		s := expect.Of(NewSupervisor(Options{Instance: "keeping" + strconv.Itoa(os.Getpid()), Keep: t.TempDir()}))(t)
		defer s.Close()
		p := start(t, s, Spec{Argv: sh("echo out; echo err >&2"), Keep: &Keep{Stdout: true}})
		<-p.Done()
		if err := p.Stop(Grace{Terminate: time.Hour}); err != nil { // it says that it is empty, and no hour passes
			t.Error(err)
		}
		left, _ := os.ReadDir(s.opt.Keep)
		expect.True(t, len(left) == 0, "left: %v", left)
	})
}

func TestWhatCantBeReadIsNamedAndGoes(t *testing.T) {
	dir := t.TempDir()
	s := expect.Of(NewSupervisor(Options{Instance: "spoilt", Keep: dir}))(t)
	defer s.Close()
	for name, data := range map[string]string{
		"AAAAAAAAAAAA.json": `{"run":"spoilt/r","whose":{},"lost":"2026-01-01T00:00:00Z"}`,
		"BBBBBBBBBBBB.json": `{"run":"spoilt/r"`,
		"CCCCCCCCCCCC.json": strings.Repeat(" ", maxKeptFile+1),
		"DDDDDDDDDDDD.part": `{`,
		"README":            "not ours",
	} {
		expect.No(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	full := errors.New("the disk is full")
	expect.Err(t, s.Collect(func(Kept) error { return full }), full)
	_, err := os.Stat(filepath.Join(dir, "AAAAAAAAAAAA.json"))
	expect.No(t, err, "what nobody took")
	expect.No(t, os.WriteFile(filepath.Join(dir, "BBBBBBBBBBBB.json"), []byte(`{"run":"spoilt/r"`), 0o600))
	found := 0
	err = s.Collect(func(Kept) error { found++; return nil })
	expect.True(t, found == 1 && err != nil && strings.Contains(err.Error(), "BBBB") && !strings.Contains(err.Error(), "AAAA"), "found %d: %v", found, err)
	left, _ := os.ReadDir(dir)
	expect.True(t, len(left) == 1 && left[0].Name() == "README", "left: %v", left)
}

func FuzzKept(f *testing.F) {
	f.Add([]byte(`{"run":"i/r","whose":{"Tenant":"t_x","Task":"a"},"lost":"2026-01-01T00:00:00Z","how":"exit","ended":"2026-01-01T00:00:00Z","code":3,"stdout":"b3V0"}`))
	f.Add([]byte(`{"run":"\u0000","lost":"2026-01-01T00:00:00Z","how":"other","signal":65}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := decodeKept(data)
		if err == nil && (len(k.Tasks) > serving || strings.ContainsRune(k.Whose.Task, 0) || k.Outcome() == "") {
			t.Errorf("%+v", k)
		}
	})
}
