package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

func taskStates() []string {
	return words(swarm.Queued, swarm.Running, swarm.Succeeded, swarm.Failed, swarm.Cancelled, swarm.Blocked, swarm.TimedOut)
}

func (t *tree) tasks() *cobra.Command {
	return t.group("task", "Units of work",
		t.taskDispatch(),
		t.taskList(),
		t.taskRead("show ID", "Show a task with its input", func(c *call, eng *engine.Engine, tenant, id string) error {
			found, err := eng.Swarm.Task(c.ctx, tenant, id)
			if err != nil {
				return err
			}
			return c.show(found)
		}),
		t.taskVerb("cancel ID", "Cancel a task that is not over", Destroys, ConfirmAsk, true, taskCancel),
		t.taskVerb("retry ID", "Queue a task that is over once more", Writes, ConfirmNone, false, taskRetry),
		t.taskVerb("pause ID", "Stop a running task's process; resume continues it", Writes, ConfirmNone, true, taskPause),
		t.taskVerb("resume ID", "Continue a paused task", Writes, ConfirmNone, false, taskResume),
		t.taskRead("why ID", "Say why a task waits", func(c *call, eng *engine.Engine, tenant, id string) error {
			why, err := eng.Swarm.Why(c.ctx, tenant, id)
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
		}),
		t.taskRead("tree ID", "List a task and all that came from it", taskTree),
		t.taskVerb("undo ID", "Take a dispatch back before a worker has claimed it", Writes, ConfirmNone, false, taskUndo),
		t.taskWait(),
		t.taskLog(),
	)
}

func (t *tree) taskRead(use, text string, do func(c *call, eng *engine.Engine, tenant, id string) error) *cobra.Command {
	return t.command(spec{
		use: use, short: text, effect: Reads, args: []string{"task"},
		run: func(c *call, args []string) error {
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			return do(c, eng, by.Tenant, args[0])
		},
	})
}

type taskFunc func(ctx context.Context, eng *engine.Engine, by core.Caller, id, reason string) (swarm.Task, error)

func (t *tree) taskVerb(use, text string, effect Effect, confirm Confirm, reasoned bool, do taskFunc) *cobra.Command {
	var reason string
	s := spec{
		use: use, short: text, effect: effect, confirm: confirm, args: []string{"task:" + strings.Fields(use)[0]},
		run: func(c *call, args []string) error {
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			changed, err := do(c.ctx, eng, by, args[0], reason)
			if err != nil {
				return err
			}
			return record(c, changed, c.taskColumns())
		},
	}
	if reasoned {
		s.flags = func(f *pflag.FlagSet) { f.StringVar(&reason, "reason", "", "why, for the record") }
	}
	return t.command(s)
}

func taskCancel(ctx context.Context, eng *engine.Engine, by core.Caller, id, reason string) (swarm.Task, error) {
	return eng.Swarm.Cancel(ctx, by, id, reason)
}

func taskRetry(ctx context.Context, eng *engine.Engine, by core.Caller, id, _ string) (swarm.Task, error) {
	return eng.Swarm.Retry(ctx, by, id)
}

func taskUndo(ctx context.Context, eng *engine.Engine, by core.Caller, id, _ string) (swarm.Task, error) {
	return eng.Swarm.Undo(ctx, by, id)
}

func taskPause(ctx context.Context, eng *engine.Engine, by core.Caller, id, reason string) (swarm.Task, error) {
	return eng.Swarm.PauseTask(ctx, by, id, reason)
}

func taskResume(ctx context.Context, eng *engine.Engine, by core.Caller, id, _ string) (swarm.Task, error) {
	return eng.Swarm.ResumeTask(ctx, by, id)
}

