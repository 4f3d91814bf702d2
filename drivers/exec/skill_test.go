package exec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func newSkillRunner(t *testing.T, dir string) *SkillRunner {
	t.Helper()
	return expect.Of(NewSkillRunner(drivertest.Cells(t, cell.Options{}), RunnerOptions{Dir: dir}))(t)
}

func (l *logbook) call(params string, argv ...string) skill.Call {
	return skill.Call{
		Skill:  &skill.Skill{Name: "probe", Version: "1.0.0", Runner: skill.Spec{Kind: "exec", Argv: argv}},
		TaskID: "tk_00000_0000000001", TraceID: "0123456789abcdef0123456789abcdef", Run: "tk_00000_0000000001.1",
		Params: core.Raw(params), Log: l.job("", "").Log,
	}
}

func startSkill(t *testing.T, script string) (swarm.Work, *logbook) {
	t.Helper()
	l := &logbook{}
	w := expect.Of(newSkillRunner(t, t.TempDir()).Start(context.Background(), l.call(`{}`, sh(script)...)))(t)
	return w, l
}

func over(t *testing.T, w swarm.Work) task.Outcome {
	t.Helper()
	expect.From(t, w.Done(), "the work does not end")
	return w.Outcome()
}

func TestASkillGetsOneDocumentAndGivesOneObject(t *testing.T) {
	l := &logbook{}
	call := l.call(`{"location":"kitchen","big":9007199254740993}`, sh(`echo one >&2; printf 'two' >&2; echo; cat; echo`)...)
	call.Results = map[string]core.Raw{"navigate": core.Raw(`{"x":1.50}`)}
	w := expect.Of(newSkillRunner(t, t.TempDir()).Start(context.Background(), call))(t)
	o := over(t, w)
	want := `{"params":{"location":"kitchen","big":9007199254740993},"results":{"navigate":{"x":1.50}},"task_id":"tk_00000_0000000001","trace_id":"0123456789abcdef0123456789abcdef"}`
	expect.True(t, o.Status == task.Succeeded && string(o.Output) == want && o.Error == nil, "outcome %+v %+v\nwant %s", o, o.Error, want)
	expect.Is(t, strings.Join(l.lines, "|"), "WARN one|WARN two", "log")
}

func TestASkillWithoutParametersGetsEmptyObjects(t *testing.T) {
	l := &logbook{}
	w := expect.Of(newSkillRunner(t, t.TempDir()).Start(context.Background(), l.call("", "cat")))(t)
	o := over(t, w)
	expect.True(t, strings.HasPrefix(string(o.Output), `{"params":{},"results":{},`), "outcome %+v %+v", o, o.Error)
}

func TestHowASkillsCommandFails(t *testing.T) {
	for _, c := range []struct{ name, script, code, say string }{
		{"exit status", `echo '{"ok":true}'; echo first >&2; echo "no such cup" >&2; echo >&2; exit 3`, "exit_nonzero", "exit status 3: no such cup"},
		{"killed", `kill -9 $$`, "killed", "SIGKILL"},
		{"nothing", `true`, "bad_output", "a skill prints one JSON object"},
		{"not JSON", `echo hello world`, "bad_output", `it begins with "hello world"`},
		{"array", `echo '[1]'`, "bad_output", "want a JSON object"},
		{"text", `echo '"x"'`, "bad_output", "want a JSON object"},
		{"two objects", `echo '{}'; echo '{}'`, "bad_output", "not valid JSON"},
		{"duplicate member", `echo '{"a":1,"a":2}'`, "bad_output", "not valid JSON"},
		{"not UTF-8", `printf '{"a":"\377"}'`, "bad_output", "not valid JSON"},
		{"cut short", `printf '{"a":"'`, "bad_output", "not valid JSON"},
		{"deep", `printf '{"a":'; head -c 200 /dev/zero | tr '\0' '['; head -c 200 /dev/zero | tr '\0' ']'; echo '}'`, "bad_output", "nested deeper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := startSkill(t, c.script)
			o := over(t, w)
			expect.True(t, o.Status == task.Failed && o.Error.Code == c.code && strings.Contains(o.Error.Message, c.say) && o.Output == nil,
				"outcome %+v %+v, want %s with %q", o, o.Error, c.code, c.say)
		})
	}
}

