package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// logbook is a job's side that the swarm would be.
type logbook struct {
	mu    sync.Mutex
	lines []string
	beats int
}

func (l *logbook) job(input, spill string) swarm.Job {
	return swarm.Job{
		Task:  task.Task{TaskID: "tk_00000_0000000001", Input: core.Raw(input)},
		Spill: spill,
		Log: func(level, line string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lines = append(l.lines, level+" "+line)
		},
		Beat: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.beats++
		},
	}
}

func newRunner(t *testing.T, opt RunnerOptions) *Runner {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	return expect.Of(NewRunner(drivertest.Cells(t, cell.Options{}), opt))(t)
}

func shell(script string) string {
	return string(core.MustEncode(map[string]any{"argv": sh(script)}))
}

func finish(t *testing.T, w swarm.Work) (task.Outcome, runOutput) {
	t.Helper()
	expect.From(t, w.Done(), "the work does not end")
	o := w.Outcome()
	var out runOutput
	expect.No(t, core.Decode(o.Output, &out), "output", o.Output)
	expect.Is(t, o.Status == task.Succeeded, o.Error == nil, "status", o.Status, "with error", o.Error)
	return o, out
}

func runShell(t *testing.T, script string) (task.Outcome, runOutput, *logbook) {
	t.Helper()
	l := &logbook{}
	w := expect.Of(newRunner(t, RunnerOptions{}).Start(context.Background(), l.job(shell(script), "")))(t)
	o, out := finish(t, w)
	return o, out, l
}

func TestCheckRefusesBadInputByField(t *testing.T) {
	r := newRunner(t, RunnerOptions{})
	for _, c := range []struct{ input, field string }{
		{`{}`, "argv"},
		{`{"argv":[]}`, "argv"},
		{`{"argv":[""]}`, "argv"},
		{`{"argv":"ls"}`, "argv"},
		{`{"argv":["a\u0000b"]}`, "argv"},
		{`{"argv":["ls"],"shell":true}`, "shell"},
		{`{"argv":["ls"],"env":{"A B":"x"}}`, "env"},
		{`{"argv":["ls"],"env":{"SWARMDECK_RUN":"x"}}`, "env"},
		{`{"argv":["ls"],"env":{"A":"\u0000"}}`, "env.A"},
		{`{"argv":["ls"],"dir":"\u0000"}`, "dir"},
		{`["ls"]`, "input"},
	} {
		_, _, err := r.Check("t_test", core.Raw(c.input))
		var e *core.Error
		if !errors.As(err, &e) || e.Code != core.InvalidInput || e.Details["field"] != c.field {
			t.Errorf("%s: %v (details %v), want INVALID_INPUT naming %s", c.input, err, core.AsError(err).Details, c.field)
		}
	}
}

func TestCheckShowsExactlyWhatWouldRun(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, RunnerOptions{Dir: dir})
	title, action, err := r.Check("t_test", core.Raw(`{"stdin":"in","env":{"B":"2 3","A":"1"},"dir":"sub/..//x","argv":["echo","it's","a\u202eb","plain"]}`))
	expect.No(t, err)
	if want := `A=… B=… echo "it's" $'a\u202eb' plain`; title != want {
		t.Errorf("title %q, want %q", title, want)
	}
	want := fmt.Sprintf(`{"argv":["echo","it's","a%cb","plain"],"dir":%q,"env":{"A":"1","B":"2 3"},"stdin":"in"}`, '\u202e', filepath.Join(dir, "x"))
	expect.True(t, string(action.Args) == want && action.Kind == "exec.run", "action %s %s, want %s", action.Kind, action.Args, want)
	// What the judge saw is accepted again, unchanged.
	_, again, err := r.Check("t_test", action.Args)
	expect.True(t, err == nil && string(again.Args) == string(action.Args), "second check: %s, %v", again.Args, err)
	long, _, _ := r.Check("t_test", core.Raw(`{"argv":["x","`+strings.Repeat("é", 5000)+`"]}`))
	expect.True(t, len([]rune(long)) == maxTitle, "title of %d characters", len([]rune(long)))
}

func TestACommandsOutputAndExitAreItsResult(t *testing.T) {
	r, l := newRunner(t, RunnerOptions{}), &logbook{}
	w, err := r.Start(context.Background(), l.job(`{"argv":["sh","-c","cat; echo $X; pwd; printf 'no newline' >&2"],"stdin":"one\ntwo\r\n","env":{"X":"y"}}`, ""))
	expect.No(t, err)
	o, out := finish(t, w)
	expect.True(t, o.Status == task.Succeeded && out.RC == 0, "outcome %+v", o)
	want := "one\ntwo\r\ny\n" + r.opt.Dir + "\n"
	expect.True(t, out.Stdout == want && out.Stderr == "no newline", "stdout %q, stderr %q", out.Stdout, out.Stderr)
	expect.Is(t, o.Text, out.Stdout+"\nno newline", "text")
	got := strings.Join(l.lines, "|")
	for _, want := range []string{"INFO one|", "INFO two|", "INFO y|", "WARN no newline"} {
		expect.Has(t, got+"|", want, "log", got, "lacks")
	}
	expect.True(t, l.beats != 0, "no beat")
}