func (t *tree) taskList() *cobra.Command {
	var l filter
	return t.command(spec{
		use: "list", short: "List the tasks, newest first", effect: Reads,
		flags: func(f *pflag.FlagSet) {
			l.bind(f, taskStates()...)
			source(f, "kind", "kind")
		},
		run: func(c *call, _ []string) error {
			f, err := l.read(c, taskStates()...)
			if err != nil {
				return err
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			page, err := eng.Swarm.Tasks(c.ctx, by.Tenant, f)
			if err != nil {
				return err
			}
			return list(c, page, c.taskColumns())
		},
	})
}

func (t *tree) taskDispatch() *cobra.Command {
	var d swarm.Dispatch
	var input string
	var priority, attempts int
	var wait bool
	var limit time.Duration
	return t.command(spec{
		use: "dispatch", short: "Make a task", effect: Writes,
		long: "Make a task. --input is a JSON object, @file, or - for stdin.\n" +
			"With --wait: wait until it is over, print it, and exit 1 unless it succeeded.\n" +
			`For example: task dispatch --kind exec.run --input '{"argv":["date"]}' --wait`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&d.Kind, "kind", "", "`KIND` of work: exec.run, agent.prompt")
			f.StringVar(&input, "input", "", "input `JSON`: literal, @file, - for stdin")
			f.IntVar(&priority, "priority", 50, "0-100, higher runs first")
			spanVar(f, &d.Timeout, "timeout", "stop it after this `DURATION`, 1s-24h")
			f.IntVar(&attempts, "max-attempts", 3, "tries `N`; 0 means one")
			f.StringVar(&d.Session, "session", "", "run within this session `ID`")
			f.StringVar(&d.Parent, "parent", "", "parent task `ID`; its trace is kept")
			f.StringVar(&d.Agent, "agent", "", "agent `NAME` meant to run it")
			f.StringVar(&d.Trace, "trace", "", "trace `ID`, 32 hex digits (default a new one)")
			f.StringVar(&d.IdempotencyKey, "idempotency-key", "", "the same `KEY` again gives the first task")
			f.StringSliceVar(&d.After, "after", nil, "task `IDs` that must have succeeded first")
			f.BoolVar(&wait, "wait", false, "wait for its end")
			spanVar(f, &limit, "wait-timeout", "give up waiting after this `DURATION` (exit 4); the task goes on")
			source(f, "kind", "kind")
			source(f, "session", "session")
			source(f, "parent", "task")
			source(f, "after", "task")
			source(f, "agent", "agent")
			source(f, "input", "file")
		},
		run: func(c *call, _ []string) error {
			if d.Kind == "" {
				return usage("kind", "task dispatch: --kind is missing")
			}
			if !c.flags.Changed("input") {
				return usage("input", "task dispatch: --input is missing")
			}
			var err error
			if d.Input, err = c.document("input", input); err != nil {
				return err
			}
			if c.flags.Changed("priority") {
				d.Priority = &priority
			}
			if c.flags.Changed("max-attempts") {
				d.MaxAttempts = &attempts
			}
			if c.flags.Changed("timeout") && d.Timeout == 0 {
				return usage("timeout", "--timeout: 0 is not allowed; allowed: 1s-24h")
			}
			if wait {
				if err := c.activate(); err != nil {
					return err
				}
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			made, err := eng.Swarm.Dispatch(c.ctx, by, d)
			if err != nil {
				return err
			}
			if !wait {
				return record(c, made, c.taskColumns())
			}
			return c.waitAndPrint(eng, by.Tenant, []string{made.TaskID}, "", limit)
		},
	})
}

func taskTree(c *call, eng *engine.Engine, tenant, id string) error {
	all, err := eng.Swarm.Tree(c.ctx, tenant, id)
	if err != nil {
		return err
	}
	depth := map[string]int{}
	cols := c.taskColumns()
	cols[0].text = func(t swarm.Task) string {
		d := 0
		if parent, ok := depth[t.ParentTaskID]; ok {
			d = parent + 1
		}
		depth[t.TaskID] = d
		return strings.Repeat("· ", d) + t.TaskID
	}
	return list(c, core.Page[swarm.Task]{Items: all}, cols)
}

func (c *call) taskColumns() []column[swarm.Task] {
	type T = swarm.Task
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
