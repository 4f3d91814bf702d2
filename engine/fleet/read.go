package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
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
	from := min(q.Offset(), len(all))
	to := min(from+q.Size, len(all))
	items := make([]Agent, 0, to-from)
	for _, a := range all[from:to] {
		items = append(items, *a)
	}
	return core.NewPage(items, q, len(all)), nil
}

func matches(a *Agent, q core.Filter) bool {
	if q.Status != "" && q.Status != string(a.Status) || q.Agent != "" && q.Agent != a.Name ||
		q.Kind != "" && q.Kind != a.Runtime || q.Session != "" && q.Session != a.SessionID ||
		q.Task != "" && q.Task != a.TaskID || q.Trace != "" || !within(a.CreatedAt, q) { // agents outlive traces
		return false
	}
	return contains(q.Match, a.Name, a.Project, a.Role, a.LastTask, a.Reason)
}

// contains reports whether one of the texts holds want, whatever its case.
func contains(want string, texts ...string) bool {
	want = strings.ToLower(want)
	return want == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), want) })
}

// Counts are the numbers of a tenant's agents by status, kept by counters.
func (f *Fleet) Counts(ctx context.Context, tenant string) (map[AgentStatus]int64, error) {
	out := map[AgentStatus]int64{}
	err := f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for _, s := range statuses {
			out[s] = tx.Counter(countStatus(s))
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
	page, err := f.opt.Swarm.Tasks(ctx, tenant, q)
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
func (f *Fleet) item(ctx context.Context, tenant string, t swarm.Task) (HistoryItem, error) {
	full, err := f.opt.Swarm.Task(ctx, tenant, t.TaskID)
	if err != nil {
		return HistoryItem{}, err
	}
	p := prompt{Message: t.Title}
	if t.Kind == KindPrompt {
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
		text, err := tx.Get(bAttention, []byte(t.TaskID))
		item.NeedsUserAttention = item.NeedsUserAttention || text != nil
		return err
	})
	return item, err
}

// Runtimes are the names of the runtimes that an agent can be made with.
func (f *Fleet) Runtimes() []string { return slices.Sorted(maps.Keys(f.opt.Runtimes)) }

// Projects lists the projects by name.
func (f *Fleet) Projects(ctx context.Context, tenant string) ([]Project, error) {
	return list[Project](ctx, f, tenant, bProject, nil, nil)
}

// Roles lists the roles by project and name; of one project when it is given.
func (f *Fleet) Roles(ctx context.Context, tenant, project string) ([]Role, error) {
	if project == "" {
		return list[Role](ctx, f, tenant, bRole, nil, nil)
	}
	if err := checkLabel("project", project); err != nil {
		return nil, err
	}
	known, err := list[Project](ctx, f, tenant, bProject, []byte(project), []byte(project+"\x00"))
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, core.Missing("project", project)
	}
	return list[Role](ctx, f, tenant, bRole, []byte(project+"\x00"), []byte(project+"\x01"))
}

// list decodes the records of a bucket with keys in [from, to).
func list[T any](ctx context.Context, f *Fleet, tenant string, b store.Bucket, from, to []byte) ([]T, error) {
	var out []T
	err := f.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		var err error
		out, err = records[T](tx, b, from, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", b, err)
	}
	return out, nil
}

func records[T any](tx store.Tx, b store.Bucket, from, to []byte) ([]T, error) {
	var out []T
	var bad error
	err := tx.Scan(b, from, to, false, func(_, value []byte) bool {
		var v T
		if bad = core.DecodeStored(value, &v); bad == nil {
			out = append(out, v)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return out, err
}
