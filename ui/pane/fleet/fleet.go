// Package fleet has the panes of who works and on what: the fleet itself,
// agents, sessions, tasks and tenants.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	agents "swarmdeck/engine/fleet"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is that of the list, and its keymap scope.
const Name = "fleet"

// Agents are what the panes read of agents; *fleet.Fleet has it.
type Agents interface {
	// Activity is what an agent does, or did in its newest run; nil when that is
	// what is known, by its At.
	Activity(ctx context.Context, tenant, name string, known time.Time) (*agents.Activity, error)
	History(ctx context.Context, tenant, name string, f core.Filter) (core.Page[agents.HistoryItem], error)
	// Queued is what waits for an agent, the next first. It reads memory alone.
	Queued(tenant, name string) []*agents.Message
	Runtimes() []string
	Projects(ctx context.Context, tenant string) ([]agents.Project, error)
	Roles(ctx context.Context, tenant, project string) ([]agents.Role, error)
}

// Subagents run skills; *skill.Skills has them.
type Subagents interface {
	Subagents(ctx context.Context, tenant string, f core.Filter) (core.Page[skill.Subagent], error)
}

// failedShown is for how long, and failedMost how many of the newest
// subagents that failed stay in sight; the subagents pane has them all.
const (
	failedShown = 10 * time.Minute
	failedMost  = 10
)

// worker is one row: an agent, a subagent, or a task that runs without one.
type worker struct {
	agent *agents.Agent
	sub   *skill.Subagent
	cad   *cad.Agent
	task  *task.Task

	id          string
	made, since time.Time // it was made, and became what it is
}

// Columns of the list.
const (
	colState = iota
	colName
	colTask
	colWhy
	colAge
	colContext
	colCost
	colProject
	colRole
	colTokens
	colProfile
)

// List is everything that works: agents of every runtime, subagents that run
// skills, and running tasks that neither runs.
type List struct {
	*pane.Table[worker]
	agents  Agents
	subs    Subagents
	queue   Tasks
	tasks   []task.Task // that are running
	reader  pane.Reader[core.Page[task.Task]]
	failed  []skill.Subagent // newest first
	ends    pane.Reader[core.Page[skill.Subagent]]
	choices pane.Reader[choices]
	live    string // those that were live when failed was read
	causes  causes
}

// NewList makes the pane. Coding names the coding agents that can be added.
func NewList(of Agents, subs Subagents, queue Tasks, coding string) *List {
	empty := "no agents yet: press + to make one"
	if coding != "" {
		empty = "no agents yet: press B to bring in " + coding + "; + for any other"
	}
	p := &List{
		agents: of, subs: subs, queue: queue,
		causes: newCauses(Name, queue), choices: pane.NewReader[choices](Name), reader: pane.NewReader[core.Page[task.Task]](Name), ends: pane.NewReader[core.Page[skill.Subagent]](Name),
	}
	p.Table = pane.NewTable(pane.Spec[worker]{
		Name: Name, Title: "fleet", Empty: empty,
		Cols: []grid.Column{
			{Title: "STATE", Min: 11},
			{Title: "NAME", Min: 10, Weight: 3, Key: true, Middle: true},
			{Title: "TASK", Min: 12, Weight: 3, Priority: 2},
			{Title: "WHY", Min: 16, Weight: 4, Priority: 1},
			{Title: "AGE", Min: 4, Priority: 3, Right: true},
			{Title: "CTX", Min: 4, Priority: 5, Right: true},
			{Title: "COST", Min: 6, Priority: 4, Right: true},
			{Title: "PROJECT", Min: 6, Weight: 1, Priority: 6},
			{Title: "ROLE", Min: 8, Weight: 1, Priority: grid.Spare},
			{Title: "TOKENS", Min: 6, Priority: grid.Spare + 1, Right: true},
			{Title: "PROFILE", Min: 7, Priority: grid.Spare + 2},
		},
		ID: func(w *worker) string { return w.id }, Row: p.row, Item: item, Order: byNeed, Since: func(w *worker) time.Time { return w.since },
		Members: []pane.Member[worker]{
			{Name: "agent", Text: func(w *worker) string { return cmp.Or(w.of().Name, w.id) }},
		},
		Ranks: map[string]func(v any) float64{
			"AGE":    func(v any) float64 { return -float64(v.(*worker).since.UnixMicro()) },
			"TOKENS": func(v any) float64 { return float64(v.(*worker).of().Usage.Tokens) },
			"COST":   func(v any) float64 { return v.(*worker).of().Usage.CostUSD },
		},
	})
	return p
}

