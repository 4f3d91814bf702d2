package command

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/ui/command/swarmfile"
)

// Applied says what `up` did to one object.
type Applied struct {
	Action string `json:"action"` // created, changed, unchanged
	Object string `json:"object"` // tenant, session, agent, budget
	Name   string `json:"name"`
	ID     string `json:"id,omitempty"`
}

func (t *tree) up() *cobra.Command {
	var wait bool
	var limit time.Duration
	return t.command(spec{
		use: "up PATH", short: "Apply a swarm file: make what is missing, change what differs", effect: Writes, args: []string{"file"},
		long: "Apply a swarm file, or swarm.yaml of a directory. Applying it again changes nothing.\n" +
			"In commands, env and dir, ${DIR} is the file's directory and ${CWD} the current one.",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&wait, "wait", false, "wait for the end of the first tasks it gave; exit 1 unless all succeeded")
			spanVar(f, &limit, "wait-timeout", "give up waiting after this `DURATION` (exit 4)")
		},
		run: func(c *call, args []string) error {
			if wait {
				if err := c.activate(); err != nil {
					return err
				}
			}
			file, err := c.loadSwarm(args[0])
			if err != nil {
				return err
			}
			eng, by, err := c.applyTo(file)
			if err != nil {
				return err
			}
			done, first, err := c.apply(eng, by, file)
			if printErr := list(c, core.Page[Applied]{Items: done}, appliedColumns()); err == nil {
				err = printErr
			}
			if err != nil || !wait || len(first) == 0 {
				return err
			}
			return c.waitAndPrint(eng, by.Tenant, first, "", limit)
		},
	})
}

func appliedColumns() []column[Applied] {
	return []column[Applied]{
		{title: "ACTION", text: func(a Applied) string { return a.Action }},
		{title: "OBJECT", text: func(a Applied) string { return a.Object }},
		{title: "NAME", text: func(a Applied) string { return a.Name }},
		{title: "ID", wide: true, text: func(a Applied) string { return a.ID }},
	}
}

func (c *call) loadSwarm(path string) (*swarmfile.File, error) {
	full := c.env.path(path)
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		for _, name := range []string{"swarm.yaml", "swarm.yml"} {
			if _, err := os.Stat(filepath.Join(full, name)); err == nil {
				full, path = filepath.Join(full, name), filepath.Join(path, name)
				break
			}
		}
		if filepath.Ext(full) == "" {
			return nil, core.Errorf(core.NotFound, "file: no swarm.yaml in %s", clip(path)).With("field", "file").With("value", clip(path))
		}
	}
	data, err := c.file("file", full)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(full)
	if err != nil {
		return nil, fmt.Errorf("find the directory of %s: %w", path, err)
	}
	cwd, err := filepath.Abs(c.env.path("."))
	if err != nil {
		return nil, fmt.Errorf("find the current directory: %w", err)
	}
	return swarmfile.Load(path, data, swarmfile.Vars{Dir: filepath.Dir(abs), CWD: cwd})
}

// applyTo opens the engine and settles the tenant: the file's own wins over
// the default, but must not contradict --tenant.
func (c *call) applyTo(file *swarmfile.File) (*engine.Engine, core.Caller, error) {
	if file.Tenant == "" {
		return c.scope()
	}
	by := c.operator()
	if c.g.Tenant != "" && c.g.Tenant != file.Tenant {
		return nil, by, core.Errorf(core.Conflict, "tenant: --tenant is %s, the file says %s", c.g.Tenant, file.Tenant).With("field", "tenant")
	}
	by.Tenant = file.Tenant
	eng, err := c.engine()
	return eng, by, err
}
