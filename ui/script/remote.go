package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"swarmdeck/ui/command"
)

// A script whose data file another process has is played here, for its programs
// and files are this process's: words that need the engine are carried out there,
// one request and one reply after the other, each a line of JSON.

// request is one word of the script.
type request struct {
	Word  string            `json:"word,omitempty"` // one of acts
	Neg   bool              `json:"neg,omitempty"`
	Args  []string          `json:"args,omitempty"`
	Dir   string            `json:"dir,omitempty"`
	Vars  map[string]string `json:"vars,omitempty"`
	Stdin []byte            `json:"stdin,omitempty"`
}

// reply is what came of it.
type reply struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Log    string `json:"log,omitempty"`
	Fatal  string `json:"fatal,omitempty"` // why the script fails
	Code   int    `json:"code,omitempty"`  // of the last command
}

// remote is the engine of another process.
type remote struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	send *json.Encoder
	told *json.Decoder
	done chan error // how the other side ended
}

// attach begins to have words carried out in the process that has the data file.
func (r *run) attach() *remote {
	in, ask := io.Pipe()
	out, told := io.Pipe()
	m := &remote{in: ask, out: out, send: json.NewEncoder(ask), told: json.NewDecoder(out), done: make(chan error, 1)}
	line := []string{"--script", "-", "--data", r.data}
	for flag, value := range map[string]string{"--tenant": r.start.Tenant, "--as": r.start.As, "--key": r.start.Key} {
		if value != "" {
			line = append(line, flag, value)
		}
	}
	if r.start.ReadOnly {
		line = append(line, "--read-only")
	}
	go func() {
		var said bytes.Buffer
		code, err := r.outer.Elsewhere(r.ctx, line, in, told, &said)
		if err == nil && code != command.ExitOK {
			err = errors.New(excerpt(said.String()))
		}
		_ = in.CloseWithError(io.ErrClosedPipe)
		_ = told.CloseWithError(errors.Join(err, io.EOF))
		m.done <- err
	}()
	return m
}

// end ends it in order; nil has none.
func (m *remote) end() error {
	if m == nil {
		return nil
	}
	_ = m.in.Close()
	err := <-m.done
	_ = m.out.Close()
	if err != nil {
		return fmt.Errorf("the process that has the data file: %w", err)
	}
	return nil
}

// passed are the variables of a script that commands and cockpits read, beside
// swarmdeck's own.
var passed = []string{
	"USER", "LOGNAME", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TMPDIR", "TRACEPARENT",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "SWARMDECK_DATA", "SWARMDECK_TENANT", "SWARMDECK_NOTIFY",
}

// act has a word carried out, and tells what came of it.
func (m *remote) act(r *run, ts *testscript.TestScript, name string, neg bool, args []string) {
	q := request{Word: name, Neg: neg, Args: args, Dir: ts.MkAbs("."), Vars: map[string]string{}}
	for _, v := range passed {
		if value := ts.Getenv(v); value != "" {
			q.Vars[v] = value
		}
	}
	for _, arg := range args {
		if strings.HasSuffix(arg, "-") && name == "" { // it may read its input
			text, err := io.ReadAll(&stdin{ts: ts})
			ts.Check(err)
			q.Stdin = text
			break
		}
	}
	a := m.ask(r, ts, q)
	_, _ = ts.Stdout().Write(a.Stdout)
	_, _ = ts.Stderr().Write(a.Stderr)
	if a.Log != "" {
		ts.Logf("%s", strings.TrimSuffix(a.Log, "\n"))
	}
	r.code = a.Code
	if a.Fatal != "" {
		ts.Fatalf("%s", a.Fatal)
	}
}

func (m *remote) ask(r *run, ts teller, q request) (a reply) {
	err := m.send.Encode(q)
	if err == nil {
		err = m.told.Decode(&a)
	}
	if r.ctx.Err() != nil {
		ts.Fatalf("interrupted")
	}
	if err != nil {
		ts.Fatalf("the process that has the data file went away: %v", err)
	}
	return a
}

// far is a word of a script that another process plays.
type far struct {
	request
	out, errs, log bytes.Buffer
}

// failed is how a word of such a script fails.
type failed string

func (f *far) Fatalf(format string, args ...any) { panic(failed(fmt.Sprintf(format, args...))) }
func (f *far) Logf(format string, args ...any)   { fmt.Fprintf(&f.log, format+"\n", args...) }
func (f *far) Stdout() io.Writer                 { return &f.out }
func (f *far) Stderr() io.Writer                 { return &f.errs }
func (f *far) Stdin() io.Reader                  { return bytes.NewReader(f.request.Stdin) }
func (f *far) Getenv(name string) string         { return f.Vars[name] }
func (f *far) MkAbs(string) string               { return f.Dir }

func (f *far) Check(err error) {
	if err != nil {
		f.Fatalf("%v", err)
	}
}

// Serve carries out the words of a script that another process of this user
// plays, on the start's data file, until there are no more.
func Serve(ctx context.Context, env *command.Env, s command.Start, cockpit Cockpit) error {
	r := &run{ctx: ctx, outer: env, start: s, cockpit: cockpit, kept: true, data: s.Data, work: s.Dir, left: unbounded}
	defer func() {
		if r.stage != nil {
			r.stage.Close()
		}
	}()
	acts := r.acts()
	came, ended := make(chan request), make(chan error, 1)
	go func() { // ends with its input, which ends with the session
		in := json.NewDecoder(env.Stdin)
		for {
			var q request
			if err := in.Decode(&q); err != nil {
				ended <- err
				return
			}
			select {
			case came <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	out := json.NewEncoder(env.Stdout)
	for {
		select {
		case q := <-came:
			if err := out.Encode(r.carry(acts[q.Word], q)); err != nil {
				return fmt.Errorf("answer a script: %w", err)
			}
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read a word of a script: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// carry carries one word out. One that panics fails, and ends nothing else.
func (r *run) carry(do act, q request) (a reply) {
	t := &far{request: q}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failed:
			a.Fatal = string(p)
		default:
			a.Fatal = fmt.Sprint("the script failed inside: ", p)
		}
		a.Stdout, a.Stderr, a.Log, a.Code = t.out.Bytes(), t.errs.Bytes(), t.log.String(), r.code
	}()
	if do == nil {
		t.Fatalf("%q is no word of a script", q.Word)
	}
	do(t, q.Neg, q.Args)
	return a
}

// picture is the screen, as snap compares it.
func (m *remote) picture(r *run, ts *testscript.TestScript) string {
	a := m.ask(r, ts, request{Word: "picture"})
	if a.Fatal != "" {
		ts.Fatalf("%s", a.Fatal)
	}
	return string(a.Stdout)
}

// rows are the lines of the cockpit's screen; nil without one.
func (r *run) rows() (all []string) {
	if r.remote != nil {
		defer func() { _ = recover() }() // the other side may have gone
		if text := r.remote.ask(r, &far{}, request{Word: "rows"}).Stdout; len(text) > 0 {
			all = strings.Split(string(text), "\n")
		}
	} else if r.stage != nil {
		all = r.stage.rows()
	}
	return all
}

var (
	_ teller = (*far)(nil)
	_ teller = (*testscript.TestScript)(nil)
)
