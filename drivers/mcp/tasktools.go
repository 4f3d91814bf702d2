package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// stamp is a time as results show it.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func taskParam() param {
	return param{name: "task_id", kind: text, about: "id of the task", required: true, min: 1, max: 128}
}

type taskArg struct {
	TaskID string `json:"task_id"`
}

func statusNames() []string {
	var names []string
	for _, s := range task.Statuses() {
		names = append(names, string(s))
	}
	return names
}

func taskTools() []tool {
	return []tool{
		define("dispatch_task", "Dispatch a task",
			"Make a task of any kind, such as exec.run {\"argv\":[…]} or mcp.call {\"server\",\"tool\",\"args\"}. It is judged at its start and goes on after the call.",
			writes, []param{
				{name: "kind", kind: text, about: "kind of work: exec.run, agent.prompt, skill.invoke, mcp.call, …", required: true, min: 1, max: 128},
				{name: "input", kind: object, about: "input for that kind", required: true},
				{name: "priority", kind: integer, about: "higher runs first", def: 50, min: 0, max: 100},
				{name: "timeout_s", kind: integer, about: "seconds that one attempt may take", min: 1, max: 86400},
				{name: "max_attempts", kind: integer, about: "tries; 0 means one", def: 3, min: 0, max: 100},
				{name: "session_id", kind: text, about: "session that it belongs to", min: 1, max: 128},
				{name: "parent_task_id", kind: text, about: "task that it came from", min: 1, max: 128},
				{name: "idempotency_key", kind: text, about: "the same key again gives the first task", min: 1, max: 256},
				{name: "intent", kind: text, about: "what it is for, in a line for who must approve it", min: 1, max: 500},
				{name: "wait_s", kind: integer, about: "seconds to wait for its end", def: 0, min: 0, max: 50},
			}, dispatch),
		define("list_tasks", "List tasks", "List the tasks, newest first.", reads, append([]param{
			{name: "status", kind: text, about: "only of this status", enum: statusNames()},
			{name: "kind", kind: text, about: "only of this kind", min: 1, max: 128},
			{name: "agent_name", kind: text, about: "only of this agent", min: 1, max: 64},
			{name: "session_id", kind: text, about: "only of this session", min: 1, max: 128},
			{name: "match", kind: text, about: "only with this text", min: 1, max: 200},
		}, pageParams(core.DefaultPageSize)...), listTasks),
		define("show_task", "Show a task", "Show a task with its input, and its result once it is over.", reads, []param{taskParam()}, showTask),
		define("cancel_task", "Cancel a task", "Cancel a task that is not over.", destroys, []param{
			taskParam(),
			{name: "reason", kind: text, about: "why", min: 1, max: 500},
		}, cancelTask),
		define("why_task", "Say why a task waits", "Say what a task waits for.", reads, []param{taskParam()}, whyTask),
	}
}

type dispatchArgs struct {
	Kind           string   `json:"kind"`
	Input          core.Raw `json:"input"`
	Priority       *int     `json:"priority"`
	TimeoutS       int      `json:"timeout_s"`
	MaxAttempts    *int     `json:"max_attempts"`
	SessionID      string   `json:"session_id"`
	ParentTaskID   string   `json:"parent_task_id"`
	IdempotencyKey string   `json:"idempotency_key"`
	Intent         string   `json:"intent"`
	WaitS          int      `json:"wait_s"`
}

func dispatch(ctx context.Context, c *call, in dispatchArgs) (taskAnswer, error) {
	d := swarm.Dispatch{
		Kind: in.Kind, Input: in.Input, Priority: in.Priority, Timeout: time.Duration(in.TimeoutS) * time.Second,
		MaxAttempts: in.MaxAttempts, Session: in.SessionID, Parent: in.ParentTaskID, IdempotencyKey: in.IdempotencyKey,
		Intent: clean(in.Intent),
	}
	if d.IdempotencyKey != "" { // one caller's keys are not another's
		key, err := core.Digest([]string{c.id.String(), d.IdempotencyKey})
		if err != nil {
			return taskAnswer{}, err
		}
		d.IdempotencyKey = "mcp:" + key
	}
	if c.agent != nil { // what an agent starts comes from its task and draws on its session
		if d.Parent == "" {
			d.Parent = c.agent.TaskID
		}
		if d.Session == "" {
			d.Session = c.agent.SessionID
		}
	}
	if d.Parent == "" {
		d.Trace = cmp.Or(c.parent, c.trace)
	}
	t, err := c.eng.Swarm.Dispatch(ctx, c.by, d)
	if err != nil {
		return taskAnswer{}, err
	}
	if in.WaitS > 0 {
		wait, cancel := context.WithTimeout(ctx, time.Duration(in.WaitS)*time.Second)
		defer cancel()
		if t, err = c.eng.Tasks.Wait(wait, c.id.Tenant, t.TaskID, ""); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return taskAnswer{}, err
		}
	}
	v := viewTask(t)
	v.Input = nil // who called has it
	return taskAnswer{v, fmt.Sprintf("Task %s is %s", t.TaskID, t.Status)}, nil
}