// Refresh shows the snapshot's agents and subagents, asks for running tasks,
// and for the subagents that failed when one is no longer live.
func (p *List) Refresh(env pane.Env) tea.Cmd {
	p.rebuild(env)
	tenant := env.Tenant
	cmds := []tea.Cmd{p.unknown(env)}
	if live := tenant + " " + liveIDs(env.Snap.Subagents); live != p.live {
		p.live = live
		cmds = append(cmds, p.ends.Read(tenant, func(ctx context.Context) (core.Page[skill.Subagent], error) {
			return p.subs.Subagents(ctx, tenant, core.Filter{Status: string(skill.Failed), Page: 1, Size: failedMost})
		}))
	}
	if env.Snap.Counts.ByStatus[task.Running] > 0 {
		cmds = append(cmds, p.reader.Read(tenant, func(ctx context.Context) (core.Page[task.Task], error) {
			return p.queue.List(ctx, tenant, core.Filter{Status: string(task.Running), Page: 1, Size: core.MaxPageSize})
		}))
	} else if len(p.tasks) > 0 {
		p.tasks = nil
		p.rebuild(env)
	}
	return tea.Batch(cmds...)
}

func liveIDs(live []*skill.Subagent) string {
	var b strings.Builder
	for _, a := range live {
		b.WriteString(a.AgentID)
	}
	return b.String()
}

