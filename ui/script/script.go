// Package script runs a script file: every command of the command language is
// a line of it, and so are the keys of a real cockpit on a virtual screen.
// A script waits for states, never for times.
//
// The engine of the scripts is testscript; this package adds its words:
//
//	cockpit [WxH] [flags]    start the cockpit (80x24)
//	key K…                   press keys: j, enter, ctrl+e, E
//	type TEXT, paste TEXT    type or paste
//	click [right] CELL       the mouse on ROW,COL, from 1,1, or on what /re/ finds;
//	                         also wheel up|down CELL, drag CELL CELL
//	resize WxH               another size
//	await [-t D] WHAT        wait (10s) for: screen /re/ · status /re/ ·
//	                         task ID F=V… · agent NAME F=V… · approval [N] ·
//	                         quiet · left
//	screen /re/              the screen has it now; ! screen /re/ has it not
//	cell ROW,COL role=NAME   one cell, counted from 1,1; also text=CHARACTER
//	snap NAME                the screen is the file want/NAME.screen
//	capture NAME FIELD       $NAME is a member of the last JSON on stdout
//	exit N                   the last command's exit code was N
//	restart                  leave the cockpit, close the engine, open it again
//	? COMMAND                the command may fail
//
// A script from another machine works on the engine that it came to, in the
// tenant and the role of who brought it, and touches no file but those it
// brings along: see remoteOnly.
//
// "status" is the header and the footer; "left" means that the cockpit was
// quit. $DATA is the data file, $WORK the directory the script runs in, $HERE
// the one it is kept in. "exec swarmdeck" is this program in a process of its
// own, or what $SWARMDECK names in the environment.
package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/ui"
	"swarmdeck/ui/command"
	"swarmdeck/ui/term"
)

// Cockpit makes a cockpit's options for a door: env's Open and writers, the
// start's Engine and Caller.
type Cockpit func(env *command.Env, s command.Start) (ui.Options, error)

// maxScript bounds a script file.
const maxScript = 4 << 20

// grace is how long an interrupted script may take to end what it runs.
const grace = 5 * time.Second

// Run runs the script that s names; "-" is stdin. It works on a fresh data
// file, and says so, unless --data or SWARMDECK_DATA names one, or it comes from
// another machine. Where another process has that file, its words are carried
// out there. The error is a
// *command.ExitError: 1 for an expectation that failed, 2 for a script that
// can't be run, 130 for an interrupt; the failure has then been printed.
func Run(ctx context.Context, env *command.Env, s command.Start, cockpit Cockpit) error {
	root, err := directory()
	if err != nil {
		return fmt.Errorf("make a directory for the script: %w", err)
	}
	defer os.RemoveAll(root)
	// Agents and their working directories are told apart by real paths.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return fmt.Errorf("make a directory for the script: %w", err)
	}
	r := &run{ctx: ctx, outer: env, start: s, cockpit: cockpit, root: root, name: s.Script, file: s.Script, left: unbounded}
	if env.Remote {
		r.left = mostPrinted
	}
	if s.Update && s.Script == "-" {
		return &command.ExitError{Code: command.ExitUsage, Err: core.Errorf(core.InvalidInput, "--update: a script on stdin can't be rewritten").With("field", "update")}
	}
	if err := r.load(); err != nil {
		return &command.ExitError{Code: command.ExitUsage, Err: err}
	}
	r.data = filepath.Join(root, "data", "swarmdeck.db")
	if r.kept = s.Data != ""; r.kept {
		r.data = s.Data
	}
	if !r.kept && !env.Remote && s.Output != "json" {
		fmt.Fprintf(env.Stderr, "swarmdeck: %s runs in a world of its own, which goes with it; --data FILE or SWARMDECK_DATA has it run on yours\n", clean(r.name))
	}
	if s.Show {
		if r.show, err = newShow(env, s.Color); err != nil {
			return &command.ExitError{Code: command.ExitUsage, Err: err}
		}
		defer r.show.end()
	}
	return r.play()
}

