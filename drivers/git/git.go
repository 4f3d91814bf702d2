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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

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
	Settings []string // more settings, KEY=VALUE
	In       io.Reader
	Args     []string // the command and its arguments
}

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

// environ is all that git is told of its surroundings: nothing of the user's.
func environ(c Call) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=none", "GIT_PROTOCOL_FROM_USER=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_SSH_COMMAND=false", "GIT_PROXY_COMMAND=false",
		"GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GIT_ADVICE=0",
		"GIT_TRACE=0", "GIT_TRACE2=0", "GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0", "GIT_ALLOC_LIMIT=1g",
		"GIT_AUTHOR_NAME=swarmdeck", "GIT_AUTHOR_EMAIL=swarmdeck@localhost", "GIT_AUTHOR_DATE=@0 +0000",
		"GIT_COMMITTER_NAME=swarmdeck", "GIT_COMMITTER_EMAIL=swarmdeck@localhost", "GIT_COMMITTER_DATE=@0 +0000",
	}
	for _, v := range []struct{ name, value string }{
		{"GIT_DIR", c.GitDir}, {"GIT_WORK_TREE", c.WorkTree}, {"GIT_INDEX_FILE", c.Index}, {"GIT_OBJECT_DIRECTORY", c.Objects},
	} {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// complaint keeps the beginning of what a command says.
type complaint struct{ bytes.Buffer }

func (c *complaint) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), maxComplaint-c.Len())])
	return len(p), nil
}

// first is its first line.
func (c *complaint) first() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.String()), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 300)], "?")
}

// command is the one place where git is started.
func command(ctx context.Context, c Call) *exec.Cmd {
	var args []string
	for _, s := range append(off(), c.Settings...) {
		args = append(args, "-c", s)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.Args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Dir, environ(c), 5*time.Second
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Stdin = c.In
	return cmd
}

// failed says what a command that failed has said.
func failed(ctx context.Context, c Call, says *complaint, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return core.Errorf(core.Unavailable, "git: is not installed")
	}
	return fmt.Errorf("git %s: %w: %s", c.Args[0], err, says.first())
}

// Run runs git to its end and returns what it prints, at most MaxAnswer bytes.
func Run(ctx context.Context, c Call) ([]byte, error) {
	var out bytes.Buffer
	err := Read(ctx, c, func(r io.Reader) error {
		n, err := out.ReadFrom(io.LimitReader(r, MaxAnswer+1))
		if err == nil && n > MaxAnswer {
			err = fmt.Errorf("git %s: prints more than %d bytes", c.Args[0], MaxAnswer)
		}
		return err
	})
	return out.Bytes(), err
}

// Read runs git and hands over what it prints while it runs. An error of read
// ends git.
func Read(ctx context.Context, c Call, read func(io.Reader) error) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	cmd := command(run, c)
	var says complaint
	cmd.Stderr = &says
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed(ctx, c, &says, err)
	}
	if err := read(out); err != nil {
		stop() // it would wait for us to read on
		_ = cmd.Wait()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return failed(ctx, c, &says, cmd.Wait())
}

// Write runs git and gives it what write says. An error of write ends git.
func Write(ctx context.Context, c Call, write func(io.Writer) error) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	cmd := command(run, c)
	var says complaint
	cmd.Stderr = &says
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed(ctx, c, &says, err)
	}
	wrote := write(in)
	if wrote == nil {
		wrote = in.Close()
	} else {
		stop()
	}
	ended := cmd.Wait()
	if wrote != nil && says.Len() == 0 {
		return wrote
	}
	return failed(ctx, c, &says, errors.Join(wrote, ended))
}
