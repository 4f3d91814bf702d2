package builtin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/exec"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// answerWord makes the test binary the process of a query.
const answerWord = "answer-a-query"

func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if len(os.Args) == 2 && os.Args[1] == answerWord {
		os.Exit(builtin.Answer(os.Stdin, os.Stdout, os.Stderr))
	}
	if err := cell.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// bench is a runner with a directory of its own.
type bench struct {
	*builtin.Runner
	t   testing.TB
	dir string
}

func newBench(t testing.TB, messages builtin.Messages) *bench {
	t.Helper()
	sup := expect.Of(cell.NewSupervisor(cell.Options{Instance: "builtin" + strconv.Itoa(os.Getpid())}))(t)
	t.Cleanup(func() { expect.Is(t, sup.Close(), nil) })
	dir := t.TempDir()
	commands := expect.Of(exec.NewSkillRunner(sup, exec.RunnerOptions{Dir: dir}))(t)
	return &bench{t: t, dir: dir, Runner: builtin.New(builtin.Options{
		Dir: dir, Messages: messages, Commands: commands, Query: []string{"/proc/self/exe", answerWord},
	})}
}

func (b *bench) start(name string, params any) swarm.Work {
	b.t.Helper()
	raw, ok := params.(string)
	if !ok {
		raw = string(core.MustEncode(params))
	}
	w, err := b.Start(b.t.Context(), skill.Call{
		Tenant: "t_test", TaskID: "tk_00000_0000000001", TraceID: "0123456789abcdef0123456789abcdef", AgentID: "agent-1",
		Skill: &skill.Skill{Name: name, Version: "1.0.0", Runner: skill.Spec{Kind: "builtin", Name: name}},
		Run:   "tk_00000_0000000001.1", Params: core.Raw(raw), Log: func(level, line string) { b.t.Log(level, line) },
	})
	expect.No(b.t, err)
	return w
}

func (b *bench) run(name string, params any) task.Outcome {
	b.t.Helper()
	w := b.start(name, params)
	expect.From(b.t, w.Done(), fmt.Sprintf("%s does not end", name))
	return w.Outcome()
}

// gives runs a builtin that must succeed, and decodes its result.
func (b *bench) gives(name string, params, result any) {
	b.t.Helper()
	o := b.run(name, params)
	expect.Must(b.t, o.Status == task.Succeeded, "%s %v: %s %+v", name, params, o.Status, o.Error)
	expect.No(b.t, core.Decode(o.Output, result), name, params, "gave", o.Output)
}

// fails runs a builtin that must fail with a code and a message.
func (b *bench) fails(name string, params any, code, say string) {
	b.t.Helper()
	o := b.run(name, params)
	expect.True(b.t, o.Status == task.Failed && o.Error.Code == code && strings.Contains(o.Error.Message, say),
		"%s %.200v: %s %+v, want %s with %q", name, params, o.Status, o.Error, code, say)
}

func TestDefinitionsAreWhatTheRunnerServes(t *testing.T) {
	b := newBench(t, &mail{})
	var names []string
	for _, s := range builtin.Definitions() {
		names = append(names, s.Name)
		expect.No(t, b.Check(s.Runner))
		expect.True(t, s.Name == s.Runner.Name && s.Runner.Kind == builtin.Kind && len([]rune(s.Description)) <= 500 && s.Timeout >= 1 && s.Timeout <= 3600,
			"definition %+v", s)
		expect.Same(t, b.Effects(s.Runner), s.Effects, s.Name, "effects")
		schemaOf(t, s.ParametersSchema)
		schemaOf(t, s.ReturnsSchema)
	}
	expect.Is(t, strings.Join(names, " "), "echo sleep http-get file-read file-write json-query wait-for-message", "definitions")
	for name, want := range map[string]string{"http-get": "[network]", "file-read": "[read]", "file-write": "[write]", "echo": "[]"} {
		expect.Is(t, fmt.Sprint(b.Effects(skill.Spec{Name: name})), want, name, "has the effects")
	}
	definitions := builtin.Definitions()
	definitions[0].Name = "changed"
	expect.Is(t, builtin.Definitions()[0].Name, "echo", "a caller can change the definitions")
}

func schemaOf(t *testing.T, raw core.Raw) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	expect.No(t, err, raw)
	c := jsonschema.NewCompiler()
	expect.No(t, c.AddResource("mem:///schema", doc))
	s, err := c.Compile("mem:///schema")
	expect.No(t, err, raw)
	return s
}

