package origin_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/origin"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// TestMain makes the tests' process what an engine is: who loses its parent
// becomes its child.
func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// kept are the runs of an engine.
type kept struct {
	self   int
	first  map[int]operator.Run
	marked map[int]operator.Run
	asked  func(pid int) // before an answer; may be nil
}

func (k *kept) Self() int { return k.self }

func (k *kept) Lookup(pid int) (operator.Run, bool) {
	if k.asked != nil {
		k.asked(pid)
	}
	r, ok := k.first[pid]
	return r, ok
}

func (k *kept) Marked(pid int) (operator.Run, bool) {
	r, ok := k.marked[pid]
	return r, ok
}

var job = operator.Run{Name: "tk_1", Tenant: "t_acme", Task: "tk_1"}

// start runs a script of sh whose first process is the run's, and which prints
// the pids that it is about, one in a line. It lasts until the end of the test.
func start(t *testing.T, script string) (first int, pids *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	in := expect.Of(cmd.StdinPipe())(t)
	out := expect.Of(cmd.StdoutPipe())(t)
	expect.No(t, cmd.Start())
	t.Cleanup(func() {
		in.Close() // whoever reads it ends
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, bufio.NewScanner(out)
}

func next(t *testing.T, pids *bufio.Scanner) int {
	t.Helper()
	expect.Must(t, pids.Scan(), "no pid was told")
	return expect.Of(strconv.Atoi(strings.TrimSpace(pids.Text())))(t)
}

func always() bool { return true }

func TestWhateverARunStartsIsTheRuns(t *testing.T) {
	const say = `echo $$; read x`
	for name, script := range map[string]string{
		"itself":                    say,
		"a child":                   `sh -c '` + say + `'; true`,
		"a child of many":           `sh -c "sh -c \"sh -c '` + strings.ReplaceAll(say, "$$", `\\\$\\\$`) + `'; true\"; true"; true`,
		"in a session of its own":   `setsid --wait sh -c '` + say + `'`,
		"without any environment":   `env -i /bin/sh -c '` + say + `'; true`,
		"under other limits":        `prlimit --rttime=77:77 sh -c '` + say + `'; true`,
		"with a name that lies":     `exec -a 'x) S 1 (y' sh -c '` + say + `'; true`,
		"in name spaces of its own": `unshare --user --map-root-user sh -c '` + say + `'; true`,
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(script, "exec -a") {
				script = "bash -c '" + strings.ReplaceAll(script, "'", `'"'"'`) + "'; true"
			}
			if strings.HasPrefix(script, "unshare") && exec.Command("unshare", "--user", "true").Run() != nil {
				t.Skip("this system gives no user name spaces")
			}
			first, pids := start(t, script)
			pid := next(t, pids)
			k := &kept{self: os.Getpid(), first: map[int]operator.Run{first: job}}
			got := origin.Find(k, pid, always)
			expect.True(t, got.Kind == operator.OfRun && got.Run == job && got.PID == pid, "%+v", got)
		})
	}
}

func TestWhatLostItsRunIsTheEnginesAndNobodys(t *testing.T) {
	for name, script := range map[string]string{
		"a double fork":   `(sh -c 'echo $$; read x' <&3 &) 3<&0; read x`,
		"a daemon":        `(setsid env -i /bin/sh -c 'echo $$; read x' <&3 &) 3<&0; read x`,
		"outliving a run": `sh -c 'echo $$; read x' <&3 3<&0 & exit`,
	} {
		t.Run(name, func(t *testing.T) {
			script = "exec 3<&0; " + strings.ReplaceAll(script, " 3<&0", "")
			first, pids := start(t, script)
			pid := next(t, pids)
			k := &kept{self: os.Getpid(), first: map[int]operator.Run{first: job}, marked: map[int]operator.Run{pid: job}}
			var got operator.Origin
			for got = origin.Find(k, pid, always); got.Kind == operator.OfRun; { // until its parent has ended
				got = origin.Find(k, pid, always)
			}
			expect.True(t, got.Kind == operator.Unclear && got.Run == job && got.Why != "", "%+v", got)
			k.marked = nil
			got = origin.Find(k, pid, always)
			expect.True(t, got.Kind == operator.Unclear && got.Run == (operator.Run{}), "without a mark: %+v", got)
		})
	}
}

