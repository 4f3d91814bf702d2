// Package task is the sheet of one task: its record, why it waits, input,
// result, and its live log below.
package task

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "task"

// Pane shows one task.
type Pane struct {
	pane.Record
	pane.Split
	task swarm.Task
}

type got struct {
	task   swarm.Task
	why    swarm.Reason
	result *swarm.Result
	ask    *judge.Approval // the one it waits for or ran under
	input  string          // indented
	output string
	err    error
}

// New makes the pane.
func New() *Pane { return &Pane{Record: pane.NewRecord(Name), Split: pane.NewSplit(Name)} }

// Show implements pane.Pane.
func (p *Pane) Show(env pane.Env, it pane.Item) tea.Cmd {
	if p.Bind(it) {
		p.task = swarm.Task{}
		p.BindLog(it.ID)
	}
	return nil
}

// Reset implements pane.Pane.
func (p *Pane) Reset() {
	p.Record.Reset()
	p.BindLog("")
}

// Refresh reads the task and the end of its log.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	id := p.Item().ID
	world, tenant := env.World, env.Tenant
	return tea.Batch(p.RefreshLog(env), p.Read(func(ctx context.Context) any {
		var g got
		if g.task, g.err = world.Task(ctx, tenant, id); g.err != nil {
			return g
		}
		g.input = pane.Pretty(g.task.Input)
		if ask := g.task.ApprovalID; ask != "" {
			a, err := world.Approval(ctx, tenant, ask)
			if err != nil {
				g.err = err
				return g
			}
			g.ask = &a
		}
		if !g.task.Status.Terminal() {
			g.why, g.err = world.Why(ctx, tenant, id)
			return g
		}
		r, err := world.Result(ctx, tenant, id)
		switch {
		case err == nil:
			g.result, g.output = &r, pane.Pretty(r.Output)
		case !errors.Is(err, core.Kind(core.NotFound)):
			g.err = err
		}
		return g
	}))
}

// Update implements pane.Pane.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	if cmd, mine := p.TakeLog(env, body); mine {
		return cmd
	}
	reply, again, ok := p.Taken(body)
	if !ok {
		return nil
	}
	r := reply.(got)
	if r.err != nil {
		p.Page.Set([]pane.Para{{Text: r.err.Error(), Role: screen.Bad}})
	} else {
		p.task = r.task
		p.Page.Set(text(env, &r))
	}
	if again {
		return p.Refresh(env)
	}
	return nil
}

// Selected is the task as it was read.
func (p *Pane) Selected(pane.Env) pane.Item {
	it := p.Item()
	if t := &p.task; t.TaskID == it.ID {
		it.Task, it.Agent, it.Session, it.Trace, it.Approval = t.TaskID, t.Agent, t.SessionID, t.TraceID, t.ApprovalID
		it.Paused = t.Paused
	}
	return it
}

// Title implements pane.Pane.
func (p *Pane) Title(env pane.Env) string {
	if p.task.TaskID == "" {
		return p.Item().String()
	}
	return "task " + pane.TaskState(&env, &p.task).Label(env.Glyphs)
}

// Resize implements pane.Pane.
func (p *Pane) Resize(w, h int) { p.ResizeSplit(&p.Page, w, h) }

// Do implements pane.Pane.
func (p *Pane) Do(env pane.Env, action string) (tea.Cmd, bool) {
	return p.DoSplit(env, &p.Page, action)
}

// Filter searches the record and the log.
func (p *Pane) Filter(env pane.Env, find string) (tea.Cmd, error) {
	_, _ = p.Record.Filter(env, find)
	return p.FindSplit(env, find), nil
}

// Draw implements pane.Pane.
func (p *Pane) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	p.DrawSplit(c, env, &p.Page, focused)
}

func text(env pane.Env, g *got) []pane.Para {
	t := &g.task
	var out pane.Paras
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
	out.Add("agent", t.Agent, screen.Accent)
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
	return out
}

func start(t *swarm.Task) time.Time {
	if t.StartedAt.IsZero() {
		return t.CreatedAt
	}
	return t.StartedAt
}