type listTasksArgs struct {
	paging
	Status    string `json:"status"`
	Kind      string `json:"kind"`
	AgentName string `json:"agent_name"`
	SessionID string `json:"session_id"`
	Match     string `json:"match"`
}

type listTasksAnswer struct {
	Tasks []taskView `json:"tasks"`
	pageView
}

func listTasks(ctx context.Context, c *call, in listTasksArgs) (listTasksAnswer, error) {
	page, err := c.eng.Tasks.List(ctx, c.id.Tenant, core.Filter{
		Status: in.Status, Kind: in.Kind, Agent: in.AgentName, Session: in.SessionID, Match: in.Match, Page: in.Page, Size: in.PageSize,
	})
	return listTasksAnswer{views(page.Items, viewTask), viewPage(page.Info)}, err
}

type resultView struct {
	Status      task.Status `json:"status"`
	Output      core.Raw    `json:"output,omitempty"`
	ErrorCode   string      `json:"error_code,omitempty"`
	Error       string      `json:"error,omitempty"`
	CompletedAt string      `json:"completed_at"`
	Confidence  *float64    `json:"confidence,omitempty"`
	Denials     []string    `json:"denials" jsonschema:"decisions that denied something during the run"`
}

type showTaskAnswer struct {
	Task   taskView    `json:"task"`
	Result *resultView `json:"result,omitempty"`
}

func showTask(ctx context.Context, c *call, in taskArg) (showTaskAnswer, error) {
	t, err := c.eng.Tasks.Get(ctx, c.id.Tenant, in.TaskID)
	if err != nil {
		return showTaskAnswer{}, err
	}
	out := showTaskAnswer{Task: viewTask(t)}
	if !t.Status.Terminal() {
		return out, nil
	}
	r, err := c.eng.Tasks.Result(ctx, c.id.Tenant, in.TaskID)
	if errors.Is(err, core.Kind(core.NotFound)) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Result = &resultView{
		Status: r.Status, Output: r.Output, CompletedAt: stamp(r.CompletedAt), Confidence: r.Confidence,
		Denials: append([]string{}, r.Denials...),
	}
	if r.Error != nil {
		out.Result.ErrorCode, out.Result.Error = r.Error.Code, r.Error.Message
	}
	return out, nil
}

func cancelTask(ctx context.Context, c *call, in struct {
	taskArg
	Reason string `json:"reason"`
},
) (taskAnswer, error) {
	if in.Reason == "" {
		in.Reason = "cancelled by " + c.by.Name
	}
	t, err := c.eng.Swarm.Cancel(ctx, c.by, in.TaskID, clean(in.Reason))
	if err != nil {
		return taskAnswer{}, err
	}
	wait, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	if over, err := c.eng.Tasks.Wait(wait, c.id.Tenant, t.TaskID, ""); err == nil {
		t = over
	} else if !errors.Is(err, context.DeadlineExceeded) {
		return taskAnswer{}, err
	}
	is := string(t.Status)
	if !t.Status.Terminal() {
		is = "being cancelled"
	}
	return taskAnswer{viewTask(t), fmt.Sprintf("Task %s is %s", t.TaskID, is)}, nil
}

// cancelWait is how long a call waits for the work that it cancelled to end.
const cancelWait = 5 * time.Second

type whyAnswer struct {
	TaskID string      `json:"task_id"`
	Status task.Status `json:"status"`
	Kind   string      `json:"kind" jsonschema:"gate, lease, pause, budget, capacity, dependency, backoff, estop, session, or empty"`
	Text   string      `json:"text"`
	Ref    string      `json:"ref,omitempty" jsonschema:"approval, session, agent, budget or task to look at"`
}

func whyTask(ctx context.Context, c *call, in taskArg) (whyAnswer, error) {
	w, err := c.eng.Swarm.Why(ctx, c.id.Tenant, in.TaskID)
	return whyAnswer{w.TaskID, w.Status, w.Kind, w.Text, w.Ref}, err
}