// Update takes the running tasks, or the subagents that failed.
func (p *List) Update(env pane.Env, body any) tea.Cmd {
	if a, ok := p.choices.Take(env.Tenant, body); ok {
		if a.Err != nil {
			return pane.Say("what an agent can be made of is not known: "+a.Err.Error(), true)
		}
		return createForm(&a.Got).Ask()
	}
	if r, ok := p.ends.Take(env.Tenant, body); ok {
		if r.Err == nil {
			p.failed = r.Got.Items
		}
		if r.Again {
			p.live = ""
			return p.Refresh(env)
		}
		p.rebuild(env)
		return nil
	}
	r, ok := p.reader.Take(env.Tenant, body)
	if !ok {
		if p.causes.take(env, body) {
			return p.unknown(env) // there may be more
		}
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

// unknown reads why the last tasks of agents failed, as far as that is not known.
func (p *List) unknown(env pane.Env) tea.Cmd {
	var ids []string
	for _, a := range env.Snap.Agents {
		if a.LastStatus != "" && a.LastStatus != task.Succeeded {
			ids = append(ids, a.LastTaskID)
		}
	}
	return p.causes.read(env, ids)
}

func (p *List) Reset() {
	p.Table.Reset()
	p.tasks, p.failed, p.live = nil, nil, ""
}

func (p *List) rebuild(env pane.Env) {
	all := make([]worker, 0, len(env.Snap.CADAgents)+len(env.Snap.Agents)+len(env.Snap.Subagents)+len(p.failed)+len(p.tasks))
	for _, a := range env.Snap.Agents {
		all = append(all, worker{agent: a, id: a.Name, made: a.CreatedAt, since: a.UpdatedAt})
	}
	for _, a := range env.Snap.CADAgents {
		all = append(all, worker{cad: a, id: a.AgentID, made: a.CreatedAt.Time(), since: a.LastActive.Time()})
	}
	runs := make(map[string]bool, len(env.Snap.Subagents)) // ids of subagents
	for _, a := range env.Snap.Subagents {
		runs[a.AgentID] = true
		all = append(all, subagent(a))
	}
	for _, a := range p.Failed(env) {
		if !runs[a.AgentID] {
			all = append(all, subagent(a))
		}
	}
	for i := range p.tasks {
		if t := &p.tasks[i]; t.Agent == "" && t.TenantID == env.Tenant {
			all = append(all, worker{task: t, id: t.TaskID, made: t.CreatedAt, since: t.StartedAt})
		}
	}
	p.SetRows(env, all)
}

func subagent(a *skill.Subagent) worker {
	return worker{sub: a, id: a.AgentID, made: a.CreatedAt, since: a.UpdatedAt}
}

func (p *List) row(env *pane.Env, w *worker, set func(int, string, screen.Role)) {
	if w.sub != nil {
		subRow(env, w.sub, set)
		return
	}
	if w.cad != nil {
		cadRow(env, w.cad, set)
		return
	}
	if w.task != nil {
		t := w.task
		head(env, set, pane.TaskState(env, t), "task "+grid.Ending(t.TaskID), t.Kind, t.StartedAt)
		set(colTask, t.Title, screen.Text)
		if t.Waiting != "" {
			set(colWhy, "approval", screen.Warn)
		}
		return
	}
	a := w.agent
	head(env, set, pane.AgentState(env, a), a.Name, a.Role, a.UpdatedAt)
	set(colProject, a.Project, screen.Dim)
	task := screen.Text
	if a.TaskID == "" {
		task = screen.Dim
	}
	set(colTask, a.LastTask, task)
	set(colContext, pane.Context(a.Context), screen.Dim)
	set(colTokens, face.Tokens(a.Usage.Tokens), screen.Dim)
	set(colCost, pane.Cost(a.Usage.CostUSD), screen.Dim)
	text, role := p.why(env, a)
	profile, how := pane.Profile(a.Profile)
	set(colProfile, profile, how)
	if how == screen.Danger { // also where there is no room for its column
		text, role = strings.TrimSuffix(profile+", "+text, ", "), how
	}
	set(colWhy, text, role)
}

// head sets what all rows have: how it is, what it is called, its role and since when it
// is so.
func head(env *pane.Env, set func(int, string, screen.Role), st pane.State, name, role string, since time.Time) {
	set(colState, st.Label(env.Glyphs), st.Role())
	set(colName, name, screen.Accent)
	set(colRole, role, screen.Dim)
	set(colAge, pane.Age(env.Now, since), screen.Dim)
}

func subRow(env *pane.Env, a *skill.Subagent, set func(int, string, screen.Role)) {
	head(env, set, pane.SubagentState(env, a), a.Label(), "skill/"+string(a.State), a.UpdatedAt)
	doing := a.Skill
	if name, _, _ := strings.Cut(a.Skill, "@"); a.Step != "" && a.Step != name && !a.State.Final() {
		doing = a.Step + " for " + a.Skill
	}
	set(colTask, doing, screen.Text)
	text, role := pane.SubagentWhy(env, a)
	set(colWhy, text, role)
}

func cadRow(env *pane.Env, a *cad.Agent, set func(int, string, screen.Role)) {
	head(env, set, pane.CADAgentState(a), a.AgentID, "cad/"+a.Role, a.LastActive.Time())
	doing, role := a.Operation, screen.Text
	if doing == "" {
		doing, role = a.WorkspaceID, screen.Dim
	}
	set(colTask, doing, role)
	switch {
	case a.ViolationsInRow >= cad.Stubborn:
		set(colWhy, fmt.Sprintf("%d times in a row what its role forbids", a.ViolationsInRow), screen.Warn)
	case a.Status == cad.Failing && len(a.ErrorLog) > 0:
		set(colWhy, a.ErrorLog[len(a.ErrorLog)-1], screen.Bad)
	}
}

// why is the reason for a state that is not plain work, as it was recorded.
func (p *List) why(env *pane.Env, a *agents.Agent) (string, screen.Role) {
	switch ask := pane.Asking(env, a); {
	case a.Waiting != "":
		return "asks: " + pane.Asks(env, a), screen.Warn
	case ask != nil:
		return "asks: " + pane.Headline(ask), screen.Warn
	case a.Attention != "":
		return a.Attention, screen.Warn
	case a.Stuck != nil:
		return a.Stuck.Text, screen.Warn
	case a.Reason != "":
		return a.Reason, screen.Bad
	case a.LastStatus != "" && a.LastStatus != task.Succeeded:
		st := pane.StatusState(a.LastStatus)
		if a.LastStatus == task.Failed {
			return st.Glyph(env.Glyphs) + " " + p.causes.of(a.LastTaskID), st.Role()
		}
		return st.Label(env.Glyphs) + ": " + p.causes.of(a.LastTaskID), st.Role()
	}
	return "", screen.Dim
}

func item(w *worker) pane.Item {
	if t := w.task; t != nil {
		return taskItem(t)
	}
	if w.sub != nil {
		return pane.SubagentItem(w.sub)
	}
	if w.cad != nil {
		return pane.CADAgentItem(w.cad)
	}
	return agentItem(w.agent)
}

// agentItem is an agent as a thing under the cursor.
func agentItem(a *agents.Agent) pane.Item {
	return pane.Item{
		Kind: agentName, ID: a.Name, Agent: a.Name, Task: a.TaskID, Session: a.SessionID, Approval: a.Waiting,
		Paused: a.Paused || a.Pausing,
	}
}

// Failed are the newest subagents that failed in the last minutes, newest
// first, as far as they were read.
func (p *List) Failed(env pane.Env) []*skill.Subagent {
	var out []*skill.Subagent
	for i := range p.failed {
		if a := &p.failed[i]; a.TenantID == env.Tenant && env.Now.Sub(a.CompletedAt) < failedShown {
			out = append(out, a)
		}
	}
	return out
}
