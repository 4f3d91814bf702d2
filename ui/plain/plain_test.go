package plain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
	"swarmdeck/ui/plain"
)

const tenant = "t_test"

// doer carries out exec.run tasks in no time; one named "fail" fails.
type doer struct{}

func (doer) Check(_ string, input core.Raw) (string, judge.Action, error) {
	var in struct {
		Argv []string `json:"argv"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", judge.Action{}, err
	}
	return strings.Join(in.Argv, " "), judge.Action{Kind: "exec.run", Args: input}, nil
}

func (doer) Slot(string, string) (bool, string) { return true, "" }

func (doer) Start(_ context.Context, job swarm.Job) (swarm.Work, error) {
	if strings.HasPrefix(job.Task.Title, "fail") {
		return done{task.Outcome{Status: task.Failed, Error: &task.Error{Code: "exit_nonzero", Message: "no"}}}, nil
	}
	return done{task.Outcome{Status: task.Succeeded, Output: core.Raw(`{}`)}}, nil
}

type done struct{ out task.Outcome }

func (d done) Done() <-chan struct{}      { ch := make(chan struct{}); close(ch); return ch }
func (d done) Outcome() task.Outcome      { return d.out }
func (done) Cancel(string)                {}
func (done) Pause(context.Context) error  { return nil }
func (done) Resume(context.Context) error { return nil }

// faller runs skills that fail.
type faller struct{}

func (faller) Check(skill.Spec) error { return nil }

func (faller) Start(context.Context, skill.Call) (swarm.Work, error) {
	return done{task.Outcome{Status: task.Failed, Error: &task.Error{Code: "failed", Message: "fell\x1b[2J over"}}}, nil
}

// desk is an operator at a plain line.
type desk struct {
	t    *testing.T
	eng  *engine.Engine
	in   *io.PipeWriter
	mu   sync.Mutex
	out  bytes.Buffer
	seen int
	over chan error
}

func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out.Write(p)
}

func sit(t *testing.T, readOnly bool) *desk {
	t.Helper()
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "a.db"), store.Options{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	eng, err := engine.Open(ctx, engine.Options{
		Store: db, Runners: map[string]swarm.Runner{"exec.run": doer{}}, SkillRunners: map[string]skill.Runner{"builtin": faller{}},
		Static: []skill.Skill{{Name: "fall-over", Version: "1.0.0", ParametersSchema: core.Raw(`{"type":"object"}`), Timeout: 30, Runner: skill.Spec{Kind: "builtin", Name: "fall-over"}}},
	})
	expect.No(t, err)
	by := core.Caller{Tenant: tenant, Name: "ada", Kind: core.Operator, Door: core.DoorCockpit}
	expect.Of(eng.Swarm.CreateTenant(ctx, by, tenant))(t)
	running := make(chan struct{})
	go func() {
		defer close(running)
		_ = eng.Run(ctx)
	}()
	d := &desk{t: t, eng: eng, over: make(chan error, 1)}
	in, out := io.Pipe()
	d.in = out
	env := &command.Env{
		Caller: by, ReadOnly: readOnly, Stdin: in, Stdout: d, Stderr: d, Getenv: func(string) string { return "" },
		Open: func(context.Context, command.Need) (*engine.Engine, error) { return eng, nil },
	}
	go func() {
		d.over <- plain.Run(ctx, env, command.Start{Globals: command.Globals{ReadOnly: readOnly}, Caller: by, Engine: eng}, "a test")
	}()
	t.Cleanup(func() {
		cancel()
		out.Close()
		<-running
		eng.Close()
		db.Close()
	})
	return d
}

func (d *desk) says(lines ...string) {
	d.t.Helper()
	for _, line := range lines {
		expect.Of(io.WriteString(d.in, line+"\n"))(d.t)
	}
}

// hears waits for a text that was not heard yet.
func (d *desk) hears(text string) {
	d.t.Helper()
	expect.Await(d.t, text, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		i := strings.Index(d.out.String()[d.seen:], text)
		if i >= 0 {
			d.seen += i + len(text)
		}
		return i >= 0
	})
}

func (d *desk) leaves() {
	d.t.Helper()
	d.in.Close()
	d.ends(0)
}

// ends waits for the end, with the code of the first line that failed.
func (d *desk) ends(code int) {
	d.t.Helper()
	select {
	case err := <-d.over:
		var exit *command.ExitError
		expect.True(d.t, errors.As(err, &exit) == (code != 0) && (exit == nil || exit.Code == code),
			"at the end of the input: %v, want the code %d", exit, code)
	case <-time.After(2 * time.Minute):
		d.t.Fatal("it goes on after the end of the input")
	}
	out := d.out.String()
	expect.True(d.t, !strings.ContainsFunc(out, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f || r == 0x202e }), "not plain text: %q", out)
}

const risky = `task dispatch --kind exec.run --input '{"argv":["rm","-r","x\u202ey"]}'`

func TestWhatChangesIsAnnouncedInWords(t *testing.T) {
	d := sit(t, false)
	d.hears("plain lines: a test. Tenant t_test, you are ada.")
	d.says(`task dispatch --kind exec.run --input '{"argv":["echo","hi"]}' --wait`)
	d.hears("ended; state: succeeded; echo hi")
	d.says(`task dispatch --kind exec.run --input '{"argv":["fail"]}' --wait`)
	d.hears("ended; state: failed; error: exit_nonzero; fail")
	d.says("estop on --reason smoke")
	d.hears("emergency stop: on; by ada: smoke")
	d.says("estop off --reason clear")
	d.hears("emergency stop: off")
	// Changes by others are heard without a line being typed.
	by := core.Caller{Tenant: tenant, Name: "grace", Kind: core.Operator, Door: core.DoorSSH}
	expect.Of(d.eng.Swarm.EStops.Press(t.Context(), by, "fire"))(t)
	d.hears("emergency stop: on; by grace: fire")
	d.in.Close()
	d.ends(command.ExitFailed)
}

func TestSubagentsThatFailAndMessagesThatDoNotArriveAreAnnounced(t *testing.T) {
	d := sit(t, false)
	d.says("skill invoke fall-over --name Walker")
	d.hears(" Walker; state: failed; ")
	d.hears("over")
	d.says(`bus send controller '{"n":1}' --type request --ttl 1s`)
	d.hears("requests without an answer: 1; type bus list --status unanswered")
	d.hears("dead letters: ")
	d.hears("new); type bus list --status dead")
	d.leaves()
}

func TestManyFailuresOfSubagentsAreCounted(t *testing.T) {
	d := sit(t, false)
	d.says("estop on --reason wait")
	d.hears("emergency stop: on")
	by := core.Caller{Tenant: tenant, Name: "grace", Kind: core.Operator, Door: core.DoorSSH}
	for range 60 {
		expect.Of(d.eng.Skills.Invoke(t.Context(), by, skill.Invoke{Skill: "fall-over"}))(t)
	}
	d.says("estop off --reason go")
	d.hears("more subagents failed; type subagent list --state failed")
	d.leaves()
}

func TestManyEndsAreCounted(t *testing.T) {
	d := sit(t, false)
	d.says("estop on --reason wait")
	d.hears("emergency stop: on")
	by := core.Caller{Tenant: tenant, Name: "grace", Kind: core.Operator, Door: core.DoorSSH}
	for range 300 {
		expect.Of(d.eng.Swarm.Dispatch(t.Context(), by, swarm.Dispatch{Kind: "exec.run", Input: core.Raw(`{"argv":["echo"]}`)}))(t)
	}
	d.says("estop off --reason go")
	d.hears("and more tasks ended: ")
	d.hears(" succeeded")
	d.leaves()
	n := strings.Count(d.out.String(), "ended; state:")
	expect.True(t, n <= 100, "%d lines for 300 tasks", n)
}

func TestAnAnswerIsAskedForByNumberAndBoundToWhatWasRead(t *testing.T) {
	d := sit(t, false)
	d.says(risky)
	d.hears("waits: ")
	d.hears("risk: high; state: blocked; type answer")
	d.says("answer")
	d.hears("⟨U+202E⟩")
	d.hears("type a number:")
	d.says("")
	d.hears("left open")
	d.says("answer", "yes")
	d.hears(`"yes" is none of the choices; left open`)
	d.says("answer", "1", "")
	d.hears("reason to approve a high risk")
	d.hears("left open")
	d.says("answer", "2", "")
	d.hears("left open")
	d.says("answer", "4", "no json")
	d.hears("left open")
	d.says("answer", "5")
	d.hears("  open ")
	d.says("answer", "3", "not now")
	d.hears("state: denied; by ada: not now")
	d.says("answer")
	d.hears("nothing waits for you")
	d.in.Close()
	d.ends(command.ExitFailed)
}

func TestAnEditedApprovalRunsTheEditedArguments(t *testing.T) {
	d := sit(t, false)
	d.says(risky, "answer", "4", `{"argv":["rm","-r","y"]}`, "only y")
	d.hears("state: approved; by ada: only y")
	d.hears("ended; state: succeeded")
	d.leaves()
}

func TestReadOnlyAnswersNothing(t *testing.T) {
	d := sit(t, true)
	by := core.Caller{Tenant: tenant, Name: "grace", Kind: core.Operator, Door: core.DoorSSH}
	expect.Of(d.eng.Swarm.Dispatch(t.Context(), by, swarm.Dispatch{Kind: "exec.run", Input: core.Raw(`{"argv":["rm","-r","x"]}`)}))(t)
	d.hears("waits: run rm -r x")
	d.says("answer")
	d.hears("read-only: approvals can't be answered")
	d.says("1")
	d.hears("unknown command")
	d.says("estop on --reason x")
	d.hears("read-only")
	d.in.Close()
	d.ends(command.ExitFailed)
}

func TestMistakesAreToldAndNothingElseHappens(t *testing.T) {
	d := sit(t, false)
	d.says("bogus", "'open", "answer ap_nonsense", "", "help")
	d.hears(`unknown command "bogus"`)
	d.hears("line ends inside ' quotes")
	d.hears("ap_nonsense")
	d.hears("Also here: needs")
	d.says("quit")
	d.ends(command.ExitUsage)
}

func TestAnEndlessLineIsRefused(t *testing.T) {
	d := sit(t, false)
	go io.WriteString(d.in, strings.Repeat("x", 3<<20)) //nolint:errcheck // it is cut off
	expect.Says(t, expect.From(t, d.over, "it goes on"), "too long")
}
