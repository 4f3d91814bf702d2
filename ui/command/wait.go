package command

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"swarmdeck/engine/op"
	"swarmdeck/engine/task"
)

// waiting are the flags of commands that give work and are no operations yet.
type waiting struct {
	on    bool
	limit time.Duration
}

func (w *waiting) bind(f *pflag.FlagSet, usage string) {
	f.BoolVar(&w.on, "wait", false, usage)
	spanVar(f, &w.limit, "wait-timeout", "give up waiting after this `DURATION` (exit 4); the task goes on")
}

// check has the engine work while the command waits.
func (w *waiting) check(c *call) error {
	if !w.on {
		return nil
	}
	return c.activate()
}

// tasks waits for the end of tasks.
func (w *waiting) tasks(c *call, ids ...string) ([]task.Task, error) {
	call := c.forOp()
	return call.AwaitTasks(c.ctx, "", w.limit, ids...)
}

// printTasks prints tasks once they are over.
func (w *waiting) printTasks(c *call, ids ...string) error {
	done, err := w.tasks(c, ids...)
	if failed := new(op.Failed); err != nil && !errors.As(err, &failed) {
		return err
	}
	if printErr := c.list(done); printErr != nil {
		return printErr
	}
	return err
}
