package command

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

// logChunk is how many log lines are read at a time.
const logChunk = 500

func (t *tree) taskLog() *cobra.Command {
	var follow bool
	var tail int
	return t.command(spec{
		use: "log ID", short: "Print a task's log, oldest line first", effect: Reads, args: []string{"task"},
		example: "task log tk_… --follow",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&follow, "follow", false, "go on until the task is over")
			f.IntVar(&tail, "tail", 0, "only the last `N` lines (0 is all)")
		},
		check: func(c *call, _ []string) error {
			if tail < 0 {
				return usage("tail", "--tail: %d is not allowed; allowed: 0 or more", tail)
			}
			if follow {
				return c.activate()
			}
			return nil
		},
		run: func(c *call, args []string) error {
			task, err := c.eng.Tasks.Get(c.ctx, c.by.Tenant, args[0])
			if err != nil {
				return err
			}
			over := func() (bool, error) {
				task, err := c.eng.Tasks.Get(c.ctx, c.by.Tenant, args[0])
				return task.Status.Terminal(), err
			}
			return c.printLog(task.TaskID, tail, follow, over)
		},
	})
}

// printLog prints a stream; following, it ends once over says so.
func (c *call) printLog(stream string, tail int, follow bool, over func() (bool, error)) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	var bell <-chan struct{}
	if follow {
		bell = c.eng.Watch(ctx)
	}
	from := uint64(1)
	if tail > 0 {
		_, last, err := c.eng.Tasks.Log(ctx, c.by.Tenant, stream, 1, 1)
		if err != nil {
			return err
		}
		if last > uint64(tail) {
			from = last - uint64(tail) + 1
		}
	}
	for {
		ended := true
		if follow {
			var err error
			if ended, err = over(); err != nil { // asked before reading: lines written until then are not missed
				return err
			}
		}
		for {
			lines, _, err := c.eng.Tasks.Log(ctx, c.by.Tenant, stream, from, logChunk)
			if err != nil {
				return err
			}
			if err := c.logLines(lines); err != nil {
				return err
			}
			if len(lines) > 0 {
				from = lines[len(lines)-1].Seq + 1
			}
			if len(lines) < logChunk {
				break
			}
		}
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-bell:
			if !open {
				return core.Errorf(core.Unavailable, "the engine has closed")
			}
		}
	}
}

func (c *call) logLines(lines []task.LogLine) error {
	var out bytes.Buffer
	for _, l := range lines {
		switch c.g.Output {
		case "json":
			if err := putJSON(&out, l); err != nil {
				return err
			}
		case "wide":
			fmt.Fprintf(&out, "%s %-5s %s %s\n", stamp(l.Timestamp), term.Clean(l.Level), term.Clean(l.Source), term.Clean(l.Message))
		default:
			fmt.Fprintf(&out, "%s %-5s %s\n", l.Timestamp.UTC().Format("15:04:05"), term.Clean(l.Level), term.Clean(l.Message))
		}
	}
	return c.flush(&out)
}
