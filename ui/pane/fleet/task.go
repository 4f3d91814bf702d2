package fleet

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Tasks are what the panes read of tasks; *task.Table has it.
type Tasks interface {
	pane.Logs
	Get(ctx context.Context, tenant, id string) (task.Task, error)
	List(ctx context.Context, tenant string, f core.Filter) (core.Page[task.Task], error)
	Result(ctx context.Context, tenant, id string) (task.Result, error)
	// Urgent are the tasks that a list by need begins with, ListFrom is a list that does.
	Urgent(ctx context.Context, tenant string, waiting []string) ([]uint64, error)
	ListFrom(ctx context.Context, tenant string, head []uint64, f core.Filter) (core.Page[task.Task], error)
}

// Swarm says what a task waits for; *swarm.Swarm does.
type Swarm interface {
	Why(ctx context.Context, tenant, id string) (swarm.Reason, error)
}

// Judge has the approvals that tasks wait for; *judge.Judge does.
type Judge interface {
	Approval(ctx context.Context, tenant, id string) (judge.Approval, error)
}

// wholeTask is a task with what else there is to say of it.
type wholeTask struct {
	task   task.Task
	why    swarm.Reason
	result *task.Result
	ask    *judge.Approval // the one it waits for or ran under
	input  string          // indented
	output string
}

// NewTask makes the sheet of one task: its record, why it waits, input, result,
// and its live log below.
func NewTask(of Tasks, swarm Swarm, judge Judge) *pane.Detail[wholeTask] {
	return pane.NewDetail(pane.DetailSpec[wholeTask]{
		Name: "task", Text: taskText, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (g wholeTask, err error) {
			if g.task, err = of.Get(ctx, tenant, id); err != nil {
				return g, err
			}
			g.input = pane.Pretty(g.task.Input)
			if ask := g.task.ApprovalID; ask != "" {
				a, err := judge.Approval(ctx, tenant, ask)
				if err != nil {
					return g, err
				}
				g.ask = &a
			}
			if !g.task.Status.Terminal() {
				g.why, err = swarm.Why(ctx, tenant, id)
				return g, err
			}
			r, err := of.Result(ctx, tenant, id)
			switch {
			case err == nil:
				g.result, g.output = &r, pane.Pretty(r.Output)
			case !errors.Is(err, core.Kind(core.NotFound)):
				return g, err
			}
			return g, nil
		},
		Item: func(g *wholeTask) pane.Item {
			it := taskItem(&g.task)
			if g.why.Kind == "gate" { // of a connection, the task itself does not wait
				it.Approval = g.why.Ref
			}
			return it
		},
		Title: func(*wholeTask) string { return "task" },
		State: func(env *pane.Env, g *wholeTask) pane.State { return pane.TaskState(env, &g.task) },
		Log:   func(it pane.Item) string { return it.ID }, Logs: of,
	})
}

func taskText(env pane.Env, g *wholeTask, out *pane.Paras) {
	t := &g.task
	out.Exact("title", t.Title, screen.Title)
	if g.why.Kind != "" {
		why := g.why.Text
		if g.why.Ref != "" && !strings.Contains(why, g.why.Ref) {
			why += " (" + g.why.Ref + ")"
		}
		out.Add("waiting", why, screen.Warn)
	}
	out.Fields(&env, t, "kind")
	kind := "agent"
	if t.Kind == skill.KindInvoke {
		kind = "subagent"
	}
	out.Link(kind, t.Agent, screen.Accent, pane.ItemOf(kind, t.Agent))
	out.Fields(&env, t, "task:task_id,accent approval:approval_id,opens parent:parent_task_id,opens=task after,argv,accent session:session_id,opens")
	attempt := strconv.Itoa(t.Attempt+1) + " of " + strconv.Itoa(max(t.MaxAttempts, 1))
	out.Add("attempt", attempt+", priority "+strconv.Itoa(t.Priority), screen.Text)
	out.Fields(&env, t, "time-out:timeout_s,s")
	if by := t.StartBy(); !by.IsZero() {
		out.Add("start by", pane.Clock(env.Now, by)+", else it times out", screen.Warn)
	}
	out.Add("created", pane.Made(env.Now, t.CreatedAt, t.CreatedBy), screen.Text)
	out.Fields(&env, t, "started:started_at")
	if !t.CompletedAt.IsZero() {
		out.Add("ended", pane.When(env.Now, t.CompletedAt)+", took "+t.CompletedAt.Sub(cmp.Or(t.StartedAt, t.CreatedAt)).Round(time.Millisecond).String(), screen.Text)
	}
	if !t.RunAt.IsZero() && !t.Status.Terminal() {
		out.Add("not before", pane.Clock(env.Now, t.RunAt), screen.Text)
	}
	if t.Denials > 0 {
		out.Add("denied", strconv.Itoa(t.Denials)+" tool calls in this run", screen.Warn)
	}
	out.Fields(&env, t, "trace:trace_id,dim")
	if a := g.ask; a != nil {
		st := pane.ApprovalState(a)
		line := st.Label(env.Glyphs) + " " + pane.Headline(a)
		if a.AnsweredBy != "" {
			line += " (" + a.AnsweredBy + " " + pane.Age(env.Now, a.AnsweredAt) + " ago: " + a.AnswerReason + ")"
		}
		out.Add("asked", line, st.Role())
	}
	if r := g.result; r != nil {
		out.Head("result")
		if r.Error != nil {
			out.Exact("error", r.Error.Code+": "+r.Error.Message, screen.Bad)
		}
		out.Add("confidence", pane.Confidence(r.Confidence), screen.Text)
		out.Add("denials", strings.Join(r.Denials, " "), screen.Warn)
		out.Exact("output", g.output, screen.Text)
	}
	out.Head("input")
	out.Exact("", g.input, screen.Text)
}

