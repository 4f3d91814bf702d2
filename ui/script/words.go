package script

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
)

// word is how testscript calls a word of ours.
type word = func(ts *testscript.TestScript, neg bool, args []string)

// teller is what a word tells of itself: a script, or one that another process plays.
type teller interface {
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Check(err error)
	Stdout() io.Writer
	Stderr() io.Writer
	Getenv(name string) string
	MkAbs(file string) string
}

// act is a word that is carried out where the engine is.
type act = func(t teller, neg bool, args []string)

// acts are the words that are carried out where the engine is; "" is a command,
// and picture leaves the screen on stdout.
func (r *run) acts() map[string]act {
	only := func(f func(t teller, args []string)) act {
		return func(t teller, _ bool, args []string) { f(t, args) }
	}
	return map[string]act{
		"":        only(r.commandHere),
		"cockpit": only(r.openCockpit),
		"key":     only(r.key),
		"type":    only(r.typeText),
		"paste":   only(r.paste),
		"resize":  only(r.resize),
		"click":   only(r.click),
		"drag":    only(r.drag),
		"wheel":   only(r.wheel),
		"await":   only(r.await),
		"screen":  r.screen,
		"cell":    r.cell,
		"picture": only(func(t teller, _ []string) { io.WriteString(t.Stdout(), Picture(r.on(t).frame())) }), //nolint:errcheck // in memory
		"rows": only(func(t teller, _ []string) { //nolint:errcheck // in memory
			if r.stage != nil {
				io.WriteString(t.Stdout(), strings.Join(r.stage.rows(), "\n"))
			}
		}),
	}
}

// act carries a word out where the engine is.
func (r *run) act(ts *testscript.TestScript, name string, neg bool, args []string) {
	if r.remote != nil {
		r.remote.act(r, ts, name, neg, args)
		return
	}
	r.acts()[name](ts, neg, args)
}

// words are the words that testscript does not have itself.
func (r *run) words() map[string]word {
	all := map[string]word{
		"?":       r.may,
		"snap":    positive("snap", r.snap),
		"capture": positive("capture", r.capture),
		"exit":    positive("exit", r.exit),
		"restart": positive("restart", r.restart),
	}
	for _, name := range []string{"cockpit", "await", "key", "type", "paste", "resize", "click", "drag", "wheel"} {
		all[name] = positive(name, func(ts *testscript.TestScript, args []string) {
			if name == "cockpit" || name == "await" {
				r.reach(ts)
			}
			r.act(ts, name, false, args)
		})
	}
	for _, name := range []string{"screen", "cell"} {
		all[name] = func(ts *testscript.TestScript, neg bool, args []string) { r.act(ts, name, neg, args) }
	}
	// A line may begin as it would in a shell.
	all["swarmdeck"] = r.line
	for _, c := range command.Commands() {
		name, _, _ := strings.Cut(c.Path, " ")
		all[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			r.line(ts, neg, append([]string{name}, args...))
		}
	}
	return all
}

// positive is a word that "!" has no meaning for.
func positive(name string, f func(ts *testscript.TestScript, args []string)) word {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("%s: ! has no meaning here", name)
		}
		f(ts, args)
	}
}

// line runs a command; it must succeed, or fail with neg.
func (r *run) line(ts *testscript.TestScript, neg bool, args []string) {
	r.command(ts, args)
	switch {
	case r.ctx.Err() != nil:
		ts.Fatalf("interrupted")
	case neg && r.code == command.ExitOK:
		ts.Fatalf("expected: the command fails\nactual: it succeeded")
	case !neg && r.code != command.ExitOK:
		ts.Fatalf("expected: the command succeeds\nactual: exit code %d", r.code)
	}
}

// may runs a command that may fail.
func (r *run) may(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case neg || len(args) == 0:
		ts.Fatalf("usage: ? command…")
	case args[0] == "exec" && len(args) > 1 && !r.outer.Remote:
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			ts.Logf("[%v]", err)
		}
	case command.Describe(args).Path == "":
		ts.Fatalf("?: %q is no command", args[0])
	default:
		r.command(ts, args)
	}
}

// command runs a command line, on the script's engine.
func (r *run) command(ts *testscript.TestScript, args []string) {
	if r.act(ts, "", false, args); r.code == command.ExitElsewhere { // it did not begin
		r.reach(ts)
		r.act(ts, "", false, args)
	}
	if r.code != command.ExitOK {
		ts.Logf("[exit code %d]", r.code)
	}
}