func TestASkillThatFloodsIsStoppedAndCostsNoMemory(t *testing.T) {
	for name, script := range map[string]string{
		"stdout":         `trap '' INT TERM; exec cat /dev/zero`,
		"tree":           `yes '{"a":1}' & yes & wait`,
		"just too large": fmt.Sprintf(`printf '{"a":"'; head -c %d /dev/zero | tr '\0' x; printf '"}'; sleep 300`, skill.MaxResult),
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := startSkill(t, script)
			o := over(t, w)
			expect.True(t, o.Status == task.Failed && o.Error.Code == "output_too_large" && o.Output == nil, "outcome %+v %+v", o, o.Error)
		})
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	expect.True(t, m.HeapInuse <= 64<<20, "%d MiB of heap in use", m.HeapInuse>>20)
	fits := fmt.Sprintf(`printf '{"a":"'; head -c %d /dev/zero | tr '\0' x; printf '"}'`, skill.MaxResult-8)
	w, _ := startSkill(t, fits)
	o := over(t, w)
	expect.True(t, o.Status == task.Succeeded && len(o.Output) == skill.MaxResult, "the largest result: %s, %d bytes, %+v", o.Status, len(o.Output), o.Error)
}

func TestAFloodOnStderrDoesNotHurtTheResult(t *testing.T) {
	w, l := startSkill(t, `head -c 3000000 /dev/zero | tr '\0' y >&2; echo >&2; echo '{"ok":true}'`)
	o := over(t, w)
	expect.True(t, o.Status == task.Succeeded && string(o.Output) == `{"ok":true}`, "outcome %+v %+v", o, o.Error)
	l.mu.Lock()
	defer l.mu.Unlock()
	expect.True(t, len(l.lines) == 1 && len(l.lines[0]) <= maxLogLine+100 && strings.Contains(l.lines[0], "more bytes of this line"),
		"%d lines, the first of %d bytes", len(l.lines), len(l.lines[0]))
}

func TestCancellingASkillEndsItsWholeTree(t *testing.T) {
	dir, mark := t.TempDir(), "302."+strconv.Itoa(os.Getpid())
	l := &logbook{}
	call := l.call(`{}`, sh(`trap '' INT; echo $$ >>pids; setsid sh -c 'echo $$ >>pids; sleep `+mark+`' & sleep `+mark)...)
	call.Skill.Runner.Dir = dir
	w := expect.Of(newSkillRunner(t, t.TempDir()).Start(context.Background(), call))(t)
	lines(t, filepath.Join(dir, "pids"), 2)
	w.Cancel("the try timed out")
	o := over(t, w)
	expect.True(t, o.Status == task.Cancelled && o.Error.Message == "the try timed out", "outcome %+v %+v", o, o.Error)
	drivertest.Gone(t, mark)
}

func TestAClosingEngineEndsASkill(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	l := &logbook{}
	w := expect.Of(newSkillRunner(t, t.TempDir()).Start(ctx, l.call(`{}`, "sleep", "300")))(t)
	stop()
	o := over(t, w)
	expect.True(t, o.Status == task.Cancelled && o.Error.Message == "the engine is closing", "outcome %+v %+v", o, o.Error)
}

func TestAPausedSkillStandsStill(t *testing.T) {
	dir := t.TempDir()
	l := &logbook{}
	call := l.call(`{}`, sh(`n=0; while [ ! -e go ]; do n=$((n+1)); echo $n >count; done; echo '{"ok":true}'`)...)
	call.Skill.Runner.Dir = dir
	w := expect.Of(newSkillRunner(t, dir).Start(context.Background(), call))(t)
	count := func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "count"))
		return string(data)
	}
	expect.Await(t, "it counts", func() bool { return count() != "" })
	expect.No(t, w.Pause(t.Context()))
	expect.Still(t, count, "it counts while paused")
	expect.No(t, w.Resume(t.Context()))
	expect.No(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	o := over(t, w)
	expect.True(t, o.Status == task.Succeeded, "outcome %+v %+v", o, o.Error)
}

