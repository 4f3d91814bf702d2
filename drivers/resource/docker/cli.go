package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

// CLI runs the docker command. It is all that this package needs of docker.
type CLI interface {
	// Run runs docker with arguments to its end. in may be nil. An exit other
	// than 0 is *Failed; that there is no docker, any other error.
	Run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error
}

// Failed is a docker command that ended badly.
type Failed struct {
	Args   []string
	Code   int
	Stderr string // its end
}

func (f *Failed) Error() string {
	return fmt.Sprintf("docker %s: exit %d: %s", strings.Join(f.Args, " "), f.Code, strings.TrimSpace(f.Stderr))
}

// Command is the docker command in the PATH. It has no wall: it talks to an
// engine that may do all on this machine.
type Command struct{ Cells *cell.Supervisor }

func (c Command) Run(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	spec := cell.Spec{Run: program, Argv: append([]string{program}, args...), Dir: "/", Env: environ(os.Environ()), Wall: cell.Wall{Profile: cell.Open}}
	errs := pipe.Kept{Most: 4096, End: true}
	exit, err := c.Cells.Run(ctx, spec, in, out, &errs)
	if err == nil && exit.Code != 0 {
		err = &Failed{args, exit.Code, string(errs.Bytes())}
	}
	return err
}

const program = "docker"

// environ are the variables that say which engine there is and how to reach it.
func environ(all []string) map[string]string {
	env := map[string]string{}
	for _, v := range all {
		name, value, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "DOCKER_") || name == "SSH_AUTH_SOCK" || name == "XDG_RUNTIME_DIR" || name == "XDG_CONFIG_HOME" ||
			strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			env[name] = value
		}
	}
	return env
}

// patience is how long a command may take that moves no files.
const patience = 30 * time.Second

// maxAnswer bounds what such a command prints.
const maxAnswer = 1 << 20

// run runs a command that answers with a line.
func (d *Driver) run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer stop()
	out := pipe.Kept{Most: maxAnswer, Over: errMuch()}
	err := d.opt.CLI.Run(ctx, nil, &out, args...)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.Bytes(), plain(err)
}

// plain says in words of ours what is wrong with docker itself.
func plain(err error) error {
	var failed *Failed
	switch {
	case err == nil:
		return nil
	case cell.NotFound(err, program):
		return core.Errorf(core.Unavailable, "there is no docker command here")
	case errors.As(err, &failed) && unreachable(failed.Stderr):
		return core.Errorf(core.Unavailable, "there is a docker command here, but no docker engine answers it: %s", pipe.LastLine(failed.Stderr))
	}
	return err
}

// unreachable reports what docker says when it has no engine.
func unreachable(stderr string) bool {
	text := strings.ToLower(stderr)
	for _, sign := range []string{"cannot connect to the docker daemon", "failed to connect to the docker api", "error during connect", "is the docker daemon running"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func errMuch() error { return core.Errorf(core.InvalidInput, "docker gives more than is allowed") }

// Available says whether there is a docker whose engine answers, and if not,
// why. The words are for people.
func (d *Driver) Available(ctx context.Context) error {
	out, err := d.run(ctx, "version", "--format", "{{.Server.Version}}")
	if err == nil && strings.TrimSpace(string(out)) == "" {
		err = core.Errorf(core.Unavailable, "there is a docker command here, but no docker engine answers it")
	}
	return err
}
