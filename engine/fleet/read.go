package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
)

// Log is the conversation log of an agent, newest first, one line a page
// unless asked otherwise (model 2). The total counts all lines that are kept of
// those since the agent was created. f.Status is a level, f.Task a task; a filtered log is read
// through from its end.
func (f *roster) Log(ctx context.Context, tenant, name string, q core.Filter) (core.Page[task.LogLine], error) {
	var none core.Page[task.LogLine]
	if q.Size == 0 {
		q.Size = 1
	}
	q, err := q.Check()
	if err != nil {
		return none, err
	}
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return none, err
	}
	first, err := f.opt.Tasks.LogFirst(ctx, tenant, stream(name))
	if err != nil {
		return none, fmt.Errorf("read the log of agent %s: %w", name, err)
	}
	last, err := f.logEnd(ctx, tenant, name)
	if err != nil {
		return none, err
	}
	base := max(m.rec.Load().LogFrom, first-1)
	if q.Narrows() {
		return f.searchLog(ctx, tenant, name, q, base, last)
	}
	total := int(last - min(base, last))
	upto := last - min(uint64(q.Offset()), last)
	items, err := f.logTail(ctx, tenant, name, base, upto, q.Size)
	return core.NewPage(items, q, total), err
}

// logEnd is the newest line's number in an agent's log, 0 when it is empty.
func (f *roster) logEnd(ctx context.Context, tenant, name string) (uint64, error) {
	_, last, err := f.opt.Tasks.Log(ctx, tenant, stream(name), 0, 0)
	if err != nil {
		return 0, fmt.Errorf("read the log of agent %s: %w", name, err)
	}
	return last, nil
}

// logTail returns up to n lines of (base, upto], newest first.
func (f *roster) logTail(ctx context.Context, tenant, name string, base, upto uint64, n int) ([]task.LogLine, error) {
	if upto <= base {
		return nil, nil
	}
	n = int(min(uint64(n), upto-base))
	lines, _, err := f.opt.Tasks.Log(ctx, tenant, stream(name), upto-uint64(n)+1, n)
	if err != nil {
		return nil, fmt.Errorf("read the log of agent %s: %w", name, err)
	}
	slices.Reverse(lines)
	return lines, nil
}

// searchLog pages through the lines that match.
func (f *roster) searchLog(ctx context.Context, tenant, name string, q core.Filter, base, last uint64) (core.Page[task.LogLine], error) {
	const chunk = 1000
	g := core.Gather[task.LogLine]{Filter: q}
	for upto := last; upto > base; {
		lines, err := f.logTail(ctx, tenant, name, base, upto, chunk)
		if err != nil {
			return core.Page[task.LogLine]{}, err
		}
		if len(lines) == 0 {
			break
		}
		upto = lines[len(lines)-1].Seq - 1
		for _, l := range lines {
			if core.Wants(q.Status, l.Level) && core.Wants(q.Task, l.TaskID) && q.Within(l.Timestamp) && q.Finds(l.Message) {
				g.Add(l)
			}
		}
	}
	return g.Result(), nil
}

// reader is who reads; a foreign name is refused in its name.
func reader(tenant string) core.Caller { return core.Self(tenant, "reader") }

// Agent returns one agent.
func (f *roster) Agent(ctx context.Context, tenant, name string) (Agent, error) {
	m, err := f.find(ctx, reader(tenant), name)
	if err != nil {
		return Agent{}, err
	}
	return *f.shown(m, f.kept(tenant)), nil
}

// kept reports, when it is asked, whether a running fleet keeps a tenant's agents going,
// here or elsewhere. It finds out once.
func (f *roster) kept(tenant string) func() bool {
	return sync.OnceValue(func() bool {
		return f.running() || f.opt.Elsewhere != nil && f.opt.Elsewhere(tenant)
	})
}

// shown is an agent's record as readers see it. Only a running fleet makes
// agents work: without one, what a record says of a run is what an engine left
// that died, and nobody waits for an answer.
func (f *roster) shown(m *member, kept func() bool) *Agent {
	a := m.rec.Load()
	if !a.runs() || kept() {
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
func (f *roster) Live(tenant string) []*Agent {
	members, kept := f.members(tenant), f.kept(tenant)
	return core.Map(members, func(m *member) *Agent { return f.shown(m, kept) })
}

// Agents lists the agents, newest first. f.Status is one of the model's five,
// f.Kind a runtime, f.Agent a name, f.Session a session; Match looks into
// name, project, role, last task and reason.
func (f *roster) Agents(_ context.Context, tenant string, q core.Filter) (core.Page[Agent], error) {
	q, err := q.Check()
	if err != nil {
		return core.Page[Agent]{}, err
	}
	if q.Status != "" && !slices.Contains(statuses[:], AgentStatus(q.Status)) {
		return core.Page[Agent]{}, core.Invalid("status", q.Status, "starting, idle, busy, offline, failed")
	}
	var all []Agent
	for _, a := range f.Live(tenant) {
		if matches(a, q) {
			all = append(all, *a)
		}
	}
	core.Sort(all, func(a, b Agent) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return core.PageOf(all, q), nil
}

func matches(a *Agent, q core.Filter) bool {
	return core.Wants(q.Status, string(a.Status)) && core.Wants(q.Agent, a.Name) && core.Wants(q.Kind, a.Runtime) &&
		core.Wants(q.Session, a.SessionID) && core.Wants(q.Task, a.TaskID) && q.Trace == "" && // agents outlive traces
		q.Within(a.CreatedAt) && q.Finds(a.Name, a.Project, a.Role, a.LastTask, a.Reason)
}

// Counts are the numbers of a tenant's agents by status, kept by counters.
func (f *roster) Counts(ctx context.Context, tenant string) (map[AgentStatus]int64, error) {
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
func (f *roster) History(ctx context.Context, tenant, name string, q core.Filter) (core.Page[HistoryItem], error) {
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
func (f *roster) item(ctx context.Context, tenant string, t task.Task) (HistoryItem, error) {
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
	needs := full.Waiting != ""
	if m := f.member(tenant, full.Agent); m != nil {
		a := m.rec.Load()
		needs = needs || a.TaskID == full.TaskID && a.Stuck != nil
	}
	err = f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		_, asked, err := attention.Get(tx, record.Key(t.TaskID))
		needs = needs || asked
		return err
	})
	return HistoryItem{
		Message: p.Message, URI: p.URI, NeedsUserAttention: needs, CreatedAt: t.CreatedAt, TaskID: t.TaskID, Status: full.Status,
	}, err
}

// Runtimes are the names of the runtimes that an agent can be made with.
func (f *roster) Runtimes() []string { return slices.Sorted(maps.Keys(f.opt.Runtimes)) }

// Projects lists the projects by name.
func (f *roster) Projects(ctx context.Context, tenant string) ([]Project, error) {
	return record.Values(f.projects.List(ctx, tenant))
}

// Roles lists the roles by project and name; of one project when it is given.
func (f *roster) Roles(ctx context.Context, tenant, project string) (all []Role, err error) {
	if project == "" {
		return record.Values(f.roles.List(ctx, tenant))
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
