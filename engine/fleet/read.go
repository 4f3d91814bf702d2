package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// reader is who reads; a foreign name is refused in its name.
func reader(tenant string) core.Caller { return core.Self(tenant, "reader") }

// Agent returns one agent.
func (f *Fleet) Agent(ctx context.Context, tenant, name string) (Agent, error) {
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return Agent{}, err
	}
	return *f.shown(m), nil
}

// shown is an agent's record as readers see it. Only a running fleet makes
// agents work: without one, what a record says of a run is what an engine left
// that died, and nobody waits for an answer.
func (f *Fleet) shown(m *member) *Agent {
	a := m.rec.Load()
	if !a.runs() || f.running() {
		return a
	}
	c := *a
	c.letGo()
	if a.works() && !a.Stopped {
		c.Status, c.Reason = Offline, "its engine has ended; the next one goes on with it"
	}
	return &c
}

// Live returns the agents of a tenant by name. The records are shared: they
// must not be modified.
func (f *Fleet) Live(tenant string) []*Agent {
	members := f.members(tenant)
	out := make([]*Agent, len(members))
	for i, m := range members {
		out[i] = f.shown(m)
	}
	return out
}

// Agents lists the agents, newest first. f.Status is one of the seed's five,
// f.Kind a runtime, f.Agent a name, f.Session a session; Match looks into
// name, project, role, last task and reason.
func (f *Fleet) Agents(_ context.Context, tenant string, q core.Filter) (core.Page[Agent], error) {
	q, err := q.Check()
	if err != nil {
		return core.Page[Agent]{}, err
	}
	if q.Status != "" && !slices.Contains(statuses[:], AgentStatus(q.Status)) {
		return core.Page[Agent]{}, core.Invalid("status", q.Status, "starting, idle, busy, offline, failed")
	}
	all := f.Live(tenant)
	all = slices.DeleteFunc(all, func(a *Agent) bool { return !matches(a, q) })
	slices.SortStableFunc(all, func(a, b *Agent) int { return b.CreatedAt.Compare(a.CreatedAt) })
	page := core.PageOf(all, q)
	items := make([]Agent, len(page.Items))
	for i, a := range page.Items {
		items[i] = *a
	}
	return core.Page[Agent]{Items: items, Info: page.Info}, nil
}

func matches(a *Agent, q core.Filter) bool {
	return core.Wants(q.Status, string(a.Status)) && core.Wants(q.Agent, a.Name) && core.Wants(q.Kind, a.Runtime) &&
		core.Wants(q.Session, a.SessionID) && core.Wants(q.Task, a.TaskID) && q.Trace == "" && // agents outlive traces
		q.Within(a.CreatedAt) && q.Finds(a.Name, a.Project, a.Role, a.LastTask, a.Reason)
}

// Counts are the numbers of a tenant's agents by status, kept by counters.
func (f *Fleet) Counts(ctx context.Context, tenant string) (map[AgentStatus]int64, error) {
	out := map[AgentStatus]int64{}
	err := f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for _, s := range statuses {
			out[s] = f.agents.Counted(tx, countStatus, string(s))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the agents of %s: %w", tenant, err)
	}
	return out, nil
}

// History lists the tasks of an agent, newest first: those since it was
// created, not those of an earlier agent of its name. A page past the end is
// empty.
func (f *Fleet) History(ctx context.Context, tenant, name string, q core.Filter) (core.Page[HistoryItem], error) {
	var none core.Page[HistoryItem]
	q, err := q.Check()
	if err != nil {
		return none, err
	}
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return none, err
	}
	q.Agent = name
	if a := m.rec.Load(); a.Reused && q.Since.Before(a.CreatedAt) {
		q.Since = a.CreatedAt
	}
	page, err := f.opt.Tasks.List(ctx, tenant, q)
	if err != nil {
		return none, err
	}
	out := core.Page[HistoryItem]{Items: make([]HistoryItem, 0, len(page.Items)), Info: page.Info}
	for _, t := range page.Items {
		item, err := f.item(ctx, tenant, t)
		if err != nil {
			return none, err
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// item is a task as the agent's history shows it. One of another kind that was
// meant for the agent has no message but its title.
func (f *Fleet) item(ctx context.Context, tenant string, t task.Task) (HistoryItem, error) {
	full, err := f.opt.Tasks.Get(ctx, tenant, t.TaskID)
	if err != nil {
		return HistoryItem{}, err
	}
	p := prompt{Message: t.Title}
	if t.Kind == KindPrompt && !core.IsErased(full.Input) {
		if p, err = readPrompt(full.Input); err != nil {
			return HistoryItem{}, fmt.Errorf("read task %s: %w", t.TaskID, err)
		}
	}
	item := HistoryItem{Message: p.Message, URI: p.URI, CreatedAt: t.CreatedAt, TaskID: t.TaskID, Status: full.Status}
	item.NeedsUserAttention = full.Waiting != ""
	if m := f.member(tenant, full.Agent); m != nil {
		a := m.rec.Load()
		item.NeedsUserAttention = item.NeedsUserAttention || a.TaskID == full.TaskID && a.Stuck != nil
	}
	err = f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		_, asked, err := attention.Get(tx, record.Key(t.TaskID))
		item.NeedsUserAttention = item.NeedsUserAttention || asked
		return err
	})
	return item, err
}

// Runtimes are the names of the runtimes that an agent can be made with.
func (f *Fleet) Runtimes() []string { return slices.Sorted(maps.Keys(f.opt.Runtimes)) }

// Projects lists the projects by name.
func (f *Fleet) Projects(ctx context.Context, tenant string) ([]Project, error) {
	return f.projects.List(ctx, tenant)
}

// Roles lists the roles by project and name; of one project when it is given.
func (f *Fleet) Roles(ctx context.Context, tenant, project string) (all []Role, err error) {
	if project == "" {
		return f.roles.List(ctx, tenant)
	}
	if err := checkLabel("project", project); err != nil {
		return nil, err
	}
	return all, f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		known, err := f.projects.At(tx, record.Key(project))
		if err != nil {
			return err
		}
		if known == nil {
			return core.Missing("project", project)
		}
		return f.roles.Under(tx, record.Text(project), func(r *Role) error {
			all = append(all, *r)
			return nil
		})
	})
}
