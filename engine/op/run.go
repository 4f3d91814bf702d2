package op

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Line is a line that a command wrote, as it comes.
type Line struct {
	Text string
	Err  bool // on its standard error
}

func runs() []*Op {
	var argv []string
	var name string
	var dir Path
	return []*Op{define(Op{
		Name: "run", Short: "Run a command as a task, and print what it writes", Undo: "task cancel", Done: "ran",
		Long: "Run a command as a task of kind exec.run, judged and recorded as any other, and print what it writes as it comes. It\n" +
			"exits 0, or 1 when the command failed, which is said with its own status. Where a person has to answer first, that is\n" +
			"said at once. Interrupting it cancels the task. A command line of a shell is run by: -- sh -c 'LINE'.",
		Example: "run -- go test ./...",
		Params: []*Param{
			{Name: "command", About: "CMD", Rest: true, Need: true, Into: &argv, Names: reach.Argv},
			flag(&dir, "dir", "where it runs: `DIR` (default here)").from("dir"),
			flag(&name, "name", "what it is called for people: `NAME`"),
		},
		Check: func(c *Call) error { return c.Activate() },
	}, func(ctx context.Context, c *Call) (task.Task, error) {
		fields := map[string]any{"argv": argv}
		if dir != "" {
			fields["dir"] = dir
		}
		input, err := c.placed(core.MustEncode(fields))
		if err != nil {
			return task.Task{}, err
		}
		made, err := c.Swarm.Dispatch(ctx, c.By, swarm.Dispatch{
			Kind: "exec.run", Input: input, Intent: name, Parent: c.Task, Session: c.Session, Trace: c.Trace,
		})
		if err != nil {
			return made, err
		}
		return c.watch(ctx, made)
	})}
}

// watch emits what a task writes until it is over; a caller that goes away cancels it.
func (c *Call) watch(ctx context.Context, t task.Task) (task.Task, error) {
	id, told := t.TaskID, ""
	err := c.log(ctx, id, 0, 0, func() (over bool, err error) {
		if t, err = c.Tasks.Get(ctx, c.By.Tenant, id); err == nil && !t.Status.Terminal() {
			var why string
			if why, err = c.waits(ctx, id); why != "" && why != told {
				told = why
				c.Waits(why)
			}
		}
		return t.Status.Terminal(), err
	}, func(lines ...task.LogLine) error {
		out := core.Map(lines, func(l task.LogLine) Line { return Line{l.Message, l.Level != "INFO" && l.Level != "DEBUG"} })
		if !c.Brief || len(out) == 0 {
			return nil
		}
		return c.Emit(out)
	})
	if err != nil && ctx.Err() != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, stopErr := c.Swarm.Cancel(ending, c.By, id, "interrupted by who ran it")
		return t, errors.Join(err, stopErr)
	}
	if err != nil || t.Status == task.Succeeded {
		return t, err
	}
	r, err := c.Tasks.Result(ctx, c.By.Tenant, id)
	if err != nil {
		return t, err
	}
	c.Progress(cmp.Or(r.Error, &task.Error{Message: string(t.Status)}).Message + "; why: swarmdeck why " + id)
	return t, &Failed{}
}

// waits says what a person has to do so that a task goes on; "" is nothing.
func (c *Call) waits(ctx context.Context, id string) (string, error) {
	r, err := c.Swarm.Why(ctx, c.By.Tenant, id)
	if err != nil || !r.ForPerson() {
		return "", err
	}
	why := taskCause(r)
	if a, err := c.Judge.Card(ctx, c.By.Tenant, r.Ref); err == nil && r.Kind == "gate" {
		why.Text = fmt.Sprintf("a person must answer approval %s, %s risk: %s", a.ApprovalID, a.Risk, a.Subject.Headline)
	}
	return fmt.Sprintf("%s waits: %s; next: swarmdeck %s", id, why.Text, strings.Join(why.Next, ", ")), nil
}
