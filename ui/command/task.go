package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

func (t *tree) tasks() *cobra.Command {
	return t.group("task", "Units of work",
		t.taskDispatch(),
		lists(t, spec{
			use: "list", short: "List the tasks, newest first", effect: Reads,
			example: "task list --status failed --since 1h",
			flags:   func(f *pflag.FlagSet) { source(f, "kind", "kind") },
		}, taskStates(), taskColumns,
			func(c *call, f core.Filter) (core.Page[task.Task], error) {
				return c.eng.Tasks.List(c.ctx, c.by.Tenant, f)
			}),
		t.command(spec{
			use: "show ID", short: "Show a task with its input", effect: Reads, args: []string{"task"},
			run: shows(func(c *call, id string) (task.Task, error) { return c.eng.Tasks.Get(c.ctx, c.by.Tenant, id) }),
		}),
		t.command(spec{
			use: "cancel ID", short: "Cancel a task that is not over", effect: Destroys, confirm: ConfirmAsk, args: []string{"task:cancel"},
			flags: withReason,
			run: changes(taskColumns, func(c *call, id string) (task.Task, error) {
				return c.eng.Swarm.Cancel(c.ctx, c.by, id, c.reason())
			}),
		}),
		t.command(spec{
			use: "retry ID", short: "Queue a task that is over once more", effect: Writes, args: []string{"task:retry"},
			run: changes(taskColumns, func(c *call, id string) (task.Task, error) { return c.eng.Swarm.Retry(c.ctx, c.by, id) }),
		}),
		t.command(spec{
			use: "pause ID", short: "Stop a running task's process; resume continues it", effect: Writes, args: []string{"task:pause"},
			flags: withReason,
			run: changes(taskColumns, func(c *call, id string) (task.Task, error) {
				return c.eng.Swarm.PauseTask(c.ctx, c.by, id, c.reason())
			}),
		}),
		t.command(spec{
			use: "resume ID", short: "Continue a paused task", effect: Writes, args: []string{"task:resume"},
			run: changes(taskColumns, func(c *call, id string) (task.Task, error) { return c.eng.Swarm.ResumeTask(c.ctx, c.by, id) }),
		}),
		t.command(spec{use: "why ID", short: "Say why a task waits", effect: Reads, args: []string{"task"}, run: taskWhy}),
		t.command(spec{use: "tree ID", short: "List a task and all that came from it", effect: Reads, args: []string{"task"}, run: taskTree}),
		t.command(spec{
			use: "undo ID", short: "Take a dispatch back before a worker has claimed it", effect: Writes, args: []string{"task:undo"},
			run: changes(taskColumns, func(c *call, id string) (task.Task, error) { return c.eng.Swarm.Undo(c.ctx, c.by, id) }),
		}),
		t.taskWait(),
		t.taskLog(),
	)
}

func taskStates() []string {
	return words(task.Queued, task.Running, task.Succeeded, task.Failed, task.Cancelled, task.Blocked, task.TimedOut)
}

func (t *tree) taskDispatch() *cobra.Command {
	var d swarm.Dispatch
	var input string
	var priority, attempts int
	var w waiting
	return t.command(spec{
		use: "dispatch", short: "Make a task", effect: Writes,
		long: "Make a task. --input is a JSON object, @file, or - for stdin.\n" +
			"With --start-within: it ends timed_out unless it has first started by then, whatever it waited for.\n" +
			"With --wait: wait until it is over, print it, and exit 1 unless it succeeded.",
		example: `task dispatch --kind exec.run --input '{"argv":["date"]}' --wait`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&d.Kind, "kind", "", "`KIND` of work: exec.run, agent.prompt")
			f.StringVar(&input, "input", "", "input `JSON`: literal, @file, - for stdin")
			f.IntVar(&priority, "priority", 50, "0-100, higher runs first")
			spanVar(f, &d.Timeout, "timeout", "stop it after this `DURATION`, 1s-24h")
			spanVar(f, &d.StartTimeout, "start-within", "time it out unless it starts within this `DURATION`, 1s-24h")
			f.IntVar(&attempts, "max-attempts", 3, "tries `N`; 0 means one")
			f.StringVar(&d.Session, "session", "", "run within this session `ID`")
			f.StringVar(&d.Parent, "parent", "", "parent task `ID`; its trace is kept")
			f.StringVar(&d.Agent, "agent", "", "agent `NAME` meant to run it")
			f.StringVar(&d.Trace, "trace", "", "trace `ID`, 32 hex digits (default a new one)")
			f.StringVar(&d.IdempotencyKey, "idempotency-key", "", "the same `KEY` again gives the first task")
			f.StringSliceVar(&d.After, "after", nil, "task `IDs` that must have succeeded first")
			w.bind(f, "wait for its end")
			source(f, "kind", "kind")
			source(f, "session", "session")
			source(f, "parent", "task")
			source(f, "after", "task")
			source(f, "agent", "agent")
			source(f, "input", "json")
		},
		check: func(c *call, _ []string) (err error) {
			if d.Kind == "" {
				return usage("kind", "task dispatch: --kind is missing")
			}
			if !c.flags.Changed("input") {
				return usage("input", "task dispatch: --input is missing")
			}
			if d.Input, err = c.document("input", input); err != nil {
				return err
			}
			if d.Kind == "exec.run" {
				if d.Input, err = c.placed(d.Input); err != nil {
					return err
				}
			}
			if c.flags.Changed("priority") {
				d.Priority = &priority
			}
			if c.flags.Changed("max-attempts") {
				d.MaxAttempts = &attempts
			}
			for name, given := range [2]time.Duration{d.Timeout, d.StartTimeout} {
				if name := [2]string{"timeout", "start-within"}[name]; given == 0 && c.flags.Changed(name) {
					return usage(name, "--%s: 0 is not allowed; allowed: 1s-24h", name)
				}
			}
			if d.Trace == "" && d.Parent == "" {
				d.Trace = c.traceparent()
			}
			return w.check(c)
		},
		run: func(c *call, _ []string) error {
			made, err := c.eng.Swarm.Dispatch(c.ctx, c.by, d)
			if err != nil {
				return err
			}
			if made.Kind == "exec.run" {
				c.concealed(secret.EnvOf(d.Input), secret.EnvOf(made.Input))
				made.Input = secret.ShownInput(made.Input)
			}
			return w.print(c, made)
		},
	})
}

