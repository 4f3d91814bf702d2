package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command/scaffold"
)

// begun is what `project init` found, and the file that it wrote.
type begun struct {
	scaffold.Found
	File string `json:"file,omitempty"` // "" where none was written
	Text string `json:"text"`
}

func (t *tree) projectInit() *cobra.Command {
	var force, dry bool
	return t.command(spec{
		use: "init [DIR]", short: "Write a swarm file from what is found in a directory", effect: Writes, args: []string{"dir"}, ownScope: true,
		long: "Write swarm.yaml of a directory, the current one unless DIR is given, from what is found: languages with what tests\n" +
			"them, and agents on PATH as roles. Files are read, nothing of them is run. Look through it, then apply it with up.",
		example: "project init --dry-run",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&dry, "dry-run", false, "print the file, and write nothing")
			f.BoolVar(&force, "force", false, "write in place of a swarm file that is there")
		},
		check: func(c *call, _ []string) error {
			if c.env.Remote {
				return onlyThere(commandPath(c.cmd), "dir")
			}
			return nil
		},
		run: func(c *call, args []string) error {
			dir := c.env.path(append(args, ".")[0])
			known, err := LoadCoding(c.env.getenv)
			if err != nil {
				return err
			}
			found, err := scaffold.Look(dir, c.env.getenv("PATH"), known)
			if errors.Is(err, fs.ErrNotExist) {
				return core.Errorf(core.NotFound, "dir: %v", err).With("field", "dir")
			}
			if err != nil {
				return err
			}
			b := begun{Found: found, Text: string(found.File())}
			if dry {
				return c.verbatim(b, []byte(b.Text))
			}
			if b.File, err = c.swarmFile(dir, []byte(b.Text), force); err != nil {
				return err
			}
			said, programs := []string{"wrote " + b.File}, core.Map(found.Agents, func(a scaffold.Agent) string { return a.Program })
			for _, part := range []struct {
				what string
				of   []string
			}{{"languages", found.Languages}, {"checks", found.Checks}, {"agents", programs}, {"egress presets that it offers", found.Egress}} {
				if len(part.of) > 0 {
					said = append(said, part.what+": "+strings.Join(part.of, ", "))
				}
			}
			return c.say(b, "%s; look through it, then: swarmdeck up %s", strings.Join(said, "; "), core.Quote(b.File))
		},
	})
}

// swarmFile writes the swarm file of a directory. One that is there stays, unless it
// is to be replaced, which one rename does.
func (c *call) swarmFile(dir string, text []byte, force bool) (path string, err error) {
	for _, name := range []string{"swarm.yaml", "swarm.yml"} {
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(at); err == nil && !force {
			return "", core.Errorf(core.Conflict, "%s is there already; say --force to write in its place, or --dry-run to print what would be", at).With("field", "force")
		} else if err == nil && path == "" {
			path = at
		}
	}
	path = cmp.Or(path, filepath.Join(dir, "swarm.yaml"))
	if own, err := c.own(); err != nil {
		return "", err
	} else if own.Check(path) != nil {
		return "", core.Errorf(core.Denied, "dir: %s is one of the engine's own files", core.Clip(path)).With("field", "dir")
	}
	f, err := os.CreateTemp(dir, ".swarm-*.yaml")
	if err != nil {
		return "", fmt.Errorf("write the swarm file: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it was renamed, as a rule
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = nameFile(f.Name(), path, force)
	}
	if err != nil {
		return "", fmt.Errorf("write the swarm file: %w", err)
	}
	return path, nil
}

// nameFile gives a written file its name; one that came up meanwhile stays, unless it is
// to be replaced.
func nameFile(from, to string, force bool) error {
	if force {
		return os.Rename(from, to)
	}
	return os.Link(from, to)
}
