// Package git runs the git command for the engine, on repositories of the
// engine's own.
//
// A repository of somebody else is never given to git as the repository: its
// configuration names programs in more ways than can be switched off, and git
// has no option that does without it. What is needed of one is copied, or its
// objects are read through a repository of ours (Call.Objects); its refs are
// read by Refs. What git would run all the same, or ask of a network, is
// switched off here too, where an option or a variable can do it.
package git

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

// MaxAnswer bounds what Run collects of a command's output, in bytes.
const MaxAnswer = 64 << 20

// maxComplaint bounds what is kept of a command's errors.
const maxComplaint = 4 << 10

// Call is one git command.
type Call struct {
	Dir      string   // the working directory; "" is /
	GitDir   string   // the repository, one of ours; "" only for init
	WorkTree string   // files of anybody
	Index    string   // the index file; "" is the repository's
	Objects  string   // a directory of objects to read from instead of the repository's
	More     []string // directories of objects to read from besides
	Write    []string // directories that it writes besides the repository, which are there
	Read     []string // and what it reads, which is there too
	Settings []string // more settings, KEY=VALUE
	Env      []string // more of its environment, KEY=VALUE
	In       io.Reader
	Args     []string // the command and its arguments
	// Own runs it as the person whom the engine belongs to runs it: with the
	// configuration, the keys and the helpers of theirs, and no wall. It is for what
	// a person allowed.
	Own bool
}

// Failed is the error of a git that ended with another code than 0.
type Failed struct {
	Code int
	Said string
}

func (f *Failed) Error() string { return f.Said }

// off are the settings that switch off what could be run, in any repository.
func off() []string {
	return []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.alternateRefsCommand=", "core.attributesFile=/dev/null",
		"core.askPass=false", "core.editor=false", "core.pager=cat", "core.sshCommand=false", "core.fsync=all", "credential.helper=", "diff.external=",
		"gc.auto=0", "maintenance.auto=false", "safe.directory=*", "submodule.recurse=false", "fetch.recurseSubmodules=false", "protocol.allow=never",
		"commit.gpgSign=false", "tag.gpgSign=false", "gpg.program=false", "gpg.ssh.program=false", "gpg.x509.program=false", "gpg.ssh.defaultKeyCommand=",
		"uploadpack.packObjectsHook=", "sequence.editor=false",
	}
}

// Configured is what the user's own configuration says of a key, or where it says
// nothing that of the machine; "" for nothing.
func (g Git) Configured(ctx context.Context, key string) string {
	for _, of := range []string{"--global", "--system"} {
		if out, err := g.Run(ctx, Call{Own: true, Args: []string{"config", of, "--get", key}}); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
}

// offFor are the settings that switch off what a repository could have run.
func offFor(c Call) []string {
	if c.Own {
		return []string{"core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false", "safe.directory=*"}
	}
	return off()
}

// Muted is the shell line of a git on the other side of a push within this machine, which
// nothing of our own settings reaches.
func Muted(command string) string {
	line := program
	for _, s := range off() {
		line += " -c '" + s + "'"
	}
	return line + " " + command
}

// environ is all that git is told of its surroundings: nothing of the user's,
// unless it is to be as the user's own.
func environ(c Call) map[string]string {
	env := surroundings(c.Own)
	for _, v := range []struct{ name, value string }{
		{"GIT_DIR", c.GitDir}, {"GIT_WORK_TREE", c.WorkTree}, {"GIT_INDEX_FILE", c.Index}, {"GIT_OBJECT_DIRECTORY", c.Objects},
	} {
		if v.value != "" {
			env[v.name] = v.value
		}
	}
	if len(c.More) > 0 {
		env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = alternates(c.More)
	}
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

func surroundings(own bool) map[string]string {
	if own {
		env := map[string]string{"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "https:ssh"}
		for _, name := range []string{"GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "GNUPGHOME", "GIT_SSH_COMMAND"} {
			if value := os.Getenv(name); value != "" {
				env[name] = value
			}
		}
		return env
	}
	return map[string]string{
		"LC_ALL": "C", "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1",
		"GIT_ALLOW_PROTOCOL": "none", "GIT_PROTOCOL_FROM_USER": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1",
		"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "SSH_ASKPASS": "false", "GIT_SSH_COMMAND": "false", "GIT_PROXY_COMMAND": "false",
		"GIT_EDITOR": "false", "GIT_SEQUENCE_EDITOR": "false", "GIT_PAGER": "cat", "GIT_OPTIONAL_LOCKS": "0", "GIT_ADVICE": "0",
		"GIT_TRACE": "0", "GIT_TRACE2": "0", "GIT_TRACE2_EVENT": "0", "GIT_TRACE2_PERF": "0", "GIT_ALLOC_LIMIT": "1g",
		"GIT_AUTHOR_NAME": "swarmdeck", "GIT_AUTHOR_EMAIL": "swarmdeck@localhost", "GIT_AUTHOR_DATE": "@0 +0000",
		"GIT_COMMITTER_NAME": "swarmdeck", "GIT_COMMITTER_EMAIL": "swarmdeck@localhost", "GIT_COMMITTER_DATE": "@0 +0000",
	}
}

// alternates is a list of directories as git reads it: a name that holds the
// separator is quoted.
func alternates(dirs []string) string {
	quoted := make([]string, len(dirs))
	for i, dir := range dirs {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(dir) + `"`
	}
	return strings.Join(quoted, ":")
}

// first is the first line of what a command complains about.
func first(says []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(says)), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 300)], "?")
}