// commandHere runs a command line in this process.
func (r *run) commandHere(t teller, args []string) {
	r.show.line(args)
	env := r.env(t)
	if in, ok := t.(interface{ Stdin() io.Reader }); ok {
		env.Stdin = in.Stdin()
	} else if ts, ok := t.(*testscript.TestScript); ok && !r.outer.Remote {
		env.Stdin = &stdin{ts: ts}
	}
	env.Stdout, env.Stderr = &bounded{r, t.Stdout()}, &bounded{r, t.Stderr()}
	r.code = command.Run(r.ctx, env, args)
	r.enough(t)
}

// env is what a command of the script runs in.
func (r *run) env(t teller) *command.Env {
	env := *r.outer
	env.ReadOnly = r.start.ReadOnly
	env.Close, env.Doors = nil, command.Doors{}
	env.Open = func(ctx context.Context, need command.Need) (*engine.Engine, error) { return r.open(ctx, need.Tenant) }
	if r.outer.Remote { // who they are is not the script's to say
		env.Stdin, env.Files = nil, r.files
		return &env
	}
	env.Dir = t.MkAbs(".")
	env.As, env.Key = r.start.As, r.start.Key
	env.Caller = core.Caller{Tenant: r.start.Tenant, Name: r.who(), Kind: core.Operator, Door: core.DoorScript, Proof: r.outer.Caller.Proof, Seat: r.outer.Caller.Seat, Far: r.outer.Caller.Far}
	env.Getenv = t.Getenv
	return &env
}

// who is the operator of the script: of a file of its own always the same.
func (r *run) who() string {
	switch {
	case r.start.As != "": // and every line proves it
		return ""
	case r.kept, r.outer.Remote:
		return r.start.Caller.Name
	}
	return "operator"
}

// stdin is what the script's last stdin word named, read when it is asked
// for. Only a program can see it, so one hands it over.
type stdin struct {
	ts   *testscript.TestScript
	text *strings.Reader
}

func (s *stdin) Read(p []byte) (int, error) {
	if s.text == nil {
		if err := s.ts.Exec("cat"); err != nil {
			return 0, fmt.Errorf("read the script's stdin: %w", err)
		}
		s.text = strings.NewReader(s.ts.ReadFile("stdout"))
	}
	return s.text.Read(p)
}

var _ io.Reader = (*stdin)(nil)

// exit checks the exit code of the last command.
func (r *run) exit(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: exit code")
	}
	if want, err := strconv.Atoi(args[0]); err != nil || want != r.code {
		ts.Fatalf("exit code\nexpected: %s\nactual: %d", args[0], r.code)
	}
}

// restart ends everything in order and starts it again on the same data file.
func (r *run) restart(ts *testscript.TestScript, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: restart")
	}
	if r.outer.Remote {
		ts.Fatalf("restart: only on the machine of the data file")
	}
	if r.remote != nil {
		ts.Fatalf("restart: the engine of %s runs in another process, which the script does not end", r.data)
	}
	ts.Check(r.close())
	_, err := r.open(r.ctx, r.start.Tenant)
	ts.Check(err)
}

// capture sets a variable to a member of the JSON on the last stdout; of
// several lines, to that of the first one that has it.
func (r *run) capture(ts *testscript.TestScript, args []string) {
	if len(args) != 2 || !variable(args[0]) {
		ts.Fatalf("usage: capture NAME FIELD, where NAME is of letters, digits and _")
	}
	out := ts.ReadFile("stdout")
	for line := range strings.Lines(out) {
		var v any
		if json.Unmarshal([]byte(line), &v) != nil {
			continue
		}
		if text, ok := member(v, args[1]); ok {
			if r.outer.Remote && len(text) > mostValue {
				ts.Fatalf("capture %s\nexpected: at most %d bytes in the field %s\nactual: %d", args[0], mostValue, args[1], len(text))
			}
			r.spend(len(args[0]) + len(text)) // testscript keeps every value, the former ones too
			r.enough(ts)
			ts.Setenv(args[0], text)
			return
		}
	}
	ts.Fatalf("capture %s\nexpected: JSON with the field %s on stdout\nactual: %s", args[0], args[1], excerpt(out))
}

func variable(name string) bool {
	for i, ch := range name {
		if ch != '_' && (ch < 'A' || ch > 'Z') && (ch < 'a' || ch > 'z') && (i == 0 || ch < '0' || ch > '9') {
			return false
		}
	}
	return name != ""
}

// member follows a path such as action.args.path or items.0.name, and writes
// what it finds as text: strings as they are, the rest as JSON.
func member(v any, path string) (string, bool) {
	for _, name := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[name]
			if !ok {
				return "", false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	if text, ok := v.(string); ok {
		return text, true
	}
	text, err := json.Marshal(v)
	return string(text), err == nil
}

// excerpt is text short enough for a message.
func excerpt(s string) string {
	const most = 600
	if s = strings.TrimSpace(s); s == "" {
		return "nothing"
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
