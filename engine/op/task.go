package op

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

func tasks() []*Op {
	type T = task.Task
	id := arg("ID", "task")
	return []*Op{
		taskDispatch(),
		list(Op{
			Name: "task list", Short: "List the tasks, newest first", Example: "task list --status failed --since 1h",
			Statuses: TaskStatuses(), Kinds: "kind", ForAgents: true, Tool: Tool{Name: "list_tasks"},
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[T]] { return c.Tasks.List })),
		show(Op{
			Name: "task show", Short: "Show a task with its input, and its result once it is over", ForAgents: true, Tool: Tool{Name: "show_task"},
		}, id, shownTask),
		changeWhy(Op{
			Name: "task cancel", Short: "Cancel a task that is not over", Effect: Destroys, Confirm: ConfirmAsk, Undo: "task retry", Done: "cancelled",
			Tool: Tool{Name: "cancel_task"},
		}, arg("ID", "task:queued|running"),
			withReason(func(c *Call) callerWhy[T] { return c.Swarm.Cancel })),
		change(Op{Name: "task retry", Short: "Queue a task that is over once more", Undo: "task cancel", Done: "queued again:"}, arg("ID", "task:failed|cancelled|blocked|timed_out"),
			func(ctx context.Context, c *Call, id string) (T, error) { return c.Swarm.Retry(ctx, c.By, id) }),
		changeWhy(Op{Name: "task pause", Short: "Stop a running task's process; resume continues it", Undo: "task resume", Done: "asked to pause:"}, arg("ID", "task:running"),
			withReason(func(c *Call) callerWhy[T] { return c.Swarm.PauseTask })),
		change(Op{Name: "task resume", Short: "Continue a paused task", Undo: "task pause", Done: "resumed"}, arg("ID", "task:running"),
			func(ctx context.Context, c *Call, id string) (T, error) { return c.Swarm.ResumeTask(ctx, c.By, id) }),
		show(Op{Name: "task why", Short: "Say why a task waits, or ended as it did, and what has it go on", ForAgents: true, Tool: Tool{Name: "why_task"}}, id,
			func(ctx context.Context, c *Call, id string) (Cause, error) {
				r, err := c.Swarm.Why(ctx, c.By.Tenant, id)
				return taskCause(r), err
			}),
		show(Op{Name: "task tree", Short: "List a task and all that came from it", ForAgents: true}, id,
			func(ctx context.Context, c *Call, id string) (Tree, error) { return c.Tasks.Tree(ctx, c.By.Tenant, id) }),
		taskWait(),
		taskLog(),
		change(Op{Name: "task undo", Short: "Take a dispatch back before a worker has claimed it", Done: "took back"}, arg("ID", "task:queued"),
			func(ctx context.Context, c *Call, id string) (T, error) { return c.Swarm.Undo(ctx, c.By, id) }),
	}
}

// ShownTask is a task with its result, once it has one.
type ShownTask struct {
	task.Task
	Result *task.Result `json:"result,omitempty"`
}

func shownTask(ctx context.Context, c *Call, id string) (s ShownTask, err error) {
	if s.Task, err = c.Tasks.Get(ctx, c.By.Tenant, id); err != nil || !s.Status.Terminal() {
		return s, err
	}
	r, err := c.Tasks.Result(ctx, c.By.Tenant, id)
	if errors.Is(err, core.Kind(core.NotFound)) {
		return s, nil // it has left by retention
	}
	s.Result = &r
	return s, err
}

// Tree is a task and all that came from it, each after its parent.
type Tree []task.Task

// TaskStatuses are the values of a task's status.
func TaskStatuses() []string {
	return core.Strings(task.Queued, task.Running, task.Succeeded, task.Failed, task.Cancelled, task.Blocked, task.TimedOut)
}

func taskWait() *Op {
	var ids []string
	var status string
	var limit time.Duration
	return define(Op{
		Name: "task wait", Short: "Wait until tasks are over, or have a status", Effect: Reads, ForAgents: true,
		Long: "Wait until each task is over and print it; exit 1 unless all succeeded.\n" +
			"With --status: until each has that status; exit 1 for one that ended otherwise. Exit 4 after --timeout.",
		Example: "task wait tk_… --timeout 10m\ntask wait tk_… --status running",
		Params: []*Param{
			place(&ids, "ID…", "task"),
			flag(&status, "status", "wait for this `STATUS`: "+words("|", TaskStatuses()...)).enum(TaskStatuses()...),
			flag(&limit, "timeout", "give up after this `DURATION`"),
		},
		Check: (*Call).look,
	}, func(ctx context.Context, c *Call) ([]task.Task, error) {
		return c.AwaitTasks(ctx, task.Status(status), limit, ids...)
	})
}

