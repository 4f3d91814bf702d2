// Package fleet is the pane of everything that works: agents of every
// runtime, and running tasks that no agent runs.
package fleet

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	agents "swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/tasks"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "fleet"

// worker is one row: an agent, or a task that runs without one.
type worker struct {
	agent *agents.Agent
	task  *swarm.Task
}

// Pane lists the workers of the tenant.
type Pane struct {
	*pane.Table[worker]
	tasks  []swarm.Task // that are running
	reader pane.Reader[core.Page[swarm.Task]]
}

// New makes the pane.
func New() *Pane {
	p := &Pane{reader: pane.NewReader[core.Page[swarm.Task]](Name)}
	p.Table = pane.NewTable(pane.Spec[worker]{
		Name: Name, Title: "fleet", Empty: "no agents yet: press : and type agent create",
		Cols: []grid.Column{
			{Title: "STATE", Min: 11},
			{Title: "NAME", Min: 12, Weight: 2, Key: true, Middle: true},
			{Title: "ROLE", Min: 12, Weight: 1, Priority: 4},
			{Title: "TASK", Min: 20, Weight: 5, Priority: 2},
			{Title: "AGE", Min: 4, Priority: 3, Right: true},
			{Title: "WHY", Min: 18, Weight: 3, Priority: 1},
		},
		ID: id, Row: row, Item: item,
	})
	return p
}

// Refresh shows the snapshot's agents and asks for running tasks.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	p.rebuild(env)
	if env.Snap.Counts.ByStatus[swarm.Running] == 0 {
		if len(p.tasks) > 0 {
			p.tasks = nil
			p.rebuild(env)
		}
		return nil
	}
	world, tenant := env.World, env.Tenant
	return p.reader.Read(tenant, func(ctx context.Context) (core.Page[swarm.Task], error) {
		return world.Tasks(ctx, tenant, core.Filter{Status: string(swarm.Running), Page: 1, Size: core.MaxPageSize})
	})
}

// Update takes the running tasks.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	r, ok := p.reader.Take(env.Tenant, body)
	if !ok {
		return nil
	}
	if r.Err == nil {
		p.tasks = r.Got.Items
	}
	if r.Again {
		return p.Refresh(env)
	}
	p.rebuild(env)
	return nil
}

func (p *Pane) rebuild(env pane.Env) {
	all := make([]worker, 0, len(env.Snap.Agents)+len(p.tasks))
	for _, a := range env.Snap.Agents {
		all = append(all, worker{agent: a})
	}
	for i := range p.tasks {
		if t := &p.tasks[i]; t.Agent == "" && t.TenantID == env.Tenant {
			all = append(all, worker{task: t})
		}
	}
	p.SetRows(env, all)
}

func id(w *worker) string {
	if w.agent != nil {
		return w.agent.Name
	}
	return w.task.TaskID
}

func row(env *pane.Env, w *worker, set func(int, string, screen.Role)) {
	if w.task != nil {
		t := w.task
		st := pane.TaskState(env, t)
		set(0, st.Label(env.Glyphs), st.Role())
		set(1, t.TaskID, screen.Accent)
		set(2, t.Kind, screen.Dim)
		set(3, t.Title, screen.Text)
		set(4, pane.Age(env.Now, t.StartedAt), screen.Dim)
		if t.Waiting != "" {
			set(5, "approval", screen.Warn)
		}
		return
	}
	a := w.agent
	st := pane.AgentState(env, a)
	set(0, st.Label(env.Glyphs), st.Role())
	set(1, a.Name, screen.Accent)
	set(2, a.Role+"/"+a.Project, screen.Dim)
	task, taskRole := a.LastTask, screen.Text
	if a.TaskID == "" {
		taskRole = screen.Dim
	}
	set(3, task, taskRole)
	set(4, pane.Age(env.Now, a.UpdatedAt), screen.Dim)
	why, role := why(env, a)
	set(5, why, role)
}

// why is the reason for a state that is not plain work.
func why(env *pane.Env, a *agents.Agent) (string, screen.Role) {
	switch {
	case a.Waiting != "":
		for _, ask := range env.Snap.Approvals {
			if ask.ApprovalID == a.Waiting {
				return "asks: " + pane.Intent(ask), screen.Warn
			}
		}
		return "asks: " + a.Waiting, screen.Warn
	case a.Attention != "":
		return a.Attention, screen.Warn
	case a.Reason != "":
		return a.Reason, screen.Bad
	case a.LastStatus != "" && a.LastStatus != swarm.Succeeded:
		st := pane.StatusState(a.LastStatus)
		return st.Glyph(env.Glyphs) + " last task " + st.Word, st.Role()
	}
	return "", screen.Dim
}

func item(w *worker) pane.Item {
	if t := w.task; t != nil {
		return tasks.Item(t)
	}
	a := w.agent
	return pane.Item{
		Kind: "agent", ID: a.Name, Agent: a.Name, Task: a.TaskID, Session: a.SessionID, Approval: a.Waiting,
		Paused: a.Paused || a.Pausing,
	}
}
