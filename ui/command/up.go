package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/op"
	"swarmdeck/ui/command/swarmfile"
)

// Applied says what `up` did to one object.
type Applied struct {
	Action string `json:"action"` // created, changed, unchanged
	Object string `json:"object"` // tenant, skill, session, agent, budget
	Name   string `json:"name"`
	ID     string `json:"id,omitempty"`
}

func (t *tree) up() *cobra.Command {
	var w waiting
	var yes bool
	return t.command(spec{
		use: "up PATH", short: "Apply a swarm file: make what is missing, change what differs", effect: Writes, args: []string{"file"}, ownScope: true,
		long: "Apply a swarm file, or swarm.yaml of a directory. Applying it again changes nothing.\n" +
			"In commands, env and dir, ${DIR} is the file's directory and ${CWD} the current one.",
		example: "up swarm.yaml --wait",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&w.on, "wait", false, "wait for the end of the first tasks it gave; exit 1 unless all succeeded")
			spanVar(f, &w.limit, "wait-timeout", "give up waiting after this `DURATION` (exit 4); the task goes on")
			f.BoolVar(&yes, "yes", false, "make open agents and servers without a question: they reach all that the engine's user reaches")
		},
		check: func(c *call, _ []string) error {
			if !w.on {
				return nil
			}
			return c.activate() // the engine works while the command waits
		},
		run: func(c *call, args []string) error {
			file, err := c.loadSwarm(args[0])
			if err != nil && file != nil {
				return c.allWrong(file, err)
			}
			if err != nil {
				return err
			}
			if err := c.scopeOf(file); err != nil {
				return err
			}
			call := c.forOp()
			if len(file.Projects) > 0 && !call.Role.Includes(Admin) { // what runs unasked is written down there
				return core.Errorf(core.Denied, "%s: projects: what tests and sets up trees, and what roles may, needs the rights of %s, you have those of %s", args[0], Admin, call.Role).With("field", "projects")
			}
			open := func(line int, what, name, profile string) error {
				if profile != "open" || yes {
					return nil
				}
				return core.Errorf(core.Denied, "%s:%d: %s %s is open: it reaches all that the engine's user reaches, its secrets and the network among it: say --yes, or make it a worker", args[0], line, what, name).With("field", "profile")
			}
			for _, a := range file.Agents {
				if len(a.Egress) > 0 && !call.Role.Includes(Approver) {
					return core.Errorf(core.Denied, "%s:%d: egress: what is reached unasked needs the rights of %s, you have those of %s", args[0], a.Line, Approver, call.Role).With("field", "egress")
				}
				if err := open(a.Line, "agent", a.Name, a.Profile); err != nil {
					return err
				}
			}
			for _, s := range file.Servers {
				if err := open(s.Line, "server", s.Name, s.Profile); err != nil {
					return err
				}
			}
			done, first, err := c.apply(file)
			if err != nil && len(done) == 0 {
				return err
			}
			if printErr := c.applied(args[0], done); err == nil {
				err = printErr
			}
			if err != nil || !w.on || len(first) == 0 {
				return err
			}
			return w.printTasks(c, first...)
		},
	})
}

// applied prints what was done with a file, or with -o sentence how much of it.
func (c *call) applied(path string, done []Applied) error {
	if c.g.Output != "sentence" {
		return c.listBy(face.Of[Applied]{Columns: "ACTION:action OBJECT:object NAME:name", Wide: "ID:id"}.Face(), done)
	}
	count := map[string]int{}
	for _, a := range done {
		count[a.Action]++
	}
	return c.say(done, "applied %s: %d created, %d changed, %d as they were", path, count["created"], count["changed"], count["unchanged"])
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
			return nil, core.Errorf(core.NotFound, "file: no swarm.yaml in %s", core.Clip(path)).With("field", "file").With("value", core.Clip(path))
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
	file, err := swarmfile.Load(path, data, swarmfile.Vars{Dir: filepath.Dir(abs), CWD: cwd})
	if err != nil {
		return file, inFile(err)
	}
	return file, nil
}

// scopeOf opens the engine and settles the tenant: the file's own wins over
// the default, but must not contradict --tenant.
func (c *call) scopeOf(file *swarmfile.File) error {
	if file.Tenant == "" {
		return c.scope()
	}
	if c.g.Tenant != "" && c.g.Tenant != file.Tenant {
		return core.Errorf(core.Conflict, "tenant: --tenant is %s, the file says %s", c.g.Tenant, file.Tenant).With("field", "tenant")
	}
	by, err := c.operator()
	if err != nil {
		return err
	}
	c.by, c.by.Tenant = by, file.Tenant
	_, err = c.engine()
	return err
}

// waiting are the flags of a command that gives work and is no operation yet.
type waiting struct {
	on    bool
	limit time.Duration
}

// printTasks prints tasks once they are over.
func (w *waiting) printTasks(c *call, ids ...string) error {
	call := c.forOp()
	done, err := call.AwaitTasks(c.ctx, "", w.limit, ids...)
	if failed := new(op.Failed); err != nil && !errors.As(err, &failed) {
		return err
	}
	if printErr := c.list(done); printErr != nil {
		return printErr
	}
	return err
}
