package script

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
)

// referee is the testscript.T of one script: it keeps the log and the verdict.
type referee struct {
	log     strings.Builder
	failed  bool
	skipped string
}

func (t *referee) Skip(why ...any) {
	t.skipped = cmp.Or(strings.TrimSpace(fmt.Sprintln(why...)), "by the script")
	runtime.Goexit()
}

func (t *referee) Fatal(why ...any) {
	t.Log(why...)
	t.FailNow()
}

func (t *referee) Log(what ...any) { fmt.Fprintln(&t.log, what...) }

func (t *referee) FailNow() {
	t.failed = true
	runtime.Goexit()
}

func (t *referee) Parallel() {}

func (t *referee) Verbose() bool { return false }

// Run implements testscript.T: FailNow and Skip end the goroutine it makes. A
// script that makes a word panic fails, and ends nothing else.
func (t *referee) Run(_ string, f func(testscript.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				t.failed = true
				t.Log("the script failed inside:", p)
			}
		}()
		f(t)
	}()
	<-done
}

// failure is what went wrong, and where.
type failure struct {
	file, line string
	phase      string // the last comment before it
	what       string
	log        string // what was run and printed in that phase
	screen     []string
}

// failure reads the log of a script that failed; nil for one that did not.
func (r *run) failure(t *referee) *failure {
	if !t.failed {
		return nil
	}
	// testscript names its directory first, and the copy of a script on stdin.
	log := strings.ReplaceAll(t.log.String(), r.file, r.name)
	if first, rest, ok := strings.Cut(log, "\n"); ok && strings.HasPrefix(first, "WORK=") {
		log = strings.ReplaceAll(rest, strings.TrimPrefix(first, "WORK="), "$WORK")
	}
	f := &failure{file: r.name, log: strings.TrimSpace(log)}
	f.screen = r.rows()
	above, what, ok := strings.Cut(f.log, "FAIL: "+r.name+":")
	if !ok {
		f.what = f.log
		return f
	}
	f.log = strings.TrimRight(above, "\n")
	f.line, f.what, _ = strings.Cut(strings.TrimSpace(what), ": ")
	for line := range strings.Lines(above) {
		if strings.HasPrefix(line, "#") {
			f.phase = phase(line)
		}
	}
	return f
}

// phase is a comment without its sign and testscript's stopwatch.
func phase(line string) string {
	line = strings.TrimSpace(strings.TrimLeft(line, "#"))
	if i := strings.LastIndex(line, " ("); i > 0 && strings.HasSuffix(line, "s)") {
		line = line[:i]
	}
	return line
}

// tell prints a failure and makes it the exit code.
func (r *run) tell(f *failure) error {
	if r.start.Output == "json" {
		return &command.ExitError{Code: command.ExitFailed, Err: core.Errorf(core.InvalidInput, "%s:%s: %s", f.file, f.line, clean(f.what)).
			With("file", f.file).With("line", f.line).With("phase", f.phase).With("screen", f.screen)}
	}
	var b strings.Builder
	if f.log != "" {
		fmt.Fprintf(&b, "%s\n", clean(f.log))
	}
	fmt.Fprintf(&b, "FAIL %s:%s: %s\n", f.file, f.line, clean(f.what))
	if f.phase != "" {
		fmt.Fprintf(&b, "phase: %s\n", clean(f.phase))
	}
	if f.screen != nil {
		b.WriteString("screen:\n")
		for _, row := range f.screen {
			fmt.Fprintf(&b, "  |%s\n", row)
		}
	}
	r.say(r.outer.Stderr, nil, b.String())
	return &command.ExitError{Code: command.ExitFailed}
}