func TestFailuresSayWhatHappenedAndWhetherToRetry(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, input string
		limits      cell.Limits
		code        string
		retryable   bool
		rc          int
		message     string
	}{
		{"exit status", shell("echo why >&2; exit 3"), cell.Limits{}, "exit_nonzero", false, 3, "exit status 3: why"},
		{"signal", shell("kill -SEGV $$"), cell.Limits{}, "killed", true, 139, "SIGSEGV"},
		{"file size limit", shell("exec dd if=/dev/zero of=big bs=4096 count=10"), cell.Limits{Size: 8192}, "limit_exceeded", false, 153, "SIGXFSZ"},
		{"processor limit", shell("while :; do :; done"), cell.Limits{CPU: 1}, "limit_exceeded", false, 152, "SIGXCPU"},
		{"no such program", `{"argv":["no-such-program-here"]}`, cell.Limits{}, "not_found", false, 0, "no-such-program-here"},
		{"no such directory", `{"argv":["true"],"dir":"/no/such/dir"}`, cell.Limits{}, "not_found", false, 0, "/no/such/dir"},
		{"not a program", `{"argv":["/dev/null"]}`, cell.Limits{}, "not_runnable", false, 0, "/dev/null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.limits.CPU > 0 && testing.Short() {
				t.Skip("uses a second of processor time")
			}
			r := newRunner(t, RunnerOptions{Dir: dir, Limits: c.limits})
			w := expect.Of(r.Start(context.Background(), (&logbook{}).job(c.input, "")))(t)
			o, out := finish(t, w)
			expect.Must(t, o.Status == task.Failed && o.Error != nil && o.Error.Code == c.code && o.Error.Retryable == c.retryable,
				"outcome %s %+v, want %s", o.Status, o.Error, c.code)
			expect.True(t, strings.Contains(o.Error.Message, c.message) && out.RC == c.rc, "rc %d, message %q", out.RC, o.Error.Message)
		})
	}
}

func TestOutputPastTheInlineLimitIsInTheSpillFile(t *testing.T) {
	spill := filepath.Join(t.TempDir(), "spill", "t_home", "out")
	l := &logbook{}
	w, err := newRunner(t, RunnerOptions{}).Start(context.Background(),
		l.job(shell(`awk 'BEGIN { for (i = 1; i <= 300000; i++) print "line " i }'; echo small >&2`), spill))
	expect.No(t, err)
	o, out := finish(t, w)
	expect.Must(t, o.Status == task.Succeeded && out.StdoutTruncated && out.Spill == spill && !out.StderrTruncated && out.Stderr == "small\n",
		"outcome %s, truncated %v, spill %q, stderr %q", o.Status, out.StdoutTruncated, out.Spill, out.Stderr)
	data := expect.Of(os.ReadFile(spill))(t)
	expect.True(t, int64(len(data)) == out.StdoutBytes && strings.HasPrefix(string(data), out.Stdout) && strings.HasSuffix(string(data), "\nline 300000\n"),
		"spill of %d bytes for an output of %d", len(data), out.StdoutBytes)
	expect.True(t, len(out.Stdout)+len(out.Stderr) <= maxInline, "%d bytes inline", len(out.Stdout)+len(out.Stderr))
	info, _ := os.Stat(spill)
	expect.True(t, info.Mode().Perm() == 0o600, "spill mode %v", info.Mode())
	n := len(l.lines)
	if all := strings.Join(l.lines[maxLogLines-1:], "\n"); n > maxLogLines+2+maxTail || !strings.Contains(all, "log is cut here") || !strings.Contains(all, "lines are left out here") {
		t.Errorf("%d log lines, from the limit on %q", n, l.lines[maxLogLines-1])
	}
	if !strings.HasSuffix(strings.Join(l.lines[n-2:], " "), "line 300000") && !strings.Contains(l.lines[n-2], "line 300000") {
		t.Errorf("the last lines are %q", l.lines[n-2:])
	}
}