// placed settles where a command runs: it may be another engine that carries
// it out, opened elsewhere.
func (c *call) placed(input core.Raw) (core.Raw, error) {
	if !filepath.IsAbs(c.env.Dir) {
		return input, nil
	}
	var fields map[string]core.Raw
	if err := core.Decode(input, &fields); err != nil {
		return nil, err
	}
	dir := ""
	if given := fields["dir"]; given != nil && core.Decode(given, &dir) != nil {
		return input, nil // the engine says what is wrong with it
	}
	var err error
	if fields["dir"], err = core.Encode(c.env.path(dir)); err != nil {
		return nil, fmt.Errorf("encode the directory: %w", err)
	}
	return core.Encode(fields)
}

func taskWhy(c *call, args []string) error {
	why, err := c.eng.Swarm.Why(c.ctx, c.by.Tenant, args[0])
	if err != nil {
		return err
	}
	text := why.Text
	if why.Kind != "" {
		text = why.Kind + ": " + text
	}
	if why.Ref != "" && !strings.Contains(text, why.Ref) {
		text += " (" + why.Ref + ")"
	}
	return c.say(why, "%s is %s: %s", why.TaskID, why.Status, text)
}

func taskTree(c *call, args []string) error {
	all, err := c.eng.Tasks.Tree(c.ctx, c.by.Tenant, args[0])
	if err != nil {
		return err
	}
	depth := map[string]int{}
	cols := taskColumns(c)
	cols[0].text = func(t task.Task) string {
		d := 0
		if parent, ok := depth[t.ParentTaskID]; ok {
			d = parent + 1
		}
		depth[t.TaskID] = d
		return strings.Repeat("· ", d) + t.TaskID
	}
	return list(c, core.Page[task.Task]{Items: all}, cols)
}

func taskColumns(c *call) []column[task.Task] {
	type T = task.Task
	return []column[T]{
		{title: "TASK", text: func(t T) string { return t.TaskID }},
		{title: "STATUS", text: func(t T) string {
			switch {
			case t.Waiting != "":
				return string(t.Status) + " (" + t.Waiting + ")"
			case t.Paused && !t.Status.Terminal():
				return string(t.Status) + " (paused)"
			}
			return string(t.Status)
		}},
		{title: "KIND", most: 24, text: func(t T) string { return t.Kind }},
		{title: "AGENT", text: func(t T) string { return t.Agent }},
		{title: "PRI", right: true, text: func(t T) string { return fmt.Sprint(t.Priority) }},
		{title: "TRY", right: true, text: func(t T) string { return fmt.Sprintf("%d/%d", t.Attempt+1, max(1, t.MaxAttempts)) }},
		{title: "AGE", right: true, text: func(t T) string { return c.age(t.CreatedAt) }},
		{title: "SESSION", wide: true, text: func(t T) string { return t.SessionID }},
		{title: "TRACE", wide: true, text: func(t T) string { return t.TraceID }},
		{title: "PARENT", wide: true, text: func(t T) string { return t.ParentTaskID }},
		{title: "CREATED", wide: true, text: func(t T) string { return stamp(t.CreatedAt) }},
		{title: "COMPLETED", wide: true, text: func(t T) string { return stamp(t.CompletedAt) }},
		{title: "APPROVAL", wide: true, text: func(t T) string { return t.ApprovalID }},
		{title: "ERROR", wide: true, text: func(t T) string { return t.ErrorCode }},
		{title: "TITLE", most: 40, text: func(t T) string { return t.Title }},
	}
}
