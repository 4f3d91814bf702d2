// Package task is the sheet of one task: its record, why it waits, input,
// result, and its live log below.
package task

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/tasks"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "task"

// Pane shows one task.
type Pane struct{ *pane.Detail[whole] }

// whole is a task with what else there is to say of it.
type whole struct {
	task   task.Task
	why    swarm.Reason
	result *task.Result
	ask    *judge.Approval // the one it waits for or ran under
	input  string          // indented
	output string
}

// New makes the pane.
func New() *Pane {
	return &Pane{pane.NewDetail(pane.DetailSpec[whole]{
		Name: Name, Fetch: fetch, Text: text, Live: true,
		Item: func(g *whole) pane.Item {
			it := tasks.Item(&g.task)
			if g.why.Kind == "gate" { // of a connection, the task itself does not wait
				it.Approval = g.why.Ref
			}
			return it
		},
		Title: func(env pane.Env, g *whole) string { return "task " + pane.TaskState(&env, &g.task).Label(env.Glyphs) },
		Log:   func(it pane.Item) string { return it.ID },
	})}
}

func fetch(w pane.World, ctx context.Context, tenant, id string) (g whole, err error) {
	if g.task, err = w.Task(ctx, tenant, id); err != nil {
		return g, err
	}
	g.input = pane.Pretty(g.task.Input)
	if ask := g.task.ApprovalID; ask != "" {
		a, err := w.Approval(ctx, tenant, ask)
		if err != nil {
			return g, err
		}
		g.ask = &a
	}
	if !g.task.Status.Terminal() {
		g.why, err = w.Why(ctx, tenant, id)
		return g, err
	}
	r, err := w.Result(ctx, tenant, id)
	switch {
	case err == nil:
		g.result, g.output = &r, pane.Pretty(r.Output)
	case !errors.Is(err, core.Kind(core.NotFound)):
		return g, err
	}
	return g, nil
}

func text(env pane.Env, g *whole, out *pane.Paras) {
	t := &g.task
	out.Exact("title", t.Title, screen.Title)
	st := pane.TaskState(&env, t)
	out.Add("status", st.Label(env.Glyphs), st.Role())
	if g.why.Kind != "" {
		why := g.why.Text
		if g.why.Ref != "" && !strings.Contains(why, g.why.Ref) {
			why += " (" + g.why.Ref + ")"
		}
		out.Add("waiting", why, screen.Warn)
	}
	out.Add("kind", t.Kind, screen.Text)
	if t.Kind == skill.KindInvoke {
		out.Link("subagent", t.Agent, screen.Accent, pane.Item{Kind: "subagent", ID: t.Agent})
	} else {
		out.Add("agent", t.Agent, screen.Accent)
	}
	out.Add("task", t.TaskID, screen.Accent)
	out.Add("approval", t.ApprovalID, screen.Accent)
	out.Add("parent", t.ParentTaskID, screen.Accent)
	out.Add("after", strings.Join(t.After, " "), screen.Accent)
	out.Add("session", t.SessionID, screen.Accent)
	attempt := strconv.Itoa(t.Attempt+1) + " of " + strconv.Itoa(max(t.MaxAttempts, 1))
	out.Add("attempt", attempt+", priority "+strconv.Itoa(t.Priority), screen.Text)
	if t.TimeoutS > 0 {
		out.Add("time-out", pane.Span(time.Duration(t.TimeoutS)*time.Second), screen.Text)
	}
	if by := t.StartBy(); !by.IsZero() {
		out.Add("start by", pane.Clock(env.Now, by)+", else it times out", screen.Warn)
	}
	out.Add("created", pane.When(env.Now, t.CreatedAt)+" by "+t.CreatedBy, screen.Text)
	out.Add("started", pane.When(env.Now, t.StartedAt), screen.Text)
	if !t.CompletedAt.IsZero() {
		out.Add("ended", pane.When(env.Now, t.CompletedAt)+", took "+t.CompletedAt.Sub(start(t)).Round(time.Millisecond).String(), screen.Text)
	}
	if !t.RunAt.IsZero() && !t.Status.Terminal() {
		out.Add("not before", pane.Clock(env.Now, t.RunAt), screen.Text)
	}
	if t.Denials > 0 {
		out.Add("denied", strconv.Itoa(t.Denials)+" tool calls in this run", screen.Warn)
	}
	out.Add("trace", t.TraceID, screen.Dim)
	if a := g.ask; a != nil {
		st := pane.ApprovalState(a)
		line := st.Label(env.Glyphs) + " " + pane.Intent(a)
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
		if r.Confidence != nil {
			out.Add("confidence", pane.Confidence(*r.Confidence), screen.Text)
		}
		out.Add("denials", strings.Join(r.Denials, " "), screen.Warn)
		out.Exact("output", g.output, screen.Text)
	}
	out.Head("input")
	out.Exact("", g.input, screen.Text)
}

func start(t *task.Task) time.Time {
	if t.StartedAt.IsZero() {
		return t.CreatedAt
	}
	return t.StartedAt
}