// TaskList is a tenant's tasks, those that need somebody first, over a history of any
// size: it holds only the pages around the window.
type TaskList struct {
	*pane.Table[task.Task]
	causes causes
	h      int
}

// NewTasks makes the pane.
func NewTasks(of Tasks) *TaskList {
	p := &TaskList{causes: newCauses("tasks", of)}
	p.Table = pane.NewTable(pane.Spec[task.Task]{
		Name: "tasks", Title: "tasks", Empty: "no tasks: press d to dispatch one",
		Face: face.For[task.Task](),
		Cells: map[string]pane.Cell[task.Task]{
			"STATUS": func(env *pane.Env, t *task.Task) (string, screen.Role) {
				return pane.TaskState(env, t).Cell(env)
			},
			"TITLE": func(env *pane.Env, t *task.Task) (string, screen.Role) {
				return cmp.Or(t.Title, t.Kind), screen.Text
			},
			"WHY": p.why,
		},
		Item: taskItem,
		Head: func(ctx context.Context, env pane.Env) ([]uint64, error) {
			var waiting []string
			for _, a := range env.Snap.Approvals {
				if a.TaskID != "" {
					waiting = append(waiting, a.TaskID)
				}
			}
			return of.Urgent(ctx, env.Tenant, waiting)
		},
		FetchFrom: of.ListFrom,
		Total:     func(env *pane.Env) int { return int(env.Snap.Counts.Total) },
	})
	return p
}

// why is what a task waits for a person to allow, or why it failed, as it was recorded.
func (p *TaskList) why(env *pane.Env, t *task.Task) (string, screen.Role) {
	switch {
	case t.Waiting != "" && !t.Status.Terminal():
		return "asks: " + pane.Asked(env, t.ApprovalID), screen.Warn
	case t.RetriedAs != "":
		return "retried as " + grid.Ending(t.RetriedAs), screen.Dim
	case failed(t):
		return p.causes.of(t.TaskID), screen.Bad
	}
	return "", screen.Dim
}

func failed(t *task.Task) bool { return t.Status.Terminal() && t.Status != task.Succeeded }

// Resize implements Pane.
func (p *TaskList) Resize(_, h int) { p.h = h }

// Update implements Pane.
func (p *TaskList) Update(env pane.Env, body any) tea.Cmd {
	var cmd tea.Cmd
	if !p.causes.take(env, body) {
		cmd = p.Table.Update(env, body)
	}
	return tea.Batch(cmd, p.learn(env))
}

// Do implements Pane.
func (p *TaskList) Do(env pane.Env, action string) (tea.Cmd, bool) {
	cmd, ok := p.Table.Do(env, action)
	return tea.Batch(cmd, p.learn(env)), ok
}

// learn reads why those in sight failed.
func (p *TaskList) learn(env pane.Env) tea.Cmd {
	var ids []string
	p.Sight(p.h, func(t *task.Task) {
		if failed(t) {
			ids = append(ids, t.TaskID)
		}
	})
	return p.causes.read(env, ids)
}

// taskItem is a task as a thing under the cursor.
func taskItem(t *task.Task) pane.Item {
	return pane.Item{
		Kind: "task", ID: t.TaskID, Task: t.TaskID, Agent: t.Agent, Session: t.SessionID,
		Trace: t.TraceID, Approval: t.ApprovalID, Paused: t.Paused,
	}
}
