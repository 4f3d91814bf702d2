package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

func (t *tree) taskWait() *cobra.Command {
	var status string
	var limit time.Duration
	return t.command(spec{
		use: "wait ID…", short: "Wait until tasks are over, or have a status", effect: Reads, args: []string{"task"},
		long: "Wait until each task is over and print it; exit 1 unless all succeeded.\n" +
			"With --status: until each has that status; exit 1 for one that ended otherwise. Exit 4 after --timeout.",
		example: "task wait tk_… --timeout 10m\ntask wait tk_… --status running",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &status, "status", "", "", "wait for this `STATUS`"+allowedList(op.TaskStatuses()), op.TaskStatuses()...)
			spanVar(f, &limit, "timeout", "give up after this `DURATION`")
		},
		check: func(c *call, _ []string) error {
			c.active = !c.g.ReadOnly
			return nil
		},
		run: func(c *call, args []string) error { return c.waitAndPrint(args, task.Status(status), limit) },
	})
}

// waiting are the flags of commands that give work.
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

// print prints a new task; with --wait, once it is over.
func (w *waiting) print(c *call, made task.Task) error {
	if !w.on {
		return record(c, made, taskColumns(c))
	}
	return c.waitAndPrint([]string{made.TaskID}, "", w.limit)
}

// waitAndPrint prints the tasks once each is over, or has the wanted status.
func (c *call) waitAndPrint(ids []string, want task.Status, limit time.Duration) error {
	ctx := c.ctx
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	missed := 0
	var done []task.Task
	for _, id := range ids {
		tk, err := c.await(ctx, id, want)
		if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
			return fmt.Errorf("task %s is still %s after %s: %w", id, tk.Status, limit, errTimeout)
		}
		if err != nil {
			return err
		}
		done = append(done, tk)
		if want == "" && tk.Status != task.Succeeded || want != "" && tk.Status != want {
			missed++
		}
	}
	if err := list(c, core.Page[task.Task]{Items: done}, taskColumns(c)); err != nil {
		return err
	}
	if missed > 0 {
		return &ExitError{Code: ExitFailed}
	}
	return nil
}

// await looks at a task after each change until it has the wanted status or
// is over. On a terminal it says once what the task waits for.
func (c *call) await(ctx context.Context, id string, want task.Status) (task.Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bell := c.eng.Watch(ctx)
	told := ""
	for {
		tk, err := c.eng.Tasks.Get(ctx, c.by.Tenant, id)
		if err != nil || tk.Status == want || tk.Status.Terminal() {
			return tk, err
		}
		if c.g.ReadOnly {
			return tk, core.Errorf(core.Denied, "task %s is %s, and nothing runs with --read-only", id, tk.Status).With("field", "read-only")
		}
		if tk.Waiting != "" && tk.ApprovalID != "" && told != tk.ApprovalID && c.g.Output != "json" {
			told = tk.ApprovalID
			fmt.Fprintf(c.env.Stderr, "%s\n", term.Clean(fmt.Sprintf("%s waits for approval %s", id, told)))
		}
		select {
		case <-ctx.Done():
			return tk, ctx.Err()
		case _, open := <-bell:
			if !open {
				return tk, core.Errorf(core.Unavailable, "the engine has closed")
			}
		}
	}
}