// reach opens the engine, where the script is kept from having one of its own: in
// this process, or in the one that has the data file.
func (r *run) reach(ts *testscript.TestScript) {
	if !r.kept || r.remote != nil || r.outer.Elsewhere == nil {
		return
	}
	_, err := r.open(r.ctx, r.start.Tenant)
	var exit *command.ExitError
	if errors.As(err, &exit) && exit.Code == command.ExitElsewhere {
		if r.show != nil {
			ts.Fatalf("--show: the engine of %s runs in another process; end it, or leave --show away", r.data)
		}
		r.remote, err = r.attach(), nil
	}
	ts.Check(err)
}

// directory makes the script's directory. Its name is as long in every run,
// so that a screen with a path on it keeps its shape.
func directory() (string, error) {
	for {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("swarmdeck-%08x", rand.Uint32()))
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, os.ErrExist) {
			return dir, err
		}
	}
}

// run is one script being run.
type run struct {
	ctx     context.Context
	outer   *command.Env
	start   command.Start
	cockpit Cockpit
	root    string // temporary: work directory, data file, stdin
	name    string // what the script is called in messages
	file    string // where it is read from
	data    string
	kept    bool // the data file is the user's
	show    *show
	work    string            // directory that the script runs in
	files   map[string][]byte // that a script from another machine brought along
	left    int               // bytes that its commands may still print

	eng    *engine.Engine
	remote *remote // the engine of another process; nil for one of ours
	stage  *stage
	code   int               // of the last command
	snaps  map[string]string // want/NAME.screen to be rewritten
}

// load finds the script's text and looks over its words.
func (r *run) load() error {
	var in io.Reader = r.outer.Stdin
	if r.file != "-" {
		f, err := os.Open(r.file)
		if err != nil {
			return fmt.Errorf("open script: %w", err)
		}
		defer f.Close()
		in = f
	} else if in == nil {
		return errors.New("script: there is no stdin here")
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScript+1))
	if err != nil {
		return fmt.Errorf("read script %s: %w", r.name, err)
	}
	if len(text) > maxScript {
		return fmt.Errorf("script %s is larger than %d bytes", r.name, maxScript)
	}
	if r.file == "-" {
		r.name, r.file = "stdin", filepath.Join(r.root, "stdin.txtar")
		if err := os.WriteFile(r.file, text, 0o600); err != nil {
			return fmt.Errorf("keep the script from stdin: %w", err)
		}
	}
	return r.check(string(text))
}

// play runs the script to its end and says how it went.
func (r *run) play() error {
	began := time.Now()
	t := &referee{}
	done := core.Side(func() {
		testscript.RunT(t, testscript.Params{
			Files: []string{r.file}, Cmds: r.obedient(r.words()), Setup: r.setup,
			WorkdirRoot: r.root, UpdateScripts: r.start.Update,
		})
	})
	select {
	case <-done:
	case <-r.ctx.Done():
		// A command of ours ends with the context; a program that the script
		// runs has its own mind.
		patience := time.After(grace)
		if r.outer.Remote {
			patience = nil // it runs none, and its place is taken until it has ended
		}
		select {
		case <-done:
		case <-patience:
			return &command.ExitError{Code: command.ExitInterrupted, Err: errors.New("interrupted; a program that the script runs may go on")}
		}
	}
	report := r.failure(t)
	if err := r.close(); err != nil && report == nil {
		return fmt.Errorf("close the script's engine: %w", err)
	}
	switch {
	case r.ctx.Err() != nil:
		return &command.ExitError{Code: command.ExitInterrupted, Err: errors.New("interrupted")}
	case report != nil:
		return r.tell(report)
	}
	if err := r.rewrite(); err != nil {
		return err
	}
	verdict := "ok"
	if t.skipped != "" {
		verdict = "skipped: " + t.skipped
	}
	r.say(r.outer.Stdout, map[string]any{"script": r.name, "ok": true, "skipped": t.skipped}, fmt.Sprintf("%s: %s (%.1fs)\n", r.name, verdict, time.Since(began).Seconds()))
	return nil
}