func TestASkillsProcessesCarryTheMarkOfTheirTry(t *testing.T) {
	w, _ := startSkill(t, `printf '{"mark":"%s","home":"%s"}' "$SWARMDECK_RUN" "$SECRET_TOKEN"`)
	o := over(t, w)
	expect.True(t, strings.HasSuffix(string(o.Output), `/tk_00000_0000000001.1","home":""}`), "outcome %s %+v", o.Output, o.Error)
}

func TestASkillThatCanNotStartFailed(t *testing.T) {
	r := newSkillRunner(t, t.TempDir())
	l := &logbook{}
	for code, call := range map[string]skill.Call{
		"not_found":    l.call(`{}`, "no-such-program-anywhere"),
		"not_runnable": l.call(`{}`, "/etc/passwd"),
	} {
		w := expect.Of(r.Start(context.Background(), call))(t)
		o := over(t, w)
		expect.True(t, o.Status == task.Failed && o.Error.Code == code, "outcome %+v %+v, want %s", o, o.Error, code)
		expect.Fails(t, w.Pause(t.Context()), "what never ran can't be paused")
		w.Cancel("late")
	}
}

func TestASkillsCommandIsCheckedByField(t *testing.T) {
	r := newSkillRunner(t, t.TempDir())
	for field, spec := range map[string]skill.Spec{
		"runner.argv":  {},
		"runner.env":   {Argv: []string{"a"}, Env: map[string]string{"A B": "x"}},
		"runner.env.A": {Argv: []string{"a"}, Env: map[string]string{"A": "\x00"}},
		"runner.dir":   {Argv: []string{"a"}, Dir: "\x00"},
	} {
		err := r.Check(spec)
		expect.True(t, err != nil && core.AsError(err).Details["field"] == field && strings.HasPrefix(err.Error(), field+":"),
			"%+v: %v, want an error of %s", spec, err, field)
	}
	expect.No(t, r.Check(skill.Spec{Argv: []string{"made-by-an-earlier-skill"}, Dir: "later"}))
}

func TestManySkillsAtOnceDoNotDisturbEachOther(t *testing.T) {
	r := newSkillRunner(t, t.TempDir())
	scripts := []string{`sleep 0.2; echo '{"ok":true}'`, `exit 1`, `sleep 300`, `exec cat /dev/zero`}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			l := &logbook{}
			call := l.call(`{}`, sh(scripts[i%4])...)
			call.Run = fmt.Sprintf("tk_%d", i)
			w, err := r.Start(context.Background(), call)
			if err != nil {
				t.Error(err)
				return
			}
			if i%4 == 2 {
				time.AfterFunc(100*time.Millisecond, func() { w.Cancel("hangs") })
			}
			select {
			case <-w.Done():
			case <-time.After(2 * time.Minute):
				t.Error("does not end")
				return
			}
			o := w.Outcome()
			want := []task.Status{task.Succeeded, task.Failed, task.Cancelled, task.Failed}[i%4]
			if o.Status != want {
				t.Errorf("%s ended %s %+v", scripts[i%4], o.Status, o.Error)
			}
		})
	}
	wg.Wait()
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{}`, ` {"a":1.50}` + "\n", `{"a":"\u2028"}`, `{"a":1}{}`, "\xff", `{"a":1,"a":2}`, `[{}]`, "\ufeff{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, printed []byte) {
		result, err := printedObject(bytes.Clone(printed))
		if err != nil {
			return
		}
		expect.No(t, core.CheckObject("result", result, skill.MaxResult), printed, "became", result)
		in, _ := core.Canonical(printed)
		out, _ := core.Canonical(result)
		expect.Must(t, string(in) == string(out), "%q became %s", printed, result)
	})
}
