// Package plain is the cockpit as lines of text, for where there is no
// terminal to draw on, and for people who have the lines read to them.
//
// A line is a command, as anywhere else. What changes is announced, a line
// each, in words: "approval ap_… waits: write notes.txt; risk: medium". An
// approval is read and answered by number: "answer" shows the one that has
// waited longest, then offers numbered choices. Nothing here ever moves a
// cursor, colours a word or waits for a single key.
package plain

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/presence"
	"swarmdeck/ui/command"
	"swarmdeck/ui/term"
)

// patience is how long a person waits for a command before it goes on behind
// the next one. From a file or a pipe, commands always follow each other.
const patience = time.Second

// maxLine bounds a line of input.
const maxLine = 1 << 20

// Run reads lines until the input ends, the operator leaves or ctx ends. Why
// says what stands against a full screen. The engine of s works meanwhile.
// Lines from a file or a pipe are all carried out, whatever becomes of each;
// the error is then a *command.ExitError with the code of the first that
// failed. Who types is told of each.
func Run(ctx context.Context, env *command.Env, s command.Start, why string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	away := env.Terminal != nil // a terminal whose keys come raw
	out := &writer{out: env.Stdout}
	if away {
		out.out = crlf{env.Stdout}
	}
	r := &reader{
		ctx: ctx, env: *env, eng: s.Engine, by: s.Caller, out: out,
		readOnly: s.ReadOnly, interactive: away || term.IsTerminal(env.Stdin) && term.IsTerminal(env.Stdout),
	}
	if r.interactive {
		r.enter()
	}
	defer r.depart()
	r.going, r.stop = context.WithCancel(ctx)
	r.env.Caller, r.env.Dir = s.Caller, s.Dir
	r.env.Stdin, r.env.Stdout, r.env.Stderr, r.env.Terminal = nil, out, out, nil
	if !r.interactive {
		r.env.Stderr = env.Stderr
	}
	var lines <-chan string
	var stops <-chan struct{}
	var failed *error
	if away {
		lines, stops, failed = readKeys(ctx, env.Stdin, out.raw)
	} else {
		lines, failed = read(ctx, env.Stdin)
	}

	var announcing sync.WaitGroup
	news := newAnnouncer(r.eng, r.by.Tenant, r.tell)
	if r.interactive {
		news.self = r.stay.ID()
	}
	announcing.Go(func() { news.watch(ctx) })
	defer announcing.Wait()
	defer r.running.Wait()
	defer cancel()

	r.out.line("swarmdeck in plain lines: %s. Tenant %s, you are %s.", why, r.by.Tenant, r.by.Name)
	r.out.line("Type a command, \"needs\" for what needs you, \"answer\" for an approval, \"help\", or \"quit\".")
	r.prompt()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stops: // ends what still works, as follow does, and any question
			r.stop()
			r.going, r.stop = context.WithCancel(ctx)
			r.ask = nil
			r.look("")
			r.prompt()
		case line, ok := <-lines:
			switch {
			case ok:
			case *failed != nil:
				return fmt.Errorf("read the input: %w", *failed)
			default:
				news.look(ctx)
				r.farewell()
				return r.verdict()
			}
			leave := r.take(line)
			if !r.interactive || leave {
				news.look(ctx) // what a line caused is told before the next one
			}
			if leave {
				r.farewell()
				return r.verdict()
			}
			r.prompt()
		}
	}
}

// read hands over the lines of the input one by one. What went wrong is there
// when the channel is closed.
func read(ctx context.Context, in io.Reader) (<-chan string, *error) {
	lines, failed := make(chan string), new(error)
	if in == nil {
		in = strings.NewReader("")
	}
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(make([]byte, 0, 4096), maxLine)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
		*failed = scan.Err()
	}()
	return lines, failed
}

// reader is the operator's side: what they type, and the question that is
// open, if any.
type reader struct {
	ctx         context.Context
	env         command.Env
	eng         *engine.Engine
	by          core.Caller
	out         *writer
	readOnly    bool
	interactive bool
	ask         func(line string) // takes the answer to an open question
	going       context.Context   // of commands; stop ends those that still work
	stop        context.CancelFunc
	running     sync.WaitGroup
	failed      int            // exit code of the first line that failed, when nobody types
	stay        *presence.Stay // nil until somebody is known to be there
}

func (r *reader) now() time.Time { return time.Now() }

// fail notes that a line failed.
func (r *reader) fail(code int) {
	r.failed = cmp.Or(r.failed, code)
}

// verdict is how a file or a pipe of lines went.
func (r *reader) verdict() error {
	if r.interactive || r.failed == 0 {
		return nil
	}
	return &command.ExitError{Code: r.failed}
}

// take carries out one line and reports whether the operator leaves.
func (r *reader) take(line string) (leave bool) {
	line = strings.TrimSpace(line)
	if ask := r.ask; ask != nil {
		r.ask = nil
		ask(line)
		if r.ask == nil {
			r.look("")
		}
		return false
	}
	words, err := command.Split(line)
	switch {
	case err != nil:
		r.out.line("error: %v", err)
		r.fail(command.ExitUsage)
	case len(words) == 0:
	case len(words) == 1 && (words[0] == "quit" || words[0] == "exit"):
		return true
	case words[0] == "answer" && len(words) <= 2:
		r.answer(words[1:])
	case words[0] == "needs" && len(words) == 1:
		r.needs()
	default:
		r.run(words)
		if len(words) == 1 && words[0] == "help" {
			r.out.line("Also here: needs lists what needs you; answer [APPROVAL] reads an approval and offers numbered choices; quit leaves.")
		}
	}
	return false
}

// run carries out a command. A person is not kept waiting for it.
func (r *reader) run(words []string) {
	done := make(chan int, 1)
	going := r.going
	r.running.Go(func() {
		env := r.env
		code := command.Run(going, &env, words)
		if code != command.ExitOK && r.interactive {
			r.out.line("failed: exit code %d: %s", code, core.Join(words))
		}
		done <- code
	})
	var late <-chan time.Time
	if r.interactive {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case code := <-done:
		r.fail(code)
	case <-late:
		r.out.line("still working on: %s. You can go on.", core.Join(words))
	case <-r.ctx.Done():
	}
}

// prompt asks for the next line, where a person sees it.
func (r *reader) prompt() {
	if r.interactive {
		r.out.raw("> ")
	}
}

// tell announces something. On a terminal it begins on a line of its own and
// leaves a fresh prompt behind.
func (r *reader) tell(text string) {
	if r.interactive {
		r.out.raw("\n")
	}
	r.out.line("%s", text)
	r.prompt()
}

func (r *reader) farewell() {
	working := 0
	for _, a := range r.eng.Snapshot(r.by.Tenant).Agents {
		if a.TaskID != "" {
			working++
		}
	}
	switch {
	case working == 0:
	case r.env.Attached:
		r.out.line("leaving; agents at work that go on: %d", working)
	default:
		r.out.line("leaving; agents at work that stop with the engine: %d", working)
	}
}

var errReadOnly = errors.New("read-only: approvals can't be answered")