// Git starts git as a cell: it reads what a call names, writes its repository
// and reaches nothing else.
type Git struct{ Cells *cell.Supervisor }

// spec is the one place that says how git is started.
func spec(c Call) cell.Spec {
	argv := []string{program}
	for _, s := range append(offFor(c), c.Settings...) {
		argv = append(argv, "-c", s)
	}
	wall := cell.Wall{Profile: cell.Reader, Write: c.Write} // a worker could have a way out
	if c.Own {
		wall = cell.Wall{Profile: cell.Open}
	} else if c.GitDir != "" {
		wall.Write = append([]string{c.GitDir}, wall.Write...)
	}
	for _, dir := range slices.Concat([]string{c.WorkTree, c.Objects}, c.More, c.Read) {
		if dir != "" && !c.Own {
			wall.Read = append(wall.Read, dir)
		}
	}
	return cell.Spec{Run: program, Argv: append(argv, c.Args...), Dir: cmp.Or(c.Dir, "/"), Env: environ(c), Wall: wall}
}

const program = "git"

// run runs git to its end.
func (g Git) run(ctx context.Context, c Call, in io.Reader, out io.Writer) error {
	says := pipe.Kept{Most: maxComplaint}
	exit, err := g.Cells.Run(ctx, spec(c), in, out, &says)
	switch {
	case cell.NotFound(err, program):
		return core.Errorf(core.Unavailable, "git: is not installed")
	case err != nil:
		return err
	case exit.Code != 0:
		return &Failed{exit.Code, fmt.Sprintf("git %s %s: %s", c.Args[0], exit.Describe(), first(says.Bytes()))}
	}
	return nil
}

// Run runs git to its end and returns what it prints, at most MaxAnswer bytes.
func (g Git) Run(ctx context.Context, c Call) ([]byte, error) {
	out := pipe.Kept{Most: MaxAnswer, Over: fmt.Errorf("git %s: prints more than %d bytes", c.Args[0], MaxAnswer)}
	err := g.run(ctx, c, c.In, &out)
	return out.Bytes(), err
}

// Read runs git and hands over what it prints while it runs; what read leaves
// is dropped. An error of read ends git.
func (g Git) Read(ctx context.Context, c Call, read func(io.Reader) error) error {
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := g.run(ctx, c, c.In, w)
		w.CloseWithError(err) // nil is its end
		done <- err
	}()
	err := read(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	r.CloseWithError(err)
	return cmp.Or(<-done, err)
}

// Write runs git and gives it what write says. An error of write ends git.
func (g Git) Write(ctx context.Context, c Call, write func(io.Writer) error) error {
	r, w := io.Pipe()
	var all sync.WaitGroup
	all.Go(func() { w.CloseWithError(write(w)) })
	err := g.run(ctx, c, r, nil)
	r.Close()
	all.Wait()
	return err
}