func TestBinaryOutputAndHugeLinesBecomeValidText(t *testing.T) {
	o, out, l := runShell(t, `printf 'a\377b\n'; head -c 200000 /dev/zero | tr '\0' x; echo; echo end`)
	expect.True(t, o.Status == task.Succeeded && strings.HasPrefix(out.Stdout, "a\uFFFDb\n"), "outcome %s, stdout %.20q", o.Status, out.Stdout)
	expect.Must(t, len(l.lines) == 3 && l.lines[0] == "INFO a\uFFFDb" && l.lines[2] == "INFO end", "%d log lines", len(l.lines))
	if long := l.lines[1]; len(long) > maxLogLine+100 || !strings.HasSuffix(long, "more bytes of this line)") {
		t.Errorf("long line of %d bytes ends with %q", len(long), long[len(long)-40:])
	}
}

func TestABackgroundProcessEndsWithItsTaskAndDoesNotHangIt(t *testing.T) {
	mark := "300." + strconv.Itoa(os.Getpid())
	o, _, _ := runShell(t, `setsid sleep `+mark+` & exit 0`)
	expect.Is(t, o.Status, task.Succeeded, "outcome", o)
	drivertest.Gone(t, mark)
}

func TestCancelEndsTheWholeTree(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, RunnerOptions{Dir: dir, Grace: cell.Grace{Interrupt: 50 * time.Millisecond, Terminate: 50 * time.Millisecond}})
	w, err := r.Start(context.Background(), (&logbook{}).job(shell("echo $$ >>pids; sleep 300 & sh -c 'setsid sh -c \"echo x >>pids; exec sleep 301."+strconv.Itoa(os.Getpid())+"\" &'; sleep 300"), ""))
	expect.No(t, err)
	lines(t, filepath.Join(dir, "pids"), 2)
	w.Cancel("changed my mind")
	w.Cancel("again")
	o, _ := finish(t, w)
	expect.True(t, o.Status == task.Cancelled && o.Error.Message == "changed my mind", "outcome %s %+v", o.Status, o.Error)
	drivertest.Gone(t, "301."+strconv.Itoa(os.Getpid()))
	w.Cancel("too late")
	expect.Err(t, w.Pause(context.Background()), core.Kind(core.Conflict), "pause of ended work")
}

func TestTheEnginesEndCancelsTheWork(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	w := expect.Of(newRunner(t, RunnerOptions{}).Start(ctx, (&logbook{}).job(`{"argv":["sleep","300"]}`, "")))(t)
	stop()
	o, _ := finish(t, w)
	expect.True(t, o.Status == task.Cancelled, "outcome %s", o.Status)
}

func TestPausedWorkStandsStillAndStillBeats(t *testing.T) {
	dir, l, ctx := t.TempDir(), &logbook{}, context.Background()
	w := expect.Of(newRunner(t, RunnerOptions{Dir: dir}).Start(ctx, l.job(shell(`i=0; while :; do i=$((i+1)); echo $i >n; done`), "")))(t)
	count := func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "n"))
		return string(data)
	}
	expect.Await(t, "it counts", func() bool { return count() != "" })
	expect.No(t, w.Pause(ctx))
	before := count()
	l.mu.Lock()
	beats := l.beats
	l.mu.Unlock()
	expect.Await(t, "it beats on", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.beats > beats+1 })
	expect.Is(t, count(), before, "it went on while paused")
	expect.No(t, w.Resume(ctx))
	expect.Await(t, "it counts on", func() bool { c := count(); return c != "" && c != before })
	w.Cancel("")
	finish(t, w)
}

func TestASpillFileThatCantBeWrittenDoesNotFailTheTask(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old")
	expect.No(t, os.WriteFile(old, []byte("an earlier attempt's"), 0o644))
	for _, c := range []struct {
		spill string
		fails bool
	}{{filepath.Join(old, "no", "dir"), true}, {t.TempDir() + "/", true}, {"", false}, {old, false}} {
		if c.fails && strings.HasSuffix(c.spill, "/") {
			if err := os.WriteFile(c.spill+"x", nil, 0o600); err != nil { // a directory that is not empty
				t.Fatal(err)
			}
		}
		w, err := newRunner(t, RunnerOptions{}).Start(context.Background(),
			(&logbook{}).job(shell(`head -c 3000000 /dev/zero | tr '\0' '\n'`), c.spill))
		expect.No(t, err)
		o, out := finish(t, w)
		expect.True(t, o.Status == task.Succeeded && out.StdoutTruncated && out.StdoutBytes == 3000000 && (out.SpillError != "") == c.fails,
			"spill %q: outcome %s, bytes %d, error %q", c.spill, o.Status, out.StdoutBytes, out.SpillError)
		expect.Is(t, out.Spill != "", c.spill == old, "spill", c.spill, "result names", out.Spill)
	}
	info, err := os.Stat(old)
	expect.True(t, err == nil && info.Size() == 3000000 && info.Mode().Perm() == 0o600, "the replaced file: %v, %v", info, err)
}