// obedient makes words that fail once the script is to end.
func (r *run) obedient(words map[string]func(*testscript.TestScript, bool, []string)) map[string]func(*testscript.TestScript, bool, []string) {
	for name, word := range words {
		words[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if r.ctx.Err() != nil {
				ts.Fatalf("interrupted")
			}
			word(ts, neg, args)
		}
	}
	return words
}

// setup gives the script its surroundings, the same on any machine.
func (r *run) setup(env *testscript.Env) error {
	r.work = env.WorkDir
	if r.outer.Remote {
		env.Vars = append(env.Vars, "USER="+r.outer.Caller.Name, "TZ=UTC")
		return nil
	}
	bin, err := r.program()
	if err != nil {
		return err
	}
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	here := filepath.Dir(r.file)
	if r.name == "stdin" {
		here = r.outer.Dir
	}
	env.Vars = append(env.Vars, "HERE="+here, "DATA="+r.data, "SWARMDECK_DATA="+r.data, "LANG=C.UTF-8", "TERM=xterm-256color", "TZ=UTC")
	if r.kept {
		env.Vars = append(env.Vars, "SWARMDECK_TENANT="+r.outer.Getenv("SWARMDECK_TENANT"))
		// Where a program of the script finds the engine of the file.
		if dir := r.outer.Getenv("XDG_RUNTIME_DIR"); dir != "" {
			env.Vars = append(env.Vars, "XDG_RUNTIME_DIR="+dir)
		} else {
			env.Setenv("TMPDIR", os.TempDir())
		}
	}
	env.Vars = append(env.Vars, "USER="+cmp.Or(r.start.As, r.who()))
	return nil
}

// program makes a directory with this program in it, so that the script can
// start another one: exec swarmdeck --data other.db task list.
func (r *run) program() (dir string, err error) {
	self := r.outer.Getenv("SWARMDECK")
	if self == "" {
		if self, err = os.Executable(); err != nil {
			return "", fmt.Errorf("find this program: %w", err)
		}
	}
	dir = filepath.Join(r.root, "bin")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make this program known: %w", err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "swarmdeck")); err != nil {
		return "", fmt.Errorf("make this program known: %w", err)
	}
	return dir, nil
}

// open gives the engine of the script that works on a tenant, whatever a command needs
// of it. On a data file there is one for all.
func (r *run) open(ctx context.Context, tenant string) (*engine.Engine, error) {
	if r.eng != nil && command.DatabaseIn(r.data) == "" {
		return r.eng, nil
	}
	need := command.Need{Data: r.data, Tenant: tenant, ReadOnly: r.start.ReadOnly, Active: !r.start.ReadOnly, Dir: r.work}
	// The engine outlives the command that asked first.
	eng, err := r.outer.Open(context.WithoutCancel(ctx), need)
	if err != nil {
		return nil, err
	}
	r.eng = eng
	return eng, nil
}

// close ends the cockpit, then the engine.
func (r *run) close() error {
	if r.stage != nil {
		r.stage.Close()
		r.stage = nil
	}
	err := r.remote.end()
	r.eng, r.remote = nil, nil
	if r.outer.Close == nil {
		return err
	}
	return errors.Join(err, r.outer.Close())
}

// say prints a line, or v with -o json.
func (r *run) say(w io.Writer, v any, text string) {
	if r.start.Output == "json" {
		if line, err := core.Encode(v); err == nil {
			text = string(line) + "\n"
		}
	}
	io.WriteString(w, text) //nolint:errcheck // there is no one else to tell
}

// clean makes text that came from programs harmless, line by line.
func clean(text string) string {
	return strings.TrimSuffix(term.CleanLines(text), "\n")
}