func TestResultsKeepToTheirSchemas(t *testing.T) {
	b := newBench(t, &mail{message: core.Raw(`{"payload":{}}`)})
	expect.No(t, os.WriteFile(filepath.Join(b.dir, "there"), []byte("hi"), 0o600))
	for _, s := range builtin.Definitions() {
		params, ok := map[string]string{
			"echo": `{"a":1}`, "sleep": `{"seconds":0.01}`, "file-write": `{"path":"x","content":"hi"}`, "file-read": `{"path":"there"}`,
			"json-query": `{"query":".","input":null}`, "wait-for-message": `{"topic":"a.b"}`, "http-get": `{"url":"` + hello(t) + `"}`,
		}[s.Name]
		expect.Must(t, ok, "no parameters for %s", s.Name)
		o := b.run(s.Name, params)
		if o.Status != task.Succeeded {
			t.Errorf("%s: %s %+v", s.Name, o.Status, o.Error)
			continue
		}
		for schema, value := range map[string]string{string(s.ParametersSchema): params, string(s.ReturnsSchema): string(o.Output)} {
			v := expect.Of(jsonschema.UnmarshalJSON(strings.NewReader(value)))(t)
			expect.No(t, schemaOf(t, core.Raw(schema)).Validate(v), s.Name, value)
		}
	}
}

func TestAnUnknownBuiltinIsRefused(t *testing.T) {
	err := newBench(t, &mail{}).Check(skill.Spec{Kind: "builtin", Name: "rm-rf"})
	expect.True(t, err != nil && core.AsError(err).Details["field"] == "runner.name" && strings.Contains(err.Error(), "echo, file-read, file-write"),
		"error %v", err)
	bare := builtin.New(builtin.Options{Dir: t.TempDir()})
	for _, name := range []string{"json-query", "wait-for-message"} {
		call := skill.Call{Skill: &skill.Skill{Runner: skill.Spec{Kind: "builtin", Name: name}}}
		_, err = bare.Start(t.Context(), call)
		expect.Is(t, core.AsError(err).Code, core.Unavailable, name, "can't work here, but")
	}
}

func TestEchoGivesItsParametersBack(t *testing.T) {
	b := newBench(t, nil)
	o := b.run("echo", `{"big":9007199254740993,"x":[1.50]}`)
	expect.True(t, string(o.Output) == `{"big":9007199254740993,"x":[1.50]}`, "outcome %+v", o)
	o = b.run("echo", ``)
	expect.True(t, string(o.Output) == `{}`, "outcome %+v", o)
}

func TestSleepIsCheckedAndCancellable(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []string{`{"seconds":-1}`, `{"seconds":3601}`, `{"seconds":"1"}`, `{"seconds":1,"unit":"h"}`, `{"seconds":1e300}`} {
		b.fails("sleep", c, "invalid_input", "")
	}
	w := b.start("sleep", `{"seconds":3600}`)
	expect.No(t, w.Pause(t.Context()))
	w.Cancel("enough")
	<-w.Done()
	o := w.Outcome()
	expect.True(t, o.Status == task.Cancelled && o.Error.Message == "enough", "outcome %+v", o)
}

// mail is a bus with one message.
type mail struct {
	mu      sync.Mutex
	message core.Raw
	asked   []string
	release chan struct{}
}

func (m *mail) Wait(ctx context.Context, tenant, agentID, topic string) (core.Raw, error) {
	m.mu.Lock()
	m.asked = append(m.asked, tenant+" "+agentID+" "+topic)
	message, release := m.message, m.release
	m.mu.Unlock()
	if release != nil {
		select {
		case <-release:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait: %w", ctx.Err())
		}
	}
	return message, nil
}

func TestWaitForMessageAsksTheBus(t *testing.T) {
	m := &mail{message: core.Raw(`{"message_id":"m1","payload":{"x":1}}`)}
	b := newBench(t, m)
	for _, params := range []string{`{"topic":"navigation.*"}`, `{"mailbox":true,"timeout":5}`} {
		o := b.run("wait-for-message", params)
		expect.True(t, o.Status == task.Succeeded && string(o.Output) == string(m.message), "%s: %+v %+v", params, o, o.Error)
	}
	expect.Is(t, strings.Join(m.asked, "|"), "t_test agent-1 navigation.*|t_test agent-1 ", "asked")
	for _, params := range []string{`{}`, `{"topic":"a","mailbox":true}`, `{"mailbox":false}`, `{"topic":"a","timeout":-1}`} {
		b.fails("wait-for-message", params, "invalid_input", "")
	}
}

func TestWaitForMessageGivesUpAfterItsTimeout(t *testing.T) {
	b := newBench(t, &mail{release: make(chan struct{})})
	b.fails("wait-for-message", `{"topic":"a","timeout":0.05}`, "no_message", "no message came within 50ms")
	w := b.start("wait-for-message", `{"topic":"a"}`)
	w.Cancel("stop")
	<-w.Done()
	o := w.Outcome()
	expect.True(t, o.Status == task.Cancelled, "outcome %+v", o)
}

func TestAPausedWaitKeepsItsMessageBack(t *testing.T) {
	m := &mail{message: core.Raw(`{}`), release: make(chan struct{})}
	w := newBench(t, m).start("wait-for-message", `{"mailbox":true}`)
	expect.No(t, w.Pause(t.Context()))
	close(m.release)
	select {
	case <-w.Done():
		t.Error("ended while paused")
	case <-time.After(50 * time.Millisecond):
	}
	expect.No(t, w.Resume(t.Context()))
	<-w.Done()
	o := w.Outcome()
	expect.True(t, o.Status == task.Succeeded, "outcome %+v", o)
}