func taskDispatch() *Op {
	var d swarm.Dispatch
	var expect task.Expect
	var w waiting
	priority, attempts := 50, 3
	byPriority := flag(&priority, "priority", "higher runs first").fills(&d.Priority)
	tries := flag(&attempts, "max-attempts", "tries `N`; 0 means one").fills(&d.MaxAttempts)
	return define(Op{
		Request: &d,
		Name:    "task dispatch", Short: "Make a task", Undo: "task undo", Done: "dispatched",
		Long: "Make a task. --input is a JSON object, @file, or - for stdin.\n" +
			"With --start-within: it ends timed_out unless it has first started by then, whatever it waited for.\n" +
			"With --wait: wait until it is over, print it, and exit 1 unless it succeeded.",
		Example: `task dispatch --kind exec.run --input '{"argv":["date"]}' --wait`,
		Tool: Tool{
			Name: "dispatch_task", Names: map[string]string{"after": "after_task_ids", "agent": "-", "trace": "-"}, // who it is made by and for is known
			About: "Make a task of any kind, such as exec.run {\"argv\":[…]} or mcp.call {\"server\",\"tool\",\"args\"}. It is judged at its start and goes on after the call.",
		},
		Params: append(w.params("wait for its end"),
			need(&d.Kind, "kind", "`KIND` of work: exec.run, agent.prompt").from("kind").client("kind of work: exec.run, agent.prompt, skill.invoke, mcp.call, …"),
			need(&d.Input, "input", "input `JSON`: literal, @file, - for stdin").from("json").client("input for that kind"),
			byPriority, tries,
			flag(&d.Timeout, "timeout", "stop it after this `DURATION`").client("seconds that one attempt may take"),
			flag(&d.StartTimeout, "start-within", "time it out unless it starts within this `DURATION`").client("seconds within which it must start, or it is timed out"),
			flag(&d.Session, "session", "run within this session `ID`").from("session"),
			flag(&d.Parent, "parent", "parent task `ID`; its trace is kept").from("task"),
			flag(&d.Agent, "agent", "agent `NAME` meant to run it").from("agent"),
			flag(&d.Trace, "trace", "trace `ID`, 32 hex digits (default a new one)"),
			flag(&d.IdempotencyKey, "idempotency-key", "the same `KEY` again gives the first task"),
			flag(&d.Intent, "intent", "what it is for, in a line for who must approve it: `TEXT`").bounds(1, 500),
			flag(&d.After, "after", "task `IDs` that must have succeeded first").from("task"),
			flag(&expect.Schema, "result-schema", "JSON `SCHEMA` that its output must meet; else it is tried again with why not").from("json").client("JSON Schema that the output must meet"),
			flag(&expect.Success, "success", "`CEL` over output that is true of a success: output.rc == 0").client("CEL expression over output that is true of a success"),
		),
		Check: func(c *Call) (err error) {
			if d.Kind == "exec.run" {
				if d.Input, err = c.placed(d.Input); err != nil {
					return err
				}
			}
			if byPriority.Given {
				d.Priority = &priority
			}
			if tries.Given {
				d.MaxAttempts = &attempts
			}
			if expect.Success != "" || len(expect.Schema) > 0 {
				d.Expect = &expect
			}
			d.Parent, d.Session = cmp.Or(d.Parent, c.Task), cmp.Or(d.Session, c.Session)
			if d.Trace == "" && d.Parent == "" {
				d.Trace = c.Trace
			}
			if d.IdempotencyKey != "" && c.Keys != "" {
				if d.IdempotencyKey, err = core.Digest([]string{c.Keys, d.IdempotencyKey}); err != nil {
					return err
				}
			}
			return w.check(c)
		},
	}, func(ctx context.Context, c *Call) (task.Task, error) {
		made, err := c.Swarm.Dispatch(ctx, c.By, d)
		if err == nil && made.Kind == "exec.run" {
			c.concealed(secret.EnvOf(d.Input), secret.EnvOf(made.Input))
			made.Input = secret.ShownInput(made.Input)
		}
		return w.task(ctx, c, made, err)
	})
}

// placed settles where a command runs: it may be another engine that carries
// it out, opened elsewhere.
func (c *Call) placed(input core.Raw) (core.Raw, error) {
	if !filepath.IsAbs(c.Dir) || c.By.Kind == core.Agent || c.By.Far {
		return input, nil // the engine knows its place
	}
	var fields map[string]core.Raw
	if err := core.Decode(input, &fields); err != nil {
		return nil, err
	}
	dir := ""
	if given := fields["dir"]; given != nil && core.Decode(given, &dir) != nil {
		return input, nil // the engine says what is wrong with it
	}
	fields["dir"] = core.MustEncode(c.path(dir))
	return core.Encode(fields)
}

// path resolves a path that the caller gave; of another machine none is none.
func (c *Call) path(p string) string {
	base := c.Dir
	if c.Engine != nil && c.By.Kind == core.Agent { // its own, not where the engine runs
		if own := c.ScopeOf(c.By).Own; len(own) > 0 {
			base = own[0]
		}
	}
	if filepath.IsAbs(p) || base == "" || p == "" && c.By.Far {
		return p
	}
	return filepath.Join(base, p)
}

func results() []*Op {
	return []*Op{
		show(Op{Name: "result show", Short: "Show a task's result", ForAgents: true}, arg("TASK", "task"),
			byTenant(func(c *Call) tenantRead[string, task.Result] { return c.Tasks.Result })),
		list(Op{
			Name: "result list", Short: "List the results, the last to come first", ForAgents: true,
			Statuses: core.Strings(task.Succeeded, task.Failed, task.Cancelled, task.Blocked, task.TimedOut),
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[task.Result]] { return c.Tasks.Results })),
	}
}