func TestWhoIsNotTheEnginesIsAPerson(t *testing.T) {
	engine, pids := start(t, `echo $$; read x`)
	next(t, pids)
	k := &kept{self: engine, first: map[int]operator.Run{engine: job}}
	for name, pid := range map[string]int{"beside the engine": os.Getpid(), "above it": os.Getppid(), "outside of the name space": 0} {
		got := origin.Find(k, pid, always)
		expect.True(t, got.Kind == operator.Person, "%s: %+v", name, got)
	}
	k.marked = map[int]operator.Run{os.Getppid(): {Name: "agent:t_acme:ada"}}
	got := origin.Find(k, os.Getpid(), always)
	expect.True(t, got.Kind == operator.Unclear && got.Run.Name == "agent:t_acme:ada", "what an earlier engine left: %+v", got)
}

func TestWhoIsGoneIsNobody(t *testing.T) {
	k := &kept{self: os.Getpid()}
	cmd := exec.Command("true")
	expect.No(t, cmd.Run())
	got := origin.Find(k, cmd.Process.Pid, always)
	expect.True(t, got.Kind == operator.Unclear, "%+v", got)
	got = origin.Find(&kept{self: 1 << 30}, os.Getpid(), func() bool { return false })
	expect.True(t, got.Kind == operator.Unclear, "a pid that is another's: %+v", got)
}

// TestAParentThatEndsMeanwhileLeadsNowhereElse ends the process above the
// caller right when it is looked at.
func TestAParentThatEndsMeanwhileLeadsNowhereElse(t *testing.T) {
	first, pids := start(t, `exec 3<&0; sh -c 'echo $$; sh -c "echo \$\$; read x" <&3 & read y' <&3; cat >/dev/null`)
	parent, pid := next(t, pids), next(t, pids)
	ended := false
	k := &kept{self: os.Getpid(), first: map[int]operator.Run{first: job}}
	k.asked = func(at int) {
		if at != parent || ended {
			return
		}
		ended = true
		expect.Is(t, unix.Kill(parent, unix.SIGKILL), nil)
		for unix.Kill(parent, 0) == nil { // until the run's first process has reaped it
		}
	}
	got := origin.Find(k, pid, always)
	expect.True(t, got.Kind == operator.Unclear && ended, "%+v", got)
}

// TestNoProcessIsAPersonsForAMoment looks at processes whose parents end all
// the time.
func TestNoProcessIsAPersonsForAMoment(t *testing.T) {
	first, pids := start(t, `i=0; while [ $i -lt 300 ]; do (sh -c 'echo $$; (sh -c "echo \$\$; (echo \$\$ &) &" &)' &); i=$((i+1)); done; echo 0; read x`)
	k := &kept{self: os.Getpid(), first: map[int]operator.Run{first: job}}
	var looked atomic.Int64
	for pids.Scan() {
		pid := expect.Of(strconv.Atoi(pids.Text()))(t)
		if pid == 0 {
			break
		}
		got := origin.Find(k, pid, always)
		expect.Must(t, got.Kind != operator.Person, "%+v", got)
		looked.Add(1)
	}
	expect.True(t, looked.Load() >= 300, "looked at %d", looked.Load())
}

func BenchmarkFind(b *testing.B) {
	k := &kept{self: 1 << 30}
	for b.Loop() {
		if got := origin.Find(k, os.Getpid(), always); got.Kind != operator.Person {
			b.Fatal(got)
		}
	}
}
