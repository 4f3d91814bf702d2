package cell

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	cmdline "swarmdeck/drivers/cell/pin/named"
	"swarmdeck/engine/core"
)

// NewSpec is what starts an agent's command; an empty or relative dir starts
// from base. The error names the field of the agent that is wrong.
func NewSpec(command []string, env map[string]string, dir, base string) (Spec, error) {
	if err := CheckCommand("command", command); err != nil {
		return Spec{}, err
	}
	if err := CheckEnv(env); err != nil {
		return Spec{}, err
	}
	abs, err := CheckDir(dir, base)
	if err != nil {
		return Spec{}, err
	}
	return Spec{Argv: command, Env: env, Dir: abs}, nil
}

// Line is the command as the files that it names are found.
func (s Spec) Line() cmdline.Line {
	program, err := find(s.Argv[0], s.Env, s.Dir)
	if err != nil {
		program = ""
	}
	return cmdline.Line{Argv: s.Argv, Program: program, Dir: s.Dir, Env: s.Env}
}

// Available reports whether an agent's command could be started now.
func (s Spec) Available() error {
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return core.Invalid("dir", s.Dir, "an existing directory")
	}
	if _, err := find(s.Argv[0], s.Env, s.Dir); err != nil {
		why := "a program that exists in PATH, or its path"
		if errors.Is(err, os.ErrPermission) {
			why = "a program that may be executed"
		}
		return core.Invalid("command", s.Argv[0], why)
	}
	return nil
}

// Limited reports whether one of the run's Limits ended it.
func (e Exit) Limited() bool {
	return e.Signal == unix.SIGXCPU || e.Signal == unix.SIGXFSZ || e.Overran > 0
}

// Describe says how it ended: "exited with status 1".
func (e Exit) Describe() string {
	if e.Why != "" {
		return e.Why
	}
	if e.Overran > 0 {
		return fmt.Sprintf("was ended because it exceeded its memory of %d MiB", e.Overran>>20)
	}
	if e.Signal != 0 {
		return "was ended by " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exited with status %d", e.Code)
}
